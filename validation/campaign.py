"""A measurement campaign: everything that a model of a GPU is tuned on and judged by, with one command.

    python validation/campaign.py --out h200 --device 0
    python validation/campaign.py --out trial --gpu qv100 --quick

Steps, each of which is resumed where it was left, and says what it could not do and why:

    microbenchmarks   what `simt bench run` gives
    kernels           times of the programs in programs.py, five runs each
    kernel-counters   their counters, under Nsight Compute
    libraries         times of kernels of cuBLAS, cuDNN and PyTorch (torch_programs.py)
    library-counters  their counters, under Nsight Compute
    models            times of all launches of GPT-2, BERT and ResNet-50, by PyTorch's profiler
    model-counters    PKA's 12 counters of their first launches, under Nsight Compute

On a simulated GPU (--gpu) times and counters are the simulator's, and a program of simt.workloads stands for
the models: to try out the campaign, and what `simt correlate` and `simt sample` make of its records.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import polars as pl
from programs import Program, programs

from simt.errors import DriverError, SimtError
from simt.files import replacing, write_text
from simt.gpu import GPU
from simt.names import function_name
from simt.profile import Profile, read_profile
from simt.result.counters import COUNTERS
from simt.sampling.features import PAPER
from simt.validate.correlation import ALIASES, CYCLES, TIME
from simt.validate.device import SimulatedDevice
from simt.validate.hardware import HardwareGPU, LaunchTime
from simt.validate.microbenchmark import run_microbenchmarks, to_json
from simt.validate.silicon import SiliconDevice
from simt.version import __version__
from simt.workloads import WORKLOADS

HERE = Path(__file__).resolve().parent
SCHEMA = "simt.campaign/1"
MODELS = {"gpt2": 100_000, "bert": 5_000, "resnet50": 5_000}  # launches, at least
PROFILED = 5_000  # launches of a model under Nsight Compute
QUICK_LAUNCHES = 500
QUICK_BENCHMARKS = (
    "fma_latency",
    "fma_throughput",
    "shared_latency",
    "l1_latency",
    "l2_latency",
    "launch_latency",
)
STAND_IN = ("resnet18", 64), ("pagerank", 500)  # for the models on a simulated GPU; the second when quick
ATTEMPTS = 5  # at a run whose launches the host queues in time
TIME_LIMIT = 3600  # seconds, of a command
# Without resets between launches caches hold what the program has left there, as they do in the simulator.
NCU = ("--csv", "--page", "raw", "--cache-control", "none", "--clock-control", "none")


class Skip(Exception):
    """A step or a program that cannot be done here; the message says why."""


@dataclass
class Campaign:
    """out: folder of the records. steps: what became of each."""

    out: Path
    gpu: str | None
    device: int
    quick: bool
    repeats: int
    steps: dict[str, Any] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        return self.gpu is not None

    def programs(self) -> Iterator[Program]:
        return (p for p in programs() if p.quick or not self.quick)


# --- steps -------------------------------------------------------------------------------------------------


def microbenchmarks(c: Campaign) -> str:
    target = c.out / "microbenchmarks.json"
    if target.exists():
        return "there already"
    names = QUICK_BENCHMARKS if c.quick else None
    if c.gpu is not None:
        simulated = SimulatedDevice(c.gpu)
        found = run_microbenchmarks(simulated, names, spec=simulated.spec)
        text = to_json(found, simulated)
    else:
        silicon = SiliconDevice(c.device)
        found = run_microbenchmarks(silicon, names, repeats=c.repeats)
        text = to_json(found, silicon)
        silicon.close()
    write_text(target, text + "\n")
    without = [m.name for m in found if m.value is None]
    return f"{len(found) - len(without)} of {len(found)} gave a value{_list(without)}"


def kernels(c: Campaign) -> str:
    hardware: HardwareGPU | None = None
    counts = Counts()
    for program in c.programs():
        folder = c.out / "kernels" / "times" / program.suite / program.name
        if folder.exists():
            counts.there += 1
            continue
        with counts.trying(program.name), _building(folder) as building:
            if c.simulated:
                _simulate(c, program, building)
                continue
            hardware = hardware or HardwareGPU(c.device)
            try:
                _measure(hardware, program, building, c.repeats)
            except DriverError:  # after a fault nothing else works
                hardware.abandon()
                hardware = None
                raise
    if hardware is not None:
        hardware.close()
    return counts.said


def _measure(gpu: HardwareGPU, program: Program, folder: Path, repeats: int) -> None:
    """Times of a program's launches, a file a run. Its values are checked once, in a run before them."""
    error = program.run(gpu)()
    if not error <= program.tolerance:
        raise Skip(
            f"wrong values: off by {error:.2g} of the largest, expected at most {program.tolerance:.2g}"
        )
    for run in range(repeats):
        for _ in range(ATTEMPTS):
            gpu.times.clear()
            program.run(gpu)
            if not any(t.late for t in gpu.times):
                break
        else:
            raise Skip("this machine is too busy to queue launches in time")
        _times(gpu.times, gpu.launch_ns, gpu.device.name).save(folder / f"run-{run + 1}.parquet")


def _times(launches: Iterable[LaunchTime], launch_ns: float, gpu: str) -> Profile:
    """A profile of times as the simulator counts them, with what launching takes; cycles at the clock that
    the core had just before each launch."""
    rows = [
        {
            "launch": i,
            "name": t.name,
            **dict(zip(("grid_x", "grid_y", "grid_z"), t.grid, strict=True)),
            **dict(zip(("block_x", "block_y", "block_z"), t.block, strict=True)),
            "registers": t.registers,
            "shared_bytes": t.shared_bytes,
            "duration_ns": (t.nanoseconds or 0.0) + launch_ns,
            CYCLES: t.cycles + launch_ns * t.core_mhz / 1e3,
        }
        for i, t in enumerate(launches)
    ]
    return Profile(pl.DataFrame(rows), gpu)


def _simulate(c: Campaign, program: Program, folder: Path) -> None:
    """Times and counters of a simulated GPU; the counters go where Nsight Compute's would."""
    assert c.gpu is not None
    profile = _simulated_profile(c.gpu, program.run, program.tolerance)
    times = [name for name in profile.launches.columns if "__" not in name or name == CYCLES]
    Profile(profile.launches.select(times), profile.gpu).save(folder / "run-1.parquet")
    profile.save(c.out / "kernels" / "counters" / program.suite / f"{program.name}.parquet")


def _simulated_profile(name: str, run: Callable[[GPU], Callable[[], float]], tolerance: float) -> Profile:
    gpu = GPU(name)
    error = run(gpu)()
    if not error <= tolerance:
        raise Skip(f"wrong values: off by {error:.2g} of the largest")
    with tempfile.TemporaryDirectory() as folder:
        return read_profile(gpu.result().save(Path(folder) / "result"))


def kernel_counters(c: Campaign) -> str:
    if c.simulated:
        return "the simulator's, written with the times"
    ncu = Ncu.found(_counters())
    counts = Counts()
    for program in c.programs():
        target = c.out / "kernels" / "counters" / program.suite / f"{program.name}.csv"
        if target.exists():
            counts.there += 1
            continue
        command = [HERE / "run_program.py", f"{program.suite}/{program.name}", "--device", c.device]
        with counts.trying(program.name):
            ncu.run([], command, target)
    return counts.said + ncu.lacking


def libraries(c: Campaign) -> str:
    names, counts = _torch(c)[0], Counts()
    for name in names:
        folder = c.out / "libraries" / "times" / name
        if folder.exists():
            counts.there += 1
            continue
        with counts.trying(name), _building(folder) as building:
            _traced(c, name, building, ["--repeats", c.repeats])
    return counts.said


def library_counters(c: Campaign) -> str:
    names, counts, ncu = _torch(c)[0], Counts(), Ncu.found(_counters())
    for name in names:
        target = c.out / "libraries" / "counters" / f"{name}.csv"
        if target.exists():
            counts.there += 1
            continue
        with counts.trying(name):
            ncu.run(["--profile-from-start", "off"], [HERE / "torch_programs.py", name, *_cuda(c)], target)
    return counts.said + ncu.lacking


def models(c: Campaign) -> str:
    counts = Counts()
    if c.gpu is not None:
        name, size = STAND_IN[c.quick]
        folder, workload = c.out / "models" / name, WORKLOADS[name]

        def run(gpu: GPU) -> Callable[[], float]:
            outputs = workload.run(gpu, size)
            return lambda: workload.error(outputs, workload.reference(size))

        if folder.exists():
            return "there already"
        with counts.trying(name), _building(folder) as building:
            profile = _simulated_profile(c.gpu, run, workload.tolerance)
            profile.save(building / "profile.parquet")
        return f"{name} stands for the models: PyTorch needs a real GPU; {counts.said}"
    names = _torch(c)[1]
    for name in names:
        folder = c.out / "models" / name
        if folder.exists():
            counts.there += 1
            continue
        launches = QUICK_LAUNCHES if c.quick else MODELS[name]
        with counts.trying(name), _building(folder) as building:
            _traced(c, name, building, ["--launches", launches])
            (building / "run-1.parquet").rename(building / "profile.parquet")
    return counts.said


def model_counters(c: Campaign) -> str:
    if c.simulated:
        return "the simulator's, written with the times"
    names, counts = _torch(c)[1], Counts()
    wanted = [TIME, *dict.fromkeys(name for names in PAPER.values() for name in names)]
    ncu = Ncu.found(wanted)
    most = QUICK_LAUNCHES if c.quick else PROFILED
    for name in names:
        folder = c.out / "models" / name
        if not (folder / "profile.parquet").exists():
            counts.failed.append(f"{name} (no times: step models)")
            continue
        if (folder / "counters.csv").exists():
            counts.there += 1
            continue
        # More than enough steps; ncu ends the program when it has the launches.
        command = [HERE / "torch_programs.py", name, "--steps", max(1, most // 50), *_cuda(c)]
        with counts.trying(name):
            options = ["--profile-from-start", "off", "--launch-count", most, "--kill", "yes"]
            ncu.run(options, command, folder / "counters.csv")
            joined(read_profile(folder / "profile.parquet"), read_profile(folder / "counters.csv")).save(
                folder / "profile.parquet"
            )
    return counts.said + ncu.lacking


def joined(times: Profile, counters: Profile) -> Profile:
    """All launches with their times, and the first of them with counters, as two-level methods want it.

    Raises Skip where the first launches are not of the same kernels in the two.
    """
    few = counters.kernels()
    names = [[function_name(n) for n in p.launches["name"].cast(pl.String)] for p in (times, few)]
    different = [i for i, (a, b) in enumerate(zip(*names, strict=False)) if a != b]
    if different or len(few) > len(times):
        at = different[0] if different else len(times)
        raise Skip(f"launch {at} is another kernel with counters than with times: they are kept apart")
    columns = few.launches.select(few.counters).with_columns(times.launches["launch"][: len(few)])
    kept = times.launches.drop(few.counters, strict=False)
    frame = kept.join(columns, on="launch", how="left", maintain_order="left")
    return Profile(frame, times.gpu, times.source, times.left_out, times.warnings)


STEPS: dict[str, Callable[[Campaign], str]] = {
    "microbenchmarks": microbenchmarks,
    "kernels": kernels,
    "kernel-counters": kernel_counters,
    "libraries": libraries,
    "library-counters": library_counters,
    "models": models,
    "model-counters": model_counters,
}


# --- what steps share --------------------------------------------------------------------------------------


@dataclass
class Counts:
    """Programs of a step: done now, there from before, failed."""

    done: int = 0
    there: int = 0
    failed: list[str] = field(default_factory=list)

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        try:
            yield
        except (Skip, SimtError) as error:
            self.failed.append(f"{name} ({str(error).splitlines()[0]})")
        else:
            self.done += 1

    @property
    def said(self) -> str:
        return f"{self.done} done, {self.there} there already{_list(self.failed)}"


def _list(failed: list[str]) -> str:
    return "; not: " + "; ".join(failed) if failed else ""


@contextmanager
def _building(folder: Path) -> Iterator[Path]:
    """A new folder that gets its name when all is in it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield building
        building.chmod(0o755)
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _command(command: Iterable[Any]) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise Skip(f"not done after {TIME_LIMIT} s: {shlex.join(words)}") from None


def _torch(c: Campaign) -> tuple[list[str], list[str]]:
    """Names of PyTorch's programs, and of the models. Raises Skip where PyTorch cannot run them."""
    if c.simulated:
        raise Skip("PyTorch's kernels are machine code: they need a real GPU (--device)")
    found = _command([sys.executable, "-c", "import torch, transformers; print(torch.cuda.is_available())"])
    if found.returncode:
        reason = (found.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Skip(f"PyTorch and transformers are needed (pip install torch transformers): {reason}")
    if found.stdout.split()[-1] != "True":
        raise Skip("this PyTorch has no CUDA, or sees no GPU")
    names = _command([sys.executable, HERE / "torch_programs.py", "list"]).stdout.split()
    library = [name for name in names if name not in MODELS]
    return library[:2] if c.quick else library, ["bert"] if c.quick else list(MODELS)


def _cuda(c: Campaign) -> list[str]:
    return ["--device", f"cuda:{c.device}"]


def _traced(c: Campaign, name: str, folder: Path, options: list[Any]) -> None:
    """Runs a program of torch_programs.py under PyTorch's profiler; run-N.parquet in the folder."""
    with tempfile.TemporaryDirectory() as traces:
        ran = _command(
            [sys.executable, HERE / "torch_programs.py", name, "--traces", traces, *_cuda(c), *options]
        )
        if ran.returncode:
            raise Skip((ran.stderr.strip().splitlines() or ["no message"])[-1])
        for trace in sorted(Path(traces).iterdir()):
            read_profile(trace).kernels().save(folder / f"{trace.name.split('.')[0]}.parquet")


def _counters() -> list[str]:
    """What the correlator compares, in Nsight Compute's names."""
    names = [x.name for x in COUNTERS if not x.name.startswith(("simt__", "launch__"))]
    return [
        CYCLES,
        TIME,
        *(n for n in names if n not in (CYCLES, TIME)),
        *(a for n in names for a in ALIASES.get(n, ())),
    ]


@dataclass
class Ncu:
    """Nsight Compute. metrics: those that it has on this GPU. lacks: of those wanted, the others."""

    path: str
    metrics: list[str]
    lacks: list[str]

    @classmethod
    def found(cls, wanted: Iterable[str]) -> Ncu:
        path = shutil.which("ncu")
        if path is None:
            raise Skip(
                "no ncu on the PATH: counters need Nsight Compute (developer.nvidia.com/nsight-compute)"
            )
        asked = _command([path, "--query-metrics"])
        known = {line.split()[0] for line in asked.stdout.splitlines() if line.split()}
        if asked.returncode or not known:
            raise Skip(f"ncu --query-metrics fails: {' '.join((asked.stderr or asked.stdout).split())[:300]}")
        every = list(dict.fromkeys(wanted))
        has = [m for m in every if m.split(".")[0] in known or m.startswith("launch__")]
        return cls(path, has, [m for m in every if m not in has])

    @property
    def lacking(self) -> str:
        return f"; counters that this GPU lacks: {', '.join(self.lacks)}" if self.lacks else ""

    def run(self, options: list[Any], command: list[Any], target: Path) -> None:
        """Writes the CSV of a command. Raises Skip with ncu's message where there is none."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as temporary:
            metrics = ["--metrics", ",".join(self.metrics), "--log-file", temporary, "-f"]
            ran = _command([self.path, *NCU, *metrics, *options, sys.executable, *command])
            try:
                read_profile(temporary)
            except SimtError as error:
                said = [x for x in temporary.read_text(errors="replace").splitlines() if "==ERROR==" in x]
                said += ran.stderr.strip().splitlines()[-1:] or [str(error)]
                raise Skip(f"ncu: {said[0]}") from None


# --- the record of the campaign ----------------------------------------------------------------------------


def provenance(c: Campaign) -> dict[str, Any]:
    """What measures what. Raises SimtError where there is no such GPU."""
    device: dict[str, Any]
    if c.gpu is not None:
        simulated = SimulatedDevice(c.gpu)
        device = {
            "name": simulated.name,
            "simulated": True,
            "core_mhz": simulated.core_mhz,
        } | simulated.provenance
    else:
        silicon = SiliconDevice(c.device)
        device = {"name": silicon.name, "simulated": False, "core_mhz": silicon.core_mhz} | silicon.provenance
        device |= {"compute_capability": silicon.sm_version / 10, "sms": silicon.sms}
        silicon.close()
    versions = {"simt": __version__, "python": platform.python_version(), "system": platform.platform()}
    for package in ("torch", "triton", "transformers", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    clocks = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit"
    tools = {
        "ncu": ["ncu", "--version"],
        "nvidia-smi": ["nvidia-smi", f"--query-gpu={clocks}", "--format=csv"],
        "commit": ["git", "-C", str(HERE), "rev-parse", "HEAD"],
    }
    for name, command in tools.items():
        if shutil.which(command[0]) and not (ran := _command(command)).returncode:
            versions[name] = ran.stdout.strip()
    return {"device": device, "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the records")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--device", type=int, help="real GPU of this machine, by its number")
    where.add_argument("--gpu", help="simulated GPU in its place")
    parser.add_argument("--quick", action="store_true", help="a small part of everything, to try it out")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each program on a real GPU (5)")
    parser.add_argument("--only", action="append", choices=STEPS, metavar="STEP", help="may be repeated")
    parser.add_argument("--skip", action="append", choices=STEPS, metavar="STEP", default=[])
    given = parser.parse_args()
    c = Campaign(given.out, given.gpu, given.device or 0, given.quick, given.repeats)
    try:
        campaign(c, [s for s in STEPS if s in (given.only or STEPS) and s not in given.skip])
    except SimtError as error:
        sys.exit(f"campaign: {error}")


def campaign(c: Campaign, steps: Iterable[str]) -> None:
    """Runs steps one after the other and writes after each what became of it, to campaign.json."""
    path = c.out / "campaign.json"
    about = provenance(c)
    begun = {"schema": SCHEMA, "created": _now(), "quick": c.quick, **about, "commands": [], "steps": {}}
    record = json.loads(path.read_text()) if path.exists() else begun
    if record["device"]["name"] != about["device"]["name"]:
        there, here = record["device"]["name"], about["device"]["name"]
        raise SimtError(f"{c.out}: holds records of {there}, and this is {here}: give another --out")
    record["commands"].append({"at": _now(), "command": shlex.join(sys.argv), **about})
    for step in steps:
        print(f"{step} ...", end=" ", flush=True)
        before = time.monotonic()
        try:
            status, said = "done", STEPS[step](c)
        except Skip as reason:
            status, said = "skipped", str(reason)
        seconds = round(time.monotonic() - before, 1)
        print(f"{status} in {seconds} s: {said}", flush=True)
        record["steps"][step] = {"status": status, "said": said, "seconds": seconds, "at": _now()}
        write_text(path, json.dumps(record, indent=1) + "\n")


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


if __name__ == "__main__":
    main()
