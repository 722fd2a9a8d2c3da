"""Textures and surfaces: results of instructions, against a slow reference and computed by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import simt
from simt.errors import CompileError, ProgramFault, PtxError, SassError
from support.ptx import CODE, ptx_only

HEADER = ".version 8.5\n.target sm_90a{mode}\n.address_size 64\n"
COORDINATES = {"1d": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4, "cube": 4, "acube": 4}
KINDS = {"1d": "1d", "2d": "2d", "3d": "3d", "a1d": "1d_layered", "a2d": "2d_layered"}


@cache
def gpu() -> simt.GPU:
    return simt.GPU("h100", functional=True, memory=1 << 30, code=CODE, exact_bounds=True)


@cache
def module(text: str) -> Any:
    return gpu().load(text if ".version" in text else HEADER.format(mode="") + text)


def kernel(body: str, inputs: int, outputs: int, declarations: str = "", mode: str = "") -> Any:
    """A kernel over threads: %i0... are read from arrays of 32 bits, %o0... are written; %t is a handle."""
    parameters = [".param .b64 t", ".param .b64 n"]
    parameters += [f".param .b64 p{k}" for k in range(inputs + outputs)]
    lines = [declarations, f".visible .entry k({', '.join(parameters)})", "{"]
    lines += [".reg .b64 %t, %n, %a, %w<9>; .reg .b32 %me, %cta, %i<20>, %o<20>, %r<9>;"]
    lines += [".reg .b16 %h<9>; .reg .pred %p<4>;"]
    lines += ["mov.u32 %me, %tid.x; mov.u32 %cta, %ctaid.x; mad.lo.u32 %me, %cta, 64, %me;"]
    lines += ["ld.param.b64 %t, [t]; ld.param.b64 %n, [n]; cvt.u32.u64 %cta, %n;"]
    lines += ["setp.ge.u32 %p0, %me, %cta; @%p0 ret;"]
    for k in range(inputs):
        lines += [f"ld.param.b64 %a, [p{k}]; mad.wide.u32 %a, %me, 4, %a; ld.global.b32 %i{k}, [%a];"]
    lines += [body]
    for k in range(outputs):
        lines += [
            f"ld.param.b64 %a, [p{inputs + k}]; mad.wide.u32 %a, %me, 4, %a; st.global.b32 [%a], %o{k};"
        ]
    return module("\n".join([HEADER.format(mode=mode), *lines, "ret;", "}"])).k


def run(
    body: str, texture: Any, inputs: Any, outputs: int = 4, declarations: str = "", mode: str = ""
) -> np.ndarray:
    """`body`'s %o0 ... for each of the inputs' elements: 32-bit words [element, output]."""
    columns = [np.ascontiguousarray(x).view(np.uint32) for x in inputs]
    count = len(columns[0])
    results = [np.zeros(count, np.uint32) for _ in range(outputs)]
    launch = kernel(body, len(columns), outputs, declarations, mode)
    launch[(count + 63) // 64, 64](texture, count, *columns, *results)
    return np.stack(results, axis=1) if results else np.zeros((count, 0), np.uint32)


def vector(letter: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{first + k}" for k in range(count)) + "}"


def fetch(texture: Any, geometry: str, coordinates: list[Any], result: str = "f32", extra: str = "") -> Any:
    """tex of a geometry at each point; `coordinates`: an array per coordinate, a layer first."""
    integer = geometry[0] != "a" and coordinates[0].dtype == np.int32
    of = "s32" if integer else "f32"
    if geometry[0] == "a" and len(coordinates) > 1 and coordinates[1].dtype == np.int32:
        of = "s32"
    padded = list(coordinates) + [coordinates[-1]] * (COORDINATES[geometry] - len(coordinates))
    body = f"tex.{geometry}.v4.{result}.{of} {vector('o', 0, 4)}, [%t, {vector('i', 0, len(padded))}]{extra};"
    words = run(body, texture, padded)
    return words.view(np.float32) if result == "f32" else words.view(np.int32)


# --- the reference ---------------------------------------------------------------------------------------


def index(mode: str, i: int, n: int) -> int | None:
    """The texel (of n) that index i refers to; None for the border."""
    if mode == "wrap":
        return i % n
    if mode == "mirror":
        i %= 2 * n
        return i if i < n else 2 * n - 1 - i
    if mode == "border" and not 0 <= i < n:
        return None
    return min(max(i, 0), n - 1)


def taps(mode: str, x: float, n: int, linear: bool, normalized: bool) -> list[tuple[int | None, Fraction]]:
    """Texels along a dimension and their weights."""
    u = Fraction(float(x)) * (n if normalized else 1)
    if not linear:
        return [(index(mode, math.floor(u), n), Fraction(1))]
    fixed = math.floor((u - Fraction(1, 2)) * 256 + Fraction(1, 2))
    i, weight = fixed // 256, Fraction(fixed % 256, 256)
    return [(index(mode, i, n), 1 - weight), (index(mode, i + 1, n), weight)]


def decoded(value: Any, normalized: bool) -> Fraction:
    if not normalized:
        return Fraction(float(value))
    most = np.iinfo(value.dtype).max
    return max(Fraction(-1), Fraction(int(value), int(most)))


def reference(
    texels: np.ndarray,
    points: np.ndarray,
    *,
    filter: str,
    address: list[str],
    normalized: bool,
    read: str,
    border: list[float],
) -> np.ndarray:
    """texels: (z, y, x, channel), fewer for fewer dimensions. points: (point, dimension), x first."""
    dimensions = texels.ndim - 1
    sizes = texels.shape[:-1][::-1]
    out = np.zeros((len(points), 4), np.float32)
    out[:, 3] = 1
    for row, point in enumerate(points):
        along = [
            taps(address[d], point[d], sizes[d], filter == "linear", normalized) for d in range(dimensions)
        ]
        for channel in range(texels.shape[-1]):
            total = Fraction(0)
            for corner in itertools.product(*along):
                where = [i for i, _ in corner][::-1]
                weight = math.prod((w for _, w in corner), start=Fraction(1))
                if None in where:
                    total += weight * Fraction(float(border[channel]))
                else:
                    total += weight * decoded(texels[(*where, channel)], read == "normalized")
            out[row, channel] = np.float32(float(total))
    return out


FORMATS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"]


def random_texels(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind == "f":
        return (rng.integers(-512, 512, shape) / 16).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def random_points(
    rng: np.random.Generator, count: int, sizes: tuple[int, ...], normalized: bool
) -> np.ndarray:
    """Points all around the texture, on borders and centres of texels, and just next to them."""
    points = np.empty((count, len(sizes)), np.float32)
    for d, n in enumerate(sizes):
        anywhere = rng.uniform(-1.5 * n, 2.5 * n, count)
        grid = rng.integers(-2 * n, 4 * n, count) / 2
        beside = np.nextafter(
            grid.astype(np.float32), rng.choice([-np.inf, np.inf], count).astype(np.float32)
        )
        column = np.choose(rng.integers(0, 3, count), [anywhere, grid, beside])
        points[:, d] = column / n if normalized else column
    return points


# A sum that is 0 with integral multiples of 1/127, but not with rounded ones.
@pytest.mark.slow
@example("3d", np.dtype("int8"), 4, (2, 4, 6), "linear", ["clamp", "clamp", "wrap"], True, "normalized", 769)
@settings(max_examples=120, deadline=None)
@given(
    geometry=st.sampled_from(["1d", "2d", "3d", "a1d", "a2d"]),
    dtype=st.sampled_from(FORMATS).map(np.dtype),
    channels=st.sampled_from([1, 2, 4]),
    sizes=st.tuples(*[st.integers(1, 6)] * 3),
    filter=st.sampled_from(["point", "linear"]),
    address=st.lists(st.sampled_from(["clamp", "border", "wrap", "mirror"]), min_size=3, max_size=3),
    normalized=st.booleans(),
    read=st.sampled_from(["element", "normalized"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_fetches(
    geometry: str,
    dtype: np.dtype[Any],
    channels: int,
    sizes: tuple[int, int, int],
    filter: str,
    address: list[str],
    normalized: bool,
    read: str,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    if dtype.kind == "f" or dtype.itemsize > 2:
        read = "element"
    if dtype.kind != "f" and read == "element":
        filter = "point"
    if not normalized:
        address = [{"wrap": "clamp", "mirror": "border"}.get(mode, mode) for mode in address]
    border = [0.5, -2.0, 3.0, 0.25] if dtype.kind == "f" or read == "normalized" else [7.0, 3.0, 0.0, 9.0]
    dimensions = int(geometry[-2])
    layered = geometry[0] == "a"
    shape = sizes[: dimensions + layered]
    texels = random_texels(rng, (*shape, channels), dtype)
    texture = gpu().texture(
        texels if channels > 1 else texels[..., 0],
        kind=KINDS[geometry],
        channels=channels,
        filter=filter,
        address=address,
        normalized=normalized,
        read=read,
        border=border,
    )
    points = random_points(rng, 40, shape[::-1][:dimensions], normalized)
    columns = list(points.T)
    options: Any = dict(filter=filter, address=address, normalized=normalized, read=read, border=border)
    if layered:
        layers = rng.integers(0, shape[0] + 2, len(points)).astype(np.uint32)
        expected = np.concatenate(
            [
                reference(texels[min(layer, shape[0] - 1)], point[None], **options)
                for layer, point in zip(layers, points, strict=True)
            ]
        )
        columns.insert(0, layers)
    else:
        expected = reference(texels, points, **options)
    if dtype.kind != "f" and read == "element":
        found = fetch(texture, geometry, columns, "u32" if dtype.kind == "u" else "s32")
        assert (found.astype(np.float32) == expected.astype(np.float32)).all() or dtype == np.uint32
        if dtype == np.uint32:
            assert (found.view(np.uint32).astype(np.float32) == expected).all()
    else:
        assert (fetch(texture, geometry, columns) == expected).all()


# --- by hand ---------------------------------------------------------------------------------------------

FOUR = np.array([0, 10, 20, 30], np.float32)


def line(coordinates: list[float], **options: Any) -> list[float]:
    texture = gpu().texture(FOUR, **options)
    return fetch(texture, "1d", [np.array(coordinates, np.float32)])[:, 0].tolist()


def test_point_sampling_takes_the_floor() -> None:
    assert line([0, 0.999, 1, 1.999, 3.999]) == [0, 0, 10, 10, 30]
    assert line([-1, -1e-6, 4, 1e30, -1e30]) == [0, 0, 30, 30, 0]
    assert line([0, 0.25, 0.75, 0.9999], normalized=True) == [0, 10, 30, 30]


def test_address_modes_at_the_edges() -> None:
    at = [-0.125, 0.0, 1.0, 1.125, 1.25, -1.0]
    assert line(at, normalized=True, address="wrap") == [30, 0, 0, 0, 10, 0]
    assert line(at, normalized=True, address="mirror") == [0, 0, 30, 30, 20, 30]
    assert line(at, normalized=True, address="border", border=(7, 0, 0, 0)) == [7, 0, 7, 7, 7, 7]
    assert line(at, normalized=True, address="clamp") == [0, 0, 30, 30, 30, 0]


def test_linear_filtering_between_texels() -> None:
    assert line([0, 0.5, 1, 1.25, 3.5, 4], filter="linear") == [0, 0, 5, 7.5, 30, 30]
    assert line([0, 4], filter="linear", address="border") == [0, 15]
    assert line([0, 1], filter="linear", address="wrap", normalized=True) == [15, 15]
    assert line([0, 1], filter="linear", address="mirror", normalized=True) == [0, 30]


def test_weights_have_eight_fractional_bits() -> None:
    # 1/256 of a texel is the smallest step; half of it rounds up, less rounds down.
    at = [0.5 + 1 / 256, 0.5 + 1 / 512, 0.5 + 1 / 512 - 1 / 65536, 1.5 - 1 / 1024]
    assert line(at, filter="linear") == [10 / 256, 10 / 256, 0, 10]


def test_not_a_number_is_coordinate_zero() -> None:
    assert line([math.nan]) == [0]
    assert line([math.inf, -math.inf]) == [30, 0]
    assert line([math.inf], address="wrap", normalized=True) == [0]


def test_numbers_that_are_not_filtered_keep_their_bits() -> None:
    bits = np.array([0x80000000, 0x7F812345, 1, 0xFF800000], np.uint32)
    texture = gpu().texture(bits.view(np.float32))
    found = fetch(texture, "1d", [np.arange(4, dtype=np.float32)])[:, 0]
    assert found.view(np.uint32).tolist() == bits.tolist()


def test_linear_memory_is_zero_outside() -> None:
    texture = gpu().texture(np.arange(1, 6, dtype=np.int16), kind="linear")
    at = np.array([0, 4, 5, -1, 2**31 - 1, -(2**31)], np.int32)
    assert fetch(texture, "1d", [at], "s32")[:, 0].tolist() == [1, 5, 0, 0, 0, 0]


def test_integer_coordinates_name_texels() -> None:
    texels = np.arange(12, dtype=np.float32).reshape(3, 4)
    texture = gpu().texture(texels, filter="linear", normalized=True, address="wrap")
    x, y = np.array([0, 3, 9, -5], np.int32), np.array([0, 2, 1, 7], np.int32)
    assert fetch(texture, "2d", [x, y])[:, 0].tolist() == [0, 11, 7, 8]


def test_signed_integers_are_extended_and_missing_components_are_0_0_1() -> None:
    texture = gpu().texture(np.array([-1, 5], np.int8))
    assert fetch(texture, "1d", [np.array([0.0], np.float32)], "s32").tolist() == [[-1, 0, 0, 1]]
    texture = gpu().texture(np.array([[0.5, 2]], np.float16), channels=2)
    assert fetch(texture, "1d", [np.array([0.0], np.float32)]).tolist() == [[0.5, 2, 0, 1]]


def test_normalised_integers() -> None:
    x = np.arange(4, dtype=np.float32)
    texture = gpu().texture(np.array([0, 51, 255, 128], np.uint8), read="normalized")
    assert fetch(texture, "1d", [x])[:, 0].tolist() == [0, np.float32(0.2), 1, np.float32(128 / 255)]
    texture = gpu().texture(np.array([-32768, -32767, 32767, 0], np.int16), read="normalized")
    assert fetch(texture, "1d", [x])[:, 0].tolist() == [-1, -1, 1, 0]


def test_srgb() -> None:
    texels = np.array([[0, 10, 188, 128], [255, 11, 1, 255]], np.uint8)
    texture = gpu().texture(texels, channels=4, read="normalized", srgb=True)
    found = fetch(texture, "1d", [np.arange(2, dtype=np.float32)])
    c = texels[:, :3] / 255
    expected = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    assert np.allclose(found[:, :3], expected, rtol=1e-7)
    assert found[:, 3].tolist() == [np.float32(128 / 255), 1]


def cube_texels(cubes: int = 1) -> np.ndarray:
    """A texel encodes its position: cube, face, row, column."""
    f, y, x = np.meshgrid(np.arange(6 * cubes), np.arange(4), np.arange(4), indexing="ij")
    return (100 * f + 10 * y + x).astype(np.float32)


def test_faces_of_cubes() -> None:
    # One direction per face, towards a texel according to the table in the CUDA guide.
    texture = gpu().texture(cube_texels(), kind="cubemap")
    directions = np.array(
        [[2, 0.5, -1.5], [-2, 0.5, -1.5], [0.5, 2, -1.5], [0.5, -2, -1.5], [0.5, -1.5, 2], [0.5, -1.5, -2]],
        np.float32,
    )
    # s, t as fractions of the major axis: x > 0: (-z, -y), x < 0: (z, -y), y > 0: (x, z), y < 0: (x, -z),
    # z > 0: (x, -y), z < 0: (-x, -y).
    st_ = [(0.75, -0.25), (-0.75, -0.25), (0.25, -0.75), (0.25, 0.75), (0.25, 0.75), (-0.25, 0.75)]
    expected = [100 * f + 10 * int((t + 1) / 2 * 4) + int((s + 1) / 2 * 4) for f, (s, t) in enumerate(st_)]
    assert fetch(texture, "cube", list(directions.T))[:, 0].tolist() == expected


def test_between_faces_z_goes_first() -> None:
    texture = gpu().texture(cube_texels(), kind="cubemap")
    corners = np.array([[1, 1, 1], [1, 1, -1], [1, 1, 0], [-1, -1, 0.5]], np.float32)
    faces = fetch(texture, "cube", list(corners.T))[:, 0] // 100
    assert faces.tolist() == [4, 5, 2, 3]


def test_cubes_of_an_array_are_filtered_within_faces() -> None:
    texture = gpu().texture(cube_texels(3), kind="cubemap_layered", filter="linear")
    layer = np.array([0, 2, 7], np.uint32)
    x, y, z = (np.array([v] * 3, np.float32) for v in (1, 0, 0))
    # The centre of face +x of each cube; the index of a missing layer is clamped to the last.
    middle = 10 * 1.5 + 1.5
    assert fetch(texture, "acube", [layer, x, y, z])[:, 0].tolist() == [middle, 1200 + middle, 1200 + middle]
    edge = fetch(texture, "acube", [layer, x, np.full(3, 1, np.float32), z])[:, 0]
    # Above +x lies the edge of +y, whose last column it meets between its rows 1 and 2.
    assert edge.tolist() == [200 + 15 + 3, 1400 + 15 + 3, 1400 + 15 + 3]


def test_gather_goes_round_from_the_lower_left() -> None:
    texels = np.stack([np.arange(12).reshape(3, 4), 100 + np.arange(12).reshape(3, 4)], axis=-1)
    texture = gpu().texture(texels.astype(np.int32), channels=2)
    at = [np.array([2.0], np.float32), np.array([1.0], np.float32)]
    # Around the corner of texels (1, 0), (2, 0), (1, 1), (2, 1).
    for component, expected in {
        "r": [5, 6, 2, 1],
        "g": [105, 106, 102, 101],
        "b": [0] * 4,
        "a": [1] * 4,
    }.items():
        body = f"tld4.{component}.2d.v4.s32.f32 {vector('o', 0, 4)}, [%t, {vector('i', 0, 2)}];"
        assert run(body, texture, at)[0].tolist() == expected
    body = f"tld4.r.2d.v4.s32.f32 {vector('o', 0, 4)}, [%t, {vector('i', 0, 2)}], {{1, -1}};"
    assert run(body, texture, at)[0].tolist() == [2, 3, 3, 2]


def test_gather_of_layers_and_faces() -> None:
    at = [np.array([1], np.uint32), *[np.array([v], np.float32) for v in (2.0, 2.0, 0.0)]]
    body = f"tld4.r.a2d.v4.f32.f32 {vector('o', 0, 4)}, [%t, {vector('i', 0, 4)}];"
    layered = gpu().texture(cube_texels(), kind="2d_layered")
    assert run(body, layered, at).view(np.float32)[0].tolist() == [121, 122, 112, 111]
    body = f"tld4.r.cube.v4.f32.f32 {vector('o', 0, 4)}, [%t, {vector('i', 0, 4)}];"
    cube = gpu().texture(cube_texels(), kind="cubemap")
    at = [np.array([v], np.float32) for v in (0, 0, -1, 0)]
    assert run(body, cube, at).view(np.float32)[0].tolist() == [521, 522, 512, 511]


def test_offsets_count_texels() -> None:
    texels = np.arange(12, dtype=np.float32).reshape(3, 4)
    at = [np.array([1.5, 0.5], np.float32), np.array([1.5, 0.5], np.float32)]
    assert fetch(gpu().texture(texels), "2d", at, extra=", {2, -1}")[:, 0].tolist() == [3, 2]
    assert fetch(gpu().texture(texels), "2d", at, extra=", {-8, 7}")[:, 0].tolist() == [8, 8]


def mipmap(**options: Any) -> Any:
    levels = [np.full(8 >> k, 10 * k, np.float32) for k in range(4)]
    return gpu().texture(levels, normalized=True, **options)


def levels_at(texture: Any, lods: list[float]) -> list[float]:
    x = np.full(len(lods), 0.3, np.float32)
    body = f"tex.level.1d.v4.f32.f32 {vector('o', 0, 4)}, [%t, {{%i0}}], %i1;"
    return run(body, texture, [x, np.array(lods, np.float32)]).view(np.float32)[:, 0].tolist()


def test_levels_of_detail() -> None:
    lods = [-1, 0, 0.49, 0.5, 1.4, 3, 9, math.nan]
    assert levels_at(mipmap(), lods) == [0, 0, 0, 10, 10, 30, 30, 0]
    assert levels_at(mipmap(level_filter="linear"), [0.25, 1.5, 2.75, 9, -3]) == [2.5, 15, 27.5, 30, 0]
    assert levels_at(mipmap(level_bias=1, level_range=(0.5, 2)), [-5, 0, 0.6, 5]) == [10, 10, 20, 20]
    assert levels_at(gpu().texture(FOUR, normalized=True), [5]) == [10]
    assert fetch(mipmap(), "1d", [np.array([0.3], np.float32)])[0, 0] == 0


def test_gradients_choose_the_level() -> None:
    levels = [np.full((8 >> k, 16 >> k), 10 * k, np.float32) for k in range(4)]
    texture = gpu().texture(levels, normalized=True, level_filter="linear")
    # A derivative of 1/16 of the width per pixel is one texel; 1/2 is 8 texels: level 3. The longer
    # derivative counts.
    dx = np.array([1 / 16, 1 / 8, 0, 0, 1 / 2], np.float32)
    dy = np.array([0, 0, 1 / 2, 0, 0], np.float32)
    half, zero = np.full(5, 0.5, np.float32), np.zeros(5, np.float32)
    body = f"tex.grad.2d.v4.f32.f32 {vector('o', 0, 4)}, [%t, {{%i0, %i1}}], {{%i2, %i4}}, {{%i4, %i3}};"
    found = run(body, texture, [half, half, dx, dy, zero]).view(np.float32)[:, 0]
    assert found.tolist() == [0, 10, 20, 0, 30]


def test_half_results() -> None:
    texels = np.array([[1 / 3, 70000, -0.0, 2]], np.float32)
    texture = gpu().texture(texels, channels=4)
    x = [np.zeros(1, np.float32)]
    body = "tex.1d.v2.f16x2.f32 {%o0, %o1}, [%t, {%i0}]; mov.u32 %o2, 0;"
    with np.errstate(over="ignore"):
        expected = texels.astype(np.float16).view(np.uint32)
    assert (run(body, texture, x, 2) == expected).all()
    body = "tex.1d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%t, {%i0}];"
    body += "mov.b32 %o0, {%h0, %h1}; mov.b32 %o1, {%h2, %h3};"
    assert (run(body, texture, x, 2) == expected).all()


def test_texels_are_resident() -> None:
    body = f"tex.1d.v4.f32.f32 {vector('o', 0, 4)}|%p1, [%t, {{%i0}}]; selp.u32 %o4, 1, 0, %p1;"
    assert run(body, gpu().texture(FOUR), [np.ones(1, np.float32)], 5)[0, 4] == 1


def test_lanes_may_have_different_textures() -> None:
    text = (
        HEADER.format(mode="")
        + """
.visible .entry k(.param .b64 handles, .param .b64 out) {
  .reg .b64 %a<4>; .reg .b32 %r<9>; .reg .pred %p;
  mov.u32 %r0, %tid.x; ld.param.b64 %a0, [handles]; mad.wide.u32 %a1, %r0, 8, %a0; ld.global.b64 %a1, [%a1];
  setp.eq.u32 %p, %r0, 3; @%p ret;
  tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%a1, {%r0}];
  ld.param.b64 %a2, [out]; mad.wide.u32 %a2, %r0, 4, %a2; st.global.b32 [%a2], %r1; ret; }"""
    )
    textures = [gpu().texture(np.arange(8, dtype=np.int32) * 10**k) for k in range(3)]
    handles = np.array([textures[i % 3].handle for i in range(8)], np.uint64)
    handles[3] = 0
    out = np.zeros(8, np.int32)
    module(text).k[1, 8](handles, out)
    assert out.tolist() == [0, 10, 200, 0, 40, 500, 6, 70]


# --- references ------------------------------------------------------------------------------------------

REFERENCE = """.global .texref image;
.visible .entry k(.param .b64 out) {
  .reg .b64 %a; .reg .b32 %r<9>; .reg .b64 %t;
  mov.u32 %r0, %tid.x;
  OPERATION
  ld.param.b64 %a, [out]; mad.wide.u32 %a, %r0, 4, %a; st.global.b32 [%a], %r1; ret; }"""
DIRECT = "tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [image, {%r0}];"


def fresh(text: str) -> Any:
    return gpu().load(HEADER.format(mode="") + text)


@pytest.mark.parametrize("operation", [DIRECT, "mov.u64 %t, image;" + DIRECT.replace("[image", "[%t")])
def test_references_can_be_bound_anew(operation: str) -> None:
    program = fresh(REFERENCE.replace("OPERATION", operation))
    out = np.zeros(4, np.int32)
    for factor in (1, 5):
        program.bind_texture("image", gpu().texture(np.arange(4, dtype=np.int32) * factor))
        program.k[1, 4](out)
        assert out.tolist() == [0, factor, 2 * factor, 3 * factor]


def test_modules_have_references_of_their_own() -> None:
    first, second = (fresh(REFERENCE.replace("OPERATION", DIRECT)) for _ in range(2))
    first.bind_texture("image", gpu().texture(np.full(4, 1, np.int32)))
    second.bind_texture("image", gpu().texture(np.full(4, 2, np.int32)))
    out = np.zeros(4, np.int32)
    first.k[1, 4](out)
    assert out.tolist() == [1] * 4
    second.k[1, 4](out)
    assert out.tolist() == [2] * 4


def test_nothing_bound_is_a_fault() -> None:
    program = fresh(REFERENCE.replace("OPERATION", DIRECT))
    with pytest.raises(ProgramFault, match="nothing is bound: 0 bytes into `image`") as caught:
        program.k[1, 4](np.zeros(4, np.int32))
    assert caught.value.kind == "invalid texture"


@ptx_only("ptxas gives the parameter no bytes")
def test_a_reference_as_parameter_of_a_kernel() -> None:
    text = REFERENCE.replace("OPERATION", DIRECT).replace(
        "(.param .b64 out)", "(.param .texref t, .param .b64 out)"
    )
    program = fresh(text.replace("[image", "[t"))
    out = np.zeros(4, np.int32)
    program.k[1, 4](gpu().texture(np.arange(4, dtype=np.int32)), out)
    assert out.tolist() == [0, 1, 2, 3]


SAMPLERS = """.global .texref image;
.global .samplerref near = { addr_mode_0 = clamp_to_border, filter_mode = nearest };
.global .samplerref mean = { addr_mode_0 = wrap, addr_mode_1 = mirror, filter_mode = linear };
.global .samplerref texels = { filter_mode = nearest, force_unnormalized_coords = 1 };
.global .samplerref free;
"""


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        ("near", [0, 10, 30, 0]),
        ("mean", [15, 5, 25, 15]),
        ("texels", [0, 0, 0, 10]),
        ("free", [0, 10, 30, 30]),
    ],
)
def test_independent_samplers(sampler: str, expected: list[float]) -> None:
    body = f"tex.1d.v4.f32.f32 {vector('o', 0, 4)}, [image, {sampler}, {{%i0}}];"
    launch = kernel(body, 1, 4, SAMPLERS, ", texmode_independent")
    launch.module.bind_texture("image", gpu().texture(FOUR, normalized=True))
    x = np.array([0, 0.25, 0.75, 1], np.float32)
    assert (
        run(body, None, [x], 4, SAMPLERS, ", texmode_independent").view(np.float32)[:, 0].tolist() == expected
    )


def test_a_sampler_can_be_bound() -> None:
    body = f"tex.1d.v4.f32.f32 {vector('o', 0, 4)}, [image, free, {{%i0}}]; // bound"
    launch = kernel(body, 1, 4, SAMPLERS, ", texmode_independent")
    launch.module.bind_texture("image", gpu().texture(FOUR, normalized=True))
    launch.module.bind_texture("free", gpu().sampler(filter="linear", address="border", border=(8, 0, 0, 0)))
    x = np.array([0, 0.25, 1], np.float32)
    found = run(body, None, [x], 4, SAMPLERS, ", texmode_independent").view(np.float32)[:, 0]
    assert found.tolist() == [4, 5, 19]


def test_a_handle_with_a_named_sampler() -> None:
    """Before sm_90, ptxas packs parts of both handles into a word, which simt refuses."""
    body = f"tex.1d.v4.f32.f32 {vector('o', 0, 4)}, [%t, mean, {{%i0}}];"
    x = np.array([0, 0.25, 0.75, 1], np.float32)
    texture = gpu().texture(FOUR, normalized=True)
    found = run(body, texture, [x], 4, SAMPLERS, ", texmode_independent").view(np.float32)[:, 0]
    assert found.tolist() == [15, 5, 25, 15]


@ptx_only("ptxas refuses samplers without texmode_independent")
def test_unknown_initialisers_are_refused() -> None:
    with pytest.raises(PtxError, match="addr_mode_0 = clamp_ogl is not supported"):
        fresh(".global .samplerref s = { addr_mode_0 = clamp_ogl };\n.entry k() { ret; }")


def test_what_a_handle_points_to() -> None:
    declarations = ".global .texref tr; .global .samplerref sr; .global .surfref ur; .global .b64 other;"
    for name, expected in {"tr": [1, 0, 0], "sr": [0, 1, 0], "ur": [0, 0, 1], "other": [0, 0, 0]}.items():
        body = f"mov.u64 %w0, {name};"
        for k, of in enumerate(("texref", "samplerref", "surfref")):
            body += f"istypep.{of} %p1, %w0; selp.u32 %o{k}, 1, 0, %p1;"
        found = run(body, None, [np.zeros(1, np.uint32)], 3, declarations, ", texmode_independent")
        assert found[0].tolist() == expected


@ptx_only("ptxas tests a bit of the handle, which is an address here")
def test_what_a_handle_that_is_passed_points_to() -> None:
    body = "istypep.texref %p1, %t; selp.u32 %o0, 1, 0, %p1;"
    assert run(body, gpu().texture(FOUR), [np.zeros(1, np.uint32)], 1)[0, 0] == 1
    assert run(body, 0x1234, [np.zeros(1, np.uint32)], 1)[0, 0] == 0


def query(handle: Any, names: str, instruction: str = "txq") -> list[int]:
    names_ = names.split()
    body = "".join(f"{instruction}.{name}.b32 %o{k}, [%t];" for k, name in enumerate(names_))
    return run(body, handle, [np.zeros(1, np.uint32)], len(names_))[0].tolist()


def test_queries_of_sizes() -> None:
    volume = gpu().texture(np.zeros((2, 3, 4), np.float32), filter="linear", normalized=True)
    assert query(volume, "width height depth") == [4, 3, 2]
    assert query(mipmap(), "width height") == [8, 0]
    surface = gpu().surface(np.zeros((3, 4, 2), np.int16), channels=2)
    assert query(surface, "width height depth", "suq") == [4, 3, 0]


@ptx_only("simt does not place .nv.unified.texrefDescSize, which ptxas' code adds for what TXQ does not give")
def test_queries() -> None:
    names = "width height depth array_size num_mipmap_levels num_samples normalized_coords filter_mode"
    volume = gpu().texture(np.zeros((2, 3, 4), np.float32), filter="linear", normalized=True)
    assert query(volume, names) == [4, 3, 2, 0, 0, 0, 1, 1]
    assert query(gpu().texture(np.zeros((5, 3, 4), np.int8), kind="2d_layered"), names) == [
        4,
        3,
        0,
        5,
        0,
        0,
        0,
        0,
    ]
    assert query(gpu().texture(cube_texels(2), kind="cubemap_layered"), names) == [4, 4, 0, 2, 0, 0, 1, 0]
    assert query(mipmap(), names) == [8, 0, 0, 0, 4, 0, 1, 0]
    assert run(
        "txq.level.width.b32 %o0, [%t], %i0;", mipmap(), [np.arange(5, dtype=np.uint32)], 1
    ).T.tolist() == [[8, 4, 2, 1, 0]]
    modes = gpu().texture(FOUR, address=["wrap", "mirror", "border"], normalized=True)
    assert query(modes, "addr_mode_0 addr_mode_1 addr_mode_2 channel_data_type channel_order") == [
        0, 1, 4, 0x10DE, 0x10B0,
    ]  # fmt: skip
    assert query(gpu().texture(FOUR.astype(np.uint8)), "addr_mode_0 channel_data_type") == [3, 0x10DA]
    surface = gpu().surface(np.zeros((3, 4, 2), np.int16), channels=2)
    names = "width height depth array_size channel_data_type channel_order memory_layout"
    assert query(surface, names, "suq") == [4, 3, 0, 0, 0x10D8, 0x10B2, 0]


# --- surfaces --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vector_", "bits"),
    [(v, b) for v in ("", ".v2", ".v4") for b in (8, 16, 32, 64) if (v, b) != (".v4", 64)],
)
def test_surface_loads_and_stores(vector_: str, bits: int) -> None:
    count = int(vector_[2:] or 1)
    register = {8: "h", 16: "h", 32: "r", 64: "w"}[bits]
    registers = vector(register, 0, count)
    size = bits // 8 * count
    # A copy within the surface, from the left half of each row to the right half, with rows in reverse order.
    body = f"mul.lo.u32 %i0, %i0, {size}; add.u32 %i2, %i0, {4 * size}; sub.u32 %i3, 2, %i1;"
    body += f"suld.b.2d{vector_}.b{bits}.trap {registers}, [%t, {{%i0, %i1}}];"
    body += f"sust.b.2d{vector_}.b{bits}.trap [%t, {{%i2, %i3}}], {registers};"
    image = np.random.default_rng(bits + count).integers(0, 256, (3, 8 * size), np.uint8)
    surface = gpu().surface(image)
    x, y = (a.ravel().astype(np.uint32) for a in np.meshgrid(np.arange(4), np.arange(3)))
    run(body, surface, [x, y], 0)
    expected = image.copy()
    expected[:, 4 * size :] = image[::-1, : 4 * size]
    assert (surface.numpy() == expected).all()


def test_outside_of_a_surface() -> None:
    image = np.arange(1, 13, dtype=np.uint32).reshape(3, 4)
    x, y = np.array([-4, 16, 0, 12, 2**31 - 4], np.int32), np.array([0, 1, -1, 3, 9], np.int32)
    load = "suld.b.2d.b32.{} {{%o0}}, [%t, {{%i0, %i1}}];"
    assert run(load.format("zero"), gpu().surface(image), [x, y], 1)[:, 0].tolist() == [0] * 5
    assert run(load.format("clamp"), gpu().surface(image), [x, y], 1)[:, 0].tolist() == [1, 8, 1, 12, 12]
    store = "mov.u32 %r0, 99; sust.b.2d.b32.{} [%t, {{%i0, %i1}}], {{%r0}};"
    kept = gpu().surface(image)
    run(store.format("zero"), kept, [x, y], 0)
    assert (kept.numpy() == image).all()
    changed = gpu().surface(image)
    run(store.format("clamp"), changed, [x, y], 0)
    assert np.argwhere(changed.numpy() == 99).tolist() == [[0, 0], [1, 3], [2, 3]]
    for at in zip(x[:, None], y[:, None], strict=True):
        with pytest.raises(ProgramFault, match="rows of 16 bytes, 3 of them") as caught:
            run(load.format("trap"), gpu().surface(image), at, 1)
        assert caught.value.kind == "illegal address"


def test_surfaces_of_other_geometries() -> None:
    texels = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    at = [np.array([v], np.int32) for v in (8, 2, 1, 0)]
    body = "suld.b.3d.b32.trap {%o0}, [%t, {%i0, %i1, %i2, %i3}];"
    assert run(body, gpu().surface(texels), at, 1)[0, 0] == texels[1, 2, 2]
    body = "suld.b.a2d.b32.trap {%o0}, [%t, {%i2, %i0, %i1, %i3}];"
    assert run(body, gpu().surface(texels, kind="2d_layered"), at, 1)[0, 0] == texels[1, 2, 2]
    body = "suld.b.a1d.b32.trap {%o0}, [%t, {%i2, %i0}];"
    assert run(body, gpu().surface(texels[0], kind="1d_layered"), at, 1)[0, 0] == texels[0, 1, 2]
    body = "suld.b.1d.b32.trap {%o0}, [%t, {%i0}];"
    assert run(body, gpu().surface(texels[0, 0]), at, 1)[0, 0] == 2


def test_formatted_stores() -> None:
    body = "sust.p.1d.v4.b32.trap [%t, {%i0}], {%i1, %i2, %i3, %i4};"
    values = [np.array([v], np.int32) for v in (1, -5, 70_000, 300, -(2**31))]
    for dtype, expected in {
        "int8": [-5, 127, 127, -128],
        "int16": [-5, 32767, 300, -32768],
        "int32": [-5, 70_000, 300, -(2**31)],
        "uint8": [255, 255, 255, 255],
    }.items():
        surface = gpu().surface(np.zeros((3, 4), dtype), channels=4)
        run(body, surface, values, 0)
        assert surface.numpy().tolist() == [[0] * 4, expected, [0] * 4]
    surface = gpu().surface(np.zeros((3, 2), np.float16), channels=2)
    floats = [values[0], *[np.array([v], np.float32) for v in (0.1, -65520, 1, 1)]]
    run(body, surface, floats, 0)
    with np.errstate(over="ignore"):
        assert surface.numpy()[1].tolist() == [np.float16(0.1), -np.inf]


@pytest.mark.parametrize(
    ("operation", "type_", "expected"),
    [
        ("add", "u32", lambda a, b: a + b),
        ("min", "u32", np.minimum),
        ("max", "u32", np.maximum),
        ("min", "s32", lambda a, b: np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32)),
        ("max", "s32", lambda a, b: np.maximum(a.view(np.int32), b.view(np.int32)).view(np.uint32)),
        ("and", "b32", np.bitwise_and),
        ("or", "b32", np.bitwise_or),
    ],
)
def test_reductions(operation: str, type_: str, expected: Any) -> None:
    rng = np.random.default_rng(3)
    image, values = (rng.integers(0, 2**32, n, np.uint32) for n in (16, 200))
    where = rng.integers(0, 16, 200).astype(np.uint32)
    body = f"mul.lo.u32 %i0, %i0, 4; sured.b.1d.{operation}.{type_}.trap [%t, {{%i0}}], %i1;"
    surface = gpu().surface(image)
    run(body, surface, [where, values], 0)
    for i, v in zip(where, values, strict=True):
        image[i : i + 1] = expected(image[i : i + 1], np.array([v]))
    assert (surface.numpy() == image).all()


def test_formatted_reductions_follow_the_format() -> None:
    body = "sured.p.1d.min.b32.zero [%t, {%i0}], %i1;"
    at, value = np.array([0, 1, 5, -1], np.int32), np.array([-1, 7, 0, 0], np.int32)
    signed, unsigned = gpu().surface(np.array([5, 9], np.int32)), gpu().surface(np.array([5, 9], np.uint32))
    run(body, signed, [at, value], 0)
    run(body, unsigned, [at, value], 0)
    assert signed.numpy().tolist() == [-1, 7] and unsigned.numpy().tolist() == [5, 7]


def test_wide_reductions() -> None:
    body = "cvt.u64.u32 %w0, %i1; shl.b64 %w0, %w0, 20; sured.b.1d.add.u64.trap [%t, {%i0}], %w0;"
    surface = gpu().surface(np.zeros(4, np.uint32))
    values = np.arange(100, dtype=np.uint32) << np.uint32(20)
    run(body, surface, [np.full(100, 8, np.uint32), values], 0)
    assert surface.numpy().view(np.uint64).tolist() == [0, int(values.astype(np.uint64).sum()) << 20]


# --- errors -------------------------------------------------------------------------------------------------


def fault(body: str, handle: Any, *inputs: Any) -> ProgramFault:
    with pytest.raises(ProgramFault) as caught:
        run(body, handle, list(inputs), 4)
    return caught.value


TEX_1D = f"tex.1d.v4.f32.f32 {vector('o', 0, 4)}, [%t, {{%i0}}];"


def test_handles_that_are_none() -> None:
    x = np.zeros(1, np.float32)
    array = gpu().array(FOUR)
    for handle, why in (
        (0, "a null pointer"),
        (array, "into `array"),
        (gpu().surface(FOUR), "it is a surface"),
    ):
        found = fault(TEX_1D, handle, x)
        assert found.kind == "invalid texture"
        if CODE == "sass":  # instructions take the lower half of a handle, which is not in these
            continue
        assert why in str(found)
        assert found.address == (handle if isinstance(handle, int) else found.address) is not None
    texture = gpu().texture(FOUR)
    texture.free()
    assert "is no texture" in str(fault(TEX_1D, texture, x))
    assert fault("suld.b.1d.b32.trap {%o0}, [%t, {%i0}];", gpu().texture(FOUR), x).kind == "invalid surface"


def test_memory_that_is_freed_under_a_texture() -> None:
    array = gpu().array(FOUR)
    texture = gpu().texture(array)
    array.free()
    found = fault(TEX_1D, texture, np.zeros(1, np.float32))
    assert found.kind == "illegal address" and "access of 16 bytes" in str(found)


@ptx_only("simt does not compare geometries in machine code")
def test_the_wrong_geometry() -> None:
    body = f"tex.2d.v4.f32.f32 {vector('o', 0, 4)}, [%t, {{%i0, %i0}}];"
    found = fault(body, gpu().texture(FOUR), np.zeros(1, np.float32))
    assert "the texture is .1d, the instruction reads one of .2d" in str(found)


def test_misaligned_surface_accesses() -> None:
    body = "suld.b.1d.b32.clamp {%o0}, [%t, {%i0}];"
    assert fault(body, gpu().surface(FOUR), np.array([2], np.int32)).kind == "misaligned address"


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        (f"tex.2dms.v4.f32.s32 {vector('o', 0, 4)}, [%t, {{%i0, %i1, %i2, %i3}}];", "multi-sample"),
        (f"tex.2d.v4.f32.f32 {vector('o', 0, 4)}, [%t, {{%i0, %i1}}], %i2;", "depth comparison"),
        (f"tld4.r.2d.v4.f32.f32 {vector('o', 0, 4)}, [%t, {{%i0, %i1}}], %i2;", "depth comparison"),
        (
            f"tex.grad.cube.v4.f32.f32 {vector('o', 0, 4)}, [%t, {vector('i', 0, 4)}], {vector('i', 0, 4)}, "
            f"{vector('i', 0, 4)};",
            "derivatives of directions",
        ),
        ("suq.filter_mode.b32 %o0, [%t];", "this property"),
        ("sured.b.2d.add.f32.trap [%t, {%i0, %i1}], %i2;", "this operation on this type"),
    ],
)
def test_what_is_refused(instruction: str, why: str) -> None:
    if CODE == "sass":  # by ptxas, or because of an opcode or a modifier of its code
        with pytest.raises((SassError, CompileError)):
            kernel(instruction, 1, 1)
        return
    with pytest.raises(PtxError, match=why):
        kernel(instruction, 1, 1)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    damage=st.lists(st.tuples(st.integers(8, 4000), st.integers(0, 255)), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
def test_damaged_descriptors(damage: list[tuple[int, int]], seed: int) -> None:
    """Whatever a program does to the memory behind a handle, the result is a fault or some value."""
    levels = [np.zeros((4 >> k, 8 >> k), np.float32) for k in range(3)]
    filter = "linear" if seed % 2 else "point"
    texture = gpu().texture(levels, normalized=True, filter=filter, level_filter="linear", address="border")
    surface = gpu().surface(np.zeros((4, 8), np.float32))
    for handle in (texture, surface):
        raw = bytearray(handle.descriptor)
        for at, value in damage:
            raw[at % len(raw)] = value
        gpu().memory.write(handle.handle, bytes(raw))
    x = np.random.default_rng(seed).uniform(-2, 3, 64).astype(np.float32)
    for body, handle, inputs in (
        (f"tex.level.2d.v4.f32.f32 {vector('o', 0, 4)}, [%t, {{%i0, %i1}}], %i2;", texture, [x, x, x]),
        (f"tld4.g.2d.v4.f32.f32 {vector('o', 0, 4)}, [%t, {{%i0, %i1}}];", texture, [x, x]),
        ("sust.p.2d.v4.b32.zero [%t, {%i0, %i1}], {%i0, %i0, %i0, %i0};", surface, [x.astype(np.int32)] * 2),
    ):
        try:
            run(body, handle, inputs)
        except ProgramFault as found:
            assert found.kind in (
                "invalid texture",
                "invalid surface",
                "illegal address",
                "misaligned address",
            )
