"""What PTX ISA 8.6 to 9.2 adds for Blackwell besides tensor memory, as PTX and as machine code.

Sums of two precisions, conversions of small numbers, stochastic rounding, parts of words, byte masks,
multimem, columns of pixels along W.
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


# --- fixed-point numbers ----------------------------------------------------------------------------------


def fixed(v: float, scale: int, relu: bool) -> int:
    """The code of v / 2^(scale - 127) in units of 1/64: nearest, of two the even one; NaN is the largest."""
    if np.isnan(v) or scale == 255:
        return 127
    if relu and v <= 0:
        return 0
    if np.isinf(v):
        return 127 if v > 0 else 0x80
    units = round(Fraction(float(v)) / Fraction(2) ** (scale - 127) * 64)
    return max(-128, min(127, units)) & 0xFF


def numbers_to_fix(type_: Any) -> tuple[np.ndarray, np.ndarray]:
    """All codes, what lies half between them, the limits, and others, as the type has them; scale factors."""
    rng = np.random.default_rng(15)
    halves = np.arange(-260, 260) / 128
    special = [0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 3.38e38, -3.38e38, 1e-40, -1e-40, 2.0**-133, -2.0]
    special += [1.984375, 1.9921875, 1.9765625, -1.984375, -1.9921875, -2.0078125, -2.015625, 0.0078125]
    rest = rng.standard_normal(1000) * 2.0 ** rng.integers(-12, 12, 1000)
    unscaled = np.concatenate([halves, special, rest]).astype(type_)
    few = np.array([0, 1, 60, 120, 126, 127, 128, 134, 190, 254, 255])
    scales = np.concatenate([np.full(len(unscaled), 127), rng.choice(few, 2 * len(unscaled))])
    near = rng.random(len(scales)) < 0.7  # of these the result is in range
    values = np.tile(unscaled.astype(np.float64), 3)
    values[near] = np.ldexp(values[near], scales[near] - 127)
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(type_), scales


@pytest.mark.parametrize("target", ["100a", "121a"])
@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("source", ["f32", "bf16x2"])
def test_fixed_point_numbers(source: str, scaled: bool, relu: str, target: str, code: str) -> None:
    """Down to -2 and up to 127/64. That -2, not -127/64, is what saturates below, PTX does not say."""
    values, scales = numbers_to_fix(np.float32 if source == "f32" else BF16)
    values, scales = values.reshape(-1, 2), scales.reshape(-1, 2)
    factors = (scales[:, 0] | scales[:, 1] << 8).astype(np.uint16)
    name, operand = (".scaled::n2::ue8m0", ", %i0") if scaled else ("", "")
    body = f"cvt.rn.satfinite{relu}{name}.s2f6x2.{source} %e, "
    if source == "f32":
        inputs = [np.ascontiguousarray(values[:, k]).view(np.uint32) for k in (1, 0)]
        body += "%i1, %i2"
    else:
        inputs = [np.ascontiguousarray(values).view(np.uint32)[:, 0]]
        body += "%i1"
    body += f"{operand}; cvt.u32.u16 %o, %e;"
    found = newest(body, factors, *inputs, code=code, registers=".reg .b16 %e;", target=target)
    for k, word in enumerate(found):
        low, high = (
            fixed(float(values[k, part]), int(scales[k, part]) if scaled else 127, bool(relu))
            for part in (0, 1)
        )
        assert int(word) == high << 8 | low, (k, values[k], scales[k])


@pytest.mark.parametrize("target", ["100a", "121a"])
@pytest.mark.parametrize("form", ["", ".relu", ".satfinite", ".satfinite.relu"])
@pytest.mark.parametrize("scaled", [False, True])
def test_fixed_point_numbers_as_bf16(scaled: bool, form: str, target: str, code: str) -> None:
    """Every code, and scale factors. All are exact, but -2 times 2^127."""
    codes = np.tile(np.arange(256), 8).reshape(-1, 2)
    scales = np.repeat([127, 0, 1, 100, 126, 128, 254, 255], 256).reshape(-1, 2)
    scales[::3, 0] = 130
    pairs = (codes[:, 0] | codes[:, 1] << 8).astype(np.uint16)
    factors = (scales[:, 0] | scales[:, 1] << 8).astype(np.uint16)
    name, operand = (".scaled::n2::ue8m0", ", %i1") if scaled else ("", "")
    body = f"cvt.rn{form}{name}.bf16x2.s2f6x2 %o, %i0{operand};"
    found = newest(body, pairs, factors, code=code, target=target)
    for k, word in enumerate(found):
        for part in (0, 1):
            half = int(word) >> 16 * part & 0xFFFF
            scale = int(scales[k, part]) if scaled else 127
            if scale == 255:
                assert half == 0x7FFF
                continue
            value = Fraction(int(np.int8(codes[k, part].astype(np.uint8)))) / 64
            if "relu" in form:
                value = max(value, Fraction(0))
            value *= Fraction(2) ** (scale - 127)
            if value == -(Fraction(2) ** 128):
                assert half == (0xFF7F if "satfinite" in form else 0xFF80)
            else:
                assert Fraction(float(np.array(half, np.uint16).view(BF16))) == value, (k, part)
                assert value != 0 or half == 0


# --- stochastic rounding ----------------------------------------------------------------------------------

# Of formats with IEEE 754's exponents: mantissa, bias, the codes of the largest number, infinity and NaN.
HALVES = {"f16": (10, 15, 0x7BFF, 0x7C00, 0x7FFF), "bf16": (7, 127, 0x7F7F, 0x7F80, 0x7FFF)}
SMALL = {
    "e4m3": (3, 7, 0x7E, 0x7F, 0x7F),
    "e5m2": (2, 15, 0x7B, 0x7C, 0x7F),
    "e2m3": (3, 1, 0x1F, 0x1F, 0x1F),
    "e3m2": (2, 3, 0x1F, 0x1F, 0x1F),
    "e2m1": (1, 1, 0x07, 0x07, 0x07),
}


def stochastic(v: float, random: int, count: int, type_: str, relu: bool, finite: bool) -> int:
    """The code of v, rounded away from zero where the lost part and `count` random bits carry."""
    mantissa, bias, most, infinite, nan = (HALVES | SMALL)[type_]
    if np.isnan(v):
        return nan
    negative = bool(np.signbit(v))
    if relu and negative:
        return 0
    sign = ((HALVES | SMALL)[type_][3] | nan) + 1 if negative else 0
    if np.isinf(v):
        return sign | (most if finite else infinite)
    exponent = max(int(np.frexp(abs(v))[1]) - 1 if v else -999, 1 - bias)
    places = Fraction(float(abs(v))) / Fraction(2) ** (exponent - mantissa)
    kept = places.numerator // places.denominator
    lost = (places - kept) * 2**count
    kept += lost.numerator // lost.denominator + random >= 1 << count
    code = kept + ((exponent - 1 + bias) << mantissa)
    return sign | (code if code <= most else most if finite else infinite)


def numbers_to_round(type_: str, count: int) -> np.ndarray:
    """Of all magnitudes that the format has and some beyond; halves lost; the limits."""
    mantissa, bias, *_ = (HALVES | SMALL)[type_]
    rng = np.random.default_rng(7)
    widest = 120 if type_ == "bf16" else bias + 2
    v = (rng.uniform(1, 2, count) * 2.0 ** rng.integers(-bias - mantissa - 3, widest, count)).astype(
        np.float32
    )
    v *= rng.choice(np.array([-1, 1], np.float32), count)
    few = rng.random(count) < 0.2  # these lose their upper bits only
    v[few] = (v[few].view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    special = [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e-42,
        -1e-42,
        448,
        449,
        464,
        65504,
        65519,
        65520,
        65535.9,
        6,
        7.5,
    ]
    special += [65536, 1e30, -1e30, 3.4e38, -3.4e38, 28, 29, 57344, 61440, -61441, 2.0**-126, 2.0**-149]
    v[: len(special)] = special
    return v


@pytest.mark.parametrize("form", ["", ".relu", ".satfinite", ".relu.satfinite"])
@pytest.mark.parametrize("half", HALVES)
def test_stochastic_rounding_to_halves(half: str, form: str, code: str) -> None:
    """f16 takes 13 of the 16 random bits, bf16 all."""
    count = 13 if half == "f16" else 16
    v = numbers_to_round(half, 1200)
    upper, lower = v[::2].copy(), v[1::2].copy()
    random = np.random.default_rng(8).integers(0, 1 << 32, 600, dtype=np.uint32)
    random[:20:2], random[1:20:2] = 0, 0xFFFFFFFF
    inputs = upper.view(np.uint32), lower.view(np.uint32), random
    found = newest(f"cvt.rs{form}.{half}x2.f32 %o, %i0, %i1, %i2;", *inputs, code=code)
    mode = count, half, "relu" in form, "satfinite" in form
    for k, word in enumerate(found):
        bits = int(random[k]) >> 16 & (1 << count) - 1, int(random[k]) & (1 << count) - 1
        wanted = stochastic(upper[k], bits[0], *mode), stochastic(lower[k], bits[1], *mode)
        assert (int(word) >> 16, int(word) & 0xFFFF) == wanted, (k, upper[k], lower[k])


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("type_", SMALL)
def test_stochastic_rounding_to_small_numbers(type_: str, relu: str, code: str) -> None:
    """Two numbers share 16 random bits, of which the first takes them in reverse order."""
    bits = BITS[type_]
    v = numbers_to_round(type_, 2400).reshape(-1, 4)
    random = np.random.default_rng(9).integers(0, 1 << 32, len(v), dtype=np.uint32)
    random[:20:2], random[1:20:2] = 0, 0xFFFFFFFF
    body, register = f"cvt.rs{relu}.satfinite.{type_}x4.f32 %o, {{%i0, %i1, %i2, %i3}}, %i4;", ""
    if bits == 4:
        register = ".reg .b16 %e;"
        body = body.replace("%o", "%e") + "cvt.u32.u16 %o, %e;"
    inputs = [column.copy().view(np.uint32) for column in v.T]
    found = newest(body, *inputs, random, code=code, registers=register)
    width = 4 if bits == 4 else 8
    for k, word in enumerate(found):
        part = [int(random[k]) >> 8 * n & 0xFF for n in range(4)]
        shared = (part[3], part[1], part[2], part[0]) if bits == 4 else (part[3], part[2], part[1], part[0])
        wanted = 0
        for n, number in enumerate(v[k]):
            drawn = shared[n // 2 * 2] << 8 | shared[n // 2 * 2 + 1]
            if n % 2 == 0:
                drawn = int(f"{drawn:016b}"[::-1], 2)
            wanted = wanted << width | stochastic(number, drawn, 16, type_, bool(relu), True)
        assert int(word) == wanted, (k, v[k], hex(random[k]))


def test_stochastic_rounding_is_unbiased(code: str) -> None:
    """Of all random bits, the share of those that round away from zero is what a number loses."""
    value = np.float32(1.3)  # between 1.25 and 1.375, of which e4m3 has both
    random = np.arange(0, 1 << 16, 7, dtype=np.uint32) * np.uint32(0x10001)
    inputs = np.full(len(random), value).view(np.uint32), random
    found = newest("cvt.rs.satfinite.e4m3x4.f32 %o, {%i0, %i0, %i0, %i0}, %i1;", *inputs, code=code)
    for k in range(4):
        share = np.mean((found >> np.uint32(8 * k) & np.uint32(0xFF)) == nearest(1.375, "e4m3"))
        assert abs(share - (1.3 - 1.25) / 0.125) < 2e-4


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("cvt.rs.e4m3x4.f32 %o, {%i0, %i0, %i0, %i0}, %i0", "need .satfinite"),
        ("cvt.rs.satfinite.f16x2.f16x2 %o, %i0, %i0", "these types with stochastic rounding"),
        ("cvt.rn.f16x2.s2f6x2 %o, %i0", "these types"),
        ("cvt.rn.satfinite.s2f6x2.f16x2 %o, %i0", "these types"),
        ("cvt.rn.s2f6x2.f32 %o, %i0, %i0", "need .satfinite"),
        ("cvt.rz.satfinite.s2f6x2.f32 %o, %i0, %i0", "this rounding"),
        ("cvt.rn.satfinite.scaled::n2::ue8m0.e4m3x2.bf16x2 %o, %i0, %i0", "are for .bf16x2 and .s2f6x2"),
    ],
)
def test_conversions_that_are_refused(form: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        per_lane(form + ";", np.zeros(32, np.uint32), target="100a", code="ptx")


def test_bytes_of_pairs_are_merged(code: str) -> None:
    """ptxas makes one instruction after the other of this, each of which moves the bytes before up."""
    v = numbers_to_round("e2m1", 2400).reshape(-1, 8)
    inputs = [column.copy().view(np.uint32) for column in v.T]
    pairs = "".join(f"cvt.rn.satfinite.e2m1x2.f32 %e{k}, %i{2 * k + 1}, %i{2 * k};" for k in range(4))
    body = pairs + "mov.b32 %o, {%e0, %e1, %e2, %e3};"
    found = newest(body, *inputs, code=code, registers=".reg .b8 %e<4>;")
    for k, word in enumerate(found):
        assert [int(word) >> 4 * n & 15 for n in range(8)] == [nearest(x, "e2m1") for x in v[k]]


# --- parts of words ---------------------------------------------------------------------------------------

PARTS = {"u8x4": np.uint8, "s8x4": np.int8, "u16x2": np.uint16, "s16x2": np.int16, "u32": np.uint32}


def of_parts(form: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of numbers in a wider type; sums wrap without .sat."""
    operation, *modifiers, type_ = form.split(".")
    kind: Any = PARTS[type_]
    a, b = x.view(kind).astype(np.int64), y.view(kind).astype(np.int64)
    wide = {"add": a + b, "sub": a - b, "min": np.minimum(a, b), "max": np.maximum(a, b), "neg": -a}[
        operation
    ]
    if "sat" in modifiers:
        wide = np.clip(wide, np.iinfo(kind).min, np.iinfo(kind).max)
    if "relu" in modifiers:
        wide = np.maximum(wide, 0)
    return wide.astype(kind).view(np.uint32)


@pytest.mark.parametrize(
    "form",
    [
        *(f"{o}{s}.{t}8x4" for o in ("add", "sub") for s in ("", ".sat") for t in "us"),
        *(f"{o}.{t}8x4" for o in ("min", "max") for t in "us"),
        "min.relu.s8x4",
        "max.relu.s8x4",
        "neg.s8x4",
        "add.sat.u16x2",
        "add.sat.s16x2",
        "add.sat.u32",
    ],
)
def test_parts_of_words(form: str, code: str) -> None:
    rng = np.random.default_rng(12)
    limits = np.array([0, 0x7F, 0x80, 0xFF, 0x01, 0x81], np.uint8)
    x, y = (
        np.concatenate([rng.choice(limits, 400), rng.integers(0, 256, 400).astype(np.uint8)]).view(np.uint32)
        for _ in range(2)
    )
    operands = "%i0" if form.startswith("neg") else "%i0, %i1"
    found = newest(f"{form} %o, {operands};", x, y, code=code, target="120a")
    np.testing.assert_array_equal(found, of_parts(form, x, y))


# --- memory -----------------------------------------------------------------------------------------------

MASKED = """
.visible .entry k(.param .b64 data, .param .b64 out, .param .b32 mask, .param .b32 bytes)
{{
  .shared .align 16 .b8 room[256];
  .reg .b64 %d, %o, %policy; .reg .b32 %i, %r, %s, %m, %n; .reg .b16 %h; .reg .pred %p;
  ld.param.b64 %d, [data]; ld.param.b64 %o, [out]; ld.param.b32 %m, [mask]; ld.param.b32 %n, [bytes];
  cvt.u16.u32 %h, %m; mov.u32 %i, %tid.x; mov.u32 %r, room;
  mad.wide.u32 %d, %i, 8, %d; mad.lo.u32 %s, %i, 8, %r;
  {{ .reg .b64 %v; ld.global.b64 %v, [%d]; st.shared.b64 [%s], %v; }}
  fence.proxy.async; bar.sync 0; setp.ne.u32 %p, %i, 0; @%p ret;
  createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;
  cp.async.bulk.global.shared::cta.bulk_group{hint}.cp_mask [%o], [%r], %n{policy}, %h;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;
}}
"""


@pytest.mark.parametrize("hint", [False, True])
@pytest.mark.parametrize("mask", [0, 0xFFFF, 0x0001, 0x8000, 0xA5C3])
def test_bulk_stores_of_some_bytes(mask: int, hint: bool, code: str) -> None:
    """Bit i is of byte i of each 16."""
    data = np.random.default_rng(13).integers(0, 256, 256).astype(np.uint8)
    out = np.full(256, 0xEE, np.uint8)
    text = MASKED.format(hint=".L2::cache_hint" if hint else "", policy=", %policy" if hint else "")
    Device(text, target="100a", code=code).run("k", data, out, mask, 208)
    taken = (mask >> (np.arange(256) % 16) & 1).astype(bool) & (np.arange(256) < 208)
    np.testing.assert_array_equal(out, np.where(taken, data, 0xEE))


@pytest.mark.parametrize(("left", "right"), [(0, 0), (5, 0), (3, 15)])
def test_bulk_loads_without_their_ends(left: int, right: int) -> None:
    """The bytes that are ignored need not lie in memory. In machine code, they are copied."""
    data = np.random.default_rng(13).integers(1, 256, 96 - right).astype(np.uint8)
    out = np.zeros(96, np.uint8)
    text = """
    .visible .entry k(.param .b64 data, .param .b64 out, .param .b32 left, .param .b32 right)
    {
      .shared .align 16 .b8 room[96]; .shared .align 8 .b64 bar;
      .reg .b64 %d, %o, %v; .reg .b32 %i, %r, %b, %l, %n; .reg .pred %p;
      ld.param.b64 %d, [data]; ld.param.b64 %o, [out]; ld.param.b32 %l, [left]; ld.param.b32 %n, [right];
      mov.u32 %i, %tid.x; mov.u32 %r, room; mov.u32 %b, bar; mad.lo.u32 %r, %i, 8, %r; setp.ge.u32 %p, %i, 12;
      @%p ret; st.shared.b64 [%r], 0; mad.wide.u32 %o, %i, 8, %o; setp.ne.u32 %p, %i, 0; @%p bra COPIED;
      mbarrier.init.shared::cta.b64 [%b], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 96;
      fence.proxy.async;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r], [%d], 96, %l, %n, [%b];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;
    COPIED:
      bar.warp.sync 0xfff; ld.shared.b64 %v, [%r]; st.global.b64 [%o], %v; ret;
    }
    """
    Device(text, target="100a", code="ptx").run("k", data, out, left, right)
    np.testing.assert_array_equal(out[left : 96 - right], data[left:])
    assert not out[:left].any() and not out[96 - right :].any()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("add.acc::f16.e4m3x4", 1),
        ("add.acc::f16.e5m2x4", 1),
        ("add.acc::f16.v4.e4m3x4", 4),
        ("min.s32", 1),
        ("add.v4.f32", 4),
        ("add.acc::f32.v4.bf16x2", 4),
        ("max.v2.f16x2", 2),
    ],
)
def test_loads_that_reduce_copies_of_one_gpu(form: str, words: int, code: str) -> None:
    """A multicast object of one GPU has one copy, which is what copies combine to."""
    data = np.random.default_rng(14).integers(0, 1 << 32, (32, words), dtype=np.uint32)
    out, names = np.zeros_like(data), [f"%w{k}" for k in range(words)]
    vector = f"{{{', '.join(names)}}}" if words > 1 else names[0]
    text = f"""
    .visible .entry k(.param .b64 data, .param .b64 out)
    {{
      .reg .b64 %d, %o; .reg .b32 %i, %w<4>; ld.param.b64 %d, [data]; ld.param.b64 %o, [out];
      mov.u32 %i, %tid.x; mad.wide.u32 %d, %i, {4 * words}, %d; mad.wide.u32 %o, %i, {4 * words}, %o;
      multimem.ld_reduce.relaxed.gpu.global.{form} {vector}, [%d];
      multimem.st.relaxed.gpu.global{f".v{words}" if words > 1 else ""}.f32 [%o], {vector}; ret;
    }}
    """
    Device(text, target="100a", code=code).run("k", data, out)
    np.testing.assert_array_equal(out, data)


def test_reductions_to_all_copies_of_one_gpu(code: str) -> None:
    data, sums = np.arange(32, dtype=np.uint32), np.array([7, 9], np.uint32)
    text = """
    .visible .entry k(.param .b64 data, .param .b64 sums)
    {
      .reg .b64 %d, %s; .reg .b32 %i, %v; ld.param.b64 %d, [data]; ld.param.b64 %s, [sums];
      mov.u32 %i, %tid.x; mad.wide.u32 %d, %i, 4, %d; ld.global.u32 %v, [%d];
      multimem.red.relaxed.gpu.global.add.u32 [%s], %v; multimem.red.relaxed.gpu.global.max.u32 [%s+4], %v;
      ret;
    }
    """
    Device(text, target="100a", code=code).run("k", data, sums)
    assert list(sums) == [7 + 31 * 16, 31]


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
