"""Checks of the options of a run."""

from __future__ import annotations

import operator
from typing import Any

from simt.errors import SimtError


def whole_option(name: str, value: Any, least: int = 1, most: int = (1 << 63) - 1) -> int:
    """Raises SimtError unless the value is a whole number within these bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise SimtError(f"{name} is {value!r}, expected a whole number") from None
    if not least <= number <= most:
        raise SimtError(
            f"{name} is {number}, expected {least} or more" + f", up to {most:,}" * (number > most)
        )
    return number
