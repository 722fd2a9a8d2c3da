"""The number of host threads."""

from __future__ import annotations

import os
import warnings
from typing import Any

from simt.options import whole_option


def host_threads(threads: Any) -> int:
    """The number of threads to use for a requested number: at most the cores of this process, with a warning.

    Results do not depend on it. Raises SimtError unless it is a whole number of 1 or more.
    """
    number = whole_option("threads", threads)
    if number > (most := cores()):
        warnings.warn(f"threads is {number}, this process has {most} cores: using {most}", stacklevel=3)
    return min(number, most)


def cores() -> int:
    """Processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
