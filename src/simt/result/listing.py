"""The instructions of a launch as lines of source, PTX and machine code, with what their warps waited for.

A launch's `pc` has these columns beside `pc`, `opcode` and the counts: `text`, the instruction in the form of
machine code and, for programs, `ptx`, the PTX statement that it comes from, `source_file` and `source_text`.
Unknown values are empty texts. `reads` and `writes` are the 32-bit registers that a lane reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from simt.formatting import text_table
from simt.names import short_name
from simt.pages import notebook

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


class Lines(Sequence[Line]):
    """The lines of a launch at which its warps waited or issued, those with most waiting first: as text, or
    as HTML in a notebook.

    total: samples of the launch that found a warp waiting.
    """

    MOST = 20

    def __init__(self, lines: Iterable[Line], kernel: str) -> None:
        self._lines = sorted(lines, key=lambda line: (-line.waiting, line.place))
        self.kernel = kernel
        self.total = sum(line.waiting for line in self._lines)

    @overload
    def __getitem__(self, at: int) -> Line: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Line]: ...
    def __getitem__(self, at: int | slice) -> Line | Sequence[Line]:
        return self._lines[at]

    def __len__(self) -> int:
        return len(self._lines)

    def table(self, most: int = MOST) -> tuple[list[str], list[list[str]]]:
        """Header and rows of at most so many lines: share of all waiting, what for, issued, lanes, text."""
        rows = []
        for line in self._lines[:most]:
            waits = sorted(line.stalled.items(), key=lambda row: (-row[1], row[0]))
            texts = [f"{state} {n / line.waiting:.0%}" for state, n in waits[:3]] if line.waiting else []
            lanes = f"{line.threads / line.issued:.1f}" if line.issued and line.threads else "-"
            share = f"{line.waiting / self.total:.1%}" if self.total else "-"
            rows.append(
                [
                    place_text(line.place),
                    share,
                    ", ".join(texts),
                    f"{line.issued:,}",
                    lanes,
                    line.text.strip(),
                ]
            )
        return ["line", "waiting", "for", "issued", "lanes", "text"], rows

    def to_json(self) -> list[dict[str, Any]]:
        """A row per line: place, text, issued, threads, stalled by state, share of all waiting."""
        return [
            {
                "place": list(line.place),
                "text": line.text,
                "issued": line.issued,
                "threads": line.threads,
                "stalled": line.stalled,
                "share": line.waiting / self.total if self.total else 0.0,
            }
            for line in self._lines
        ]

    def __str__(self) -> str:
        if not self._lines:
            return f"{self.kernel}: no instructions were sampled"
        header, rows = self.table()
        rest = len(self) - len(rows)
        more = [f"  and {rest:,} more lines"] if rest else []
        return "\n".join(
            [
                f"{self.kernel}: where its warps wait",
                *("  " + x for x in text_table(header, rows, LEFT)),
                *more,
            ]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return notebook(f"{self.kernel}: where its warps wait", [(*self.table(), LEFT)])


LEFT = (0, 2, 5)
"""Columns of `Lines.table` that are text."""


def place_text(place: tuple[Any, ...]) -> str:
    """A line's place as text: `kernel.cu:12`, or a PC."""
    if len(place) == 1:
        return f"{place[0]:#06x}"
    file = str(place[0]).rpartition("/")[2]
    return f"{file}:{place[1]}" if file else f"line {place[1]}"


def lines_of(launch: LaunchResult, by: Literal["source", "instruction"] | None = None) -> Lines:
    """Lines of source, or instructions; None: lines where they are known."""
    if by not in (None, "source", "instruction"):
        raise ValueError(f"by is {by!r}, expected 'source' or 'instruction'")
    found = [] if by == "instruction" else source_lines(launch)
    if not found and by != "source":
        found = instructions(launch)
    return Lines(found, short_name(launch.name))


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
