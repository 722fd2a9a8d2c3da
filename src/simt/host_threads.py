"""The number of host threads."""

from __future__ import annotations

import operator
import os
import warnings
from typing import Any

from simt.errors import SimtError


def host_threads(threads: Any) -> int:
    """The number of threads to use for a requested number: at most the cores of this process, with a warning.

    Results do not depend on it. Raises SimtError unless it is a whole number of 1 or more.
    """
    try:
        number = operator.index(threads)
    except TypeError:
        raise SimtError(f"threads is {threads!r}, expected a whole number") from None
    if number < 1:
        raise SimtError(f"threads is {number}, expected 1 or more")
    if number > (most := cores()):
        warnings.warn(f"threads is {number}, this process has {most} cores: using {most}", stacklevel=3)
    return min(number, most)


def cores() -> int:
    """Processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
