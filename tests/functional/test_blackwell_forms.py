"""What PTX ISA 8.6 to 9.2 adds for Blackwell besides tensor memory, as PTX and as machine code.

Sums of two precisions, conversions of small numbers, columns of pixels along W.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import test_tensor_maps as maps

from simt import _engine
from simt.cuda.ptxas import can_assemble
from simt.errors import CompileError, PtxError
from simt.sass.disassembler import is_installed
from support import tensor_memory as tm
from support.floats import F32
from support.ptx import Device, per_lane, per_lane_kernel, run_per_lane

BF16 = ml_dtypes.bfloat16


@pytest.fixture(params=["ptx", "sass"], autouse=True)
def code(request: pytest.FixtureRequest) -> str:
    """What the kernels of a test run."""
    if request.param == "sass" and not (can_assemble("sm_100") and is_installed()):
        pytest.skip("ptxas or nvdisasm is not installed: pip install 'simt[cuda]'")
    return str(request.param)


def newest(
    body: str, *inputs: np.ndarray, code: str, registers: str = "", target: str = "100a"
) -> np.ndarray:
    """As `per_lane`, in PTX 9.2, which not every ptxas reads."""
    out = np.zeros(len(inputs[0]), np.uint32)
    text = per_lane_kernel("k", body, *inputs, output=out, registers=registers)
    header = f".version 9.2\n.target sm_{target}\n.address_size 64\n"
    try:
        device = Device(header + text, target, code=code)
    except CompileError as error:
        if "Unsupported .version" in str(error):
            pytest.skip("no ptxas that reads PTX 9.2 is installed")
        raise
    run_per_lane(device, "k", out, *inputs)
    return out


# --- two precisions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize("operation", ["add", "sub", "fma"])
def test_sums_of_two_precisions(operation: str, half: str, rounding: str, code: str) -> None:
    """Halves are exact as f32; the sum is rounded once."""
    rng = np.random.default_rng(2)
    type_: Any = np.float16 if half == "f16" else BF16
    a, b = ((rng.standard_normal(400) * 2.0 ** rng.integers(-9, 9, 400)).astype(type_) for _ in range(2))
    c = (rng.standard_normal(400) * 2.0 ** rng.integers(-30, 12, 400)).astype(np.float32)
    factors = "%i0, %i1" if operation == "fma" else "%i0"
    body = f"{operation}.{rounding}.f32.{half} %o, {factors}, %i2;"
    inputs = a.view(np.uint16), b.view(np.uint16), c.view(np.uint32)
    found = per_lane(body, *inputs, target="100a", code=code)
    for k, word in enumerate(found):
        x, y, z = Fraction(float(a[k])), Fraction(float(b[k])), Fraction(float(c[k]))
        exact = x * y + z if operation == "fma" else x + z if operation == "add" else x - z
        assert word == F32.encode(exact, rounding), k


@pytest.mark.parametrize("form", ["add.sat.f32.f16 %o, %i0, %i1", "fma.rz.sat.f32.f16 %o, %i0, %i0, %i1"])
def test_saturated_sums_of_two_precisions(form: str, code: str) -> None:
    a = np.array([0.5, 2, -2, 0.25, np.nan], np.float16)
    c = np.array([0.25, 1, 0.5, -0.125, 1], np.float32)
    found = per_lane(form + ";", a.view(np.uint16), c.view(np.uint32), target="100a", code=code)
    wide = a.astype(np.float32)
    exact = np.nan_to_num((wide * wide if form.startswith("fma") else wide) + c)
    np.testing.assert_array_equal(found.view(np.float32), np.clip(exact, 0, 1))


# --- small numbers ----------------------------------------------------------------------------------------

BITS = {"e2m1": 4, "e2m3": 6, "e3m2": 6, "e4m3": 8, "e5m2": 8}


def nearest(v: float, type_: str) -> int:
    """The code of the nearest number, of two that are equally near the even one; beyond, the largest."""
    sign = 1 << (BITS[type_] - 1)
    values = [(tm.number(c, type_)[0], c) for c in range(sign)]
    finite = [(x, c) for x, c in values if np.isfinite(x)]
    if np.isnan(v):
        return finite[-1][1] if type_ in tm.SMALL else 0x7F
    closest = min(finite, key=lambda item: (abs(item[0] - min(abs(v), 1e6)), item[1] & 1))
    return closest[1] | (sign if np.signbit(v) else 0)


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("rounding", ["rn", "rz"])
def test_tf32_that_stays_finite(rounding: str, relu: str, code: str) -> None:
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 1 << 32, 500, dtype=np.uint32)
    middle = bits[:100] & np.uint32(0xFFFFE000) | np.uint32(0x1000)
    special = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF], np.uint32)
    bits = np.concatenate([special, middle, bits])
    bits = bits[~np.isnan(bits.view(np.float32))]
    found = newest(f"cvt.{rounding}.satfinite{relu}.tf32.f32 %o, %i0;", bits, code=code)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    if rounding == "rn":
        magnitude += np.uint32(0xFFF) + (magnitude >> np.uint32(13) & np.uint32(1))
    wanted = np.minimum(magnitude & np.uint32(0xFFFFE000), np.uint32(0x7F7FE000)) | bits & np.uint32(1 << 31)
    if relu:
        wanted[bits >> np.uint32(31) == 1] = 0
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize("type_", BITS)
def test_pairs_of_halves_become_small(type_: str, half: str, relu: str, code: str) -> None:
    rng = np.random.default_rng(3)
    kind: Any = np.float16 if half == "f16" else BF16
    values = (rng.standard_normal(600) * 2.0 ** rng.integers(-5, 9, 600)).astype(kind)
    values[:6] = [0, -0.0, np.inf, -np.inf, np.nan, 2.5]
    pairs = values.view(np.uint32)
    four = type_ == "e2m1"
    register = f".reg .b{8 if four else 16} %e;"
    body = f"cvt.rn.satfinite{relu}.{type_}x2.{half}x2 %e, %i0; cvt.u32.u{8 if four else 16} %o, %e;"
    found = newest(body, pairs, code=code, registers=register)
    shift = 4 if four else 8

    def expected(v: float) -> int:
        return 0 if relu and v <= 0 else nearest(v, type_)

    for k, (low, high) in enumerate(values.reshape(-1, 2).astype(np.float64)):
        assert found[k] == expected(high) << shift | expected(low), (k, low, high)


@pytest.mark.parametrize("target", ["100a", "120a"])
@pytest.mark.parametrize("form", ["", ".relu", ".satfinite", ".satfinite.relu"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("type_", BITS)
def test_small_numbers_with_scale_factors_as_bf16(
    type_: str, scaled: bool, form: str, target: str, code: str
) -> None:
    rng = np.random.default_rng(5)
    bits = BITS[type_]
    codes = rng.integers(0, 1 << bits, (300, 2))
    factors = rng.choice([0, 1, 100, 126, 127, 130, 250, 254, 255], (300, 2))
    shift = 4 if bits == 4 else 8
    pairs = (codes[:, 0] | codes[:, 1] << shift).astype(np.uint16)
    scales = (factors[:, 0] | factors[:, 1] << 8).astype(np.uint16)
    narrow, operand, register = "", "%i0", ""
    if bits == 4:
        narrow, operand, register = "cvt.u8.u16 %e, %i0;", "%e", ".reg .b8 %e;"
    name = ".scaled::n2::ue8m0" if scaled else ""
    body = f"{narrow} cvt.rn{form}{name}.bf16x2.{type_}x2 %o, {operand}{', %i1' if scaled else ''};"
    found = newest(body, pairs, scales, code=code, registers=register, target=target)
    most = float(np.array(0x7F7F, np.uint16).view(BF16))
    for k, word in enumerate(found):
        for part in range(2):
            value = np.float64(tm.number(int(codes[k, part]), type_)[0])
            if "relu" in form and value <= 0:
                value = np.float64(0)
            if scaled:
                factor = int(factors[k, part])
                value = value * 2.0 ** (factor - 127) if factor != 255 else np.float64(np.nan)
            half = int(word) >> 16 * part & 0xFFFF
            if np.isnan(value):
                assert half == 0x7FFF
                continue
            if "satfinite" in form:
                value = np.clip(value, -most, most)
            with np.errstate(over="ignore"):
                assert half == int(np.array(value.astype(np.float32).astype(BF16)).view(np.uint16)), (k, part)


@pytest.mark.parametrize("rounding", ["rz", "rp"])
def test_scale_factors_of_bf16(rounding: str, code: str) -> None:
    """What the form of two f32 gives."""
    values = np.array([1, 1.5, -2.5, 0, 2.0**-126, 2.0**-133, 3e38, np.inf, np.nan, 7], BF16)
    body = f".reg .b16 %e; cvt.{rounding}.ue8m0x2.bf16x2 %e, %i0; cvt.u32.u16 %o, %e;"
    found = newest(body, values.view(np.uint32), code=code)
    wide = values.astype(np.float32)
    body = f".reg .b16 %e; cvt.{rounding}.ue8m0x2.f32 %e, %i1, %i0; cvt.u32.u16 %o, %e;"
    inputs = np.ascontiguousarray(wide[::2]).view(np.uint32), np.ascontiguousarray(wide[1::2]).view(np.uint32)
    np.testing.assert_array_equal(found, newest(body, *inputs, code=code))
    assert found[0] == 127 | (127 + (rounding == "rp")) << 8


# --- columns of pixels along W ----------------------------------------------------------------------------


def along_w(
    array: np.ndarray, start: tuple[int, ...], offset: int, corners: tuple[int, int], step: int, count: int
) -> list[tuple[int, int]]:
    """(N, W) of pixels: along W within the bounding box, then in the next image."""
    low, high = corners[0] + offset, array.shape[-2] - 1 + corners[1] + offset
    n, w, places = start[0], start[-2] + offset, []
    for _ in range(count):
        places.append((n, w))
        w += step
        if w > high:
            n, w = n + 1, low
    return places


@pytest.mark.parametrize(
    ("shape", "start", "corners", "step", "halo", "offset"),
    [
        ((7, 9, 8), (0, 0, 0), (0, 0), 1, 0, 0),
        ((7, 9, 8), (1, -1, 0), (-1, -1), 1, 0, 2),
        ((6, 3, 9, 8), (1, 2, 5, 0), (0, 0), 1, 2, 0),
        ((6, 2, 3, 10, 8), (0, 1, 1, -1, 0), (-1, 0), 2, 0, 1),
    ],
)
@pytest.mark.parametrize("wide", [False, True])
def test_pixels_along_w(
    shape: Any, start: Any, corners: Any, step: int, halo: int, offset: int, wide: bool, code: str
) -> None:
    """im2col::w, and ::w::128, which has halos after every 32 pixels."""
    if wide:
        shape, halo = (60, *shape[1:-2], 8 * shape[-2], 8), min(halo, 1)
        start = (start[0], *start[1:-2], start[-2], 0)
    rank, pixels, group = len(shape), 128 if wide else 24, 32 if wide else 24
    total = pixels + pixels // group * halo
    array = np.random.default_rng(3).random(shape, np.float32)
    mode = "im2col::w::128" if wide else "im2col::w"
    text = maps.kernel(
        rank,
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
        f" [%s], [%m, {maps.vector(rank)}], [%b], {{%h0, %h1}};",
        total * 32,
        "mbarrier.init.shared::cta.b64 [%b], 1;"
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], {total * 32};",
        f"mov.b16 %h0, {halo}; mov.b16 %h1, {offset};",
    )
    device = Device(text, target="100a", code=code)
    address = device.upload(array)
    data = np.full(total * 32, 0xEE, np.uint8)
    steps = (1,) * (rank - 2) + (step, 1)
    more = {"corners": ([corners[0]], [corners[1]]), "along_w": True, "of_128": wide}
    map_ = maps.encode(address, array, (pixels, 8), element_strides=steps, **more)
    device.run("k", map_, data, *reversed(start))
    expected = []
    for k, (n, w) in enumerate(along_w(array, start, offset, corners, step, pixels)):
        extra = halo if (k + 1) % group == 0 else 0
        for x in range(w, w + (extra + 1) * step, step):
            inside = n < shape[0] and 0 <= x < shape[-2]
            at = (n, *start[1:-2], x)
            expected.append(array[at] if inside else np.zeros(8, np.float32))
    np.testing.assert_array_equal(data.view(np.float32).reshape(total, 8), np.array(expected))


@pytest.mark.parametrize(
    ("pixels", "halo", "more", "message"),
    [
        (9, 1, {"along_w": True}, "a halo of im2col::w beyond the bounding box"),
        (8, 600, {"along_w": True}, "a halo of 600 .* expected less than 512 and 32"),
        (
            8,
            0,
            {"along_w": True, "of_128": True},
            "encoded for im2col::w::128 mode, the instruction is of im2col::w",
        ),
        (8, 0, {}, "encoded for im2col mode, the instruction is of im2col::w mode"),
    ],
)
def test_faults(pixels: int, halo: int, more: dict[str, Any], message: str, code: str) -> None:
    array = np.zeros((4, 9, 8), np.float32)
    text = maps.kernel(
        3,
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes"
        " [%s], [%m, {%c0, %c1, %c2}], [%b], {%h0, %h1};",
        8192,
        "mbarrier.init.shared::cta.b64 [%b], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512;",
        f"mov.b16 %h0, {halo}; mov.b16 %h1, 0;",
    )
    device = Device(text, target="100a", code=code)
    map_ = maps.encode(device.upload(array), array, (pixels, 8), corners=([0], [0]), **more)
    with pytest.raises(_engine.functional.ProgramFault, match=message):
        device.run("k", map_, np.zeros(8192, np.uint8), 0, 0, 0)


def test_loads_with_reduction_are_not_of_sm_100() -> None:
    body = "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%o, %o}, %o, [%i0];"
    with pytest.raises(PtxError, match=r"sm_100 has no tcgen05\.ld\.red; sm_103 and sm_110 have"):
        per_lane(body, np.zeros(32, np.uint32), target="100a")
