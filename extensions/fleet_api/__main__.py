"""The command of the service: `python -m ansible_collections.openfleet.clusters.extensions.fleet_api --settings FILE`."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from pathlib import Path

from ...plugins.module_utils.kube.errors import KubeError
from .server import serve
from .settings import BadSettings, load


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name}
        message = record.getMessage()
        try:
            content = json.loads(message) if record.name == "fleet_api.access" else None
        except ValueError:
            content = None
        entry |= content if isinstance(content, dict) else {"message": message}
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def main() -> int:
    parser = argparse.ArgumentParser(prog="fleet_api", description="The REST facade of a fleet.")
    parser.add_argument("--settings", type=Path, help="a YAML file; docs/fleet_api.md has its keys")
    arguments = parser.parse_args()
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    named = arguments.settings or (Path(os.environ["FLEET_API_SETTINGS"]) if os.environ.get("FLEET_API_SETTINGS") else None)
    try:
        asyncio.run(serve(load(named, os.environ)))
    except (BadSettings, KubeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
