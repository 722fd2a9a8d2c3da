"""Clocks: the domain that follows the core's, and the highest clock under a power cap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import simt
from simt.errors import PowerError, SimtError
from simt.power import at_clock, load_energies, under_cap
from simt.result import Result
from simt.spec import Spec, load_spec
from support.energies import energies
from support.fake_gpu import installed
from support.launches import MACHINE, launch

SOURCE = """
extern "C" __global__ void f(float* x, int rounds) {
  float v = x[threadIdx.x];
  for (int k = 0; k < rounds; ++k)
    v = fmaf(v, 1.5f, 0.5f);
  x[threadIdx.x] = v;
}
"""


def run(mhz: float | None = None) -> Result:
    gpu = simt.GPU("qv100", set={"sm.count": 2}, power=True, clock=mhz)
    kernel = gpu.compile(SOURCE)
    kernel["f"][4, 256](gpu.array(np.ones(256, np.float32)), 200)
    return gpu.result()


def test_the_domain_of_the_core_follows_and_dram_does_not() -> None:
    spec = load_spec("qv100")
    assert spec.clock.core_mhz == spec.clock.l2_mhz == spec.clock.interconnect_mhz == 1380
    found = load_spec(spec, at_clock(spec, 690)).clock
    assert (found.core_mhz, found.l2_mhz, found.interconnect_mhz) == (690, 690, 690)
    assert found.dram_mhz == spec.clock.dram_mhz
    apart = load_spec(spec, {"clock.l2_mhz": 1200})
    assert load_spec(apart, at_clock(apart, 690)).clock.l2_mhz == 1200
    with pytest.raises(PowerError, match="clock is 0 MHz"):
        at_clock(spec, 0)


def test_half_the_clock() -> None:
    fast, slow = run(), run(690)
    assert slow.machine.core_khz == 690_000
    assert slow.provenance.overrides["clock.core_mhz"] == 690
    # Compute-bound: as many cycles (DRAM is nearer in them), twice the time. The launch takes as long.
    overhead = load_spec("qv100").launch.overhead * 1e-9
    assert slow.totals.seconds - overhead == pytest.approx(2 * (fast.totals.seconds - overhead), rel=0.05)
    volts = dict(load_energies("qv100").voltages)
    dynamic = [x.energy.components["FP32 units"] for x in (fast, slow)]
    assert dynamic[1] / dynamic[0] == pytest.approx((volts[810] / volts[1380]) ** 2)
    assert slow.energy.watts < fast.energy.watts


def model(mhz: float) -> Result:
    """A program that takes mhz / 10 W, and 4,500 cycles."""
    with installed():
        provenance = simt.simulate("input").provenance
    machine = replace(MACHINE, core_khz=round(1000 * mhz))
    x = replace(launch(sm_active_cycles=0), clock_khz=machine.core_khz, machine=machine, pc={})
    return Result((x,), machine, provenance)


SPEC: Spec = load_spec("qv100", {"clock.core_mhz": 1000})
LINEAR = replace(energies(power__chip_idle=100), voltages=((400.0, 1.0), (1000.0, 1.0)))
LINEAR = replace(
    LINEAR, scaling={**LINEAR.scaling, "leakage_share": replace(LINEAR.scaling["leakage_share"], value=0.0)}
)


@pytest.mark.parametrize(
    "cap, mhz", [(100, 1000), (99.99, 985), (80, 790), (79.1, 790), (78.9, 775), (40, 400)]
)
def test_the_highest_step_under_the_cap(cap: float, mhz: float) -> None:
    found = under_cap(model, SPEC, LINEAR, cap)
    assert found.reached
    chosen = found.result.machine.core_khz / 1000
    assert chosen == pytest.approx(mhz, abs=0.01 * mhz)  # or within 1 % of the cap
    assert found.result.energy.watts <= cap
    assert len(found.steps) <= 3
    assert f"core clock {chosen:,.0f} MHz" in found.sentence


def test_a_cap_that_cannot_be_reached() -> None:
    found = under_cap(model, SPEC, LINEAR, 39)
    assert not found.reached
    assert found.result.machine.core_khz == 400_000
    assert found.sentence.startswith("even at 400 MHz, the lowest clock")
    with pytest.raises(PowerError, match="power cap is 0 W"):
        under_cap(model, SPEC, LINEAR, 0)


def test_a_simulated_program_under_a_cap() -> None:
    spec = load_spec("qv100", {"sm.count": 2})
    free = run().energy.watts
    found = under_cap(run, spec, load_energies("qv100"), 0.97 * free)
    assert found.reached and found.result.energy.watts <= 0.97 * free
    tried = {x.core_mhz: x.watts for x in found.steps}
    assert tried[1380] == pytest.approx(free)
    assert all(
        watts > 0.97 * free for mhz, watts in tried.items() if 1000 * mhz > found.result.machine.core_khz
    )


def test_an_impossible_clock_is_refused() -> None:
    with pytest.raises(SimtError, match="clock"):
        simt.GPU("qv100", clock=-1)
