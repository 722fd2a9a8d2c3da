"""A decode step: do weights that stream by evict the KV cache, and which hint keeps it in the L2?

python examples/case_studies/kv_cache.py
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import study

import simt

SOURCE = r"""
// One token: a vector times a layer's weights, row by row, each read once.
template <bool stream>
__device__ void product(const float4* weights, const float4* x, float* y, int columns) {
  const float4* row = weights + (size_t)blockIdx.x * columns;
  float sum = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    float4 w = stream ? __ldcs(row + c) : row[c], v = x[c];
    sum += w.x * v.x + w.y * v.y + w.z * v.z + w.w * v.w;
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(y + blockIdx.x, sum);
}
extern "C" __global__ void project(const float4* w, const float4* x, float* y, int n) {
  product<false>(w, x, y, n);
}
extern "C" __global__ void project_streaming(const float4* w, const float4* x, float* y, int n) {
  product<true>(w, x, y, n);
}
// Scores of the token's query with all keys: the KV cache is read again in the next step.
template <bool keep> __device__ void scores(const float4* keys, const float4* q, float* s, int columns) {
  const float4* key = keys + (size_t)(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * columns;
  unsigned long long last;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
  float sum = 0;
  for (int c = threadIdx.x % 32; c < columns; c += 32) {
    float4 k, v = q[c];
    if (keep)
      asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                   : "=f"(k.x), "=f"(k.y), "=f"(k.z), "=f"(k.w) : "l"(key + c), "l"(last));
    else
      k = key[c];
    sum += k.x * v.x + k.y * v.y + k.z * v.z + k.w * v.w;
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) s[blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32] = sum;
}
extern "C" __global__ void attend(const float4* k, const float4* q, float* s, int n) {
  scores<false>(k, q, s, n);
}
extern "C" __global__ void attend_keeping(const float4* k, const float4* q, float* s, int n) {
  scores<true>(k, q, s, n);
}
"""
# An eighth of an A100: its SMs, and an L2 of 5 MiB of which 3.1 can persist.
EIGHTH = {"sm.count": 14, "l2.slice.sets": 16, "l2.persisting_kib": 3200, "l2.copies_fill": False}
# Keys of 128 floats are 1.25 MiB, of which each half of the L2 keeps a copy; weights are 8 MiB.
WIDTH, KEYS, ROWS, STEPS = 128, 2560, 16384, 3
# Name: kernels for weights and keys, window over the keys, over the weights.
WAYS: dict[str, tuple[str, str, Any, Any]] = {
    "no hint": ("project", "attend", "", ""),
    "weights streaming (ld.cs)": ("project_streaming", "attend", "", ""),
    "KV cache evict_last": ("project", "attend_keeping", "", ""),
    "both": ("project_streaming", "attend_keeping", "", ""),
    "window: KV cache persisting": ("project", "attend", "persisting", ""),
    "window: weights streaming": ("project", "attend", "", "streaming"),
}


def steps(way: str, given: study.Arguments) -> tuple[int, float, float]:
    """Cycles of the last step, and MB from DRAM in it for the KV cache and for the weights."""
    project, attend, keys_window, weights_window = WAYS[way]
    gpu = simt.GPU("a100", set=EIGHTH, threads=given.threads)
    kernels: Any = gpu.compile(SOURCE)
    rows = ROWS // 2 if given.quick else ROWS
    weights, keys = gpu.empty((rows, WIDTH), np.float32), gpu.empty((KEYS, WIDTH), np.float32)
    x, y, s = gpu.empty(WIDTH, np.float32), gpu.empty(rows, np.float32), gpu.empty(KEYS, np.float32)
    stream = gpu.stream()
    if keys_window:
        gpu.set_persisting_l2(3200 << 10)
    for _ in range(STEPS):
        stream.set_access_window(weights if weights_window else None, hit=weights_window)
        getattr(kernels, project)[rows, 32](weights, x, y, WIDTH // 4, stream=stream)
        stream.set_access_window(keys if keys_window else None, hit=keys_window)
        getattr(kernels, attend)[KEYS // 8, 256](keys, x, s, WIDTH // 4, stream=stream)
    gpu.synchronize()
    *_, of_weights, of_keys = gpu.launches
    read = [
        float(launch.counters["dram__sectors_read.sum"] or 0) * 32 / 1e6 for launch in (of_keys, of_weights)
    ]
    return sum(launch.cycles - launch.launch_latency for launch in (of_weights, of_keys)), *read


def main() -> None:
    given = study.arguments(__doc__, "case-kv-cache.png")
    found = {way: steps(way, given) for way in WAYS}
    before = found["no hint"][0]
    study.print_table(
        ["decode step", "cycles", "MB of KV cache from DRAM", "MB of weights", "speed-up"],
        [
            [way, f"{cycles:,}", f"{keys:.2f}", f"{weights:.2f}", f"{before / cycles:.2f}"]
            for way, (cycles, keys, weights) in found.items()
        ],
    )
    figure, axes = plt.subplots(figsize=(9, 3.5))
    places = range(len(found))
    axes.barh(places, [keys for _, keys, _ in found.values()], color=study.COLOURS[0], label="KV cache")
    axes.barh(
        places,
        [weights for *_, weights in found.values()],
        left=[keys for _, keys, _ in found.values()],
        color=study.COLOURS[1],
        label="weights",
    )
    axes.set_yticks(places, list(found))
    axes.invert_yaxis()
    axes.set_xlabel("MB from DRAM in a decode step")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
