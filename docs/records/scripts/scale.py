"""Scale on paper: what a warp instruction, a launch and a point cost, and what a million launches would.

python scale.py [PROFILE]

PROFILE: launches of a training to choose from with a sampler; without one, that method is left out.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from study import program

import simt

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "case_studies"))

GPU = "h100"
LAUNCHES = 1_000_000
DAY = 86_400.0
CORES = (1, 64, 1024)

# A layer of GPT-3 (175 billion parameters, Brown et al. 2020) on one GPU of eight that share it: operations
# of the matrix products, forward and backward, by Narayanan et al. (SC 2021, section 5.1), without
# recomputation.
HIDDEN, SEQUENCE, BATCH, SPLIT = 12_288, 2_048, 1, 8
FORWARD = (24 * BATCH * SEQUENCE * HIDDEN**2 + 4 * BATCH * SEQUENCE**2 * HIDDEN) / SPLIT
LAYER = 3 * FORWARD
PRODUCTS = (
    18  # launches of a layer that hold them: 4 linear maps and 2 products of attention, each three times
)
SHARE = 0.5  # of the launches are products; the others are element by element, over BATCH x SEQUENCE x HIDDEN
ELEMENTS = BATCH * SEQUENCE * HIDDEN


def best(run: Callable[[], object], repeats: int = 3) -> float:
    """The least processor time in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def tensor_product() -> tuple[float, float]:
    """Of a product near the peak of tensor cores: seconds of a warp instruction, and operations of one."""
    import gemm

    made: list[simt.GPU] = []
    original = simt.GPU

    def keeping(*arguments: object, **options: object) -> simt.GPU:
        options |= {"power": False, "timeline": None}
        made.append(original(*arguments, **options))  # type: ignore[arg-type]
        return made[-1]

    kernel, depth = gemm.tensor(GPU), 256
    simt.GPU = keeping  # type: ignore[misc,assignment]
    try:
        start = time.process_time()
        with suppress(AttributeError, IndexError, AssertionError):  # it wants the energy over time
            gemm.product(GPU, kernel, depth)
        seconds = time.process_time() - start
    finally:
        simt.GPU = original  # type: ignore[misc]
    (launch,) = made[0].result().launches
    across, down, _ = launch.grid
    operations = 2.0 * down * kernel.rows * across * kernel.columns * depth
    return seconds / launch.warp_instructions, operations / launch.warp_instructions


def element_by_element(folder: Path) -> tuple[float, float]:
    """Of a sum of vectors: seconds of a warp instruction, and elements of one."""
    from simt.program import run_program

    n, results = 1 << 20, []
    (folder / "sum.py").write_text(
        "import numpy as np\n"
        'SOURCE = """extern "C" __global__ void sum(const float* a, const float* b, float* c) {\n'
        '  int i = blockIdx.x * blockDim.x + threadIdx.x; c[i] = a[i] + b[i]; }"""\n'
        f"def main(gpu):\n    a, b, c = (gpu.zeros({n}) for _ in range(3))\n"
        f"    gpu.compile(SOURCE).sum[{n // 256}, 256](a, b, c)\n"
    )

    def run() -> None:
        gpu = simt.GPU(GPU)
        run_program(folder / "sum.py", gpu)
        results.append(gpu.result())

    seconds = best(run)
    instructions = results[0].totals.warp_instructions
    return seconds / instructions, n / instructions


def launch_seconds(folder: Path) -> float:
    """Of one more launch of a kernel that does nothing to speak of."""
    from simt.program import run_program

    def run(launches: int) -> float:
        name = program(folder, f"launches{launches}", 1, 1, launches)
        return best(lambda: run_program(folder / name, simt.GPU(GPU)))

    return (run(2200) - run(200)) / 2000


def point_seconds(folder: Path) -> float:
    """Of a point with one tiny launch: specification, GPU, loading, launch, Result."""
    from simt.study.simulation import simulate_work

    study = simt.Study(inputs=[program(folder, "point", 1, 1)], gpus=[GPU], folder=folder)
    work = study.points[0].work
    simulate_work(work)
    return best(lambda: [simulate_work(work) for _ in range(20)]) / 20


def share_of_systematic() -> float:
    """Of the warp instructions of a product, which systematic sampling simulates in detail."""
    gpu = simt.GPU(GPU, controller="systematic")
    source = (Path(__file__).parents[3] / "examples" / "studies" / "rows.cu").read_text()
    height = 128 * 132 * 16 * 8  # eight waves
    a, x, y = gpu.zeros(height * 32), gpu.zeros(32), gpu.zeros(height)
    gpu.compile(source).rows[height // 128, 128](a, x, y, 32)
    (launch,) = gpu.result().launches
    assert launch.sampled is not None
    return launch.sampled.warp_instructions / launch.warp_instructions


def chosen(profile: Path) -> tuple[int, int, float]:
    """Launches that Neyman allocation chooses for 5 %, those there are, and their share of the time."""
    from simt.profile import read_profile
    from simt.sampling import Neyman

    population = read_profile(profile).kernels()
    plan = Neyman(error=0.05).fit_plan(population)
    return len(plan), plan.population, plan.sampled_ns / plan.population_ns


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        per_tensor, operations = tensor_product()
        per_element, elements = element_by_element(folder)
        launch, point = launch_seconds(folder), point_seconds(folder)
    print(f"on {GPU}, processor time of one core:")
    print(
        f"  {1e9 * per_tensor:7.0f} ns a warp instruction of a product on tensor cores, "
        f"of {operations:,.0f} operations"
    )
    print(
        f"  {1e9 * per_element:7.0f} ns a warp instruction of a sum of vectors, of {elements:,.2f} elements"
    )
    print(f"  {1e6 * launch:7.0f} us a launch")
    print(f"  {1e3 * point:7.1f} ms a point with one tiny launch")
    product = LAYER / PRODUCTS / operations
    other = 3 * ELEMENTS / SPLIT / elements
    print("launches of GPT-3's training on one GPU of eight:")
    print(f"  {product / 1e6:7.2f} M warp instructions a product, {product * per_tensor:.2f} s")
    print(
        f"  {other / 1e6:7.2f} M warp instructions a launch element by element, {other * per_element:.2f} s"
    )
    full = LAUNCHES * (SHARE * product * per_tensor + (1 - SHARE) * other * per_element + launch)
    part = share_of_systematic()
    methods = {
        "every launch in full": full,
        f"every launch, systematic ({100 * part:.0f} % in detail)": full * part,
    }
    if len(sys.argv) > 1:
        count, population, share = chosen(Path(sys.argv[1]))
        what = f"plan for 5 %: {count} of {population:,}"
        methods[f"{what}, {100 * share:.1f} % of the time"] = full * share
        # The error depends on how many are drawn, not on how many they are drawn from.
        methods[f"as many of a million of the same kinds: {count}"] = full / LAUNCHES * population * share
    header = "".join(f"{f'{cores:,} cores':>14}" for cores in CORES)
    print(f"a million launches{'':42}{header}")
    longest = max(product * per_tensor, other * per_element)  # a launch is on one core
    for what, seconds in methods.items():
        print(f"  {what:58}{''.join(f'{text(max(longest, seconds / cores)):>14}' for cores in CORES)}")


def text(seconds: float) -> str:
    for unit, size in (("years", 365.25 * DAY), ("days", DAY), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
