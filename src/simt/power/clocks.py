"""The core clock: a lower one, the highest whose power stays under a cap, and what a power limit leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from simt.errors import PowerError
from simt.power.energies import Energies
from simt.power.energy import ProgramEnergy
from simt.power.operating_point import OperatingPoint
from simt.result.result import Result
from simt.spec import Spec

STEP_MHZ = 15.0  # nvidia-smi -q -d SUPPORTED_CLOCKS on A100 and H100
CLOSE = 0.01  # under the cap by less than this is close enough


def at_clock(spec: Spec, core_mhz: float) -> dict[str, float]:
    """Overrides of a specification that set its core clock, and the clocks of the interconnect and the L2
    where they are the core's. DRAM keeps its own.

    Raises PowerError for a clock of 0 or less.
    """
    if not core_mhz > 0 or not math.isfinite(core_mhz):
        raise PowerError(f"clock is {core_mhz:g} MHz, expected more than 0")
    own = spec.clock
    paths = [
        name for name in ("core_mhz", "interconnect_mhz", "l2_mhz") if getattr(own, name) == own.core_mhz
    ]
    return {f"clock.{name}": float(core_mhz) for name in paths}


@dataclass(frozen=True)
class Step:
    """A clock that was tried. watts: average power of the program at it."""

    core_mhz: float
    watts: float
    seconds: float


@dataclass(frozen=True)
class Capped:
    """The program at the highest clock whose power is under the cap.

    steps: the clocks that were tried, in that order. reached: whether any clock of the board is low enough;
    otherwise `result` is at the lowest.
    """

    result: Result
    steps: tuple[Step, ...]
    cap: float
    reached: bool

    @property
    def sentence(self) -> str:
        """What was done, for people."""
        chosen = self.result.machine.core_khz / 1000
        tried = "; ".join(f"{x.core_mhz:,.0f} MHz: {x.watts:,.1f} W" for x in self.steps)
        if not self.reached:
            above = f"even at {chosen:,.0f} MHz, the lowest clock, power is above the cap of {self.cap:g} W"
            return f"{above} ({tried})"
        return f"core clock {chosen:,.0f} MHz, so that average power stays under {self.cap:g} W ({tried})"


def under_cap(run: Callable[[float], Result], spec: Spec, energies: Energies, cap: float) -> Capped:
    """Runs a program at falling clocks until its average power is under a cap, as a board's power management
    does that regulates over milliseconds: longer than most simulated programs take. Its clock is therefore
    one for the whole program.

    run: simulates the program at a core clock in MHz. spec: its clock is the highest. cap: in W.

    Clocks are multiples of `STEP_MHZ` below the highest. The first is predicted from the energies at the
    highest, the others are interpolated between runs. Raises PowerError.
    """
    if not cap > 0 or not math.isfinite(cap):
        raise PowerError(f"power cap is {cap:g} W, expected more than 0")
    top = spec.clock.core_mhz
    count = math.floor((top - _lowest(energies, top)) / STEP_MHZ)

    results: dict[int, Result] = {}
    watts: dict[int, float] = {}

    def measure(step: int) -> float:
        results[step] = replace(run(top - STEP_MHZ * step), energies=energies)
        watts[step] = results[step].energy.watts
        return watts[step]

    # Steps below the highest clock: at `above` power is over the cap; the answer is at most `below` if any.
    above, below = 0, count
    if measure(0) > cap:
        step = _first_guess(results[0].energy, cap, top, count)
        while above < below and step not in results:
            power = measure(step)
            if power > cap:
                above = step
            else:
                below = step
                if power >= (1 - CLOSE) * cap:
                    break
            share = 1.0
            if above < below and below in watts:
                share = (watts[above] - cap) / (watts[above] - watts[below])
            step = min(max(above + math.ceil(share * (below - above)), above + 1), below)
    under = [step for step, power in watts.items() if power <= cap]
    chosen = min(under) if under else max(watts)
    steps = tuple(Step(top - STEP_MHZ * s, power, results[s].energy.seconds) for s, power in watts.items())
    return Capped(results[chosen], steps, cap, bool(under))


def _first_guess(found: ProgramEnergy, cap: float, top: float, count: int) -> int:
    """The highest clock at which the program would stay under the cap if its time were that of the core."""
    at = AnyClock.of(found)
    return next((s for s in range(1, count + 1) if at.watts(top - STEP_MHZ * s) <= cap), count)


@dataclass(frozen=True)
class AtLimit:
    """A program that is repeated without end, at the clock that a board's power limit leaves.

    limit: in W. core_mhz: the clock. watts, seconds: average power and time of the program there.
    reached: whether any clock of the board is low enough; otherwise `core_mhz` is the lowest.
    """

    limit: float
    core_mhz: float
    watts: float
    seconds: float
    reached: bool


def at_limit(found: ProgramEnergy, limit: float | None = None) -> AtLimit:
    """The clock that a board's power limit leaves a program: the highest, in steps of `STEP_MHZ` below the
    simulated one, whose power is within the limit.

    limit: in W; None for the thermal design power of the energies' GPU. Nothing is simulated again: energies
    and powers follow the clock and its voltage (`OperatingPoint`), and time is taken to be the core's. What
    waits for DRAM takes less time than that at the lower clock, and more power; `under_cap` simulates it.
    Raises PowerError for a limit of 0 or less, and for no launches.
    """
    if limit is None:
        limit = found.energies.reference["tdp_w"].value
    if not limit > 0 or not math.isfinite(limit):
        raise PowerError(f"power limit is {limit:g} W, expected more than 0")
    if not found.launches:
        raise PowerError("there is no launch, so no power to limit")
    at = AnyClock.of(found)
    if found.watts <= limit:
        return AtLimit(limit, at.core_mhz, found.watts, found.seconds, True)
    return highest_clock(at, at.core_mhz, limit)


def highest_clock(at: AnyClock, top: float, limit: float) -> AtLimit:
    """The highest clock of `top` MHz and those in steps of `STEP_MHZ` below it at which power is within the
    limit, in W."""
    steps = range(math.floor((top - _lowest(at.energies, top)) / STEP_MHZ) + 1)
    chosen = next((step for step in steps if at.watts(top - STEP_MHZ * step) <= limit), None)
    mhz = top - STEP_MHZ * (steps[-1] if chosen is None else chosen)
    return AtLimit(limit, mhz, at.watts(mhz), at.seconds(mhz), chosen is not None)


@dataclass(frozen=True)
class AnyClock:
    """What a program takes at any core clock if its time is that of the core.

    events: by the energies' keys; of powers, seconds. own_seconds, core_mhz: its time, at the clock at which
    it was simulated. temperature: of the chip in degrees Celsius; None for that of the energies.
    """

    energies: Energies
    events: Mapping[str, float]
    own_seconds: float
    core_mhz: float
    temperature: float | None = None

    @classmethod
    def of(cls, found: ProgramEnergy) -> AnyClock:
        """found: of at least one launch."""
        events = dict(found.idle_events)
        for launch in found.launches:
            for key, n in launch.events.counts.items():
                events[key] = events.get(key, 0.0) + n
        mhz = found.launches[0].launch.clock_khz / 1000
        return cls(found.energies, events, found.seconds, mhz, found.temperature)

    def seconds(self, core_mhz: float) -> float:
        return self.own_seconds * self.core_mhz / core_mhz

    def factors(self, core_mhz: float) -> dict[str, float]:
        """What each value of the energies is multiplied by."""
        return OperatingPoint.of(self.energies, 1000 * core_mhz, self.temperature).factors(self.energies)

    def watts(self, core_mhz: float) -> float:
        """Average power."""
        factors = self.factors(core_mhz)
        slower = self.core_mhz / core_mhz
        joules = 0.0
        for key, n in self.events.items():
            times = slower if key.startswith("power.") else 1.0
            joules += times * n * self.energies[key] * factors[key]
        return joules / self.seconds(core_mhz)


def _lowest(energies: Energies, top: float) -> float:
    """The lowest clock of the board in MHz: the first of its voltages, or half of the highest clock."""
    return min(energies.voltages[0][0] if energies.voltages else top / 2, top)
