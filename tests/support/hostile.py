"""JSON as written by hand, or damaged on disk."""

from __future__ import annotations

import copy
import os
import random
import time
from collections.abc import Iterator
from typing import Any

SECONDS = float(os.environ.get("SIMT_FUZZ_SECONDS", "0"))

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    10**40,
    -(2**70),
    0.5,
    -1e308,
    1e308,
    "",
    "x",
    "<!--<script>",
    "\x00",
    "é" * 50,
    [],
    [[]],
    [None],
    {},
    {"": {}},
    [0] * 100,
)

PIECES = (b"", b"\xff", b"9" * 30, b"[" * 2000, b'"', b"}", b"-", b"e9", b"\\ud800", b"NaN", b"\x00")


def attempts(count: int) -> Iterator[int]:
    """1, 2, ... to `count`, so that a run can be repeated; with SIMT_FUZZ_SECONDS, for as long as that."""
    end, seen = time.monotonic() + SECONDS, 0
    while time.monotonic() < end if SECONDS else seen < count:
        seen += 1
        yield seen


def mutant(data: Any, chance: random.Random, most: int = 3) -> Any:
    """The data with one to `most` items changed: replaced, removed, duplicated, or swapped with another."""
    found = copy.deepcopy(data)
    for _ in range(chance.randint(1, most)):
        places = list(_places(found))
        if not places:
            break
        holder, key = chance.choice(places)
        how = chance.random()
        if how < 0.6:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
        elif how < 0.75:
            del holder[key]
        elif how < 0.85 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif how < 0.9 and isinstance(holder, dict):
            holder[str(chance.choice(VALUES))[:20]] = holder[key]
        else:
            other, name = chance.choice(places)
            holder[key] = copy.deepcopy(other[name])
    return found


def _places(data: Any) -> Any:
    """Every (container, key) in the data."""
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    for key in keys:
        yield data, key
        if isinstance(data[key], (dict, list)):
            yield from _places(data[key])


def damaged(text: bytes, chance: random.Random) -> bytes:
    """The text with some bytes changed, removed or inserted."""
    found = bytearray(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(found) + 1)
        piece = chance.choice(
            [b"", b"\xff", b"9" * 30, b"[" * 2000, b'"', b"}", b"-", b"e9", b"\\ud800", b"NaN", b"\x00"]
        )
        found[at : at + chance.choice([0, 0, 1, 2, 20])] = piece
    return bytes(found)
