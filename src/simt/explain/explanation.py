"""An explanation of a launch's time, as text, JSON, and HTML."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from simt.formatting import format_time, text_table
from simt.names import short_name
from simt.pages import Table, notebook, render
from simt.result.launch import LaunchResult
from simt.result.stack import Part, machine_text

from .bounds import Bound
from .causes import Gain
from .chains import Chain

MOST_SENTENCES = 5
LEAST_SAVED = 0.02  # of the launch's time: causes that cost less are not worth a sentence
_SAME_SAVING = 0.9  # of a general cause's saving: a cause within it that saves as much says it all
_SHOWN = 0.002  # of the launch's time: smaller parts are not shown


@dataclass(frozen=True)
class Explanation:
    """Why a launch takes its time.

    share: of the program's time that is this launch's. parts: of its time, whose shares add up to 1. bounds:
    what it takes at least, by resource. chains: from the longest waits to what made warps wait. gains: by
    cause, largest first, simulated without it. notes: what was not done, and why.
    """

    launch: LaunchResult
    share: float
    parts: tuple[Part, ...]
    bounds: tuple[Bound, ...]
    chains: tuple[Chain, ...]
    gains: tuple[Gain, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        x = self.launch
        grid, block = ("x".join(map(str, sizes)) for sizes in (x.grid, x.block))
        machine = "" if x.machine is None else f" on {machine_text(x.machine)}"
        part = "" if self.share > 0.999 else f", {self.share:.0%} of the program's time"
        return (
            f"{short_name(x.name)}[{grid}, {block}] (launch {x.id}){machine}: {format_time(x.seconds)} "
            f"({x.cycles:,} cycles){part}"
        )

    @property
    def sentences(self) -> list[str]:
        """What would help, by gain: at most five sentences. A cause that hardly saves more than a named one
        within it is left out."""
        named: list[Gain] = []
        for gain in self.gains:
            within = [g for g in named if g.cause.within == gain.cause.name]
            if gain.saved >= LEAST_SAVED and all(g.saved < _SAME_SAVING * gain.saved for g in within):
                named.append(gain)
        return [gain.sentence for gain in named[:MOST_SENTENCES]]

    @property
    def tables(self) -> dict[str, tuple[list[str], list[list[str]], tuple[int, ...]]]:
        """By title: header, rows, and the columns that are text."""
        parts = [
            [p.name, f"{p.share:.1%}", f"{p.waiting:.1%}", p.meaning]
            for p in self.parts
            if p.share >= _SHOWN or p.waiting >= 10 * _SHOWN
        ]
        bounds = [[b.resource, f"{b.cycles:,.0f}", f"{b.share:.1%}"] for b in self.bounds]
        gains = [
            [g.cause.name, f"{g.cycles:,}", f"{g.saved:+.1%}", f"{g.speedup:.2f}", " ".join(g.lines)]
            for g in self.gains
        ]
        found = {
            "Where the time goes (the parts add up to 100 %; warps may wait for several things at once)": (
                ["part", "of the time", "of all waiting", "warps wait for"],
                parts,
                (0, 3),
            ),
            "If only this resource existed": (["resource", "cycles", "of the time"], bounds, (0,)),
        }
        if gains:
            found["Simulated without it"] = (
                ["cause", "cycles", "saved", "times as fast", "lines"],
                gains,
                (0, 4),
            )
        return found

    def to_json(self) -> dict[str, Any]:
        """The explanation as one JSON object."""
        return {
            "kernel": self.launch.name,
            "launch": self.launch.id,
            "gpu": None if self.launch.machine is None else self.launch.machine.name,
            "cycles": self.launch.cycles,
            "seconds": self.launch.seconds,
            "share": self.share,
            "parts": [asdict(part) for part in self.parts],
            "bounds": [asdict(bound) for bound in self.bounds],
            "chains": [chain.to_json() for chain in self.chains],
            "gains": [gain.to_json() for gain in self.gains],
            "sentences": self.sentences,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [self.title]
        for title, (header, rows, left) in self.tables.items():
            lines += ["", title, *("  " + line for line in text_table(header, rows, left))]
        if self.chains:
            lines += [
                "",
                "Who waits for whom (share of all waiting)",
                *(f"  {chain}" for chain in self.chains),
            ]
        if self.sentences:
            lines += ["", "What would help", *(f"  {i}. {text}" for i, text in enumerate(self.sentences, 1))]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        return notebook(self.title, list(self.tables.values()), self.sentences, self.notes)

    def page(self) -> str:
        """A page that needs no network."""
        bars = (
            [(p.name, p.share, f"{p.share:.1%}") for p in self.parts if p.share >= LEAST_SAVED],
            [
                (b.resource, min(1.0, b.share), f"{b.share:.1%}")
                for b in self.bounds
                if b.share >= LEAST_SAVED
            ],
            [
                (g.cause.name, g.saved, f"{g.speedup:.2f} times as fast")
                for g in self.gains
                if g.saved >= LEAST_SAVED
            ],
        )
        sections = [
            (
                title,
                Table(
                    header,
                    [[(c, None if i in left else _number(c)) for i, c in enumerate(row)] for row in rows],
                ),
                shares,
            )
            for (title, (header, rows, left)), shares in zip(self.tables.items(), bars, strict=False)
            if rows
        ]
        chain_rows = [
            [(f"{c.share:.1%}", c.share), (" <- ".join(map(str, c.links)), None)] for c in self.chains
        ]
        return render(
            "explanation.html",
            title=short_name(self.launch.name),
            about=self.title,
            source="" if self.launch.machine is None else self.launch.machine.name,
            sentences=self.sentences,
            notes=self.notes,
            sections=sections,
            chains=Table(["of all waiting", "waits"], chain_rows),
        )


def _number(text: str) -> float:
    return float(text.strip("%+").replace(",", "") or 0)
