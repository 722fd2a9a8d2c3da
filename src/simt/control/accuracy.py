"""Errors of sampled simulations: launches verified in full, and totals with a combined error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from simt.errors import ControlError
from simt.parameter_checks import integer, real
from simt.result import LaunchResult, Result

if TYPE_CHECKING:
    from simt.sampling import Plan

CONFIDENCE = 0.95
AT_LEAST = 2  # launches: a spread needs two


@dataclass(frozen=True)
class Verified:
    """A launch simulated both ways. cycles: with the controller; true_cycles: in full."""

    id: int
    name: str
    cycles: int
    true_cycles: int
    simulated_instructions: int
    instructions: int

    @property
    def error(self) -> float:
        """(cycles - true) / true."""
        return (self.cycles - self.true_cycles) / self.true_cycles if self.true_cycles else 0.0


@dataclass(frozen=True)
class Verification:
    """Errors seen on a random sample of the launches that a controller cut short.

    launches: the sample. candidates: number of launches cut short; the others have no error. share, seed: as
        requested. wall_seconds: host time of simulating the sample in full.
    """

    launches: tuple[Verified, ...]
    candidates: int
    share: float
    seed: int
    wall_seconds: float

    @property
    def error(self) -> float:
        """Error of the sum of the cycles of the sample: (with controller - true) / true."""
        true = sum(x.true_cycles for x in self.launches)
        return (sum(x.cycles for x in self.launches) - true) / true if true else 0.0

    @property
    def mean_error(self) -> float:
        """Mean |error| over the launches."""
        return sum(abs(x.error) for x in self.launches) / len(self.launches) if self.launches else 0.0

    @property
    def worst_error(self) -> float:
        """Largest |error| of any launch."""
        return max((abs(x.error) for x in self.launches), default=0.0)

    @property
    def half_width(self) -> float | None:
        """Half width of the 95 % confidence interval of `error` as an estimate for all candidates: the
        variance of a ratio of totals under simple random sampling without replacement (Cochran, "Sampling
        Techniques", 1977, section 6.3), with Student's t. None if a single launch of several was verified; 0
        if all were."""
        from scipy.stats import t as student

        m, n = len(self.launches), self.candidates
        if m >= n:
            return 0.0
        if m < AT_LEAST:
            return None
        ratio = 1 + self.error
        mean = sum(x.true_cycles for x in self.launches) / m
        squares = sum((x.cycles - ratio * x.true_cycles) ** 2 for x in self.launches) / (m - 1)
        return float(student.ppf(0.5 + CONFIDENCE / 2, m - 1)) * math.sqrt(squares / m * (1 - m / n)) / mean

    def to_json(self) -> dict[str, Any]:
        """Plain values, without host times: equal runs give equal values."""
        return {
            **{k: v for k, v in asdict(self).items() if k not in ("launches", "wall_seconds")},
            "error": self.error,
            "mean_error": self.mean_error,
            "worst_error": self.worst_error,
            "half_width": self.half_width,
            "launches": [{**asdict(x), "error": x.error} for x in self.launches],
        }


def cut_short(launch: LaunchResult) -> bool:
    """Whether a controller left out part of the launch."""
    return launch.sampled is not None and launch.sampled.decision != "full"


def choose(result: Result, share: float, seed: int = 0) -> list[int]:
    """Ids of a random sample of the launches that were cut short: `share` of them, at least two. Whether a
    launch is chosen depends on the seed and its id alone."""
    from simt.sampling.draws import keys

    real("verify", share, 0, 1, open_low=True)
    ids = [x.id for x in result.launches if cut_short(x)]
    wanted = min(len(ids), max(AT_LEAST, math.ceil(share * len(ids))))
    order = keys(integer("seed", seed), ids).argsort()[:wanted]
    return sorted(ids[i] for i in order.tolist())


def verification(sampled: Result, full: Result, share: float = 1.0, seed: int = 0) -> Verification:
    """Compares launches under a controller with the same launches simulated in full.

    sampled: launches under a controller. full: some or all of them without one. share, seed: the arguments of
        `choose`.

    Raises ControlError if the two differ in launches or GPU.
    """
    if sampled.machine != full.machine:
        raise ControlError(
            f"the full simulation is of {full.machine.name}, the sampled one of {sampled.machine.name}"
        )
    truth = {x.id: x for x in full.launches}
    found = []
    for x in sampled.launches:
        if not cut_short(x) or (other := truth.get(x.id)) is None:
            continue
        if (other.name, other.grid, other.block) != (x.name, x.grid, x.block):
            raise ControlError(
                f"launch {x.id} is {x.name} {x.grid} here, and {other.name} {other.grid} in the full "
                f"simulation"
            )
        if cut_short(other):
            raise ControlError(f"launch {x.id} of the full simulation is itself sampled")
        assert x.sampled is not None
        found.append(
            Verified(
                x.id, x.name, x.cycles, other.cycles, x.sampled.warp_instructions, other.warp_instructions
            )
        )
    candidates = sum(cut_short(x) for x in sampled.launches)
    return Verification(tuple(found), candidates, share, seed, full.provenance.wall_seconds)


def with_accuracy(
    result: Result,
    plan: Plan | None = None,
    verified: Verification | None = None,
    full: Result | None = None,
) -> Result:
    """The Result with `sampling` filled in (speedups, totals of the plan's population, errors), and with the
    host time of a full simulation, if known, in its provenance.

    plan: the plan that chose the Result's launches. verified: from `verification`. full: the same input
        simulated in full.

    The combined error of the plan's total has two parts: the half width due to the plan's draws (a bound, at
    the plan's confidence), and the projection error seen on the verified launches (|error| plus its own half
    width, weighted by the share of launches that were cut short). The second is an observation, not a bound.
    """
    launches = result.launches
    done = sum(x.sampled.warp_instructions if x.sampled else x.warp_instructions for x in launches)
    every = sum(x.warp_instructions for x in launches)
    found: dict[str, Any] = {
        "launches": len(launches),
        "cut_short": sum(cut_short(x) for x in launches),
        "simulated_warp_instructions": done,
        "warp_instructions": every,
        "speedup": every / done if done else None,
    }
    full_seconds = result.provenance.full_wall_seconds
    if verified is not None:
        found["verification"] = verified.to_json()
        instructions = sum(x.instructions for x in verified.launches)
        if instructions and verified.wall_seconds:
            full_seconds = verified.wall_seconds * every / instructions
    if full is not None:
        compared = verification(result, full)
        found["against_full"] = {
            **compared.to_json(),
            "total_error": _total_error(result, full),
        }
        full_seconds = full.provenance.wall_seconds
    if plan is not None:
        found["plan"] = _totals(plan, result, found.get("verification") or found.get("against_full"))
    provenance = replace(result.provenance, full_wall_seconds=full_seconds)
    return replace(result, sampling=found, provenance=provenance)


def _total_error(result: Result, full: Result) -> float | None:
    truth = {x.id: x.cycles for x in full.launches}
    both = [(x.cycles, truth[x.id]) for x in result.launches if x.id in truth]
    true = sum(b for _, b in both)
    return (sum(a for a, _ in both) - true) / true if true else None


def _totals(plan: Plan, result: Result, seen: Mapping[str, Any] | None) -> dict[str, Any]:
    """Totals of the plan's population, and the error of the cycles."""
    from simt.sampling.estimate import unknown_overlap
    from simt.sampling.located import launches_of

    estimate = plan.estimate(result)
    cycles = estimate["cycles"]
    makespan = estimate.makespan.get("cycles")
    sampling = cycles["relative"] or 0.0
    weights = dict(plan.launches.select("launch", "weight").iter_rows())
    weighted = [(weights[n] * x.cycles, cut_short(x)) for n, x in launches_of(plan, result).items()]
    whole = sum(cycles for cycles, _ in weighted)
    share = sum(cycles for cycles, cut in weighted if cut) / whole if whole else 0.0
    projection: float | None = 0.0
    if share > 0:
        known = seen is not None and seen["launches"] and seen["half_width"] is not None
        projection = share * (abs(seen["error"]) + seen["half_width"]) if known and seen else None
    rows = estimate.table.iter_rows(named=True)
    totals = {row["metric"]: row["total"] for row in rows if row["name"] is None}
    joules = estimate["simt__energy.sum"] if result.energies is not None else None
    return {
        **({"energy": {name: joules[name] for name in ("total", "relative")}} if joules else {}),
        "method": plan.method,
        "population": plan.population,
        "launches": len(plan),
        "confidence": estimate.confidence,
        "cycles": cycles["total"],
        **(
            {"overlap_unknown": unknown_overlap(plan.streams)}
            if makespan is None
            else {"makespan": asdict(makespan)}
        ),
        "totals": totals,
        "sampling_error": sampling,
        "projection_error": projection,
        "cut_short_share": share,
        "combined_error": None if projection is None else sampling + projection,
        "missing": list(estimate.missing),
        "notes": list(estimate.notes),
    }
