"""Plans from functional execution: error of the total cycles and share simulated, against other methods.

    python profile_free.py run [--gpu qv100] [--programs jacobi,bfs]   measures what is missing
    python profile_free.py table                                       prints the page's tables

Each program is simulated in full once, which gives every launch's cycles; executed once for its profile;
simulated once with a plan of `neyman`, whose left-out launches warm the L2, and once without that; and once
under Photon's kernel level. PKS, Sieve, ROOT and Neyman choose launches for `SEEDS` seeds; what they chose
has the cycles of the full simulation. PKS on silicon (as its paper has it) is given the true times, which no
profile-free method has. GPUs have 8 SMs, so that small launches fill them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from plan_and_controller import SOURCE as MIXED

from simt.control import Photon
from simt.gpu import GPU
from simt.profile import Profile
from simt.sampling import PKS, Neyman, Root, Sampler, Sieve
from simt.workloads import WORKLOADS

RESULTS = Path(__file__).resolve().parents[1] / "data" / "profile-free"
SMS, SEEDS = 8, 20
METHODS: dict[str, Callable[[int], Sampler]] = {
    "neyman": lambda seed: Neyman(seed=seed),
    "neyman, by name": lambda seed: Neyman(seed=seed, group="name"),
    "root": lambda seed: Root(seed=seed),
    "sieve": lambda seed: Sieve(),
    "pks": lambda seed: PKS(seed=seed),
    "pks on silicon": lambda seed: PKS(seed=seed),
}

AS_PUBLISHED = ("sieve", "pks", "pks on silicon")  # weighted sums

JACOBI = """
extern "C" __global__ void relax(const float* a, float* b, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  b[y * n + x] = 0.25f * (a[y * n + x - 1] + a[y * n + x + 1] + a[(y - 1) * n + x] + a[(y + 1) * n + x]);
}
extern "C" __global__ void change(const float* a, const float* b, float* sums, int n) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += fabsf(a[i] - b[i]);
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
"""
BFS = """
extern "C" __global__ void step(const int* first, const int* links, int* level, int* any, int now, int n) {
  int v = blockIdx.x * 128 + threadIdx.x;
  if (v >= n || level[v] != now) return;
  for (int k = first[v]; k < first[v + 1]; ++k)
    if (level[links[k]] < 0) { level[links[k]] = now + 1; *any = 1; }
}
extern "C" __global__ void clear(int* any) { *any = 0; }
"""
BITONIC = """
extern "C" __global__ void exchange(unsigned* x, int j, int k) {
  int i = blockIdx.x * 256 + threadIdx.x, other = i ^ j;
  if (other <= i) return;
  unsigned a = x[i], b = x[other];
  if ((a > b) == ((i & k) == 0)) { x[i] = b; x[other] = a; }
}
"""
MULTIGRID = """
extern "C" __global__ void smooth(const float* a, const float* f, float* b, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i > 0 && i < n - 1) b[i] = 0.5f * (a[i - 1] + a[i + 1] - f[i]);
}
extern "C" __global__ void restrict_(const float* a, float* b, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) b[i] = 0.25f * a[2 * i] + 0.5f * a[2 * i + 1] + 0.25f * a[2 * i + 2];
}
extern "C" __global__ void prolong(const float* a, float* b, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) b[i] += 0.5f * (a[i / 2] + a[(i + 1) / 2]);
}
"""


def jacobi(gpu: GPU, n: int = 256, rounds: int = 120) -> None:
    module = gpu.compile(JACOBI)
    a = gpu.array(np.random.default_rng(0).random((n, n), np.float32))
    b, sums = gpu.zeros(n * n), gpu.zeros(16)
    for i in range(rounds):
        module.relax[(n // 32, n // 8), (32, 8)](a, b, n)
        if i % 10 == 9:
            module.change[16, 256](a, b, sums, n * n)
        a, b = b, a


def bfs(gpu: GPU, n: int = 40_000) -> None:
    module, random = gpu.compile(BFS), np.random.default_rng(0)
    # A ring with a few shortcuts: many levels, whose frontiers grow and shrink.
    links = (np.arange(n)[:, None] + np.array([1, 2, 3, 5])) % n
    links[random.random(n) < 0.0005, 0] = random.integers(0, n)
    first = gpu.array(np.arange(n + 1, dtype=np.int32) * 4)
    level, any_ = gpu.array(np.full(n, -1, np.int32)), gpu.array(np.zeros(1, np.int32))
    at = np.full(n, -1, np.int32)
    at[random.integers(0, n, 50)] = 0
    level, edges = gpu.array(at), gpu.array(links.astype(np.int32).ravel())
    for now in range(150):
        module.clear[1, 1](any_)
        module.step[-(-n // 128), 128](first, edges, level, any_, now, n)
        if not any_.numpy()[0]:
            break


def bitonic(gpu: GPU, n: int = 1 << 15) -> None:
    exchange = gpu.compile(BITONIC).exchange
    x = gpu.array(np.random.default_rng(0).integers(0, 1 << 31, n).astype(np.uint32))
    k = 2
    while k <= n:
        j = k // 2
        while j:
            exchange[n // 256, 256](x, j, k)
            j //= 2
        k *= 2


def mixed(gpu: GPU, launches: int = 200) -> None:
    module, random, n = gpu.compile(MIXED), np.random.default_rng(1), 1 << 18
    x = gpu.zeros(n)
    for _ in range(launches):
        name = "spread" if random.random() < 0.3 else "smooth"
        module[name][int(random.integers(20, 200)), 128](x, n, int(random.integers(2, 40)))


def multigrid(gpu: GPU, n: int = 1 << 17, cycles: int = 12) -> None:
    module = gpu.compile(MULTIGRID)
    levels = []
    while n >= 1 << 11:
        levels.append((n, *(gpu.zeros(n + 4) for _ in range(3))))
        n //= 2
    for _ in range(cycles):
        for i, (size, a, b, f) in enumerate(levels):
            for _ in range(2):
                module.smooth[size // 128, 128](a, f, b, size)
            if i + 1 < len(levels):
                module.restrict_[size // 256, 128](b, levels[i + 1][3], size // 2 - 2)
        for (size, a, b, f), (_, coarse, *_) in reversed(list(pairwise(levels))):
            module.prolong[size // 128, 128](coarse, a, size - 2)
            module.smooth[size // 128, 128](a, f, b, size)


def _workload(name: str, size: int) -> Callable[[GPU], None]:
    return lambda gpu: WORKLOADS[name].run(gpu, size) and None


PROGRAMS: dict[str, Callable[[GPU], None]] = {
    "jacobi": jacobi,
    "bfs": bfs,
    "bitonic": bitonic,
    "mixed": mixed,
    "multigrid": multigrid,
    "pagerank": _workload("pagerank", 4096),
    "resnet18": _workload("resnet18", 32),
    "resnet50": _workload("resnet50", 32),
    "vgg16": _workload("vgg16", 32),
}


def _timed(program: Callable[[GPU], None], gpu: GPU) -> float:
    begin = time.process_time()
    program(gpu)
    gpu.synchronize()
    return time.process_time() - begin


class Cold(GPU):
    """What a plan leaves out leaves the L2 alone."""

    def run_values(self, *arguments: Any) -> bytes:
        return super().run_values(*arguments[:3], memory=self.memory.native)


def _gpu(gpu: str, kind: type[GPU] = GPU, **options: Any) -> GPU:
    return kind(gpu, set={"sm.count": SMS}, **options)


def measure(program: Callable[[GPU], None], name: str) -> dict[str, Any]:
    full, functional = _gpu(name), _gpu(name, functional=True)
    seconds = {"full": _timed(program, full), "values": _timed(program, functional)}
    with (executing := _gpu(name, functional=True)).profiled() as executed:
        seconds["profile"] = _timed(program, executing)
    profile = executed.profile()
    cycles = np.array([x.cycles for x in full.launches], float)
    found: dict[str, Any] = {"launches": len(cycles), "cycles": cycles.astype(int).tolist()}
    silicon = Profile(profile.launches.drop("duration_ns"), profile.gpu).with_columns({"duration_ns": cycles})
    for label, make in METHODS.items():
        errors, shares, chosen, covered = [], [], [], []
        for seed in range(SEEDS):
            plan = make(seed).fit_plan(silicon if "silicon" in label else profile)
            rows = plan.launches["launch"].to_numpy().astype(int)
            how = "expansion" if label in AS_PUBLISHED else "auto"
            values = {int(i): {"cycles": cycles[i]} for i in rows}
            total = plan.estimate(values, estimator=how)["cycles"]
            errors.append(total["total"] / cycles.sum() - 1)
            covered.append(abs(total["total"] - cycles.sum()) <= total["half_width"])
            shares.append(cycles[rows].sum() / cycles.sum())
            chosen.append(len(rows))
        found[label] = {
            "error": float(np.abs(errors).mean()),
            "worst": float(np.abs(errors).max()),
            "covered": float(np.mean(covered)),
            "share": float(np.mean(shares)),
            "chosen": float(np.mean(chosen)),
        }
    plan = Neyman().fit_plan(profile)
    rows = plan.launches["launch"].to_numpy().astype(int)
    for label, kind in (("plan", GPU), ("plan, cold", Cold)):
        planned = _gpu(name, kind, plan=plan)
        seconds[label] = _timed(program, planned)
        of_launch = {x.index: x.cycles for x in planned.launches}
        total = plan.estimate({i: {"cycles": c} for i, c in of_launch.items()})["cycles"]
        found[label] = {
            "error": total["total"] / cycles.sum() - 1,
            "half_width": total["half_width"] / total["total"],
            "of_launch": float(np.mean([abs(of_launch[i] / cycles[i] - 1) for i in rows])),
        }
    photon = _gpu(name, controller=Photon("kernel"))
    seconds["photon:kernel"] = _timed(program, photon)
    detailed = [x.cycles if x.sampled is None else x.sampled.cycles for x in photon.launches]
    found["photon:kernel"] = {
        "error": sum(x.cycles for x in photon.launches) / cycles.sum() - 1,
        "share": sum(detailed) / cycles.sum(),
    }
    return found | {"seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--gpu", default="qv100")
    run.add_argument("--programs", default=",".join(PROGRAMS))
    commands.add_parser("table")
    options = parser.parse_args()
    if options.command == "table":
        return table()
    for name in options.programs.split(","):
        path = RESULTS / f"{options.gpu}-{name}.json"
        if path.exists():
            continue
        found = measure(PROGRAMS[name], options.gpu)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found) + "\n")
        print(name, json.dumps(found), flush=True)


def table() -> None:
    """The tables of docs/sampling/executed.md."""
    everything = {
        path.stem.partition("-")[2]: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))
    }
    labels = [*METHODS, "photon:kernel"]
    print("| program | launches | " + " | ".join(labels) + " |")
    print("|---|---|" + "---|" * len(labels))
    for name, found in everything.items():
        cells = [f"{100 * abs(found[x]['error']):.1f} %, {100 * found[x]['share']:.0f} %" for x in labels]
        print(f"| {name} | {found['launches']} | " + " | ".join(cells) + " |")
    errors = [f"{100 * np.mean([abs(x[y]['error']) for x in everything.values()]):.1f} %" for y in labels]
    shares = [f"{100 * np.mean([x[y]['share'] for x in everything.values()]):.0f} %" for y in labels]
    print("| mean | | " + " | ".join(f"{a}, {b}" for a, b in zip(errors, shares, strict=True)) + " |")
    print(
        "\n| program | planned: error | stated | a launch | cold: error | a launch "
        "| full s | values s | profile s | plan s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, x in everything.items():
        p, c, s = x["plan"], x["plan, cold"], x["seconds"]
        print(
            f"| {name} | {100 * p['error']:+.1f} % | ± {100 * p['half_width']:.1f} % "
            f"| {100 * p['of_launch']:.1f} % | {100 * c['error']:+.1f} % | {100 * c['of_launch']:.1f} % "
            f"| {s['full']:.1f} | {s['values']:.1f} | {s['profile']:.1f} | {s['plan']:.1f} |"
        )


if __name__ == "__main__":
    main()
