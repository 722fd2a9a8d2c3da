"""First-N-instructions: the practice of simulators without sampling."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from simt.errors import PlanError
from simt.parameter_checks import one_of, real
from simt.profile import Profile
from simt.sampling.columns import Unit, instructions
from simt.sampling.sampler import Choice, Sampler


class FirstN(Sampler):
    """Simulates from the first launch until N instructions have executed; their IPC represents the whole
    program.

    The baseline of PKA (MICRO'21, section 5.1), with N of 10^9 thread instructions. The total is estimated as
    (instructions of all launches) / (IPC of the prefix). The launch in which the N-th instruction executes is
    cut there: its cycles up to the cut are taken as proportional to instructions.

    instructions: N.
    unit: what N counts, `thread` or `warp` instructions.

    Learned: `fraction_`, share of the last launch that lies before the cut (1 if nothing is cut).
    """

    method: ClassVar[str] = "first-n"
    fraction_: float

    def __init__(self, instructions: float = 1e9, unit: Unit = "thread") -> None:
        self.instructions = instructions
        self.unit = unit

    def validate(self) -> None:
        real("instructions", self.instructions, 0, open_low=True)
        one_of("unit", self.unit, ("thread", "warp"))

    def choose(self, profile: Profile) -> Choice:
        limit = float(self.instructions)
        source, counts = instructions(profile, self.unit, "first-N")
        until = np.cumsum(counts)
        total = float(until[-1])
        if total <= 0:
            raise PlanError(f"{profile.source}: no launch executes an instruction by `{source}`")
        last = min(int(np.searchsorted(until, limit)), len(counts) - 1)
        before = float(until[last - 1]) if last else 0.0
        self.fraction_ = min((limit - before) / counts[last], 1.0) if counts[last] else 1.0
        simulated = min(limit, total)
        weights = np.full(last + 1, total / simulated)
        weights[last] *= self.fraction_
        cut = int(profile.launches["launch"][last])
        return Choice(
            strata=np.zeros(len(profile), np.int64),
            rows=np.arange(last + 1),
            draws=np.ones(last + 1, np.int64),
            weights=weights,
            names=["all launches"],
            why=[f"the first {simulated:.6g} of {total:.6g} {self.unit} instructions stand for all"],
            fitted={
                "instruction_counter": source,
                "instructions": total,
                "simulated_instructions": simulated,
                "cut_launch": cut,
                "cut_fraction": self.fraction_,
            },
        )
