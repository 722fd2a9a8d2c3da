"""Values that override a specification, given as mappings or as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from simt.errors import SimtError

Overrides = Mapping[str, Any] | Iterable[str] | None


def override_texts(overrides: Overrides) -> dict[str, Any]:
    """The values by path in the specification. Raises SimtError for text that is not KEY=VALUE."""
    if overrides is None or isinstance(overrides, Mapping):
        return dict(overrides or {})
    pairs = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise SimtError(f"override {text!r}: expected KEY=VALUE, such as sm.count=40")
        pairs[key.strip()] = value.strip()
    return pairs
