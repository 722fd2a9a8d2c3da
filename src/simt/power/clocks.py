"""The core clock: a lower one, and the highest whose power stays under a cap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from simt.errors import PowerError
from simt.power.energies import Energies
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
    lowest = min(energies.voltages[0][0] if energies.voltages else top / 2, top)
    count = math.floor((top - lowest) / STEP_MHZ)

    results: dict[int, Result] = {}
    watts: dict[int, float] = {}

    def measure(step: int) -> float:
        results[step] = replace(run(top - STEP_MHZ * step), energies=energies)
        watts[step] = results[step].energy.watts
        return watts[step]

    # Steps below the highest clock: at `above` power is over the cap; the answer is at most `below` if any.
    above, below = 0, count
    if measure(0) > cap:
        step = _first_guess(results[0], energies, cap, top, count)
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


def _first_guess(result: Result, energies: Energies, cap: float, top: float, count: int) -> int:
    """The highest clock at which the program would stay under the cap if its time were that of the core."""
    steps = range(1, count + 1)
    return next((s for s in steps if _predicted(result, energies, top - STEP_MHZ * s) <= cap), count)


def _predicted(result: Result, energies: Energies, core_mhz: float) -> float:
    """Power at another clock if time were that of the core alone."""
    now = result.machine.core_khz / 1000
    here = OperatingPoint.of(energies, 1000 * now).factors(energies)
    there = OperatingPoint.of(energies, 1000 * core_mhz).factors(energies)
    found = result.energy
    slower = now / core_mhz
    joules = 0.0
    for launch in found.launches:
        for key, n in launch.events.counts.items():
            times = slower if key.startswith("power.") else 1.0
            joules += times * n * launch.value(key) * there[key] / here[key]
    return joules / (found.seconds * slower)
