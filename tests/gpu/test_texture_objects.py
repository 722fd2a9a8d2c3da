"""Textures and surfaces in CUDA C++ programs: values, timing, and what the API refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.errors import LaunchError, ProgramFault

SOURCE = r"""
struct Images { cudaTextureObject_t first; int pad; cudaTextureObject_t second; };
typedef cudaTextureObject_t Texture;
extern "C" __global__ void fetches(Texture line, Texture memory, Texture image, Texture volume,
                                   Texture layers, Texture cube, Texture mipmap, float* out) {
  out[0] = tex1D<float>(line, 2.5f);
  out[1] = tex1Dfetch<int>(memory, 3);
  out[2] = tex2D<float>(image, 1.5f, 2.5f);
  out[3] = tex3D<float>(volume, 1.5f, 2.5f, 1.5f);
  out[4] = tex2DLayered<float>(layers, 1.5f, 2.5f, 1);
  out[5] = texCubemap<float>(cube, -1.0f, 0.25f, 0.25f);
  out[6] = tex2DLod<float>(mipmap, 0.5f, 0.5f, 1.0f);
  out[7] = tex2DGrad<float>(mipmap, 0.5f, 0.5f, make_float2(0.5f, 0), make_float2(0, 0.5f));
  float4 four = tex2Dgather<float4>(image, 2.0f, 1.0f, 0);
  out[8] = four.x; out[9] = four.y; out[10] = four.z; out[11] = four.w;
}
extern "C" __global__ void blur(cudaTextureObject_t image, float* out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) out[y * w + x] = tex2D<float>(image, x + 1.0f, y + 1.0f);
}
extern "C" __global__ void of_struct(Images images, const cudaTextureObject_t* table, int* out) {
  int i = threadIdx.x;
  out[i] = tex1D<int>(images.first, i) + tex1D<int>(images.second, i) + tex1D<int>(table[i % 2], i);
}
extern "C" __global__ void colours(cudaTextureObject_t image, uchar4* out) {
  out[threadIdx.x] = tex2D<uchar4>(image, threadIdx.x, 0);
}
extern "C" __global__ void invert(cudaSurfaceObject_t image, int w) {
  int x = threadIdx.x, y = blockIdx.x;
  uchar4 c;
  surf2Dread(&c, image, x * 4, y);
  surf2Dwrite(make_uchar4(255 - c.x, 255 - c.y, 255 - c.z, c.w), image, x * 4, y);
}
extern "C" __global__ void volume(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  surf2DLayeredwrite(surf3Dread<float>(from, x * 4, y, z, cudaBoundaryModeZero), to, y * 4, x, z);
}
extern "C" __global__ void histogram(const int* values, cudaSurfaceObject_t counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  asm volatile("sured.b.1d.add.u32.trap [%0, {%1}], %2;" :: "l"(counts), "r"(4 * values[i]), "r"(1));
}
extern "C" __global__ void outside(cudaSurfaceObject_t image) { surf1Dwrite(1.0f, image, 4 * threadIdx.x); }
"""


@pytest.fixture(scope="module")
def gpu() -> simt.GPU:
    return simt.GPU("h100", functional=True, memory=1 << 30)


@pytest.fixture(scope="module")
def program(gpu: simt.GPU) -> Any:
    return gpu.compile(SOURCE)


def test_functions_of_texture_objects(gpu: simt.GPU, program: Any) -> None:
    image = np.arange(12, dtype=np.float32).reshape(3, 4)
    volume = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    faces = np.arange(6 * 16, dtype=np.float32).reshape(6, 4, 4)
    levels = [np.full((n, n), 8 / n, np.float32) for n in (8, 4, 2, 1)]
    out = np.zeros(12, np.float32)
    program.fetches[1, 1](
        gpu.texture(np.array([1, 2, 4], np.float32), filter="linear"),
        gpu.texture(np.array([5, 6, 7, -8], np.int32), kind="linear"),
        gpu.texture(image),
        gpu.texture(volume),
        gpu.texture(volume, kind="2d_layered"),
        gpu.texture(faces, kind="cubemap"),
        gpu.texture(levels, normalized=True),
        out,
    )
    # Face -x: s = z, t = -y, so column int(0.625 * 4) and row int(0.375 * 4).
    assert out[:8].tolist() == [4, -8, image[2, 1], volume[1, 2, 1], volume[1, 2, 1], faces[1, 1, 2], 2, 4]
    assert out[8:].tolist() == [image[1, 1], image[1, 2], image[0, 2], image[0, 1]]


def test_a_mean_of_four(gpu: simt.GPU, program: Any) -> None:
    image = np.random.default_rng(1).integers(0, 256, (21, 35), np.uint8)
    out = np.zeros(image.shape, np.float32)
    texture = gpu.texture(image, filter="linear", read="normalized")
    program.blur[(5, 6), (8, 4)](texture, out, 35, 21)
    wider = np.pad(image, ((0, 1), (0, 1)), mode="edge").astype(np.float64)
    mean = (wider[:-1, :-1] + wider[1:, :-1] + wider[:-1, 1:] + wider[1:, 1:]) / 4 / 255
    assert np.allclose(out, mean, rtol=1e-7)


def test_handles_in_structures_and_arrays(gpu: simt.GPU, program: Any) -> None:
    textures = [gpu.texture(np.arange(4, dtype=np.int32) * 10**k) for k in range(4)]
    layout = np.dtype([("first", np.uint64), ("pad", np.int32), ("second", np.uint64)], align=True)
    images = np.array([(textures[0].handle, 0, textures[1].handle)], layout)[0]
    table, out = np.array([t.handle for t in textures[2:]], np.uint64), np.zeros(4, np.int32)
    program.of_struct[1, 4](images, table, out)
    assert out.tolist() == [0, 1011, 222, 3033]


def test_colours(gpu: simt.GPU, program: Any) -> None:
    image = np.random.default_rng(2).integers(0, 256, (1, 8, 4), np.uint8)
    out = np.zeros((8, 4), np.uint8)
    program.colours[1, 8](gpu.texture(image, channels=4), out)
    assert (out == image[0]).all()


def test_surfaces_and_textures_of_one_array(gpu: simt.GPU, program: Any) -> None:
    image = np.random.default_rng(3).integers(0, 256, (5, 8, 4), np.uint8)
    surface = gpu.surface(image, channels=4)
    program.invert[5, 8](surface, 8)
    inverted = np.where(np.arange(4) == 3, image, 255 - image)
    assert (surface.numpy() == inverted).all()
    out = np.zeros((8, 4), np.uint8)
    program.colours[1, 8](gpu.texture(surface.array, channels=4), out)
    assert (out == inverted[0]).all()


def test_surfaces_of_volumes_and_layers(gpu: simt.GPU, program: Any) -> None:
    volume = np.random.default_rng(4).random((3, 4, 5), np.float32)
    turned = gpu.surface(np.zeros((3, 5, 4), np.float32), kind="2d_layered")
    program.volume[1, (5, 4, 3)](gpu.surface(volume), turned)
    assert (turned.numpy() == volume.transpose(0, 2, 1)).all()


def test_rows_may_be_padded(gpu: simt.GPU, program: Any) -> None:
    image = gpu.array(np.arange(32, dtype=np.float32).reshape(4, 8))
    out = np.zeros((4, 5), np.float32)
    program.blur[1, (8, 4)](gpu.texture(image, width=5), out, 5, 4)
    right = np.minimum(np.arange(5) + 1, 4)
    below = np.minimum(np.arange(4) + 1, 3)
    assert (out == image.numpy()[np.ix_(below, right)]).all()


def test_a_fault_names_the_surface_access(gpu: simt.GPU, program: Any) -> None:
    with pytest.raises(ProgramFault, match="byte 64; it has rows of 64 bytes") as caught:
        program.outside[1, 32](gpu.surface(np.zeros(16, np.float32)))
    assert caught.value.kind == "illegal address" and caught.value.thread == (16, 0, 0)


# --- under timing ----------------------------------------------------------------------------------------


# A trace does not contain copies to the GPU.
# A refresh would delay different loads if timing shifted by a cycle.
COLD = {"l2.copies_fill": False, "dram.refi": 0}


def run_timed(
    threads: int, trace: Path | None = None, spec: str = "rtx3070"
) -> tuple[list[int], list[np.ndarray]]:
    gpu = simt.GPU(spec, threads=threads, memory=1 << 30, set=COLD)
    program = gpu.compile(SOURCE)
    rng = np.random.default_rng(5)
    image = gpu.texture(rng.random((64, 96), np.float32), filter="linear")
    out = gpu.zeros((64, 96))
    counts = gpu.surface(np.zeros(50, np.uint32))
    values = rng.integers(0, 50, 2000).astype(np.int32)
    inverted = gpu.surface(rng.integers(0, 256, (20, 64, 4), np.uint8), channels=4)

    def launches() -> None:
        program.blur[(12, 16), (8, 4)](image, out, 96, 64)
        program.histogram[8, 256](values, counts, 2000)
        program.invert[20, 64](inverted, 64)

    if trace:
        with gpu.trace(trace):
            launches()
        return [], []
    launches()
    return [launch.cycles for launch in gpu.launches], [out.numpy(), counts.numpy(), inverted.numpy()]


@pytest.mark.parametrize("spec", ["h100", "rtx3070", "qv100-accelsim"])
def test_timing_gives_the_same_values_for_any_threads(spec: str) -> None:
    cycles, values = run_timed(1, spec=spec)
    again, others = run_timed(2, spec=spec)
    assert cycles == again
    assert all((a == b).all() for a, b in zip(values, others, strict=True))
    rng = np.random.default_rng(5)
    image = np.pad(rng.random((64, 96), np.float32).astype(np.float64), ((0, 1), (0, 1)), mode="edge")
    mean = (image[:-1, :-1] + image[1:, :-1] + image[:-1, 1:] + image[1:, 1:]) / 4
    assert np.allclose(values[0], mean, rtol=1e-7)
    assert (values[1] == np.bincount(rng.integers(0, 50, 2000), minlength=50)).all()
    picture = rng.integers(0, 256, (20, 64, 4), np.uint8)
    assert (values[2] == np.where(np.arange(4) == 3, picture, 255 - picture)).all()


# Text does not give register widths; the launch with contended atomics is sensitive to a shift of one cycle.
@pytest.mark.parametrize(("name", "tolerance"), [("textures.simt", 0.01), ("text", 0.1)])
def test_a_trace_of_textures_takes_as_long(name: str, tolerance: float, tmp_path: Path) -> None:
    cycles, _ = run_timed(1)
    run_timed(1, tmp_path / name)
    result = simt.simulate(tmp_path / name, "rtx3070", set=COLD)
    assert [launch.cycles for launch in result.launches] == pytest.approx(cycles, rel=tolerance)


@pytest.mark.parametrize("spec", ["h100", "r9nano"])
def test_what_lies_outside_is_not_read(spec: str, tmp_path: Path) -> None:
    gpu = simt.GPU(spec, memory=1 << 30)
    program = gpu.compile(SOURCE)
    out, counts = gpu.zeros((16, 16)), gpu.surface(np.zeros(4, np.uint32))
    inside = np.ones((4, 4), np.float32)
    launch = program.blur[(2, 4), (8, 4)](gpu.texture(inside, address="border"), out, 16, 16)
    expected = np.zeros((16, 16), np.float32)
    expected[:3, :3] = 1
    assert (out.numpy() == expected).all()
    # Rows of the texture are 16 bytes, two to a sector; row 0 is not read.
    assert sum(launch.l1["texture_read"].values()) == 2
    program.histogram[1, 64](np.where(np.arange(64) < 60, 1, 2).astype(np.int32), counts, 64)
    assert counts.numpy().tolist() == [0, 60, 4, 0]
    with gpu.trace(tmp_path / "outside.simt"):
        program.blur[(2, 4), (8, 4)](gpu.texture(inside, address="border"), out, 16, 16)
    replayed = simt.simulate(tmp_path / "outside.simt", spec).launches[0]
    assert replayed.warp_instructions == launch.warp_instructions


def test_textures_are_read_through_the_caches() -> None:
    gpu = simt.GPU("h100", memory=1 << 30)
    program = gpu.compile(SOURCE)
    out = gpu.zeros((32, 32))
    launch = program.blur[(4, 8), (8, 4)](gpu.texture(np.ones((32, 32), np.float32)), out, 32, 32)
    # A warp's row is 8 texels, starting with the second of a sector: two sectors, but one at the right edge.
    # The lowest of 32 rows is read twice by the warps at the lower edge.
    assert sum(launch.l1["texture_read"].values()) == 31 * (3 * 2 + 1)
    assert sum(launch.l1["global_read"].values()) == 0


# --- errors -------------------------------------------------------------------------------------------------

F32, U8 = np.zeros((6, 4, 4), np.float32), np.zeros((6, 4, 4), np.uint8)


@pytest.mark.parametrize(
    ("source", "options", "why"),
    [
        (F32, {"filter": "cubic"}, "filter is 'cubic', expected 'point' or 'linear'"),
        (F32, {"address": "repeat"}, "address is 'repeat', expected one of wrap"),
        (F32, {"address": ["wrap"] * 4}, "expected one of wrap"),
        (F32, {"address": "wrap"}, "address='wrap' needs normalized=True"),
        (F32, {"kind": "4d"}, "kind is '4d', expected one of 1d"),
        (F32, {"kind": "2d"}, "expected 2 dimensions for kind='2d'"),
        (F32, {"channels": 3}, "channels is 3, expected 1, 2 or 4"),
        (F32, {"channels": 2}, "expected 2 channels as the last dimension"),
        (F32[:5], {"kind": "cubemap"}, "expected 6 squares"),
        (F32[:, :3], {"kind": "cubemap"}, "expected 6 squares"),
        (F32[:5], {"kind": "cubemap_layered"}, r"expected n \* 6 squares"),
        (F32[:0], {}, "none of them 0"),
        (F32.astype(np.float64), {}, "elements are float64, expected integers"),
        (F32.astype(np.int64), {}, "elements are int64"),
        (np.zeros((2, 2, 2, 2), np.float32), {}, "is not a texture of 1 to 3 dimensions"),
        (U8, {"filter": "linear"}, "uint8 elements cannot be filtered"),
        (F32, {"read": "normalized"}, "is for integers of 8 and 16 bits"),
        (F32, {"read": "raw"}, "read is 'raw'"),
        (F32, {"srgb": True}, "srgb is for uint8"),
        (F32, {"border": (1, 2)}, "expected four numbers"),
        (F32, {"width": 9}, "width is 9, rows have 4 texels"),
        (F32[0, 0], {"kind": "linear", "filter": "linear"}, "kind='linear' is memory without filter"),
        ([F32[0], F32[0, :2, :2]], {}, "mipmaps need normalized=True"),
        ([F32[0], F32[0]], {"normalized": True}, "level 1 is float32 with 4 x 4 x 1 texels, expected"),
        ([F32[0], U8[0, :2, :2]], {"normalized": True}, "level 1 is uint8"),
    ],
)
def test_textures_that_make_no_sense(gpu: simt.GPU, source: Any, options: Any, why: str) -> None:
    with pytest.raises(LaunchError, match=why):
        gpu.texture(source, **options)


def test_surfaces_that_make_no_sense(gpu: simt.GPU) -> None:
    with pytest.raises(LaunchError, match="kind='linear' is for textures"):
        gpu.surface(F32[0, 0], kind="linear")
    with pytest.raises(LaunchError, match="elements are bool"):
        gpu.surface(np.zeros((2, 2), bool))
    other = simt.GPU("h100", functional=True, memory=1 << 24)
    with pytest.raises(LaunchError, match="another GPU"):
        other.surface(gpu.zeros(4))


def test_references_that_are_not_there(gpu: simt.GPU, program: Any) -> None:
    with pytest.raises(LaunchError, match=r"no \.texref variable 'image'; there are: none"):
        program.bind_texture("image", gpu.texture(F32[0]))
    with pytest.raises(LaunchError, match=r"no \.surfref variable"):
        program.bind_surface("image", gpu.surface(F32[0]))
    with pytest.raises(LaunchError, match=r"no \.samplerref variable"):
        program.bind_texture("image", gpu.sampler())


def test_a_texture_is_no_argument_for_a_number(gpu: simt.GPU, program: Any) -> None:
    with pytest.raises(LaunchError, match="argument 3: expected a 32-bit integer"):
        program.blur[1, 1](gpu.texture(F32[0]), gpu.zeros(4), gpu.texture(F32[0]), 1)
