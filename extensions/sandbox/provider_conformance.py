"""What every provider does, as tests: derive a class from `ProviderConformance` and give it the `Backend` of the provider.

Made for other collections as well. The fixtures are those of `pytest_plugin`, so name that in `pytest_plugins`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ...plugins.module_utils.common.types import Object
from ...plugins.module_utils.kube import transport
from ...plugins.module_utils.kube.errors import Invalid, KubeError
from ...plugins.module_utils.lock.fenced_writer import diff
from ...plugins.module_utils.providers.base import NotSupported, Provider
from ...plugins.module_utils.providers.model import Addon, IdentityProvider, ObservedCluster, ResourceSet
from .access import Access, until
from .api_proxy import ApiProxy
from .provider_backend import NONE, Backend
from .pytest_plugin import fresh_namespace

# Shorter words are no secrets, they name a context or a kind; nor are addresses.
LEAST_SECRET = 20
MOST_REQUESTS = 100
# What a provider may not support, each with a call of it. It must raise before it reads anything.
OPTIONAL: dict[str, Callable[[Provider], Any]] = {
    "kubeconfig": lambda provider: provider.kubeconfig(NONE),
    "dns": lambda provider: provider.dns(NONE),
    "cloud_providers": lambda provider: provider.cloud_providers(),
    "regions": lambda provider: provider.regions("aws"),
    "add_identity_provider": lambda provider: provider.add_identity_provider(NONE, IdentityProvider("staff", "HTPasswd")),
    "remove_identity_provider": lambda provider: provider.remove_identity_provider(NONE, "staff"),
    "apply_resources": lambda provider: provider.apply_resources(NONE, ResourceSet("base")),
    "remove_resources": lambda provider: provider.remove_resources(NONE, "base"),
    "scale": lambda provider: provider.scale(NONE, "small", 1),
    "install_addon": lambda provider: provider.install_addon(NONE, Addon("logging")),
}
# Those of them that only read: with a cut they return the same, or a retryable error.
READS: dict[str, Callable[[ObservedCluster, Provider], Any]] = {
    "kubeconfig": lambda spec, provider: provider.kubeconfig(spec).content,
    "dns": lambda spec, provider: provider.dns(spec),
    "cloud_providers": lambda _spec, provider: provider.cloud_providers(),
    "regions": lambda _spec, provider: provider.regions("aws"),
}
STAFF = IdentityProvider("staff", "HTPasswd", secrets={"htpasswd": "ann:$2y$05$of-no-account\nbob:$2y$05$of-no-account\n"})


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def changed(provider: Provider) -> list[str]:
    """What the provider did, or in check mode would do."""
    return [f"{change.action} {change.item['kind']}" for change in provider.changes if change.changed]


def secrets_of(value: Any) -> Iterator[str]:
    """All strings in a request's secrets, however deep."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from secrets_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from secrets_of(inner)
    elif isinstance(value, str) and len(value) > LEAST_SECRET and not value.startswith(("http://", "https://")):
        yield value


class ProviderConformance:
    """The suite. A subclass whose name begins with Test gives the `BACKEND`, and the fixture of the `HUB` if it has another one."""

    BACKEND: ClassVar[type[Backend]]
    HUB: ClassVar[str] = "hub"

    @pytest.fixture
    def backend(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
        """A backend without any cluster."""
        with self._opened(request, tmp_path) as opened:
            yield opened

    @pytest.fixture(scope="class")
    @classmethod
    def running(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
        """A backend whose cluster demo is ready, for tests that leave it as it is: it may take a minute to become ready."""
        with cls._opened(request, tmp_path_factory.mktemp("running")) as opened:
            opened.ready()
            yield opened

    @classmethod
    @contextlib.contextmanager
    def _opened(cls, request: pytest.FixtureRequest, folder: Path) -> Iterator[Backend]:
        provider_hub: Access = request.getfixturevalue(cls.HUB)
        with fresh_namespace(provider_hub) as namespace, ApiProxy(provider_hub.kubeconfig, folder).open() as proxy:
            opened = cls.BACKEND(provider_hub, namespace, proxy)
            with opened.undo:
                yield opened

    @pytest.fixture(autouse=True)
    def _without_waits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Many requests fail here on purpose, and the client would wait before each retry."""
        monkeypatch.setattr(transport, "FIRST_WAIT", 0.001)

    # Create, update

    def test_create_returns_at_once_and_status_follows_until_it_is_ready(self, backend: Backend) -> None:
        assert backend.provider().status(NONE) == NONE
        provider = backend.provider()
        spec = provider.create(backend.asked(backend.request()))
        assert spec.status in ("cluster_accepted", "cluster_provisioning", "cluster_provisioned"), spec
        assert spec.exists
        assert spec.internal_id
        assert changed(provider)
        ready = backend.ready()
        assert (ready.internal_id, ready.status_details) == (spec.internal_id, "")
        assert ready.is_true("Available")
        assert ready.installed

    def test_create_finds_what_is_there_and_leaves_it(self, backend: Backend) -> None:
        first = backend.create()
        for request in (backend.request(), backend.changed_request()):
            provider = backend.provider()
            again = provider.create(backend.asked(request))
            assert changed(provider) == []
            assert again.internal_id == first.internal_id
        assert not backend.has_changed("demo")

    def test_create_finds_a_cluster_that_is_ready(self, running: Backend) -> None:
        provider = running.provider()
        assert provider.create(running.asked(running.request())).status == "ready"
        assert changed(provider) == []

    def test_cluster_is_found_with_what_was_kept_of_it_and_without(self, backend: Backend) -> None:
        created = backend.create()
        kept = ObservedCluster.from_stored(json.loads(json.dumps(created.to_stored())))
        assert backend.provider().status(kept).internal_id == created.internal_id
        assert backend.provider().status(NONE).internal_id == created.internal_id

    def test_update_changes_what_is_asked_for_and_nothing_the_second_time(self, backend: Backend) -> None:
        spec = backend.ready()
        provider = backend.provider()
        provider.update(spec, backend.asked(backend.request()))
        assert changed(provider) == [], "nothing else is asked for than before"
        assert not backend.has_changed("demo")
        provider.update(spec, backend.asked(backend.changed_request()))
        assert changed(provider)
        assert backend.has_changed("demo")
        provider = backend.provider()
        provider.update(spec, backend.asked(backend.changed_request()))
        assert changed(provider) == []

    def test_check_mode_predicts_a_creation_and_creates_nothing(self, backend: Backend) -> None:
        provider = backend.provider(check_mode=True)
        assert provider.create(backend.asked(backend.request())).exists
        assert changed(provider)
        assert backend.provider().status(NONE).is_absent

    def test_check_mode_predicts_what_would_change_and_changes_nothing(self, running: Backend) -> None:
        spec = running.provider().status(NONE)
        provider = running.provider(check_mode=True)
        provider.update(spec, running.asked(running.changed_request()))
        assert changed(provider)
        assert not running.has_changed("demo")
        provider = running.provider(check_mode=True)
        provider.delete(spec)
        assert changed(provider)
        assert running.provider().status(spec).status == "ready"

    def test_failure_is_reported_with_its_reason(self, backend: Backend) -> None:
        spec = backend.create()
        reason = backend.fail("demo")

        def is_reported() -> bool:
            backend.advance("demo")
            observed = backend.provider().status(spec)
            return observed.exists and observed.status != "ready" and reason in observed.status_details

        until(is_reported, f"the status says {reason!r}")

    def test_settings_that_it_does_not_know_are_refused(self, backend: Backend) -> None:
        with pytest.raises(Invalid, match=r"no_such_setting"):
            backend.asked(replace(backend.request(), settings={**backend.request().settings, "no_such_setting": 1}))

    def test_secrets_are_in_nothing_that_is_shown(self, backend: Backend) -> None:
        provider = backend.provider()
        request = backend.asked(backend.request())
        spec = provider.create(request)
        shown = f"{json.dumps(diff(provider.changes))} {spec} {request} {json.dumps(spec.to_stored())}"
        assert [secret for secret in secrets_of(request.secrets) if secret in shown] == []

    # Delete

    def test_delete_is_false_until_it_is_gone_and_true_after(self, backend: Backend) -> None:
        spec = backend.ready()
        with backend.hold("demo"):
            provider = backend.provider()
            assert provider.delete(spec) is False
            assert changed(provider)
            assert backend.provider().delete(spec) is False
            assert not backend.provider().status(spec).is_absent
        backend.deleted()
        provider = backend.provider()
        assert provider.delete(spec) is True
        assert changed(provider) == []

    def test_delete_of_what_never_existed_is_done_already(self, backend: Backend) -> None:
        provider = backend.provider()
        assert provider.delete(NONE) is True
        assert changed(provider) == []

    def test_cluster_can_be_created_again_after_it_was_deleted(self, backend: Backend) -> None:
        backend.create()
        backend.deleted()
        assert backend.create().exists

    # Errors

    def test_unreachable_backend_is_a_retryable_error(self, backend: Backend) -> None:
        provider, request = backend.unreachable()
        with pytest.raises(KubeError, match=r"(?i)does not answer|connection|reach") as caught:
            provider.create(backend.asked(request))
        assert caught.value.retryable
        assert backend.provider().status(NONE).is_absent

    def test_refused_credentials_are_an_error_that_names_them(self, backend: Backend) -> None:
        provider, request = backend.refused()
        with pytest.raises(KubeError, match=r"(?i)credentials|token|kubeconfig") as caught:
            provider.create(backend.asked(request))
        assert not caught.value.retryable
        assert backend.provider().status(NONE).is_absent

    @pytest.mark.parametrize("answer_is_lost", [False, True], ids=["request lost", "answer lost"])
    def test_backend_that_dies_in_the_middle_of_create_loses_nothing(self, backend: Backend, answer_is_lost: bool) -> None:
        """At each request in turn, for a cluster of its own; the next run finishes what the cut one began."""
        for at in range(1, MOST_REQUESTS):
            name = f"cut-{at}"
            request = backend.asked(backend.request())
            with backend.cut(at, answer_is_lost) as lost:
                _tried(partial(backend.provider(name).create, request))
            provider = backend.provider(name)
            provider.create(request)
            provider.update(NONE, request)
            assert backend.provider(name).status(NONE).exists
            provider = backend.provider(name)
            provider.update(NONE, request)
            assert changed(provider) == []
            if not lost:
                break
            if at > 1:
                backend.provider(name).delete(NONE)  # the first and the last are enough to become ready
        assert at > 1
        backend.ready(name)
        assert backend.ready("cut-1").status == "ready"

    @pytest.mark.parametrize("answer_is_lost", [False, True], ids=["request lost", "answer lost"])
    def test_backend_that_dies_in_the_middle_of_any_other_call_loses_nothing(self, backend: Backend, answer_is_lost: bool) -> None:
        spec = backend.ready()
        cut_everywhere(backend, answer_is_lost, lambda provider: provider.status(spec))
        cut_everywhere(backend, answer_is_lost, lambda provider: provider.update(spec, backend.asked(backend.changed_request())))
        assert backend.has_changed("demo")
        for what, read in READS.items():
            if what not in backend.UNSUPPORTED:
                self._reads_the_same(backend, answer_is_lost, partial(read, spec))
        for what, cut in (
            ("add_identity_provider", self._cut_identity_provider),
            ("scale", self._cut_scale),
            ("install_addon", self._cut_addon),
        ):
            if what not in backend.UNSUPPORTED:
                cut(backend, answer_is_lost, spec)
        if "apply_resources" not in backend.UNSUPPORTED:
            items = [config_map(f"{backend.namespace}-{number}", a="1") for number in range(2)]
            for wanted in (items, items[:1]):
                resource_set = ResourceSet(backend.namespace, wanted)
                cut_everywhere(backend, answer_is_lost, methodcaller("apply_resources", spec, resource_set))
                assert [item for item in items if backend.found(item, "demo")] == wanted
            cut_everywhere(backend, answer_is_lost, lambda provider: provider.remove_resources(spec, backend.namespace))
            assert [item for item in items if backend.found(item, "demo")] == []
        cut_everywhere(backend, answer_is_lost, lambda provider: provider.delete(spec))
        backend.deleted()

    @pytest.mark.parametrize("answer_is_lost", [False, True], ids=["request lost", "answer lost"])
    def test_what_a_run_that_died_brought_into_the_cluster_is_known_to_the_next(self, running: Backend, answer_is_lost: bool) -> None:
        if "apply_resources" in running.UNSUPPORTED:
            pytest.skip("it has none")
        spec = running.provider().status(NONE)
        item = config_map(running.namespace, a="1")
        for at in range(1, MOST_REQUESTS):
            with running.cut(at, answer_is_lost) as lost:
                _tried(lambda: running.provider().apply_resources(spec, ResourceSet(running.namespace, [item])))
            until(lambda: running.provider().remove_resources(spec, running.namespace), "the set is gone")
            assert running.found(item, "demo") is None
            if not lost:
                break

    @staticmethod
    def _reads_the_same(backend: Backend, answer_is_lost: bool, read: Callable[[Provider], Any]) -> None:
        expected = _answer(read, backend.provider())
        answers: list[Any] = []
        cut_everywhere(backend, answer_is_lost, lambda provider: answers.append(_answer(read, provider)))
        assert answers
        assert [answer for answer in answers if answer != expected] == []

    @staticmethod
    def _cut_identity_provider(backend: Backend, answer_is_lost: bool, spec: ObservedCluster) -> None:
        add, remove = methodcaller("add_identity_provider", spec, STAFF), methodcaller("remove_identity_provider", spec, STAFF.name)
        add(backend.provider())
        whole = backend.parts_of(STAFF.name, "demo")
        assert whole
        for call, wanted in ((remove, []), (add, whole)):
            cut_everywhere(backend, answer_is_lost, call)
            assert backend.parts_of(STAFF.name, "demo") == wanted
            _changes_nothing(backend, call)

    @staticmethod
    def _cut_scale(backend: Backend, answer_is_lost: bool, spec: ObservedCluster) -> None:
        first = backend.provider().node_sets(spec)[0]
        nodes = (first.requested or 0) + 1
        scale = methodcaller("scale", spec, first.resource_class, nodes)
        cut_everywhere(backend, answer_is_lost, scale)
        _changes_nothing(backend, scale)
        asked = {found.resource_class: found.requested for found in scale(backend.provider()).node_sets}
        assert asked[first.resource_class] == nodes

    @staticmethod
    def _cut_addon(backend: Backend, answer_is_lost: bool, spec: ObservedCluster) -> None:
        install = methodcaller("install_addon", spec, Addon(backend.ADDON))
        cut_everywhere(backend, answer_is_lost, install)
        _changes_nothing(backend, install)

        def is_ready() -> bool:
            backend.advance("demo")
            return bool(install(backend.provider()))

        until(is_ready, f"the add-on {backend.ADDON} is ready")

    # Beyond the cluster itself

    def test_unsupported_methods_raise_not_supported(self, backend: Backend) -> None:
        provider = backend.provider()
        for what, call in OPTIONAL.items():
            if what not in backend.UNSUPPORTED:
                assert getattr(type(provider), what) is not getattr(Provider, what), f"{what} is not implemented"
                continue
            with pytest.raises(NotSupported, match=rf"The provider {backend.TYPE} does not support ") as caught:
                call(provider)
            assert caught.value.provider == backend.TYPE
            assert not caught.value.retryable

    def test_kubeconfig_is_that_of_the_cluster_and_its_version_stays(self, backend: Backend, running: Backend) -> None:
        if "kubeconfig" in backend.UNSUPPORTED:
            pytest.skip("it has none")
        with pytest.raises(KubeError, match=r"demo"):
            backend.provider().kubeconfig(NONE)
        spec = running.provider().status(NONE)
        first, second = (running.provider().kubeconfig(spec) for _time in range(2))
        assert first == second
        assert first.version
        assert first.content["clusters"]

    def test_resources_are_applied_changed_and_removed(self, running: Backend) -> None:
        if "apply_resources" in running.UNSUPPORTED:
            pytest.skip("it has none")
        spec = running.provider().status(NONE)
        one, two, foreign = (config_map(f"{running.namespace}-{name}", a="1") for name in ("one", "two", "foreign"))
        name = running.namespace

        provider = running.provider(check_mode=True)
        provider.apply_resources(spec, ResourceSet(name, [one, two]))
        assert changed(provider)
        assert [item for item in (one, two) if running.found(item, "demo")] == []

        running.provider().apply_resources(spec, ResourceSet(name, [one, two]))
        running.provider().apply_resources(spec, ResourceSet(f"{name}-2", [foreign]))
        assert [item for item in (one, two, foreign) if running.found(item, "demo")] == [one, two, foreign]
        provider = running.provider()
        provider.apply_resources(spec, ResourceSet(name, [one, two]))
        assert changed(provider) == []

        provider = running.provider()
        provider.apply_resources(spec, ResourceSet(name, [one | {"data": {"b": "2"}}]))
        assert changed(provider)
        found = running.found(one, "demo")
        assert found
        assert found["data"] == {"b": "2"}
        assert [item for item in (two, foreign) if running.found(item, "demo")] == [foreign]

        until(lambda: running.provider().remove_resources(spec, name), "the set is gone")
        assert [item for item in (one, two, foreign) if running.found(item, "demo")] == [foreign]
        provider = running.provider()
        assert provider.remove_resources(spec, name) is True
        assert changed(provider) == []
        until(lambda: running.provider().remove_resources(spec, f"{name}-2"), "the other set is gone")


def cut_everywhere(backend: Backend, answer_is_lost: bool, call: Callable[[Provider], Any]) -> None:
    """Make the call again and again, with the cut one request later each time, until it gets through."""
    for at in range(1, MOST_REQUESTS):
        with backend.cut(at, answer_is_lost) as lost:
            _tried(lambda: call(backend.provider()))
        if not lost:
            return
    raise AssertionError(f"the call still makes requests after {MOST_REQUESTS}")


def _changes_nothing(backend: Backend, call: Callable[[Provider], Any]) -> None:
    provider = backend.provider()
    call(provider)
    assert changed(provider) == []


def _tried(call: Callable[[], Any]) -> None:
    """Make a call that may fail, if it says in a line that it can be tried again."""
    try:
        call()
    except KubeError as error:
        assert error.retryable, error
        assert str(error)
        assert len(str(error).splitlines()) == 1, error


def _answer(read: Callable[[Provider], Any], provider: Provider) -> Any:
    """What is answered, which may also be that there is no such thing."""
    try:
        return read(provider)
    except KubeError as error:
        if error.retryable:
            raise
        return str(error)
