"""The clock that a board's power limit leaves: by hand, simulated, and against published clocks."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import simt
from simt.cli.power import app
from simt.errors import PowerError
from simt.power import AnyClock, ProgramEnergy, at_limit, highest_clock, load_energies
from simt.result import Result, sentences
from simt.spec import load_spec
from support.energies import energies
from support.fake_gpu import installed
from support.launches import MACHINE, launch

VALIDATION = Path(__file__).parents[2] / "validation" / "power"

# At 1,000 MHz and 1 V: 80 W that follow f V^2, and 20 W that stay.
DYNAMIC = AnyClock(
    energies(instructions__fp32_fma=80, power__board=20),
    {"instructions.fp32_fma": 1e12, "power.board": 1.0},
    1.0,
    1000.0,
)


def program(starts: tuple[int, ...] = (0,), **values: float) -> ProgramEnergy:
    """Launches of the fake engine, at 1,000 MHz."""
    with installed():
        provenance = simt.simulate("input").provenance
    launches = tuple(replace(launch(i, start=start), pc={}) for i, start in enumerate(starts))
    return ProgramEnergy(Result(launches, MACHINE, provenance), energies(**values))


def test_power_at_a_clock_by_hand() -> None:
    # 700 MHz is at 0.8 + 0.2 x 200 / 500 = 0.88 V.
    assert DYNAMIC.watts(1000) == pytest.approx(100)
    assert DYNAMIC.watts(700) == pytest.approx(80 * 0.7 * 0.88**2 + 20)
    assert DYNAMIC.watts(500) == pytest.approx(80 * 0.5 * 0.8**2 + 20)
    assert DYNAMIC.seconds(500) == pytest.approx(2)


@pytest.mark.parametrize(("limit", "mhz"), [(100, 1000), (99.99, 985), (63.4, 700), (63.3, 685), (46, 505)])
def test_the_highest_clock_within_a_limit(limit: float, mhz: float) -> None:
    found = highest_clock(DYNAMIC, 1000, limit)
    assert found.reached and found.watts <= limit
    assert found.core_mhz == pytest.approx(mhz)
    assert found.seconds == pytest.approx(1000 / mhz)


def test_a_limit_below_what_the_lowest_clock_takes() -> None:
    found = highest_clock(DYNAMIC, 1000, 30)
    assert not found.reached
    assert found.core_mhz == pytest.approx(505)  # the last step above the first voltage's 500 MHz
    assert found.watts > 30


def test_below_the_limit_nothing_changes() -> None:
    found = program(power__board=60, power__chip_idle=20)
    assert found.energies.reference["tdp_w"].value == 100
    at = at_limit(found)
    assert (at.limit, at.core_mhz, at.reached) == (100, 1000, True)
    assert at.watts == pytest.approx(found.watts)
    assert at.seconds == pytest.approx(found.seconds)


def test_clock_and_time_are_monotone_in_the_limit() -> None:
    found = program(starts=(0, 100_000), power__board=20, power__chip_idle=80, memory__l2_sector_read=1e6)
    at = [at_limit(found, found.watts * share) for share in (1, 0.99, 0.9, 0.8, 0.7, 0.6)]
    for more, less in pairwise(at):
        assert less.core_mhz < more.core_mhz
        assert less.seconds > more.seconds
        assert less.watts <= less.limit


def test_time_between_launches_counts() -> None:
    """As it does in the average power of the program."""
    found = program(starts=(0, 100_000), power__board=20, power__sm_idle=5, power__sm_active=9)
    assert found.idle_seconds > 0
    assert AnyClock.of(found).watts(1000) == pytest.approx(found.watts)


def test_what_has_no_limit_is_refused() -> None:
    found = program(power__board=20)
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(PowerError, match="power limit is"):
            at_limit(found, wrong)
    with pytest.raises(PowerError, match="no launch"):
        at_limit(program(starts=(), power__board=20))


def simulated(tmp_path: Path, mhz: float | None = None) -> Result:
    gpu = simt.GPU("h100", set={"sm.count": 2}, power=True, clock=mhz)
    kernel = gpu.compile("""
extern "C" __global__ void f(float* x, int rounds) {
  float v = x[threadIdx.x];
  for (int k = 0; k < rounds; ++k)
    v = fmaf(v, 1.5f, 0.5f);
  x[threadIdx.x] = v;
}""")
    kernel["f"][4, 256](gpu.array(np.ones(256, np.float32)), 2000)
    gpu.result().save(tmp_path)
    return gpu.result()


def test_as_simulated_at_that_clock(tmp_path: Path) -> None:
    result = simulated(tmp_path / "free")
    at = at_limit(result.energy, 0.9 * result.energy.watts)
    again = simulated(tmp_path / "limited", at.core_mhz).energy
    assert again.watts == pytest.approx(at.watts, rel=0.01)
    overhead = load_spec("h100").launch.overhead * 1e-9  # of the host: it does not follow the clock
    assert again.seconds - overhead == pytest.approx(at.seconds - overhead, rel=0.1)


def test_the_command_and_the_summary_say_it(tmp_path: Path) -> None:
    result = simulated(tmp_path)
    watts = result.energy.watts
    assert not any("lowers its clock" in x for x in sentences(result))
    hot = load_energies("h100")
    hot = replace(
        hot, reference=hot.reference | {"tdp_w": replace(hot.reference["tdp_w"], value=0.9 * watts)}
    )
    at = at_limit(ProgramEnergy(result, hot))
    assert any(f"to about {at.core_mhz:,.0f} MHz" in x for x in sentences(replace(result, energies=hot)))

    def show(*options: str) -> dict[str, Any]:
        found = CliRunner().invoke(app, ["show", str(tmp_path), "--json", "-", *options])
        assert found.exit_code == 0, found.output
        data: dict[str, Any] = json.loads(found.output)["at_limit"]
        return data

    assert show()["core_mhz"] == 1980 and show()["limit"] == 700
    assert show("--limit", str(0.9 * watts))["core_mhz"] == pytest.approx(at.core_mhz)
    text = CliRunner().invoke(app, ["show", str(tmp_path), "--limit", "1"]).output
    assert "Repeated under a limit of 1 W: even at" in text
    text = CliRunner().invoke(app, ["show", str(tmp_path)]).output
    assert "Repeated under a limit of 700 W: the same clock, 1,980 MHz" in text


def test_published_clocks_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/records/power.md: rows to which no energy was fitted."""
    monkeypatch.syspath_prepend(str(VALIDATION))
    sys.modules.pop("clocks", None)
    import clocks

    h100 = [row for row in clocks.h100() if row.use == "judge"]
    assert len(h100) == 3
    assert np.mean([abs(row.error) for row in h100]) < 0.06
    assert all(abs(row.error) < 0.08 < row.top / row.mhz - 1 for row in h100)
    a40 = clocks.a40()
    assert len(a40) == 14
    assert np.mean([abs(row.error) for row in a40]) < 0.02
    fitted = [row.energy(clocks.FIT) for row in clocks.h100() if row.use == "fit"]
    assert load_energies("h100").values[clocks.FIT].value == pytest.approx(np.mean(fitted), rel=0.01)
