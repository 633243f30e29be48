"""Check rulebooks against ansible-rulebook's schema, which it does not do itself for a rulebook it finds in a collection."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml
from ansible_rulebook.validators import Validate
from jsonschema import ValidationError

from ..sandbox.screen import run_command


def main() -> int:
    mistakes = [f"{file}: {mistake}" for file in sys.argv[1:] if (mistake := mistake_in(Path(file)))]
    print("\n".join(mistakes))
    return 1 if mistakes else 0


def mistake_in(file: Path) -> str | None:
    try:
        Validate.rulebook(yaml.safe_load(file.read_text()))
    except yaml.YAMLError as error:
        return f"no YAML: {error}"
    except ValidationError as error:
        return f"{error.json_path}: {error.message}"
    return None


if __name__ == "__main__":
    run_command(main)
