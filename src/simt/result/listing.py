"""The instructions of a launch as lines of source, PTX and machine code, with what their warps waited for.

A launch's `pc` has these columns beside `pc`, `opcode` and the counts: `text`, the instruction in the form of
machine code and, for programs, `ptx`, the PTX statement that it comes from, `source_file` and `source_text`.
Unknown values are empty texts. `reads` and `writes` are the 32-bit registers that a lane reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from simt.engine_types import RawInstructions
    from simt.result.launch import LaunchResult

TEXTS = ("text", "ptx", "source_file", "source_text")
REGISTERS = ("reads", "writes")
_STATIC = ("pc", "opcode", "source_line", *TEXTS, *REGISTERS)


@dataclass
class Line:
    """A line of source, or an instruction.

    place: (file, line), or (pc,).
    text: its text.
    issued, threads: warp and thread instructions.
    stalled: how often a warp was found waiting there, by its state.
    instructions: positions in `pc`.
    """

    place: tuple[Any, ...]
    text: str
    issued: int = 0
    threads: int = 0
    stalled: dict[str, int] = field(default_factory=dict)
    instructions: list[int] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return sum(self.stalled.values())


def source_lines(launch: LaunchResult) -> list[Line]:
    """The lines of source that have instructions, by file and number. Those of a trace have no text."""
    pc = launch.pc
    if not pc:
        return []
    files, texts = _texts(pc, "source_file"), _texts(pc, "source_text")
    found: dict[tuple[Any, ...], Line] = {}
    for i, number in enumerate(pc["source_line"]):
        if number:
            place = (files[i], number)
            _add(found.setdefault(place, Line(place, texts[i])), pc, i)
    return [found[place] for place in sorted(found)]


def instructions(launch: LaunchResult) -> list[Line]:
    """The instructions that were executed, in the order of their PCs."""
    pc = launch.pc
    if not pc:
        return []
    texts = _texts(pc, "text")
    found = []
    for i, address in enumerate(pc["pc"]):
        found.append(Line((address,), texts[i] or pc["opcode"][i]))
        _add(found[-1], pc, i)
    return sorted(found, key=lambda line: line.place)


def _texts(pc: dict[str, Any], name: str) -> Sequence[str]:
    """A column of texts; Results saved by earlier versions lack it."""
    found: Sequence[str] = pc.get(name) or [""] * len(pc["pc"])
    return found


def _add(line: Line, pc: dict[str, Any], i: int) -> None:
    line.issued += pc["issued"][i]
    line.threads += pc["threads"][i] if "threads" in pc else 0
    line.instructions.append(i)
    for reason, row in pc["stalled"].items():
        if row[i] and reason != "selected":
            line.stalled[reason] = line.stalled.get(reason, 0) + row[i]


def shared(pc: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the lists that are equal for all launches of a kernel held once."""
    return {name: _held(tuple(row)) if name in _STATIC else row for name, row in pc.items()}


@lru_cache(maxsize=1024)
def _held(column: tuple[Any, ...]) -> list[Any]:
    return list(column)


class Origins:
    """The origin of a program's instructions.

    rows: per instruction (line of the PTX, source file, line in it), as the engine's `listing` gives them.
    ptx: the text.
    source_text: returns a file's line, see `PtxModule.source_text`.
    """

    def __init__(
        self, rows: Iterable[tuple[int, str, int]], ptx: str, source_text: Callable[[str, int], str]
    ) -> None:
        lines = ptx.split("\n")
        read = cache(source_text)
        self._rows = [
            (lines[at - 1].strip() if 0 < at <= len(lines) else "", file, read(file, line))
            for at, file, line in rows
        ]

    def added_to(self, pc: RawInstructions) -> RawInstructions:
        """The table with the columns `ptx`, `source_file` and `source_text`. Its PCs count in 16 bytes."""
        rows = [self._rows[address // 16] for address in pc["pc"]]
        columns = dict(zip(("ptx", "source_file", "source_text"), zip(*rows, strict=True), strict=False))
        return cast("RawInstructions", shared({**pc, **columns}))
