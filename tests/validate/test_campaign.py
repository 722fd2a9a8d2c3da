"""The measurement campaign: on a simulated GPU instead of a real one, with stand-ins for the driver and
Nsight Compute.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

import simt
from simt.cuda import driver as cuda
from simt.cuda import toolkit
from simt.errors import SimtError
from simt.profile import Profile, read_profile
from simt.validate import hardware
from support.fake_cuda import SimulatedCuda, no_driver

SCRIPTS = Path(__file__).parents[2] / "validation"
pytestmark = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import campaign

    return campaign


@pytest.fixture
def judge(campaign: ModuleType) -> ModuleType:
    import judge

    return judge


def command(monkeypatch: pytest.MonkeyPatch, script: ModuleType, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [script.__name__, *map(str, arguments)])
    script.main()


def small(monkeypatch: pytest.MonkeyPatch, campaign: ModuleType, *names: str) -> None:
    every = [p for p in campaign.programs() if p.name in names]
    assert len(every) == len(names)
    monkeypatch.setattr(campaign.Campaign, "programs", lambda self: iter(every))


@pytest.mark.slow
def test_a_campaign_on_a_simulated_gpu_is_judged_without_error(
    campaign: ModuleType,
    judge: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command(monkeypatch, campaign, "--out", tmp_path, "--gpu", "qv100", "--quick")
    record = json.loads((tmp_path / "campaign.json").read_text())
    assert record["device"]["name"] == "qv100"
    assert record["device"]["core_mhz"] == 1380
    assert record["versions"]["simt"] == simt.__version__
    status = {name: step["status"] for name, step in record["steps"].items()}
    assert list(status) == list(campaign.STEPS)
    assert status["kernels"] == status["models"] == status["microbenchmarks"] == "done"
    assert status["libraries"] == "skipped"
    assert "need a real GPU" in record["steps"]["libraries"]["said"]
    assert "; not:" not in record["steps"]["kernels"]["said"]
    model = read_profile(tmp_path / "models" / "pagerank" / "profile.parquet")
    assert len(model) == 16
    assert model.has("duration_ns")
    assert model.has("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")

    command(monkeypatch, judge, tmp_path, "--gpu", "qv100", "--program", "sgemm", "--program", "triad",
            "--program", "workloads")  # fmt: skip
    (judged,) = tmp_path.glob("judged/*")
    judgement = json.loads((judged / "judgement.json").read_text())
    for kind in ("counters", "times"):
        cycles = judgement["against"][kind]["cycles"]
        assert cycles["n"] == judgement["programs"] == 4
        assert cycles["mae"] < 1e-6
        assert cycles["pearson"] == pytest.approx(1)
        assert judgement["against"][kind]["missed"] == []
        assert (judged / f"{kind}.html").stat().st_size > 10_000
        assert (
            len(pl.read_csv(judged / f"{kind}.csv").filter(pl.col("counter") == "gpc__cycles_elapsed.max"))
            == 8
        )
    assert len(judgement["against"]["counters"]["counters"]) > 20
    assert "reached" in capsys.readouterr().out

    before = (tmp_path / "microbenchmarks.json").stat().st_mtime_ns
    command(monkeypatch, campaign, "--out", tmp_path, "--gpu", "qv100", "--quick")
    again = json.loads((tmp_path / "campaign.json").read_text())
    assert again["steps"]["kernels"]["said"].startswith("0 done, ")
    assert len(again["commands"]) == 2
    assert (tmp_path / "microbenchmarks.json").stat().st_mtime_ns == before
    with pytest.raises(SystemExit, match="holds records of qv100, and this is a100"):
        command(monkeypatch, campaign, "--out", tmp_path, "--gpu", "a100", "--quick")


@pytest.mark.slow
def test_a_campaign_on_a_real_gpu(
    campaign: ModuleType, judge: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is a simulating stand-in; times must be those of the simulated GPU."""
    library = SimulatedCuda("qv100")
    monkeypatch.setattr(cuda, "_import_bindings", lambda: library)
    for name, value in (("_HOLD_NS", 4000.0), ("_LONGEST_HOLD_NS", 4000.0), ("_CLOCK_NS", 20_000)):
        monkeypatch.setattr(hardware, name, value)
    monkeypatch.setattr(hardware, "perf_counter", lambda: 0.0)
    monkeypatch.setenv("PATH", str(tmp_path))
    small(monkeypatch, campaign, "transpose-512", "matmul-2048", "reduce-262144", "bank_conflicts")
    out = tmp_path / "out"
    command(monkeypatch, campaign, "--out", out, "--device", 0, "--quick", "--repeats", 2)
    record = json.loads((out / "campaign.json").read_text())
    assert record["device"]["driver_cuda"] == "12.8"
    assert record["steps"]["kernels"]["said"] == "4 done, 0 there already"
    for step in ("kernel-counters", "library-counters"):
        assert record["steps"][step]["status"] == "skipped"
    assert "no ncu on the PATH" in record["steps"]["kernel-counters"]["said"]
    runs = sorted((out / "kernels" / "times" / "examples" / "bank_conflicts").iterdir())
    assert [run.name for run in runs] == ["run-1.parquet", "run-2.parquet"]
    assert read_profile(runs[0]).launches["name"].to_list() == ["conflicts", "padded"]
    assert len(json.loads((out / "microbenchmarks.json").read_text())["benchmarks"]) == 6

    command(monkeypatch, judge, out, "--gpu", "qv100")
    (judged,) = out.glob("judged/*")
    against = json.loads((judged / "judgement.json").read_text())["against"]
    assert list(against) == ["times"]
    assert against["times"]["cycles"]["n"] == 5
    # In the stand-in, instructions are already cached by the previous run.
    assert against["times"]["cycles"]["worst"] < 0.2
    assert against["times"]["cycles"]["mae"] < 0.1
    assert against["times"]["cycles"]["pearson"] > 0.99


NCU = """#!{python}
import os, sys
arguments = sys.argv[1:]
if arguments == ["--query-metrics"]:
    print("Device NVIDIA\\ngpu__time_duration   time\\nsmsp__inst_executed   instructions")
    sys.exit()
log = arguments[arguments.index("--log-file") + 1]
metrics = arguments[arguments.index("--metrics") + 1].split(",")
script = [a for a in arguments if a.endswith(".py")][0]
rest = arguments[arguments.index(script) + 1:]
with open(log, "w") as file:
    if "bert" in rest:
        file.write("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\\n")
        sys.exit(1)
    file.write("==PROF== Connected\\n")
    names = ["ID", "Kernel Name", "Grid Size", "Block Size", *metrics]
    file.write(",".join(f'"{{n}}"' for n in names) + "\\n" + '"",' * (len(names) - 1) + '""\\n')
    file.write(",".join(f'"{{v}}"' for v in ["0", "transpose", "(16, 16, 1)", "(256, 1, 1)",
                                           *("7" for _ in metrics)]) + "\\n")
"""


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "bin" / "ncu"
    script.parent.mkdir()
    script.write_text(NCU.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    return script


def test_counters_come_from_nsight_compute(
    campaign: ModuleType, ncu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch, campaign, "transpose-512")
    said = campaign.kernel_counters(campaign.Campaign(tmp_path, None, 0, True, 1))
    assert said.startswith("1 done, 0 there already; counters that this GPU lacks: gpc__cycles_elapsed.max, ")
    found = read_profile(tmp_path / "kernels" / "counters" / "kernels" / "transpose-512.csv")
    assert found.column("smsp__inst_executed.sum").tolist() == [7.0]
    assert not found.has("gpc__cycles_elapsed.max")


def test_what_nsight_compute_refuses_is_said(campaign: ModuleType, ncu: Path, tmp_path: Path) -> None:
    tool = campaign.Ncu.found(["gpu__time_duration.sum"])
    with pytest.raises(campaign.Skip, match="ERR_NVGPUCTRPERM"):
        tool.run([], [SCRIPTS / "torch_programs.py", "bert"], tmp_path / "bert.csv")
    assert not (tmp_path / "bert.csv").exists()
    ncu.write_text("#!/bin/sh\necho no driver >&2; exit 1\n")
    with pytest.raises(campaign.Skip, match="ncu --query-metrics fails: no driver"):
        campaign.Ncu.found(["gpu__time_duration.sum"])


def test_models_have_counters_for_their_first_launches(campaign: ModuleType) -> None:
    names = ["a", "b", "a"]
    times = Profile(pl.DataFrame({"launch": range(3), "name": names, "duration_ns": [1.0, 2.0, 3.0]}))
    few = Profile(
        pl.DataFrame({"launch": range(2), "name": names[:2], "smsp__inst_executed.sum": [8.0, 9.0]})
    )
    both = campaign.joined(times, few)
    assert both.column("duration_ns").tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(both.column("smsp__inst_executed.sum"), [8.0, 9.0, np.nan])
    other = Profile(few.launches.with_columns(name=pl.Series(["a", "c"])))
    with pytest.raises(campaign.Skip, match="launch 1 is another kernel"):
        campaign.joined(times, other)


@pytest.mark.slow
def test_programs_compute_what_they_must(campaign: ModuleType) -> None:
    every = list(campaign.programs())
    assert len(every) >= 60
    assert len({(p.suite, p.name) for p in every}) == len(every)
    first = {p.name.rpartition("-")[0] or p.name: p for p in reversed(every) if p.suite != "triton"}
    assert len(first) > 40
    gpu = simt.GPU("h100", functional=True)
    for program in first.values():
        assert program.run(gpu)() <= program.tolerance, program.name


def test_a_program_with_wrong_values_is_left_out(
    campaign: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = campaign.Program("kernels", "wrong", True, lambda gpu: lambda: 0.5, 0.1)
    monkeypatch.setattr(campaign.Campaign, "programs", lambda self: iter([wrong]))
    said = campaign.kernels(campaign.Campaign(tmp_path, "qv100", 0, True, 1))
    assert said == "0 done, 0 there already; not: wrong (wrong values: off by 0.5 of the largest)"
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.slow
def test_a_fault_ends_one_program_only(
    campaign: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = SimulatedCuda("qv100")
    monkeypatch.setattr(cuda, "_import_bindings", lambda: library)
    source = 'extern "C" __global__ void wrong(int* out) { *out = 1; }'

    def fault(gpu: simt.GPU) -> object:
        gpu.compile(source).wrong[1, 1](None)
        return lambda: 0.0

    every = [p for p in campaign.programs() if p.name == "relu-16384"]
    every.insert(0, campaign.Program("kernels", "wrong", True, fault, 0))
    for name, value in (("_HOLD_NS", 4000.0), ("_LONGEST_HOLD_NS", 4000.0)):
        monkeypatch.setattr(hardware, name, value)
    monkeypatch.setattr(hardware, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(campaign.Campaign, "programs", lambda self: iter(every))
    said = campaign.kernels(campaign.Campaign(tmp_path, None, 0, True, 1))
    assert said.startswith(
        "1 done, 0 there already; not: wrong (cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"
    )
    assert library.resets == 1


def test_without_records_there_is_nothing_to_judge(judge: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SimtError, match=r"no campaign\.json"):
        judge.judge(tmp_path, "qv100", [], 1)


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has a GPU")
def test_without_a_gpu_the_campaign_says_so(
    campaign: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda.bindings.driver.cuInit", no_driver)
    with pytest.raises(SystemExit, match=r"no CUDA driver.*--gpu NAME"):
        command(monkeypatch, campaign, "--out", tmp_path / "x", "--device", 0)
    assert not (tmp_path / "x").exists()
