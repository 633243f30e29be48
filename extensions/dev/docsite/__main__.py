"""Build the HTML pages below .docs, and print where they are. Every warning of antsibull-docs and Sphinx is an error.

A build is reused as long as no file of the checkout changes. Otherwise it starts from nothing: Sphinx repeats no warning
about a page that it takes from its cache, so a second run would hide what the first one found.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from ...sandbox.screen import heading, run_command, stage
from . import ansible_labels, event_sources

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = Path(__file__).resolve().parent


def main() -> int:
    output = ROOT / ".docs"
    try:
        build(ROOT, output)
    except subprocess.CalledProcessError as error:
        print(error.stdout, end="")
        return 1
    heading(f"Open {output.relative_to(ROOT)}/html/index.html in a browser.")
    return 0


def build(checkout: Path, output: Path) -> None:
    copy, source, built = output / "copy", output / "source", output / "built"
    shutil.rmtree(copy, ignore_errors=True)
    copy_checkout(checkout, copy)
    fingerprint = _fingerprint(copy)
    if built.exists() and built.read_text() == fingerprint:
        shutil.rmtree(copy)
        return
    built.unlink(missing_ok=True)
    for folder in (source, output / "doctrees", output / "html"):
        shutil.rmtree(folder, ignore_errors=True)
    copy.rename(source)
    (source / "event_sources.rst").write_text(event_sources.page(checkout / "extensions" / "eda" / "plugins" / "event_source"))
    (output / "ansible.inv").write_bytes(ansible_labels.inventory())
    for title, command in commands(output).items():
        with stage(title):
            subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    built.write_text(fingerprint)


def commands(output: Path) -> dict[str, list[str]]:
    source = str(output / "source")
    return {
        "Reference of modules, plugins and roles": [
            *("antsibull-docs", "--config-file", str(SETTINGS / "antsibull-docs.cfg"), "collection"),
            *("--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir", source, "openfleet.clusters"),
        ],
        "Pages": [
            *(sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--builder", "html"),
            *("--conf-dir", str(SETTINGS), "--doctree-dir", str(output / "doctrees"), source, str(output / "html")),
        ],
    }


def copy_checkout(checkout: Path, target: Path) -> None:
    """Copy the files under their own paths, so that a link from a page to a page or to any other file works as in the checkout."""
    shutil.copytree(checkout, target, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.tar.gz", "output"))
    target.chmod(0o700)  # antsibull-docs refuses a folder that others could write to


def _fingerprint(copy: Path) -> str:
    """Changes with every name and content; the versions of the tools are the content of the lock file."""
    digest = hashlib.sha256()
    for file in sorted(copy.rglob("*")):
        digest.update(f"{file.relative_to(copy)}\n".encode())
        if file.is_file():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


if __name__ == "__main__":
    run_command(main)
