"""Run the stand-in: `python -m ...platform --folder <state> [--gateway] [--tls]`, until SIGTERM. Its address and a token are printed."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from .runner import PlaybookRunner
from .standin import ROOT, Platform


def main() -> int:
    parser = argparse.ArgumentParser(description="A stand-in for Automation Platform.")
    parser.add_argument("--folder", type=Path, required=True, help="for the output of jobs and the certificate")
    parser.add_argument("--gateway", action="store_true", help="serve the paths of AAP's gateway")
    parser.add_argument("--tls", action="store_true", help="serve by TLS; the authority is in ca.pem of the folder")
    arguments = parser.parse_args()
    platform = Platform(gateway=arguments.gateway, folder=arguments.folder, runner=PlaybookRunner(ROOT, os.environ))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with platform.serving(arguments.folder if arguments.tls else None) as url:
        print(f"This is a stand-in for Automation Platform.\n{url}\n{platform.token()}", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("ended", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
