"""A real browser for tests and benchmarks: Debian's chromium without a screen, driven by playwright.

Both are downloaded into the user's cache by the first command that needs them; no other command does, and nothing is installed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import debian
from .gobuild import cache_folder, only_one
from .screen import stage

# axe-playwright-python brings axe-core, which finds what people with disabilities cannot use.
PACKAGES = ("playwright==1.65.0", "greenlet==3.5.6", "axe-playwright-python==0.1.8")
INSTALL_SECONDS = 600
# Containers and build machines have no namespaces for chromium's own sandbox. It opens pages of this machine only.
ARGUMENTS = ["--no-sandbox"]


@functools.cache
def missing() -> str:
    """Why there is no browser, and what to install; empty where there is one."""
    if debian.find(debian.CHROMIUM) is None:
        return "chromium-headless-shell: install the package, or chromium with that name on PATH"
    return "" if _packages() else "playwright: pip cannot install it; check the network"


@contextlib.contextmanager
def running_browser() -> Iterator[Any]:
    """A Browser of playwright, until the end of the block."""
    program = debian.find(debian.CHROMIUM)
    assert program, missing()
    api = module("playwright.sync_api")
    with api.sync_playwright() as playwright:
        environment = {**os.environ, **program.environment}
        browser = playwright.chromium.launch(executable_path=str(program.path), env=environment, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def module(name: str) -> Any:
    """A module of the packages, which are not part of the environment."""
    folder = _packages()
    assert folder, missing()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module(name)


@functools.cache
def _packages() -> Path | None:
    wanted = f"{' '.join(PACKAGES)} {sys.version_info[:2]}"
    folder = cache_folder() / f"browser-{hashlib.sha256(wanted.encode()).hexdigest()[:16]}"
    with only_one(folder.with_suffix(".lock")):
        if not folder.exists():
            made = folder.with_suffix(".partial")
            shutil.rmtree(made, ignore_errors=True)
            command = [
                sys.executable,
                "-m",
                "pip",
                "--quiet",
                "--disable-pip-version-check",
                "install",
                "--no-deps",
                f"--target={made}",
                *PACKAGES,
            ]
            with stage("playwright (for the tests of the page)"), contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(command, capture_output=True, timeout=INSTALL_SECONDS, check=False)
            if not (made / "playwright").is_dir():
                return None
            made.rename(folder)
    return folder
