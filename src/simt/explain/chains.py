"""From the instructions at which warps wait longest to those that made them wait.

An instruction that waits for a register is linked to the last instruction before it that writes one of its
registers and can make it wait for that reason; that one, to what it waited for in turn. One that waits at a
barrier is linked to where warps wait longest before the barrier: others come late from there. One that waits
for its warp group's products is linked to the last of them. One that waits
for room in a pipe is linked to the instruction that uses the pipe most. Order is that of the code; a loop is
followed back from its begin to its end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from simt.isa import Unit
from simt.result.launch import LaunchResult
from simt.result.listing import place_text
from simt.result.stack import unit_of

_REGISTER = re.compile(r"\bR(\d+)\b")
_FOR_REGISTERS = ("long_scoreboard", "short_scoreboard", "wait", "async_copy")
_THROTTLES = ("lg_throttle", "mio_throttle", "math_pipe_throttle")
_NO_WAIT = ("selected", "not_selected")
_MOST_LINKS = 4
_SHARED = ("LDS", "STS", "ATOMS", "LDSM", "STSM", "REDS")


@dataclass(frozen=True)
class Link:
    """An instruction of a chain.

    place: its source line, or its PC. opcode, text: the instruction, and its line of source if that is known.
    state: what warps wait for there most; empty if they hardly wait.
    """

    place: str
    opcode: str
    text: str
    state: str

    def __str__(self) -> str:
        return f"{self.opcode} at {self.place}" + (f" ({self.state})" if self.state else "")


@dataclass(frozen=True)
class Chain:
    """share: of all its launch's waiting that is found at the first link. links: the waiting instruction,
    then the one that it waits for, and so on."""

    share: float
    links: tuple[Link, ...]

    def __str__(self) -> str:
        return f"{self.share:.0%}: " + " <- ".join(map(str, self.links))

    def to_json(self) -> dict[str, Any]:
        return {"share": self.share, "links": [vars(link) for link in self.links]}


def chains(launch: LaunchResult, most: int = 5) -> tuple[Chain, ...]:
    """The chains of the instructions at which its warps wait longest, largest share first."""
    if not launch.pc or not launch.pc["pc"]:
        return ()
    code = _Code(launch)
    order = sorted(range(len(code.waits)), key=lambda i: (-code.waits[i], i))
    total = sum(code.waits)
    return tuple(
        Chain(code.waits[i] / total, tuple(code.link(k) for k in code.chain(i)))
        for i in order[:most]
        if code.waits[i] > 0.01 * total
    )


def blamed(
    launch: LaunchResult, states: Collection[str], opcodes: Collection[str], most: int = 2
) -> tuple[str, ...]:
    """The lines whose instructions, of these opcodes, make warps wait in these states most; empty opcodes:
    any."""
    if not launch.pc or not launch.pc["pc"] or not states:
        return ()
    code, found = _Code(launch), Counter[str]()
    for i, waits in enumerate(code.states):
        for state in states:
            if n := waits.get(state, 0):
                k = code.cause(i, state) if state in _FOR_REGISTERS else i
                if k is not None and (not opcodes or code.opcodes[k].partition(".")[0] in opcodes):
                    found[code.places[k]] += n
    total = sum(found.values())
    return tuple(place for place, n in found.most_common(most) if n >= 0.2 * total)


class _Code:
    """A launch's instructions in the order of their PCs, what their warps wait for, and their registers."""

    def __init__(self, launch: LaunchResult) -> None:
        pc = launch.pc
        at = sorted(range(len(pc["pc"])), key=lambda i: pc["pc"][i])
        self.pcs = [pc["pc"][i] for i in at]
        self.opcodes = [pc["opcode"][i] for i in at]
        texts = pc.get("text") or [""] * len(at)
        files, sources = (pc.get(name) or [""] * len(at) for name in ("source_file", "source_text"))
        self.issued = [pc["issued"][i] for i in at]
        self.places = [
            place_text((files[i], pc["source_line"][i]))
            if pc["source_line"][i]
            else place_text((pc["pc"][i],))
            for i in at
        ]
        self.sources = [sources[i].strip() for i in at]
        rows = {state: row for state, row in pc["stalled"].items() if state not in _NO_WAIT}
        self.states = [{state: row[i] for state, row in rows.items() if row[i]} for i in at]
        self.waits = [sum(states.values()) for states in self.states]
        self.units = [unit_of(opcode, launch.sm_version) for opcode in self.opcodes]
        writes = pc.get("writes") or [0] * len(at)
        self.written: list[frozenset[int]] = []
        self.read: list[frozenset[int]] = []
        for i in at:
            names = [int(n) for n in _REGISTER.findall(texts[i])]
            width = min(writes[i], 64) if writes[i] else 0
            of_result = frozenset(range(names[0], names[0] + width)) if width and names else frozenset()
            operands = names[1:] if of_result else names
            self.written.append(of_result)
            self.read.append(frozenset(n + k for n in operands for k in (0, 1)))

    def state(self, i: int) -> str:
        """What warps wait for at an instruction most."""
        return max(self.states[i], key=lambda s: self.states[i][s]) if self.states[i] else ""

    def link(self, i: int) -> Link:
        shown = self.state(i) if self.waits[i] > 0.01 * sum(self.waits) else ""
        return Link(self.places[i], self.opcodes[i], self.sources[i], shown)

    def chain(self, i: int) -> list[int]:
        found, reason = [i], self.state(i)
        while len(found) < _MOST_LINKS:
            before = self.cause(found[-1], reason)
            if before is None or before in found:
                break
            found.append(before)
            reason = self.state(before) or "wait"
            if reason not in _FOR_REGISTERS:
                reason = "long_scoreboard"  # of its operands, only what takes long matters
        return found

    def cause(self, i: int, reason: str) -> int | None:
        if reason in _FOR_REGISTERS:
            return self._writer(i, reason)
        if reason == "barrier":
            return self._late(i)
        if reason == "warpgroup_arrive":
            return next((k for k in self._before(i) if "GMMA" in self.opcodes[k]), None)
        if reason in _THROTTLES:
            same = [k for k in range(len(self.units)) if self.units[k] is self.units[i]]
            if reason != "math_pipe_throttle":
                same = [k for k in same if self._is_shared(k) == self._is_shared(i)]
            return max(same, key=lambda k: (self.issued[k], self.waits[k]), default=None)
        return None

    def _before(self, i: int) -> list[int]:
        """The others, backwards from an instruction; those behind it come last, as of the pass before."""
        return [*range(i - 1, -1, -1), *range(len(self.pcs) - 1, i, -1)]

    def _writer(self, i: int, reason: str) -> int | None:
        wanted = self.read[i] | self.written[i]
        for k in self._before(i):
            if self.written[k] & wanted and self._can_cause(k, reason):
                return k
        if reason == "async_copy":
            return next(
                (k for k in self._before(i) if self.opcodes[k].startswith(("LDGSTS", "UBLKCP", "UTMALDG"))),
                None,
            )
        return None

    def _can_cause(self, k: int, reason: str) -> bool:
        memory, shared = self.units[k] is Unit.Memory, self._is_shared(k)
        if reason == "long_scoreboard":
            return memory and not shared
        if reason == "short_scoreboard":
            return shared or self.units[k] is Unit.Sfu
        return not memory

    def _is_shared(self, k: int) -> bool:
        return self.opcodes[k].partition(".")[0] in _SHARED

    def _late(self, i: int) -> int | None:
        """Where warps wait longest between the barrier and the one before it."""
        barrier = next((k for k in range(i, -1, -1) if self.opcodes[k].startswith("BAR")), None)
        if barrier is None:
            return None
        begin = next((k + 1 for k in range(barrier - 1, -1, -1) if self.opcodes[k].startswith("BAR")), 0)
        own = [k for k in range(begin, barrier) if self.state(k) != "barrier"]
        return max(own, key=lambda k: self.waits[k], default=None)
