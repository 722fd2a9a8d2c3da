"""Suggestions in error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean x or y?`: the known words nearest to one that is unknown; empty if none is near."""
    near = difflib.get_close_matches(word, list(known), n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""
