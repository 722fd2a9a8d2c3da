"""Translates the engine's reports of program faults to simt's errors."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import TracebackType

from simt import _engine
from simt.errors import LaunchError, ProgramFault

SourceText = Callable[[str, int], str]
"""A line of a program's source, by file and number; empty if unknown."""

# The engine's kinds of invalid launches.
_REFUSED = ("invalid launch", "too much shared memory", "out of memory")


class explained:  # a class, like `contextlib.suppress`: a generator takes twice as long
    """Converts the engine's exceptions for program faults and invalid launches to ProgramFault and
    LaunchError.

    source_text: of the running program; if not known in advance, the line is set as the attribute
        `source_text` of the engine's exception.
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

    def _of_native(self, native: _engine.functional.ProgramFault) -> LaunchError | ProgramFault:
        traceback.clear_frames(native.__traceback__)  # they would keep the launch alive
        if not native.instruction and native.kind in _REFUSED:
            return LaunchError(str(native), native.kind)
        text: str = getattr(native, "source_text", "")
        if self._source_text is not None:
            text = self._source_text(native.source_file, native.source_line)
        native.__traceback__ = None  # refers to this frame: a cycle that keeps the launch alive
        return ProgramFault.from_native(native, text.strip())
