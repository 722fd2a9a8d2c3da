"""Textures whose handles lie in memory, so that machine code before sm_90 has them in registers."""

from __future__ import annotations

import numpy as np
import pytest

import simt

SOURCE = """
#define KERNEL(name, ...) \\
  extern "C" __global__ void name(const cudaTextureObject_t* handles, const float4* at, float4* out) { \\
    const auto t = handles[threadIdx.x]; const float4 p = at[threadIdx.x]; const int i = threadIdx.x; \\
    out[threadIdx.x] = __VA_ARGS__; }
KERNEL(line, make_float4(tex1D<float>(t, p.x), i, 0, 0))
KERNEL(fetch, make_float4(tex1Dfetch<float>(t, i & 7), i, 0, 0))
KERNEL(level, make_float4(tex2DLod<float>(t, p.x, p.y, p.z), 0, 0, 0))
KERNEL(slopes, make_float4(tex2DGrad<float>(t, p.x, p.y, {p.z, p.w}, {p.w, p.x}), 0, 0, 0))
KERNEL(volume, make_float4(tex3D<float>(t, p.x, p.y, p.z), 0, 0, 0))
KERNEL(layer, make_float4(tex2DLayered<float>(t, p.x, p.y, i % 3), 0, 0, 0))
KERNEL(layer_slopes,
       make_float4(tex2DLayeredGrad<float>(t, p.x, p.y, i % 3, {p.z, p.w}, {p.w, p.x}), 0, 0, 0))
KERNEL(cube, make_float4(texCubemap<float>(t, p.x - 2, p.y - 2, p.z - 2), 0, 0, 0))
KERNEL(gather, tex2Dgather<float4>(t, p.x, p.y, 0))
KERNEL(gather_blue, tex2Dgather<float4>(t, p.x, p.y, 2))
KERNEL(gather_alpha, tex2Dgather<float4>(t, p.x, p.y, 3))
__device__ float4 moved(cudaTextureObject_t t, float4 p, int a, int b) {
  float4 r;
  asm("tex.level.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}], %7, {%8, %9};" : "=f"(r.x), "=f"(r.y),
      "=f"(r.z), "=f"(r.w) : "l"(t), "f"(p.x), "f"(p.y), "f"(0.0f), "r"(a), "r"(b));
  return r;
}
KERNEL(offsets, moved(t, p, i % 3 - 1, 1))
__device__ float4 size(cudaTextureObject_t t, int level) {
  int w, h;
  asm("txq.width.b32 %0, [%1];" : "=r"(w) : "l"(t));
  asm("txq.level.height.b32 %0, [%1], %2;" : "=r"(h) : "l"(t), "r"(level));
  return make_float4(w, h, 0, 0);
}
KERNEL(sizes, size(t, i & 1))
"""
KERNELS = {
    "line": "1d", "fetch": "linear", "level": "levels", "slopes": "levels", "volume": "3d",
    "layer": "layers", "layer_slopes": "layers", "cube": "faces", "gather": "four", "gather_blue": "four",
    "gather_alpha": "four", "offsets": "four", "sizes": "levels",
}  # fmt: skip


def outputs(gpu: str, code: str, kernel: str) -> np.ndarray:
    device = simt.GPU(gpu, functional=True, code=code)
    rng = np.random.default_rng(7)
    image = rng.random((8, 8), np.float32)
    make = {
        "1d": lambda: device.texture(image[0], filter="linear"),
        "linear": lambda: device.texture(image[0], kind="linear"),
        "levels": lambda: device.texture([image, image[:4, :4], image[:2, :2]], normalized=True),
        "3d": lambda: device.texture(rng.random((3, 4, 5), np.float32)),
        "layers": lambda: device.texture(rng.random((3, 4, 5), np.float32), kind="2d_layered"),
        "faces": lambda: device.texture(rng.random((6, 4, 4), np.float32), kind="cubemap"),
        "four": lambda: device.texture(rng.random((8, 8, 4), np.float32), channels=4),
    }[KERNELS[kernel]]
    textures = [make() for _ in range(4)]
    # For sm_90, ptxas 12.9 makes a loop over handles, which overwrites what TXD fetched in its first rounds.
    different = 1 if gpu == "h100" and "slopes" in kernel else 4
    handles = np.array([textures[i % different].handle for i in range(32)], np.uint64)
    out = np.zeros((32, 4), np.float32)
    device.compile(SOURCE)[kernel][1, 32](handles, rng.random((32, 4), np.float32) * 4, out)
    return out


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gpu", ["rtx2060", "rtx3070", "h100"])
def test_values_are_those_of_ptx(gpu: str, kernel: str) -> None:
    expected = outputs(gpu, "ptx", kernel)
    assert len(np.unique(expected)) > 2
    assert (outputs(gpu, "sass", kernel) == expected).all()
