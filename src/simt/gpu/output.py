"""What kernels print."""

from __future__ import annotations

import sys


class Output:
    """Goes to standard output, and is kept in `text`."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, printed: bytes) -> None:
        if not printed:
            return
        decoded = printed.decode("utf-8", "replace")
        sys.stdout.write(decoded)
        self.text += decoded
