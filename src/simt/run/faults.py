"""What the engine says of a program's fault, as errors of simt."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from simt import _engine
from simt.errors import LaunchError, ProgramFault

SourceText = Callable[[str, int], str]
"""A line of a program's source, by file and number; empty where it is not known."""

# What the engine calls launches that cannot be made.
_REFUSED = ("invalid launch", "too much shared memory", "out of memory")


class explained:  # a class as `contextlib.suppress` is one: a generator takes twice as long
    """Turns what the engine raises for a program's fault or a launch that cannot be made into ProgramFault
    and LaunchError.

    source_text: of the program that runs; where it is not known beforehand, the engine's exception is given
        the line as its attribute `source_text`.
    """

    def __init__(self, source_text: SourceText | None = None) -> None:
        self._source_text = source_text

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if isinstance(error, _engine.functional.ProgramFault):
            raise self._of_native(error) from None
        if isinstance(error, ValueError):
            raise LaunchError(str(error)) from error

    def _of_native(self, native: Any) -> LaunchError | ProgramFault:
        traceback.clear_frames(native.__traceback__)  # they would keep the launch alive
        if not native.instruction and native.kind in _REFUSED:
            return LaunchError(str(native), native.kind)
        text: str = getattr(native, "source_text", "")
        if self._source_text is not None:
            text = self._source_text(native.source_file, native.source_line)
        native.__traceback__ = None  # it leads here: what ran would live as long as the cycle
        return ProgramFault.from_native(native, text.strip())
