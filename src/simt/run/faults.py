"""What the engine says of a program's fault, as errors of simt."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from simt.errors import LaunchError, ProgramFault

SourceText = Callable[[str, int], str]
"""A line of a program's source, by file and number; empty where it is not known."""

# What the engine calls launches that cannot be made.
_REFUSED = ("invalid launch", "too much shared memory", "out of memory")


@contextmanager
def explained(source_text: SourceText | None = None) -> Iterator[None]:
    """Turns what the engine raises for a program's fault or a launch that cannot be made into ProgramFault
    and LaunchError.

    source_text: of the program that runs; where it is not known beforehand, the engine's exception is given
        the line as its attribute `source_text`.
    """
    from simt import _engine

    try:
        yield
    except _engine.functional.ProgramFault as error:
        native = error
        traceback.clear_frames(native.__traceback__)  # they would keep the launch alive
    except ValueError as error:
        raise LaunchError(str(error)) from error
    else:
        return
    if not native.instruction and native.kind in _REFUSED:
        raise LaunchError(str(native), native.kind) from None
    text: str = getattr(native, "source_text", "")
    if source_text is not None:
        text = source_text(native.source_file, native.source_line)
    native.__traceback__ = None  # it leads here: what ran would live as long as the cycle
    raise ProgramFault.from_native(native, text.strip()) from None
