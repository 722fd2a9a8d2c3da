"""Partition camping: the hash from addresses to L2 slices on and off.

python examples/case_studies/l2_hash.py        after Accel-Sim (ISCA 2020), sections II and V-B
"""

import matplotlib.pyplot as plt
import numpy as np
import study

import simt

SOURCE = """
// Every lane reads a sector of its own, `words` further than its neighbour's, past the L1, again and again.
extern "C" __global__ void strided(const unsigned* x, unsigned* sink, int words, int repeats) {
  const unsigned* p = x + (size_t)(blockIdx.x * blockDim.x + threadIdx.x) * words;
  unsigned sum = 0;
#pragma unroll 4
  for (int r = 0; r < repeats; r++) {
    unsigned v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p));
    sum += v;
  }
  if (sum == 1) *sink = sum;
}
"""
HASHES = {"no hash": "linear", "XOR": "xor", "IPOLY": "ipoly"}
NAMES = ("transpose", "rows", "gather", "spmv", "matmul", "triad")
CTAS, THREADS, REPEATS = 80, 128, 24


def bandwidth(hash_: str, stride: int, given: study.Arguments) -> float:
    """Bytes a cycle from the L2."""
    gpu = simt.GPU("qv100", set={"address_map.hash": hash_}, threads=given.threads)
    x, sink = gpu.empty(CTAS * THREADS * stride // 4, np.uint32), gpu.zeros(1, np.uint32)
    kernel = gpu.compile(SOURCE).strided
    for repeats in (1, REPEATS):  # the first brings the data into the L2
        launch = kernel[CTAS, THREADS](x, sink, stride // 4, repeats)
    assert launch is not None
    return REPEATS * CTAS * THREADS * 32 / (launch.cycles - launch.launch_latency)


def main() -> None:
    given = study.arguments(__doc__, "case-l2-hash.png")
    names = ("transpose",) if given.quick else NAMES
    strides = [32, 4096] if given.quick else [32 << k for k in range(9)]
    curves = {key: [bandwidth(hash_, stride, given) for stride in strides] for key, hash_ in HASHES.items()}
    rows = [[f"{s:,} B", *(f"{curves[key][i]:,.0f}" for key in HASHES)] for i, s in enumerate(strides)]
    study.print_table(["stride", *(f"B/cycle, {key}" for key in HASHES)], rows)
    times = {
        key: [
            study.simulated(study.PROGRAMS[name], "qv100", {"address_map.hash": hash_}, given)[1]
            for name in names
        ]
        for key, hash_ in HASHES.items()
    }
    speedups = {
        key: [a / b for a, b in zip(times["no hash"], times[key], strict=True)] for key in ("XOR", "IPOLY")
    }
    study.print_table(
        ["program", *(f"cycles, {key}" for key in HASHES), "speed-up, XOR", "IPOLY"],
        [
            [
                name,
                *(f"{times[key][i]:,}" for key in HASHES),
                *(f"{speedups[key][i]:.2f}" for key in speedups),
            ]
            for i, name in enumerate(names)
        ],
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    for (key, values), colour, marker in zip(curves.items(), study.COLOURS, "osD", strict=True):
        left.plot(strides, values, marker + "-", color=colour, label=key)
    left.set_xscale("log", base=2)
    left.set_xticks(strides, [f"{s if s < 1024 else s // 1024}{'' if s < 1024 else ' K'}" for s in strides])
    left.set_xlabel("stride, bytes")
    left.set_ylabel("bytes a cycle from the L2")
    left.set_ylim(bottom=0)
    left.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    study.bars(right, names, speedups, "speed-up over no hash", study.COLOURS[1:])
    right.axhline(1, color="grey", linewidth=0.8)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
