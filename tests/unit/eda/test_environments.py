"""The two images of Automation Platform, rendered by ansible-builder: what is in them, and what a site can build them from."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ..dev.test_requirements import imported_packages, normalized

ROOT = Path(__file__).resolve().parents[3]
DEFINITIONS = {
    "execution": ROOT / "extensions/execution_environment/execution-environment.yml",
    "decision": ROOT / "extensions/eda/decision_environment/decision-environment.yml",
}
# ansible-builder leaves these out: ansible-core brings them.
OF_ANSIBLE = {"pyyaml"}


def builder(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "ansible_builder", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=DEFINITIONS.values(), ids=DEFINITIONS)
def context(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build context of an image. The collection is an empty file: nothing is built here."""
    definition: Path = request.param
    folder = tmp_path_factory.mktemp("context")
    shutil.copytree(definition.parent, folder, dirs_exist_ok=True)
    for needed in yaml.safe_load(definition.read_text(encoding="utf-8"))["additional_build_files"]:
        (folder / needed["src"]).touch()
    builder("create", "--file", folder / definition.name, "--context", folder / "context", "--output-filename", "Containerfile")
    return folder / "context"


def stages(context: Path) -> dict[str, list[str]]:
    """The instructions of each stage of the Containerfile."""
    found: dict[str, list[str]] = {}
    for line in (context / "Containerfile").read_text(encoding="utf-8").splitlines():
        if start := re.fullmatch(r"FROM \S+ AS (\w+)", line):
            found[start[1]] = []
        elif found and line:
            list(found.values())[-1].append(line)
    return found


def test_image_has_the_collection_and_its_program(context: Path) -> None:
    assert (context / "_build/collections/openfleet-clusters-0.1.0.tar.gz").is_file()
    assert any("collection install" in line for line in stages(context)["galaxy"])
    assert any(line.startswith("COPY --from=") and line.endswith("/usr/local/bin/oc") for line in stages(context)["final"])


def test_site_names_its_registry_and_index_by_build_arguments(context: Path) -> None:
    """All stages are based on the first, which sets the variable before anything is installed. The image does not keep it."""
    text = (context / "Containerfile").read_text(encoding="utf-8")
    assert text.startswith("ARG EE_BASE_IMAGE=")
    assert re.findall(r"^FROM (\S+) AS \w+$", text, re.MULTILINE) == ["$EE_BASE_IMAGE", "base", "base", "base"]
    base, final = stages(context)["base"], stages(context)["final"]
    installing = [number for number, line in enumerate(base) if "pip install" in line]
    index = base.index("ENV PIP_INDEX_URL=$PIP_INDEX_URL")
    assert base.index("ARG PIP_INDEX_URL") < index < installing[0]
    assert final.index("ENV PIP_INDEX_URL=") > max(number for number, line in enumerate(final) if "pip install" in line)


def test_ansible_builder_installs_every_package_that_the_collection_imports(tmp_path: Path) -> None:
    """In both images: it reads what the collection needs from the collection itself."""
    collection = tmp_path / "ansible_collections/openfleet/clusters"
    for name in ("meta/execution-environment.yml", "requirements.txt", "bindep.txt", "galaxy.yml"):
        (collection / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, collection / name)
    found = yaml.safe_load(builder("introspect", tmp_path))
    packages = {normalized(re.split(r"[<>=!~\[; ]", line)[0]) for line in found["python"]}
    assert packages | OF_ANSIBLE >= imported_packages()
    assert any(line.startswith("openshift-clients ") for line in found["system"])
