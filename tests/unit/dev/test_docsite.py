"""The HTML pages: what the settings of Sphinx accept and refuse, and the page of event sources. The whole site is built by a gate."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.dev.docsite import __main__ as docsite
from ansible_collections.openfleet.clusters.extensions.dev.docsite import ansible_labels, event_sources

ROOT = Path(__file__).resolve().parents[3]
INDEX = """# Title

```mermaid
flowchart LR
  tenant --> hub
```

[anchor](docs/page.md#the-up-command), [file](docs/examples/order.yaml)

```{toctree}
docs/page
reference
```
"""
PAGE = "# Page\n\n## The `up` command\n\n[back](../index.md)\n"
REFERENCE = "Reference\n=========\n\n:ref:`Values <common_return_values>`, :envvar:`ANSIBLE_CACHE_PLUGIN`\n"
SITE = {"index.md": INDEX, "docs/page.md": PAGE, "docs/examples/order.yaml": "a: 1\n", "reference.rst": REFERENCE}
SOURCE_PLUGIN = '''
raise ImportError("the page needs no import")
DOCUMENTATION = r"""
short_description: Give <events>
description:
  - Follows M(openfleet.clusters.cluster_order).
options:
  webhook:
    description: Where it listens.
    type: dict
    suboptions:
      modes:
        description: With V(fast) it is fast.
        type: list
        elements: str
        choices: [fast, slow]
        default: []
  bucket:
    description: [One., Two.]
    type: str
    required: true
"""
EXAMPLES = r"""
- openfleet.clusters.invented:
    bucket: a
"""
'''


def run_sphinx(folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        file = folder / "source" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "ansible.inv").write_bytes(ansible_labels.inventory())
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-c",
        docsite.SETTINGS,
        "-d",
        folder / "doctrees",
        folder / "source",
        folder / "html",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_links_diagrams_and_labels_of_ansible_become_html_without_the_network(tmp_path: Path) -> None:
    result = run_sphinx(tmp_path, SITE)
    assert (result.returncode, result.stderr) == (0, "")
    index = (tmp_path / "html" / "index.html").read_text()
    assert 'href="docs/page.html#the-up-command"' in index
    assert "order.yaml" in index
    assert [file.suffix for file in (tmp_path / "html" / "_images").iterdir()] == [".svg"]
    reference = (tmp_path / "html" / "reference.html").read_text()
    assert "reference_appendices/common_return_values.html#common-return-values" in reference
    assert "reference_appendices/config.html#envvar-ANSIBLE_CACHE_PLUGIN" in reference


def test_pages_of_antsibull_docs_have_short_names_in_the_navigation_and_no_list_of_headings(tmp_path: Path) -> None:
    lists = "\n.. contents::\n   :local:\n   :depth: 1\n\nHeading\n-------\n\n.. toctree::\n   :hidden:\n\n   cluster_info_module\n"
    module = "openfleet.clusters.cluster_info module -- Get a cluster\n=======================================================\n"
    result = run_sphinx(tmp_path, SITE | {"reference.rst": REFERENCE + lists, "cluster_info_module.rst": module})
    assert (result.returncode, result.stderr) == (0, "")
    reference = (tmp_path / "html" / "reference.html").read_text()
    assert ">cluster_info module</a>" in reference
    assert 'class="contents' not in reference


def test_every_mistake_on_a_page_fails_the_build_by_its_name(tmp_path: Path) -> None:
    wrong = {
        "index.md": INDEX.replace("tenant -->", "tenant[ -->") + "\n[absent](docs/absent.md), [heading](docs/page.md#absent-heading)\n",
        "docs/lost.md": "# In no list\n",
        "reference.rst": REFERENCE.replace("common_return_values", "absent_label"),
    }
    result = run_sphinx(tmp_path, SITE | wrong)
    assert result.returncode != 0
    for word in ("cannot draw this diagram", "docs/absent.md", "absent-heading", "lost.md", "absent_label"):
        assert word in result.stderr


def test_page_of_event_sources_has_options_inside_options_and_examples(tmp_path: Path) -> None:
    (tmp_path / "invented.py").write_text(SOURCE_PLUGIN)
    lines = event_sources.page(tmp_path).splitlines()
    assert r"openfleet.clusters.invented -- Give \<events\>" in lines
    assert "``webhook`` (dict)" in lines
    assert "   ``modes`` (list of str, one of ``fast``, ``slow``, default ``[]``)" in lines
    assert "      With :ansval:`fast` it is fast." in lines
    assert "``bucket`` (str, required)" in lines
    assert "       bucket: a" in lines


@pytest.mark.parametrize("name", ["cluster_orders", "dr_placements", "fleet_agent", "s3_coordination"])
def test_page_of_event_sources_has_each_of_ours(name: str) -> None:
    page = event_sources.page(ROOT / "extensions" / "eda" / "plugins" / "event_source")
    assert f"openfleet.clusters.{name} -- " in page


def test_copy_of_the_checkout_has_no_hidden_folder_and_no_output(tmp_path: Path) -> None:
    for name in ("docs/page.md", ".venv/README.md", "docs/.hidden/page.md", "tests/output/page.md", "a-1.0.tar.gz"):
        (tmp_path / "from" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / name).touch()
    docsite.copy_checkout(tmp_path / "from", tmp_path / "to")
    assert [str(file.relative_to(tmp_path / "to")) for file in (tmp_path / "to").rglob("*") if file.is_file()] == ["docs/page.md"]
    assert (tmp_path / "to").stat().st_mode & 0o077 == 0


def test_build_is_reused_until_a_file_changes_and_never_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, output, runs = tmp_path / "checkout", tmp_path / "output", tmp_path / "runs"
    checkout.mkdir()
    page = checkout / "page.md"
    # The tool of this test writes a line for each run, and fails on the same page that it failed on before.
    script = f"echo run >> {runs}; ! grep wrong {output}/source/page.md"
    monkeypatch.setattr(docsite, "commands", lambda _output: {"Pages": ["sh", "-c", script]})

    def runs_after(text: str, times: int) -> int:
        page.write_text(text)
        for _attempt in range(times):
            with contextlib.suppress(subprocess.CalledProcessError):
                docsite.build(checkout, output)
        return len(runs.read_text().splitlines())

    assert runs_after("right", times=2) == 1
    assert runs_after("changed", times=2) == 2
    assert runs_after("wrong", times=2) == 4
    assert runs_after("changed", times=1) == 5
