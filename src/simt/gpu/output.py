"""The output of kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable


class Output:
    """Written to standard output, or to `sink`, and kept in `text`."""

    def __init__(self, sink: Callable[[bytes], None] | None = None) -> None:
        self.text = ""
        self._sink = sink

    def write(self, printed: bytes) -> None:
        if not printed:
            return
        decoded = printed.decode("utf-8", "replace")
        if self._sink is None:
            sys.stdout.write(decoded)
        else:
            self._sink(printed)
        self.text += decoded
