"""The documentation against the code it describes: links, commands, YAML, options, fields, tables. Its style, and words of all files."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.dev.lint import GATES, SLOWEST
from ansible_collections.openfleet.clusters.extensions.sandbox.__main__ import _parser
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.status import FAULT, Faults
from ansible_collections.openfleet.clusters.extensions.sandbox.replication import faults as replication
from ansible_collections.openfleet.clusters.plugins.doc_fragments import kubernetes, platform, s3
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.metrics import Metrics, State
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.rulebook_events import ENDPOINTS, TRANSITIONS
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import OPTIONS, WEBHOOK
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.condition_types import TYPES as GITOPS
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles import errors as profile_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import (
    agent_hosts,
    host_choice,
    host_claims,
    site_settings,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import errors as infrastructure_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import errors as kube_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import renewer
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import conditions, ownership, prepare
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ObservedState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status import derive_status
from ansible_collections.openfleet.clusters.plugins.module_utils.providers import base, factory
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import BUILT_IN, ProviderFactory
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm import account
from ansible_collections.openfleet.clusters.plugins.module_utils.templates import errors as templates

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULE = "python -m ansible_collections.openfleet.clusters.extensions.sandbox"

PLAYBOOKS = {path.stem for path in (ROOT / "playbooks").glob("*.yml")}
RULEBOOKS = {path.stem for path in (ROOT / "rulebooks").glob("*.yml")}
MODULES = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")}
KINDS = ("plugins/inventory", "plugins/lookup", "extensions/eda/plugins/event_source")
PLUGINS = {path.stem for kind in KINDS for path in (ROOT / kind).glob("*.py")}
TEMPLATES = {path.parents[1].name for path in (ROOT / "roles").glob("*/meta/template.yml")}
ROLES = {path.name for path in (ROOT / "roles").iterdir()}
GROUPS = set(yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["action_groups"])

FENCE = re.compile(r"^( *)(`{3,}|~{3,})(\w*)[^\n]*\n(.*?)^ *\2 *$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(`+)((?:(?!\n\n).)+?)\1", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)|^ *\[[^\]]+\]: *<?([^>\s]+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?) *#* *$", re.MULTILINE)
MAKE = re.compile(r"^(?:\$ )?make ((?:[A-Z]+=\S+ )*)([a-z][a-z-]*)", re.MULTILINE)
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
OURS = re.compile(r"(?<!ansible_collections\.)\bopenfleet\.clusters\.(\w+)")
EXTRA = re.compile(r"-e (\w+)=")
# A variable that a playbook does not set itself: it says what happens without it.
TAKEN = re.compile(r"(?<![.\w])(\w+) \| default\(")
BOX = re.compile(r'(\w+)[\[({]+"|participant (\w+)')
LIBRARY = ROOT / "plugins" / "module_utils"
PACKAGES = sorted(path.parent for path in LIBRARY.rglob("__init__.py") if path.parent != LIBRARY)
WIDTH, MOST_BOXES = 120, 15
# Words for which Kubernetes and Ansible have their own: reconcile, observe, cache, pending, release, skip, permission,
# fix.
UNUSUAL = re.compile(
    r"\b(take[ns]? up|took up|put(s|ting)? down|carr(y|ies|ied) (\w+ ){0,2}out|looker|world|is seen|mirror(s|ed)?|wish(es)?"
    r"|gives? back|given back|gave back|the lead|left alone|doors?|intakes?|keepers?|rights|is well|whoever|nobody|somebody|anybody"
    r"|everybody|someone|mend(s|ed)?|go(es)? away|went away|gone away|told(?! apart)|no one|looks well|anew|looks? at|looked at)\b",
    re.IGNORECASE,
)
# Where a word of these is right, as it is that of something else: path, word, reason.
ALLOWED = [
    ("docs/gitops.md", "mirror", "the host name of a registry mirror"),
    ("docs/running.md", "mirror", "a path of a registry mirror"),
    ("extensions/sandbox/hypershift/status.py", "is well", "HyperShift's own message"),
    ("extensions/sandbox/replication/groups.py", "mirrored", "synchronous storage mirrors volumes"),
    ("extensions/sandbox/replication/status.py", "mirrored", "the same"),
    ("tests/unit/sandbox/test_replication_status.py", "mirrored", "the same"),
    ("tests/integration/sandbox/test_workloads_standin.py", "mirror", "the host name of a registry mirror"),
    ("tests/unit/gitops/test_flux_manifests.py", "mirror", "a web server with copies of manifests"),
    ("tests/unit/sandbox/test_workload_status.py", "mirror", "the host name of a registry mirror"),
    ("tests/integration/kube/test_client.py", "someone", "a host name"),
]
WORDS_OF_NAMES = re.compile(r"_|(?<=[a-z0-9])(?=[A-Z])|\s+(?:(?:#|//|\*)\s+)?")
SOURCES = ("*.py", "*.yml", "*.yaml", "*.md", "*.js", "*.go", "*.rst")
DIAGRAM = "flowchart TD\n" + "".join(f'  {name}["{name}"]\n  a --> {name}\n' for name in "abcdefghijklmno")
SANDBOX = re.compile(rf"(?:\bopenfleet-sandbox|{re.escape(MODULE)})((?: +[^\s`]+)+)")


@dataclass(frozen=True)
class Page:
    """The text of a page, and where it is; a link counts from there."""

    path: Path
    text: str

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """Language and content of each fenced block."""
        return [(found[3], textwrap.dedent(found[4])) for found in FENCE.finditer(self.text)]

    @property
    def prose(self) -> str:
        return FENCE.sub("", self.text)

    @property
    def code(self) -> list[str]:
        """What stands in fences and in backticks. Diagrams are pictures, not code."""
        blocks = [content for language, content in self.blocks if language != "mermaid"]
        return blocks + [found[2] for found in CODE_SPAN.finditer(self.prose)]

    @property
    def anchors(self) -> set[str]:
        """The headings as GitHub makes anchors of them; one that comes again gets a number."""
        seen: dict[str, int] = {}
        anchors = set()
        for found in HEADING.finditer(self.prose):
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1])
            anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            anchors.add(f"{anchor}-{seen[anchor]}" if anchor in seen else anchor)
            seen[anchor] = seen.get(anchor, 0) + 1
        return anchors


def read(path: Path) -> Page:
    return Page(path, path.read_text(encoding="utf-8"))


def bad_links(page: Page) -> Iterator[str]:
    for found in LINK.finditer(CODE_SPAN.sub("", page.prose)):
        link = found[1] or found[2]
        if re.match(r"[a-z]+:", link):
            continue
        name, _hash, anchor = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        if not (target.is_relative_to(ROOT) and target.exists()):
            yield f"{link}: there is no such file"
        elif anchor and anchor not in (page if target == page.path else read(target)).anchors:
            yield f"{link}: there is no such heading"


def incomplete_contents(page: Page) -> Iterator[str]:
    """A page that begins with a list of its sections lists all of them, in their order."""
    introduction, *sections = re.split(r"^## +", page.prose, flags=re.MULTILINE)
    listed = re.findall(r"^- \[(.+)\]\(#", introduction, re.MULTILINE)
    titles = [section.partition("\n")[0] for section in sections]
    if listed and listed != titles:
        yield f"the list of sections differs from the headings: {titles}"


def bad_make_targets(page: Page) -> Iterator[str]:
    known = set(TARGET.findall((ROOT / "Makefile").read_text()))
    for code in page.code:
        yield from (f"make {found[2]}: no such target" for found in MAKE.finditer(code) if found[2] not in known)


def bad_sandbox_commands(page: Page) -> Iterator[str]:
    for code in page.code:
        for found in SANDBOX.finditer(code):
            if "{{" in found[1]:
                continue  # the beginning of a command in a variable
            arguments = command_line(found[1])
            try:
                _parser().parse_args(arguments)
            except SystemExit:
                yield f"openfleet-sandbox {' '.join(arguments)}: refused"


def command_line(text: str) -> list[str]:
    """The words up to where the shell would end the command: a comment, a pipe, a bracket."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.wordchars += "<>" if re.search(r"<\w+>", text) else ""
    words = []
    for word in lexer:
        if set(word) <= set("();<>|&"):
            break
        words.append(word)
    return words


def bad_yaml(page: Page) -> Iterator[str]:
    for language, content in page.blocks:
        if language in ("yaml", "yml"):
            try:
                list(yaml.safe_load_all(content))
            except yaml.YAMLError as error:
                yield f"no YAML: {error}"


def bad_names(page: Page) -> Iterator[str]:
    known = PLAYBOOKS | RULEBOOKS | MODULES | PLUGINS | ROLES | GROUPS
    for code in page.code:
        yield from (f"{found[0]}: there is no such thing here" for found in OURS.finditer(code) if found[1] not in known)
        for line in code.splitlines():
            played = re.search(r"ansible-playbook (?:openfleet\.clusters\.)(\w+)", line)
            if played and played[1] not in PLAYBOOKS:
                yield f"{played[0]}: it is no playbook"


def bad_variables(page: Page) -> Iterator[str]:
    for code in page.code:
        yield from (f"-e {found[1]}: no playbook takes it" for found in EXTRA.finditer(code) if found[1] not in taken_variables())


def taken_variables() -> set[str]:
    taken = {found[1] for path in (ROOT / "playbooks").rglob("*.yml") for found in TAKEN.finditer(path.read_text())}
    return taken - {"cluster_infrastructure"}  # a fact that roles set


def bad_options(page: Page) -> Iterator[str]:
    """What tasks in examples give to modules of ours."""
    for language, content in page.blocks:
        if language == "yaml":
            for name, given in tasks_of_ours([*yaml.safe_load_all(content)]):
                yield from (f"{name} has no option {option}" for option in given if option not in options_of(name))


def tasks_of_ours(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if (found := OURS.fullmatch(str(key))) and found[1] in MODULES:
                yield found[1], inner or {}
            yield from tasks_of_ours(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from tasks_of_ours(inner)


def options_of(module: str) -> set[str]:
    documented = importlib.import_module(f"ansible_collections.openfleet.clusters.plugins.modules.{module}").DOCUMENTATION
    shared = [s3] if module.startswith("s3_") else [kubernetes, platform] if module.startswith("platform_") else [kubernetes]
    texts = [documented, *(text for each in shared for part, text in vars(each.ModuleDocFragment).items() if part.isupper())]
    return {option for text in texts for option in yaml.safe_load(text).get("options", {})}


def long_lines(page: Page) -> Iterator[str]:
    """Prose wraps; a row of a table cannot."""
    for line in page.prose.splitlines():
        if len(line) > WIDTH and not line.lstrip().startswith("|"):
            yield f"{len(line)} columns: {line[:40]}..."


def large_diagrams(page: Page) -> Iterator[str]:
    for language, content in page.blocks:
        if language == "mermaid" and (count := len(set(BOX.findall(content)))) > MOST_BOXES:
            yield f"a diagram of {count} boxes: {content[:40]}..."


def unusual_words(page: Page) -> Iterator[str]:
    yield from (f"{found[0]}: use the field's word" for found in UNUSUAL.finditer(page.prose))


def unusual_names(text: str) -> set[str]:
    """Those in sentences over two lines, and in snake_case and CamelCase, too."""
    return {found[0].lower() for found in UNUSUAL.finditer(WORDS_OF_NAMES.sub(" ", text))}


CHECKS = [bad_links, incomplete_contents, bad_make_targets, bad_sandbox_commands, bad_yaml, bad_names, bad_variables, bad_options]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page_is_true_to_the_files(path: Path, check: Any) -> None:
    assert list(check(read(path))) == []


@pytest.mark.parametrize("check", [long_lines, large_diagrams, unusual_words])
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_has_the_style_of_the_project(path: Path, check: Any) -> None:
    assert list(check(read(path))) == []


@pytest.mark.parametrize("path", sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")), ids=lambda path: path.parts[-3])
def test_descriptions_of_variables_wrap(path: Path) -> None:
    assert not list(long_lines(read(path)))


def test_files_use_the_words_of_the_field() -> None:
    tracked = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    paths = [path for path in tracked if (ROOT / path).is_file() and ROOT / path != Path(__file__).resolve()]
    found = {(path, word) for path in paths for word in unusual_names((ROOT / path).read_text(encoding="utf-8"))}
    allowed = {(path, word) for path, word, _reason in ALLOWED}
    assert len(paths) > 1000
    assert (found - allowed, allowed - found) == (set(), set())


@pytest.mark.parametrize("text", ["class LockKeeper:", "def give_back():", "# It gives\n# back the lock.", "// Nobody reads it."])
def test_unusual_name_is_found(text: str) -> None:
    assert unusual_names(text)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (long_lines, "word " * 25),
        (long_lines, "- " + "word " * 25),
        (large_diagrams, f'```mermaid\n{DIAGRAM}  p --> q["Q"]\n```'),
        (unusual_words, "The run carries the order out."),
        (unusual_words, "Nobody holds the lock."),
        (bad_links, "[a](absent.md)"),
        (bad_links, "[a](docs/absent.md#title)"),
        (bad_links, "![picture](absent.png)"),
        (bad_links, "[a][b]\n\n[b]: absent.md"),
        (bad_links, "[a](../outside.md)"),
        (bad_links, "# Title\n\n[a](#other)"),
        (bad_links, "```text\n# Title\n```\n\n[a](#title)"),
        (bad_links, "[a](CONTRIBUTING.md#no-such-heading)"),
        (incomplete_contents, "- [One](#one)\n\n## One\n## Two"),
        (bad_make_targets, "Run `make absent`."),
        (bad_make_targets, "Run `make PYTHON=python3 absent`."),
        (bad_make_targets, "```shell\nmake test\nmake absent\n```"),
        (bad_make_targets, "```text\n$ make absent\n```"),
        (bad_sandbox_commands, "Run `openfleet-sandbox absent`."),
        (bad_sandbox_commands, "Run `openfleet-sandbox up --absent`."),
        (bad_sandbox_commands, "Run `openfleet-sandbox up --port`."),
        (bad_sandbox_commands, "Run `openfleet-sandbox up --state x`."),
        (bad_sandbox_commands, "```shell\nexport A=$(openfleet-sandbox absent)\n```"),
        (bad_sandbox_commands, f"```shell\n{MODULE} absent\n```"),
        (bad_yaml, "```yaml\na: [1\n```"),
        (bad_yaml, "1. One:\n\n   ```yaml\n   a: 1\n    b: 2\n   ```"),
        (bad_names, "The module `openfleet.clusters.absent`."),
        (bad_names, "```shell\nansible-playbook openfleet.clusters.absent\n```"),
        (bad_names, "Run `ansible-playbook openfleet.clusters.cluster_order`."),
        (bad_variables, "Run it with `-e cluster_absent=1`."),
        (bad_options, "```yaml\n- name: A\n  openfleet.clusters.cluster_lock:\n    absent: 1\n```"),
        (bad_options, "```yaml\n- block:\n    - openfleet.clusters.cluster_order_info:\n        absent: 1\n```"),
    ],
)
def test_mistake_is_found(check: Any, text: str) -> None:
    assert list(check(Page(ROOT / "README.md", text)))


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (long_lines, f"| {'word ' * 25} |\n\n```text\n{'word ' * 25}\n```"),
        (large_diagrams, f"```mermaid\n{DIAGRAM}```"),
        (unusual_words, "The run carries the token; the outdoor temperature is right."),
        (bad_links, "[a](https://example.com/absent.md), `[b](absent.md)`"),
        (bad_links, "# The `up` command, twice\n# The `up` command, twice\n\n[a](#the-up-command-twice), [b](#the-up-command-twice-1)"),
        (bad_links, "[a](CONTRIBUTING.md#tests), [b](docs/README.md)"),
        (bad_make_targets, "We make absent things, and `make` alone, and `make PYTHON=python3 test`."),
        (bad_sandbox_commands, "`openfleet-sandbox` alone, and `openfleet-sandbox --state <folder> up --cluster <name> --s3`"),
        (bad_sandbox_commands, "```shell\nopenfleet-sandbox logs hub/etcd | tail  # the end\nA=$(openfleet-sandbox kubeconfig east)\n```"),
        (bad_yaml, "1. One:\n\n   ```yaml\n   a: 1\n   ---\n   b: 2\n   ```"),
        (
            bad_names,
            "`ansible_collections.openfleet.clusters.extensions.sandbox`, `group/openfleet.clusters.kubernetes`, `openfleet.clusters`",
        ),
        (bad_variables, "`ansible-playbook openfleet.clusters.create_cluster -e cluster_order_name=a`"),
        (
            bad_options,
            "```yaml\n- openfleet.clusters.cluster_template_info:\n- openfleet.clusters.cluster_order: {context: a, api_group: b}\n```",
        ),
    ],
)
def test_what_is_right_is_no_mistake(check: Any, text: str) -> None:
    assert list(check(Page(ROOT / "README.md", text))) == []


@pytest.mark.parametrize("command", ["", "up", "down", "status", "kubeconfig", "logs", "build"])
def test_guide_names_every_command_and_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args([*command.split(), "--help"])
    shown = capsys.readouterr().out
    commands = re.search(r"\{([\w,-]+)\}", shown)
    wanted = set(commands[1].split(",")) if commands else set()
    guide = " ".join(read(ROOT / "docs" / "sandbox.md").code)
    assert {f"openfleet-sandbox {name}" for name in wanted if f"openfleet-sandbox {name}" not in guide} == set()
    assert {option for option in re.findall(r"--[a-z][\w-]*", shown) if option != "--help" and option not in guide} == set()


def test_guide_names_no_fault_that_the_stand_in_does_not_know() -> None:
    section = read(ROOT / "docs" / "sandbox.md").text.partition("## Faults on request")[2].partition("\n## ")[0]
    words = [word.replace("SECONDS", "1") for word in re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)]
    faults = Faults.of({"metadata": {"annotations": {FAULT: ",".join(words)}}})
    assert faults == Faults(never_available=True, degraded=True, lose_node=True, slow=1.0)


def test_guide_names_every_fault_of_the_stand_in_for_replication() -> None:
    section = read(ROOT / "docs" / "sandbox.md").text.partition("### Replication faults")[2].partition("\n### ")[0]
    named = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))
    timed = {f"{word}=SECONDS" for word in (*replication.STEPS, replication.INTERVAL, replication.LAG)}
    assert named == timed | set(replication.WORDS)


def test_reference_names_every_field_phase_and_column_of_an_order() -> None:
    version = yaml.safe_load((ROOT / "extensions" / "crds" / "clusterorders.yaml").read_text())["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    phases = schema["status"]["properties"]["phase"]["enum"]
    columns = [column["name"].upper() for column in version["additionalPrinterColumns"]]
    named = set(re.findall(r"[\w ]+", " | ".join(read(ROOT / "docs" / "cluster_order.md").code)))
    words = {word.strip() for word in named} | {word for phrase in named for word in phrase.split()}
    assert {name for name in (*fields(schema["spec"]), *fields(schema["status"]), *phases, *columns) if name not in words} == set()


def rows(page: Page, heading: str) -> set[str]:
    """What stands in backticks in the first cell of the rows below a heading."""
    section = re.split(rf"^#+ {re.escape(heading)}$", page.text, flags=re.MULTILINE)[1]
    section = re.split(r"^#+ ", FENCE.sub("", section), maxsplit=1, flags=re.MULTILINE)[0]
    return {name for cell in re.findall(r"^\|([^|]*)\|", section, re.MULTILINE) for name in re.findall(r"`([^`]+)`", cell)}


def test_read_me_counts_templates_event_sources_and_rulebooks() -> None:
    numbers = ("four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    sources = list((ROOT / "extensions/eda/plugins/event_source").glob("*.py"))
    counted = {"cluster templates": len(TEMPLATES), "event sources": len(sources), "rulebooks": len(RULEBOOKS)}
    introduction = " ".join(read(ROOT / "README.md").text.partition("\n## ")[0].split())
    assert [what for what, count in counted.items() if f"{numbers[count - 4]} {what}" not in introduction] == []


def test_guide_for_operators_lists_every_playbook() -> None:
    listed = {name.removeprefix("openfleet.clusters.") for name in rows(read(ROOT / "docs/operators_guide.md"), "The playbooks")}
    assert {f"dr_migration{name}" if name.startswith("_") else name for name in listed} == PLAYBOOKS


def test_tutorial_shows_every_task_of_its_template() -> None:
    tasks = yaml.safe_load((ROOT / "roles/ocp_4_17_small/tasks/install.yml").read_text(encoding="utf-8"))
    shown = re.findall(r"^TASK \[openfleet\.clusters\.ocp_4_17_small : (.+)\] \*+$", read(ROOT / "docs/tutorial.md").text, re.MULTILINE)
    assert shown == [task["name"] for task in tasks]


def test_read_me_lists_every_playbook_module_plugin_and_template() -> None:
    listed = rows(read(ROOT / "README.md"), "What it brings") - {"openfleet.clusters."}
    assert listed == PLAYBOOKS | RULEBOOKS | MODULES | PLUGINS | TEMPLATES


@pytest.mark.parametrize("kind", BUILT_IN)
def test_page_of_a_provider_lists_its_settings_and_secrets_and_no_others(kind: str) -> None:
    provider = ProviderFactory.get(kind)
    text = read(ROOT / "docs" / f"provider_{kind}.md").text
    tables = re.findall(r"^\| `(?:settings|secrets)` \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [row.split("|")[1] for table in tables for row in table.splitlines()]
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert listed == {*provider.SETTINGS, *provider.SECRETS}


def test_guide_lists_the_variables_that_the_playbooks_take_and_no_others() -> None:
    assert rows(read(ROOT / "docs" / "operators_guide.md"), "Variables") == taken_variables() | {"ansible_eda"}  # the actions read that one


def test_guide_knows_every_reason_it_lists() -> None:
    listed = rows(read(ROOT / "docs" / "when_an_order_is_not_ready.md"), "Failures, and what to do")
    reasons = {name for name in listed if name.isidentifier()}
    known = {
        name
        for module in (
            account,
            agent_hosts,
            base,
            factory,
            host_choice,
            host_claims,
            infrastructure_errors,
            ownership,
            prepare,
            profile_errors,
            renewer,
            site_settings,
            kube_errors,
            templates,
        )
        for name in vars(module)
    }
    assert reasons
    assert reasons - known == {"TaskFailed", "RunLost", "RunNotStarted", "ClusterFailed"}


def test_guide_gives_the_hub_account_every_kind_that_is_written() -> None:
    guide = read(ROOT / "docs" / "site_settings.md")
    role = next(
        item for language, text in guide.blocks if language == "yaml" if isinstance(item := yaml.safe_load(text), dict) and "rules" in item
    )
    granted = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert granted >= {"clusterorders", "clusterorders/status", "events", "namespaces", "secrets"}
    assert granted >= {"hostedclusters", "nodepools"}


def test_reference_names_every_condition() -> None:
    status = derive_status(ClusterOrder("orders", "demo", "small"), ObservedState(), datetime.now(UTC))
    conditions = {item["type"] for item in status["conditions"]}
    assert rows(read(ROOT / "docs" / "cluster_order.md"), "Conditions") == conditions | set(GITOPS)
    version = yaml.safe_load((ROOT / "extensions" / "crds" / "clusterorders.yaml").read_text())["spec"]["versions"][0]
    described = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"]["description"]
    assert set(re.findall(r"\w+", described.partition(":")[2])) - {"for", "GitOps"} == conditions | set(GITOPS)


def test_reference_names_every_reason_of_a_condition_that_is_not_true() -> None:
    """Those of the code: a reason is the second argument of a ConditionState."""
    calls = (node for node in ast.walk(ast.parse(Path(conditions.__file__).read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    states = [call.args for call in calls if isinstance(call.func, ast.Name) and call.func.id == "ConditionState"]
    reasons = {
        args[1].value for args in states if isinstance(args[0], ast.Name) and args[0].id != "TRUE" and isinstance(args[1], ast.Constant)
    }
    assert len(reasons) > 10
    page = read(ROOT / "docs" / "cluster_order.md")
    section = page.text.partition("### Conditions")[2].partition("\n## ")[0]
    assert {name for name in (*reasons, conditions.DELETING_CLUSTER) if f"`{name}`" not in section} == set()


def test_page_of_events_lists_the_arguments_of_the_source_and_no_others() -> None:
    in_rulebooks = {"api_group", "controller", "site_namespace", "allowed_addresses", "webhook", "settings"}
    own = {name for name in OPTIONS if name not in KUBERNETES} - in_rulebooks
    webhook = {f"webhook.{name}" for name in WEBHOOK} - {"webhook.token", "webhook.hmac_secret"}
    variables = {found[1] for path in (ROOT / "rulebooks").glob("cluster_*.yml") for found in TAKEN.finditer(path.read_text())}
    platform = {"create_template", "post_install_template", "delete_template", "organization"}
    page = read(ROOT / "docs" / "events.md")
    defaults = {"{}", "[]", "self", "cloudkit.openshift.io", "openfleet-system", "127.0.0.1", "X-Hub-Signature-256", "kubectl"}
    assert rows(page, "Arguments") - defaults == own | webhook | (variables - platform)
    assert {name for name in platform if f"`{name}`" not in page.text} == set()


def test_page_of_events_lists_the_actions_and_metrics_of_the_source_and_no_others() -> None:
    page = read(ROOT / "docs" / "events.md")
    assert rows(page, "The events") - {"action"} == {*ENDPOINTS, *TRANSITIONS.values(), "deleted"}
    metrics = {family.name: family.type for family in Metrics(State).registry.collect()}
    names = {f"{name}_total" if kind == "counter" else name for name, kind in metrics.items() if name.startswith(Metrics.PREFIX)}
    assert {f"{Metrics.PREFIX}_{name}" for name in rows(page, "Health and metrics") if name != f"{Metrics.PREFIX}_"} == names


def test_guide_for_contributors_names_files_that_exist() -> None:
    section = read(ROOT / "CONTRIBUTING.md").text.partition("### Where to change what")[2].partition("\n## ")[0]
    rows_of_tasks = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| task")]
    paths = [path for line in rows_of_tasks for path in re.findall(r"`([\w./]+)`", line) if "/" in path]
    assert len(rows_of_tasks) == 6
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(("task", "option", "module"), [("S3 expiry", "ttl", "s3_lock"), ("lock's duration", "duration", "cluster_lock")])
def test_guide_for_contributors_names_every_default_of_a_lease(task: str, option: str, module: str) -> None:
    row = next(line for line in read(ROOT / "CONTRIBUTING.md").text.splitlines() if line.startswith("| ") and task in line)
    sources = sorted((ROOT / "extensions/eda/plugins/event_source").glob("*.py"))
    documented = [path for path in sources if re.search(rf"^  {option}:$", path.read_text(encoding="utf-8"), re.MULTILINE)]
    paths = [ROOT / "plugins/modules" / f"{module}.py", *documented]
    assert [path for path in paths if f"`{path.relative_to(ROOT)}`" not in row] == []


def test_guide_for_contributors_lists_every_gate() -> None:
    listed = read(ROOT / "CONTRIBUTING.md").text.partition("\n## Gates")[2].partition("\n## ")[0].lower()
    assert [gate.title for gate in (*GATES, SLOWEST) if re.split(r" of ", gate.title.lower())[0] not in listed] == []


def test_picture_of_the_layers_is_that_of_the_import_contract() -> None:
    """In its order too. A box may have several packages: `s3, then kube`."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    library = "ansible_collections.openfleet.clusters.plugins.module_utils"
    (layers,) = (contract["layers"] for contract in contracts if library in contract.get("containers", ()))
    picture = next(content for language, content in read(ROOT / "docs" / "architecture.md").blocks if language == "mermaid")
    titles = dict(re.findall(r'^ *(\w+)\["(.+?)<br/>', picture, re.MULTILINE))
    chains = [line.split(" --> ") for line in picture.splitlines() if "-->" in line]
    assert [chain[0].strip() for chain in chains[1:]] == [chain[-1] for chain in chains[:-1]], "each line continues the one before"
    boxes = [chains[0][0].strip(), *(name for chain in chains for name in chain[1:])]
    assert sorted(boxes) == sorted(titles)
    assert [package for box in boxes[1:] for package in titles[box].split(", then ")] == layers


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_docstring_of_a_package_names_the_packages_that_it_imports(package: Path) -> None:
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    named = re.search(r"Imports ([^.]+)\.", docstring)
    assert named, "the docstring has no sentence that begins with Imports"
    listed = set() if named[1] == "no other package" else set(re.split(r", | and ", named[1].replace("\n", " ")))
    assert listed == imported_packages(package) - {package.relative_to(LIBRARY).parts[0]}


def imported_packages(package: Path) -> set[str]:
    """The packages of the library that the files below a folder import, all by relative names."""
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                start = path.parents[node.level - 1]
                names = [node.module] if node.module else [each.name for each in node.names]
                found |= {(start / name.replace(".", "/")).relative_to(LIBRARY).parts[0] for name in names}
    return found


def fields(schema: dict[str, Any]) -> Iterator[str]:
    """The names of all fields below a schema, those of list entries included."""
    for name, field in schema.get("items", schema).get("properties", {}).items():
        yield name
        yield from fields(field)
