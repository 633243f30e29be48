"""Which versions an order gets, and why an order is refused, case by case."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.accept import accept_profiles
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.errors import InvalidProfiles
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.lock_file import ProfilesLock
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.profile_offer import parse_offer
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.profile_rules import read_rules

from ..http_server import Reply, serving
from .charts_in_memory import ChartsInMemory

REPOSITORIES = {"acme": {"url": "https://charts.example.com"}}


class Site:
    """A site with charts, profiles, and a template that has rules for them."""

    def __init__(self, charts: dict[str, Any], profiles: dict[str, Any] | None = None, rules: dict[str, Any] | None = None) -> None:
        self.charts = ChartsInMemory(
            {name: item if isinstance(item, dict) else {version: {} for version in item.split()} for name, item in charts.items()}
        )
        self.problems: list[str] = []
        self.profiles = {name: {"repository": "acme"} | (profiles or {}).get(name, {}) for name in profiles or charts}
        self.rules = read_rules({"profiles": rules}, self.problems)
        assert not self.problems

    def lock(self, *given: dict[str, Any] | str, before: str = "") -> ProfilesLock:
        return ProfilesLock.from_json(self.text(*given, before=before))

    def text(self, *given: dict[str, Any] | str, before: str = "") -> str:
        template: Any = SimpleNamespace(id="openfleet.clusters.small", profile_rules=self.rules)
        offer = parse_offer(REPOSITORIES, self.profiles, self.problems)
        assert not self.problems, self.problems
        wanted = [{"name": item} if isinstance(item, str) else item for item in given]
        return accept_profiles(template, {"gitops": {"profiles": wanted}}, offer, self.charts, before)

    def refused(self, *given: dict[str, Any] | str, before: str = "") -> list[str]:
        with pytest.raises(InvalidProfiles) as error:
            self.text(*given, before=before)
        return error.value.problems


def versions(lock: ProfilesLock) -> dict[str, str]:
    return {item.name: item.version for item in lock.profiles}


NO_RANGE = "is not a range of versions such as '>=1.2 <2', '^1.2', '~1.2' or '1.x'"
TWO = {"a": "1.0.0 1.1.0 2.0.0 2.1.0-rc.1", "b": "1.0.0 1.2.0"}


@pytest.mark.parametrize(
    ("profiles", "rules", "given", "expected"),
    [
        ({}, None, ["a", "b"], {"a": "2.0.0", "b": "1.2.0"}),
        ({}, None, [{"name": "a", "version": "^1"}], {"a": "1.1.0"}),
        ({}, None, [{"name": "a", "version": "1.0.0"}], {"a": "1.0.0"}),
        ({}, None, [{"name": "a", "version": ">=2.1.0-0"}], {"a": "2.1.0-rc.1"}),
        ({"a": {"versions": "<2"}}, None, ["a"], {"a": "1.1.0"}),
        ({"a": {"versions": "<2"}}, {"a": {"version": "<1.1"}}, ["a"], {"a": "1.0.0"}),
        ({}, {"a": {"required": True}}, [], {"a": "2.0.0"}),
        ({}, {"a": {"required": True, "editable": ["version"]}}, [{"name": "a", "version": "<2"}], {"a": "1.1.0"}),
        ({}, {"a": {"required": True}}, [{"name": "mine", "chart": "a"}], {"mine": "2.0.0"}),
        ({}, None, [{"name": "one", "chart": "a"}, {"name": "two", "chart": "a", "version": "<2"}], {"one": "2.0.0", "two": "1.1.0"}),
        ({"a": {"requires": {"b": "<1.2"}}, "b": {}}, None, ["a"], {"a": "2.0.0", "b": "1.0.0"}),
        ({"a": {"requires": {"b": "<1.2"}}, "b": {}}, None, ["a", "b"], {"a": "2.0.0", "b": "1.0.0"}),
        ({"a": {"requires": {"b": "<1.2"}}, "b": {}}, None, ["b", "a"], {"a": "2.0.0", "b": "1.0.0"}),
    ],
)
def test_the_newest_version_within_all_ranges(profiles: Any, rules: Any, given: Any, expected: dict[str, str]) -> None:
    site = Site(TWO, {name: profiles.get(name, {}) for name in TWO}, rules)
    assert versions(site.lock(*given)) == expected


@pytest.mark.parametrize(
    ("profiles", "rules", "given", "problem"),
    [
        ({}, None, ["aa"], "profile 1 is aa, which is not on offer (did you mean a?); on offer: a, b"),
        ({}, {"b": {}}, ["a"], "profile 1 is a, which is not on offer; on offer: b"),
        ({"a": {"templates": ["large"]}}, None, ["a"], "profile 1 is a, which is not on offer; on offer: b"),
        (
            {},
            None,
            [{"name": "a", "version": ">=9"}],
            "profile a: no version of a in acme matches >=9; the newest are 2.1.0-rc.1, 2.0.0, 1.1.0",
        ),
        ({"a": {"chart": "gone"}}, None, ["a"], "profile a: no version of gone in acme matches any version; the newest are none"),
        ({}, None, [{"name": "a", "version": "newest"}], f"profile a: version {NO_RANGE}"),
        ({}, None, [{"name": "a", "version": 1}], f"profile a: version {NO_RANGE}"),
        ({}, None, ["a", {"name": "a", "chart": "b"}], "the name a is used twice: give each profile a name of its own"),
        ({}, None, [{"name": "A!"}], "profile 1 must have a name of up to 40 lower-case letters, digits and dashes"),
        ({}, None, [{"chart": "a"}], "profile 1 must have a name of up to 40 lower-case letters, digits and dashes"),
        ({}, None, [{"name": "a", "layer": "1"}], "profile a: layer must be an integer from -1000 to 1000"),
        ({}, None, [{"name": "a", "namespace": "no/such"}], "profile a: namespace must be the name of a namespace"),
        ({}, None, [{"name": "a", "values": [1]}], "profile a: values must be a mapping"),
        ({}, None, [{"name": "a", "repository": "mine"}], "profile a: repository is not known"),
        (
            {},
            {"a": {"editable": ["version"]}},
            [{"name": "a", "values": {"x": 1}, "layer": 2}],
            "profile a: layer, values cannot be set: the template has the values",
        ),
        (
            {},
            {"a": {"required": True}},
            [{"name": "a", "version": "1.0.0"}],
            "profile a: version cannot be set: the template has the values",
        ),
        ({}, {"c": {"required": True}}, [], "the template requires the profile c, which the site does not offer"),
        (
            {},
            {"a": {"required": True}, "b": {}},
            [{"name": "a", "chart": "b"}],
            "the name a is that of a profile that the template requires: use another name",
        ),
        ({"a": {"requires": {"b": ">=3"}}}, None, ["a", "b"], "a 2.0.0 needs b >=3, and the order has b 1.2.0"),
        ({"a": {"requires": {"b": ">=3"}}}, None, ["a"], "a 2.0.0 needs b >=3, and the order has b 1.2.0"),
        ({"a": {"requires": {"b": ""}}}, {"a": {}}, ["a"], "a 2.0.0 needs b, which is not on offer"),
        (
            {"a": {"requires": {"b": ""}}},
            None,
            ["a", {"name": "b", "chart": "a"}],
            "a 2.0.0 needs b, and the name b is that of another profile: use another name for that",
        ),
        ({"a": {"conflicts": ["b"]}}, None, ["a", "b"], "a 2.0.0 cannot be installed beside b 1.2.0"),
        ({"a": {"conflicts": ["b"]}}, None, ["b", "a"], "a 2.0.0 cannot be installed beside b 1.2.0"),
        ({"a": {"conflicts": ["a"]}}, None, ["a", {"name": "again", "chart": "a"}], "a 2.0.0 cannot be installed beside again 2.0.0"),
        (
            {"a": {"requires": {"b": ""}, "layer": 1}, "b": {"layer": 2}},
            None,
            ["a"],
            "a in layer 1 needs b, which is in layer 2: put b into layer 1 or lower",
        ),
        ({"a": {"requires": {"b": ""}}, "b": {"requires": {"a": ""}}}, None, ["a"], "these need each other: a -> b -> a"),
    ],
)
def test_an_order_is_refused_with_the_reason(profiles: Any, rules: Any, given: Any, problem: str) -> None:
    site = Site(TWO, {name: profiles.get(name, {}) for name in TWO}, rules)
    assert site.refused(*given) == [problem]


def test_all_mistakes_are_named_at_once() -> None:
    assert len(Site(TWO).refused("x", {"name": "a", "layer": True}, {"name": "b", "values": 1, "version": "?"})) == 4


def test_an_older_version_is_taken_where_the_newest_do_not_fit_together() -> None:
    charts = {
        "a": {"1.0.0": {"requires": {"c": "<2"}}, "2.0.0": {"requires": {"c": ">=2"}}},
        "b": {"1.0.0": {"requires": {"c": "<2"}}},
        "c": {"1.5.0": {}, "2.5.0": {}},
    }
    assert versions(Site(charts).lock("a", "b")) == {"a": "1.0.0", "b": "1.0.0", "c": "1.5.0"}
    assert versions(Site(charts).lock("c", "a", "b")) == {"a": "1.0.0", "b": "1.0.0", "c": "1.5.0"}
    assert Site(charts).refused({"name": "a", "version": "2.0.0"}, "b") == ["b 1.0.0 needs c <2, and the order has c 2.5.0"]


def test_needs_of_needs_are_added() -> None:
    charts = {"a": {"1.0.0": {"requires": {"b": ""}}}, "b": {"1.0.0": {"requires": {"c": ">=1"}}}, "c": {"1.0.0": {}}}
    lock = Site(charts).lock("a")
    assert versions(lock) == {"a": "1.0.0", "b": "1.0.0", "c": "1.0.0"}
    assert {item.name: item.dependsOn for item in lock.profiles} == {"a": ("b",), "b": ("c",), "c": ()}


@pytest.mark.parametrize(
    ("given", "profile", "rule", "annotation", "expected"),
    [
        ({"layer": 4}, 3, 2, 1, 4),
        ({}, 3, 2, 1, 2),
        ({}, 3, None, 1, 3),
        ({}, None, None, 1, 1),
        ({}, None, None, None, 0),
        ({"layer": -1}, 3, 2, 1, -1),
    ],
)
def test_the_layer_is_that_of_the_order_then_template_site_and_chart(
    given: Any, profile: Any, rule: Any, annotation: Any, expected: int
) -> None:
    charts = {"a": {"1.0.0": {} if annotation is None else {"layer": annotation}}}
    profiles = {"a": {} if profile is None else {"layer": profile}}
    site = Site(charts, profiles, {"a": {} if rule is None else {"layer": rule}})
    assert site.lock({"name": "a"} | given).profiles[0].layer == expected


def test_values_are_merged_from_site_template_and_order() -> None:
    profiles = {"a": {"values": {"x": {"site": 1, "both": 1}, "list": [1]}, "namespace": "tools"}}
    site = Site({"a": "1.0.0"}, profiles, {"a": {"values": {"x": {"both": 2, "template": 2}}}})
    (locked,) = site.lock({"name": "a", "values": {"x": {"order": 3}, "list": [3]}}).profiles
    assert locked.values == {"x": {"site": 1, "both": 2, "template": 2, "order": 3}, "list": [3]}
    assert locked.namespace == "tools"


SCHEMA = {
    "type": "object",
    "required": ["size"],
    "additionalProperties": False,
    "properties": {"size": {"type": "integer", "minimum": 1}, "mode": {"enum": ["s", "m"]}, "key": {"type": "string", "pattern": "^k"}},
}


@pytest.mark.parametrize(
    ("schema", "values", "problems"),
    [
        (SCHEMA, {"mode": "s"}, []),
        (SCHEMA, {"size": "three"}, ["a 1.0.0: values.size does not fit the schema of the chart: type integer"]),
        (SCHEMA, {"size": 0}, ["a 1.0.0: values.size does not fit the schema of the chart: minimum 1"]),
        (SCHEMA, {"size": None}, ["a 1.0.0: values must have size"]),
        (SCHEMA, {"sise": 1}, ["a 1.0.0: values has a key that the chart does not know"]),
        (SCHEMA, {"key": "s3cret"}, ["a 1.0.0: values.key does not fit the schema of the chart: pattern ^k"]),
        ({"type": "nonsense"}, {}, ["a 1.0.0: values cannot be checked: the schema of the chart is not a JSON Schema"]),
        (
            {"$ref": "http://127.0.0.1:1/schema.json"},
            {},
            ["a 1.0.0: values cannot be checked: the schema of the chart refers to another document, which is not fetched, or to itself"],
        ),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"required": ["x"]}}}, {}, ["a 1.0.0: values must have x"]),
    ],
)
def test_values_are_checked_against_the_schema_of_the_chart_without_being_shown(schema: Any, values: Any, problems: list[str]) -> None:
    site = Site({"a": {"1.0.0": {"schema": schema, "values": {"size": 1}}}})
    given = {"name": "a", "values": values}
    assert (site.refused(given) if problems else site.text(given) and []) == problems


def test_a_schema_in_another_document_is_never_fetched() -> None:
    with serving(lambda _request: Reply(200, b"{}")) as other:
        site = Site({"a": {"1.0.0": {"schema": {"$ref": f"{other.url}/schema.json"}}}})
        assert "which is not fetched" in site.refused("a")[0]
    assert other.asked == []


def test_values_nested_too_deeply_are_refused() -> None:
    deep: Any = {}
    for _level in range(200):
        deep = {"a": deep}
    assert Site({"a": "1.0.0"}).refused({"name": "a", "values": deep}) == ["a 1.0.0: values are nested deeper than 50"]


def test_an_unchanged_order_keeps_its_lock_and_asks_no_repository() -> None:
    before = Site(TWO).text("a", {"name": "b", "values": {"x": 1}})
    newer = Site({"a": "9.0.0", "b": "9.0.0"})
    assert newer.text("a", {"name": "b", "values": {"x": 1}}, before=before) == before
    assert newer.charts.repository.asked == []


def test_only_what_changed_is_resolved() -> None:
    before = Site(TWO).text("a", "b")
    newer = Site(TWO | {"a": "9.0.0", "c": "1.0.0"})
    assert versions(newer.lock("a", "b", "c", before=before)) == {"a": "2.0.0", "b": "1.2.0", "c": "1.0.0"}
    assert {asked.split()[1] for asked in newer.charts.repository.asked} == {"c"}
    assert versions(newer.lock("a", before=before)) == {"a": "2.0.0"}


def test_other_values_are_no_upgrade_and_another_range_is() -> None:
    before = Site(TWO).text("a", {"name": "b", "version": "1.0.0"})
    newer = Site(TWO | {"a": "1.0.0 2.0.0 3.0.0"})
    assert versions(newer.lock({"name": "a", "values": {"x": 1}}, before=before)) == {"a": "2.0.0"}
    assert versions(newer.lock({"name": "a", "version": ">=3"}, before=before)) == {"a": "3.0.0"}
    assert versions(newer.lock({"name": "b", "version": "^1"}, before=before)) == {"b": "1.0.0"}


def test_a_need_of_a_new_profile_does_not_change_what_the_order_has() -> None:
    before = Site(TWO).text({"name": "b", "version": "1.0.0"})
    newer = Site(TWO | {"c": {"1.0.0": {"requires": {"b": ">=1.2"}}}})
    given = {"name": "b", "version": "1.0.0"}
    assert newer.refused(given, "c", before=before) == ["c 1.0.0 needs b >=1.2, and the order has b 1.0.0"]
    assert versions(newer.lock("b", "c", before=before)) == {"b": "1.2.0", "c": "1.0.0"}


def test_what_nothing_needs_any_more_is_removed() -> None:
    site = Site(TWO, {"a": {"requires": {"b": ""}}, "b": {}})
    assert versions(site.lock(before=site.text("a"))) == {}


def test_a_profile_that_the_site_withdraws_stays_with_its_orders() -> None:
    before = Site(TWO).text("a", "b")
    site = Site(TWO, {"b": {}})
    assert versions(site.lock("a", "b", before=before)) == {"a": "2.0.0", "b": "1.2.0"}
    assert site.refused({"name": "a", "values": {"x": 1}}, before=before) == [
        "profile a: a is no longer on offer: leave it as it was, or remove it"
    ]


def test_a_version_that_the_repository_replaced_is_refused() -> None:
    before = Site(TWO).text("a")
    other = Site({"a": {"2.0.0": {"salt": "another"}}})
    (problem,) = other.refused({"name": "a", "values": {"x": 1}}, before=before)
    assert problem.startswith("a 2.0.0 is another chart than it was")


def test_many_versions_that_never_fit_end_with_a_message() -> None:
    many = {f"{number}.0.0": {"requires": {"last": f">{number}"}} for number in range(60)}
    charts = dict.fromkeys(("a", "b", "c"), many) | {"last": {"0.0.1": {}}}
    (problem,) = Site(charts).refused("a", "b", "c")
    assert "too many combinations" in problem and "set exact versions" in problem


def test_the_lock_file_has_digests_and_no_answer_of_today() -> None:
    document = json.loads(Site(TWO, {"a": {"layer": 3}, "b": {}}).text("a", "b"))
    assert [(item["name"], item["layer"], item.get("dependsOn", [])) for item in document["profiles"]] == [
        ("b", 0, []),
        ("a", 3, ["b"]),
    ]
    assert all(item["digest"].startswith("sha256:") for item in document["profiles"])
    assert document["repositories"] == {"acme": {"url": "https://charts.example.com"}}
