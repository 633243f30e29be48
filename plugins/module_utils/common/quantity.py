# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sizes as Kubernetes writes them, such as 8Gi, as numbers of bytes. Pure; fractions are cut off."""

from __future__ import annotations

import re

SUFFIXES = {"": 1, **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTP", 1)}}
SUFFIXES |= {letter: 1000**power for power, letter in enumerate("kMGTP", 1)}
FORM = re.compile(rf"(\d{{1,15}}(?:\.\d{{1,9}})?)({'|'.join(sorted(SUFFIXES, key=len, reverse=True))})")


def bytes_of(text: str) -> int:
    """The bytes of a quantity; ValueError for another text."""
    found = FORM.fullmatch(text)
    if not found:
        raise ValueError(f"{text[:100]!r} is not a quantity such as 8Gi")
    number, suffix = found.groups()
    return int(float(number) * SUFFIXES[suffix])
