"""Ranking configurations: order, values, resuming."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simt.cli import app
from simt.errors import SimtError
from simt.rank import rank
from simt.rank.programs import Candidates

ONE = {"kind": "processes", "count": 1}
CUDA = """
extern "C" __global__ void scale(float* y, int n) {
  for (int k = 0; k < WORK; ++k) {
    int i = (blockIdx.x * BLOCK + threadIdx.x) * WORK + k;
    if (i < n) y[i] *= WRONG ? 3 : 2;
  }
}
"""
DRIVER = """
import numpy as np

CONFIGURATIONS = {"BLOCK": [32, 128], "WORK": [1, 16], "WRONG": [False]}

def main(gpu, module, BLOCK, WORK, WRONG):
    n = 1 << 13
    y = np.ones(n, np.float32)
    module.scale[n // (BLOCK * WORK), BLOCK](y, n)
    return y

def reference():
    return np.full(1 << 13, 2, np.float32)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "scale.cu").write_text(CUDA)
    (tmp_path / "scale.py").write_text(DRIVER)
    return tmp_path / "scale.cu"


@pytest.mark.slow
def test_configurations_are_checked_simulated_and_ordered(program: Path) -> None:
    import simt

    given = [
        {"BLOCK": b, "WORK": w, "WRONG": x} for b, w, x in ((32, 16, False), (128, 1, False), (128, 1, True))
    ]
    found = rank(program, given, "a100", workers=ONE)
    assert found.checked == "compared with those of reference()"
    seconds = {}
    for configuration in given[:2]:
        gpu = simt.GPU("a100")
        Candidates.read(program, [configuration], None).run(gpu, configuration)
        seconds[configuration["BLOCK"]] = gpu.result().totals.seconds
    assert [row.configuration["BLOCK"] for row in found.rows[:2]] == sorted(seconds, key=lambda b: seconds[b])
    assert {row.configuration["BLOCK"]: row.seconds for row in found.rows[:2]} == pytest.approx(seconds)
    assert found.rows[2].error == "wrong values: 8,192 of 8,192 values of 0 differ"
    assert found.best == found.rows[0].configuration and "times the best" in str(found)
    assert json.loads(json.dumps(found.to_json()))["best"] == found.best
    again = rank(program, given, "a100", workers={"kind": "no-such-workers"})  # nothing is left to simulate
    assert again.rows[:2] == found.rows[:2]


def test_configurations_of_a_file_are_all_combinations(program: Path) -> None:
    found = Candidates.read(program, None, None)
    assert len(found.configurations) == 4 and found.configurations[1] == {
        "BLOCK": 32,
        "WORK": 16,
        "WRONG": False,
    }


def test_an_autotuned_kernel_says_its_configurations(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    file = tmp_path / "tuned.py"
    file.write_text(
        "import triton\nimport triton.language as tl\n"
        "@triton.autotune(configs=[triton.Config({'B': 64}, num_warps=w) for w in (2, 4)], key=[])\n"
        "@triton.jit\ndef copy(x, y, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n"
        "    tl.store(y + i, tl.load(x + i))\n"
        "def main(gpu):\n    import numpy as np\n    x, y = np.ones(256, 'f4'), np.zeros(256, 'f4')\n"
        "    gpu.triton(copy)[lambda m: (256 // m['B'],)](x, y)\n    return y\n"
    )
    found = Candidates.read(file, None, None)
    assert [c["num_warps"] for c in found.configurations] == [2, 4] and found.autotuned
    import simt

    for configuration in found.configurations:
        gpu = simt.GPU("a100")
        assert found.run(gpu, configuration).sum() == 256
        assert gpu.launches[0].block == (32 * configuration["num_warps"], 1, 1)


def test_a_program_without_configurations_is_refused(program: Path) -> None:
    program.with_suffix(".py").write_text("def main(gpu, module): pass\n")
    with pytest.raises(SimtError, match="0 autotuned kernels and no CONFIGURATIONS"):
        rank(program)
    with pytest.raises(SimtError, match="there is no GPU called 'a1000'"):
        rank(program, {"BLOCK": [64]}, "a1000")
    with pytest.raises(SimtError, match="has no autotuned Triton kernel, expected one for its cache"):
        rank(program, {"BLOCK": [64]}, triton_cache=program.parent)
    with pytest.raises(SimtError, match="parameter 'BLOCK': expected a list of its values, found 64"):
        rank(program, {"BLOCK": 64})  # type: ignore[dict-item]
    run = CliRunner().invoke(app, ["rank", str(program), "--parameter", "BLOCK"])
    assert run.exit_code == 1 and "expected NAME=V1,V2,..." in str(run.exception)


TUNED = """
import numpy as np
import triton
import triton.language as tl

@triton.autotune(
    configs=[triton.Config({"B": b}, num_warps=w) for b, w in ((64, 1), (1024, 4), (8192, 4))],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda all_, _, **k: [c for c in all_ if c.kwargs["B"] < 4096]},
    cache_results=True,
)
@triton.jit
def twice(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def main(gpu):
    n = 1 << 13
    x, y = np.ones(n, np.float32), np.zeros(n, np.float32)
    gpu.triton(twice)[lambda m: (-(-n // m["B"]),)](x, y, n)
    return y
"""


@pytest.mark.slow
def test_triton_takes_a_ranking_from_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's own look-up finds the file, and takes the best configuration without measuring."""
    pytest.importorskip("triton")
    import runpy

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    file, cache = tmp_path / "tuned.py", tmp_path / "cache"
    file.write_text(TUNED)
    words = f"rank {file} --gpu h100 --workers 1 -q --triton-cache {cache} --json -"
    told = CliRunner().invoke(app, words.split())
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert found["triton"]["key"] == [1 << 13, "torch.float32", "torch.float32"]
    assert len(found["triton"]["configs_timings"]) == 2
    assert "No valid autotuner configs after pruning" in found["rows"][-1]["error"]

    class Driver:
        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 90, 32)

    monkeypatch.setattr(triton.knobs.cache, "dir", str(cache))
    monkeypatch.setattr(driver, "_active", Driver())
    tuner = runpy.run_path(str(file))["twice"]
    key = tuple(found["triton"]["key"])
    configs = [c for c in tuner.configs if c.kwargs["B"] < 4096]
    assert tuner.check_disk_cache(key, configs, lambda: pytest.fail("it measures"))
    assert tuner.cache[key].all_kwargs() == found["best"]


def test_workers_are_those_of_a_study() -> None:
    from simt.cli.rank import _workers

    assert _workers(["4"]) == {"count": 4}
    given = ["kind=slurm", "options.walltime='01:00:00'", "options.nodes_per_block=2"]
    assert _workers(given) == {"kind": "slurm", "options": {"walltime": "01:00:00", "nodes_per_block": 2}}
    with pytest.raises(SimtError, match=r"--workers slurm: expected a number, or KEY=VALUE"):
        _workers(["slurm"])
