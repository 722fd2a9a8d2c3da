"""Plans from what launches execute, without times; launches left out warm the L2 of those that are timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import simt
from simt.cli import app
from simt.profile import Profile
from simt.sampling import PKS, Neyman, Plan, Root, Sieve, TBPoint
from simt.sampling.alike import alike

SOURCE = """
extern "C" __global__ void scale(const float* a, float* b, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) b[i] = 2 * a[i];
}
extern "C" __global__ void gather(const float* a, float* b, int step, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) b[i] += a[(long long)i * step % n];
}
"""
PROGRAM = f"""
import numpy as np

def main(gpu):
    module = gpu.compile('''{SOURCE}''')
    n = 1 << 14
    a, b = gpu.array(np.arange(n, dtype=np.float32)), gpu.zeros(n)
    for i in range(30):
        module.scale[n // 128, 128](a, b, n)
        module.gather[n // 128, 128](b, a, 1 if i % 3 else 33, n)
    print(a.numpy().sum())
"""
MACHINE = {"sm.count": 4}


class Cold(simt.GPU):
    """Launches left out leave all caches as they are."""

    def run_values(self, *arguments: Any) -> bytes:
        return super().run_values(*arguments[:3], memory=self.memory.native)


def main(gpu: simt.GPU) -> None:
    names: dict[str, Any] = {}
    exec(PROGRAM, names)
    names["main"](gpu)


@pytest.fixture(scope="module")
def profile() -> Profile:
    gpu = simt.GPU("qv100", functional=True, set=MACHINE)
    with gpu.profiled() as executed:
        main(gpu)
    return executed.profile()


@pytest.fixture(scope="module")
def full() -> simt.Result:
    gpu = simt.GPU("qv100", set=MACHINE)
    main(gpu)
    return gpu.result()


def test_launches_that_execute_alike_are_a_group(profile: Profile) -> None:
    codes, names = alike(profile)
    strided = np.arange(30) % 3 == 0
    gathers = codes[1::2]
    assert len(np.unique(gathers[strided])) == len(np.unique(gathers[~strided])) == 1
    assert gathers[0] != gathers[1]
    assert names == ["gather", "gather (2)", "scale"]


@pytest.mark.parametrize("method", [Neyman(), Root(), Sieve(), PKS(), TBPoint()], ids=str)
def test_every_method_works_on_it_and_claims_nothing(method: Any, profile: Profile) -> None:
    plan = method.fit_plan(profile)
    assert plan.claimed_error is None and plan.expected
    assert "expected on qv100, not measured" in str(plan) and "none, as times are not measured" in str(plan)
    assert Plan.from_json(plan.to_json()).to_json() == plan.to_json()


def test_the_assumed_spread_decides_how_many(profile: Profile) -> None:
    chosen = [len(Neyman(transfer=spread).fit_plan(profile)) for spread in (0.0, 0.2, 1.0)]
    assert chosen[0] == 3 < chosen[1] < chosen[2]


def test_a_planned_program_estimates_its_total(profile: Profile, full: simt.Result) -> None:
    plan = Neyman(min_samples=2).fit_plan(profile)
    assert len(plan) < 20
    gpu = simt.GPU("qv100", set=MACHINE, plan=plan)
    main(gpu)
    truth = sum(x.cycles for x in full.launches)
    found = gpu.result().sampling["plan"]
    assert abs(found["cycles"] / truth - 1) < 0.03
    total = plan.estimate(gpu.result())["cycles"]
    assert abs(total["total"] - truth) <= total["half_width"]


def test_a_timed_launch_finds_the_l2_that_launches_left_out_leave(full: simt.Result) -> None:
    """The last launch reads what the one before it wrote."""
    reads = "dram__bytes_read.sum"
    whole = full.launches[-1]
    for threads in (1, 2):
        gpu = simt.GPU("qv100", set=MACHINE, plan={60}, threads=threads)
        main(gpu)
        (warm,) = gpu.launches
        assert warm.counters[reads] == whole.counters[reads]
        assert warm.l2["global_read"] == whole.l2["global_read"]

    gpu = Cold("qv100", set=MACHINE, plan={60})
    main(gpu)
    (cold,) = gpu.launches
    assert cold.counters[reads] > whole.counters[reads]


@pytest.mark.parametrize("gpu", ["qv100", "r9nano"])
def test_a_timed_launch_finds_its_code_in_the_instruction_caches(gpu: str) -> None:
    """A CTA a launch, each on the next SM: in the full run, all have executed both kernels before."""

    def cycles(kind: type[simt.GPU], **options: Any) -> list[int]:
        device = kind(gpu, set={"sm.count": 4}, **options)
        module, a, b = device.compile(SOURCE), device.zeros(128), device.zeros(128)
        for _ in range(6):
            module.scale[1, 128](a, b, 128)
            module.gather[1, 128](b, a, 1, 128)
        return [x.cycles for x in device.launches]

    whole, warm, cold = cycles(simt.GPU), *(cycles(kind, plan={11, 12}) for kind in (simt.GPU, Cold))
    off = [abs(found[0] - whole[10]) for found in (warm, cold)]
    assert off[0] < off[1] / 4  # L1s, which r9nano does not flush, stay cold
    assert warm == whole[10:] or gpu == "r9nano"


def test_on_the_command_line(tmp_path: Path, full: simt.Result) -> None:
    (tmp_path / "p.py").write_text(PROGRAM)
    runner, plan = CliRunner(), tmp_path / "plan.json"
    made = runner.invoke(app, ["sample", str(tmp_path / "p.py"), "--gpu", "qv100", "-o", str(plan)])
    assert made.exit_code == 0, made.output
    assert "expected on qv100" in made.stdout
    found = tmp_path / "r.json"
    ran = runner.invoke(
        app,
        ["run", str(tmp_path / "p.py"), "--gpu", "qv100", "--plan", str(plan), "--json", str(found)]
        + [f"--set={key}={value}" for key, value in MACHINE.items()],
    )
    assert ran.exit_code == 0, ran.output
    result = simt.Result.load(found)
    assert len(result.launches) == len(Plan.load(plan))
    truth = sum(x.cycles for x in full.launches)
    assert abs(result.sampling["plan"]["cycles"] / truth - 1) < 0.05
