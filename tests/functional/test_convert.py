"""cvt between all types, against exact rationals and Python integers."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from simt.errors import PtxError
from support import floats
from support.floats import BF16, E4M3, E5M2, F16, F32, F64, MODES, Format, assert_same, codes, expect
from support.ptx import CODE, per_lane

# NumPy warns of signalling NaNs.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
FORMATS = {f.name: f for f in (F16, BF16, F32, F64)}
INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def width(type_: str) -> int:
    return int(type_[1:])


def bounds(type_: str) -> tuple[int, int]:
    bits = width(type_)
    return (0, 2**bits - 1) if type_[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def value_of(code: int, type_: str) -> int:
    """The number represented by the low bits of a register."""
    code &= 2 ** width(type_) - 1
    return code - 2 ** width(type_) if type_[0] == "s" and code >> (width(type_) - 1) else code


def integer_codes(bits: int, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    result = rng.integers(0, 2**64, count, np.uint64) >> rng.integers(0, 64, count, np.uint64)
    result[rng.random(count) < 0.3] ^= np.uint64(2**64 - 1)
    near = [2**k + d for k in (0, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63) for d in (-1, 0, 1)]
    around = np.array([x % 2**64 for y in near for x in (y, -y)], np.uint64)
    result[: len(around)] = around
    return (result & np.uint64(2**bits - 1)).astype(register(bits))


def register(bits: int) -> np.dtype:
    return np.dtype(f"u{max(bits, 16) // 8}")


def convert(mnemonic: str, source: np.ndarray, output: np.dtype | type) -> np.ndarray:
    return per_lane(f"{mnemonic} %o, %i0;", source, output=output)


@pytest.mark.parametrize("sat", ["", ".sat"])
@pytest.mark.parametrize("target", INTEGERS)
def test_integers_to_integers(target: str, sat: str) -> None:
    least, most = bounds(target)
    for source in INTEGERS:
        if CODE == "sass" and sat and least <= bounds(source)[0] and bounds(source)[1] <= most:
            continue  # ptxas refuses .sat where nothing saturates
        # Registers may be wider than the type: the source's low bits are used, and the result is extended.
        wider = {max(16, width(source)), 64}
        results = {max(16, width(target)), 32 if width(target) < 32 else 64}
        for source_bits, result_bits in itertools.product(wider, results):
            a = integer_codes(source_bits, 128, width(source))
            numbers = [value_of(int(c), source) for c in a]
            if sat:
                numbers = [min(max(n, least), most) for n in numbers]
            numbers = [value_of(n, target) for n in numbers]
            wanted = np.array([n % 2**result_bits for n in numbers], register(result_bits))
            found = convert(f"cvt{sat}.{target}.{source}", a, register(result_bits))
            assert_same(found, wanted, a)


def refused_by_ptxas(real: str, integer: str) -> bool:
    """Conversions between bf16 and bytes."""
    return CODE == "sass" and real == "bf16" and width(integer) == 8


def integral_reference(v: np.ndarray, how: str, target: str, source: Format) -> np.ndarray:
    least, most = bounds(target)
    with np.errstate(invalid="ignore"):
        r = INTEGRAL[how](v)
        inside = (r >= float(least)) & (r < float(most + 1))
        whole = np.where(inside, r, 0).astype(np.int64 if least else np.uint64)
        out = np.array(whole, dtype=object)
        out[r >= float(most + 1)] = most
        out[r < float(least)] = least
    # NVIDIA's headers: 0, or the highest bit if either side has 64 bits.
    out[np.isnan(v)] = 2 ** (width(target) - 1) if 64 in (width(target), source.bits) else 0
    bits = max(16, width(target))
    numbers = [value_of(int(n), target) % 2**bits for n in out]
    return np.array(numbers, register(bits))


def decoded(f: Format, a: np.ndarray) -> np.ndarray:
    if f is F64:
        return a.view(np.float64)
    if f is F32:
        return a.view(np.float32).astype(np.float64)
    if f is F16:
        return a.view(np.float16).astype(np.float64)
    return (a.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def float_codes_for_integers(f: Format) -> np.ndarray:
    rng = np.random.default_rng(f.bits)
    exponents = rng.uniform(-2, 66, 1500)
    v = np.exp2(exponents) * rng.choice([-1.0, 1.0], 1500)
    v[:300] = rng.integers(-600, 600, 300) / 2
    for k, b in enumerate((7, 8, 15, 16, 31, 32, 63, 64)):
        v[300 + 6 * k : 306 + 6 * k] = [
            2.0**b,
            -(2.0**b),
            2.0**b - 1,
            -(2.0**b) - 1,
            2.0**b - 0.5,
            0.5 - 2.0**b,
        ]
    made = np.array([f.encode(float(x)) for x in v], f.dtype)
    return np.concatenate([made, codes(f, 512, 3)])


@pytest.mark.slow
@pytest.mark.parametrize("how", INTEGRAL)
@pytest.mark.parametrize("source", FORMATS)
def test_floats_to_integers(source: str, how: str) -> None:
    f = FORMATS[source]
    a = np.arange(65536, dtype=np.uint16) if f.bits == 16 else float_codes_for_integers(f)
    for target in INTEGERS:
        if refused_by_ptxas(source, target):
            continue
        wanted = integral_reference(decoded(f, a), how, target, f)
        assert_same(convert(f"cvt.{how}.{target}.{source}", a, wanted.dtype), wanted, a)


def test_floats_to_integers_flush_first() -> None:
    a = np.array([0x00000001, 0x807FFFFF, 0x00800000], np.uint32)
    assert convert("cvt.rpi.s32.f32", a, np.int32).tolist() == [1, 0, 1]
    assert convert("cvt.rpi.ftz.s32.f32", a, np.int32).tolist() == [0, 0, 1]
    assert convert("cvt.rmi.ftz.s64.f32", a, np.int64).tolist() == [0, 0, 0]


def test_floats_to_integers_in_wider_registers() -> None:
    a = np.array([-1.5, 200.0, -300.0, 3e9], np.float32)
    assert convert("cvt.rzi.s8.f32", a, np.int64).tolist() == [-1, 127, -128, 127]
    assert convert("cvt.rzi.s8.f32", a, np.int32).tolist() == [-1, 127, -128, 127]
    assert convert("cvt.rzi.u8.f32", a, np.int64).tolist() == [0, 200, 0, 255]
    assert convert("cvt.rzi.s32.f32", a, np.int64).tolist() == [-1, 200, -300, 2**31 - 1]
    assert convert("cvt.rzi.u32.f32", a, np.int64).tolist() == [0, 200, 0, 3000000000]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", FORMATS)
def test_integers_to_floats(target: str, mode: str) -> None:
    f = FORMATS[target]
    for source in INTEGERS:
        if refused_by_ptxas(target, source):
            continue
        a = integer_codes(max(16, width(source)), 400, 1)
        wanted = np.array([f.encode(Fraction(value_of(int(c), source)), mode) for c in a], f.dtype)
        assert_same(convert(f"cvt.{mode}.{target}.{source}", a, f.dtype), wanted, a)


def test_integers_to_floats_saturate() -> None:
    a = np.array([-5, 0, 1, 2], np.int32)
    assert convert("cvt.rn.sat.f32.s32", a, np.float32).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert convert("cvt.rz.sat.f64.s32", a, np.float64).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert convert("cvt.rn.sat.f16.s32", a, np.float16).tolist() == [0.0, 0.0, 1.0, 1.0]


NARROWING = [("f32", "f64"), ("f16", "f64"), ("bf16", "f64"), ("f16", "f32"), ("bf16", "f32")]
NARROWING += [("f16", "bf16"), ("bf16", "f16")]


def near(source: Format, target: Format) -> np.ndarray:
    """Source codes at, and just next to, the target's numbers and the midpoints between them."""
    rng = np.random.default_rng(1)
    cut = source.mantissa_bits - target.mantissa_bits
    some = [target.decode(int(c)) for c in codes(target, 256, 7)]
    made = np.array([source.encode(x) for x in some if math.isfinite(x)], np.uint64)
    if cut > 0:
        made = made + (np.uint64(1) << np.uint64(cut - 1)) * rng.integers(0, 4, len(made), np.uint64)
    made = made + rng.integers(0, 3, len(made), np.uint64) - np.uint64(1)
    return (made & np.uint64(2**source.bits - 1)).astype(source.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("target", "source"), NARROWING)
def test_floats_to_narrower_floats(target: str, source: str, mode: str) -> None:
    f, g = FORMATS[target], FORMATS[source]
    a = np.concatenate([codes(g, 1024, 2), near(g, f)])
    # All exponents that the target can hold, and those beyond.
    v = np.exp2(np.random.default_rng(5).uniform(-160, 130, 600)) * np.tile([1.0, -1.0], 300)
    a = np.concatenate([a, np.array([g.encode(float(x)) for x in v], g.dtype)])
    wanted = np.array([f.encode(g.decode(int(c)), mode) for c in a], f.dtype)
    if f is F32:  # a NaN keeps its sign and the upper bits of its payload
        nan = np.isnan(decoded(g, a))
        payload = (a[nan] >> np.uint64(29)).astype(np.uint32) & np.uint32(0x3FFFFF)
        wanted[nan] = (
            payload | np.uint32(0x7FC00000) | (a[nan] >> np.uint64(63)).astype(np.uint32) << np.uint32(31)
        )
    assert_same(convert(f"cvt.{mode}.{target}.{source}", a, f.dtype), wanted, a)


@pytest.mark.parametrize("target", ["f32", "f64"])
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_half_precision_widens_exactly(target: str, source: str) -> None:
    f, g = FORMATS[target], FORMATS[source]
    a = np.arange(65536, dtype=np.uint16)
    v = decoded(g, a)
    wanted = (v.astype(np.float32) if target == "f32" else v).view(f.dtype)
    found = convert(f"cvt.{target}.{source}", a, f.dtype)
    number = ~np.isnan(v)
    assert_same(found[number], wanted[number], a[number])
    if target == "f32":
        nan = a[~number].astype(np.uint32) << np.uint32(16) if source == "bf16" else np.uint32(f.nan)
        assert (found[~number] == nan).all()
    else:
        assert np.isnan(decoded(f, found[~number])).all()


def test_f32_widens_exactly_and_flushes() -> None:
    a = codes(F32, 1024, 4)
    v = a.view(np.float32)
    number = ~np.isnan(v)
    found = convert("cvt.f64.f32", a, np.float64)
    assert (found[number] == v[number].astype(np.float64)).all()
    assert (np.signbit(found[number]) == np.signbit(v[number])).all()
    assert np.isnan(found[~number]).all()
    small = np.array([0x00000001, 0x807FFFFF, 0x00800000], np.uint32)
    found = convert("cvt.ftz.f64.f32", small, np.float64)
    assert found.tolist() == [0.0, 0.0, 2.0**-126]
    assert np.signbit(found).tolist() == [False, True, False]
    doubles = np.array([2.0**-127, -(2.0**-130), 2.0**-126])
    assert convert("cvt.rn.ftz.f32.f64", doubles, np.uint32).tolist() == [0, 0x80000000, 0x00800000]
    assert convert("cvt.rz.ftz.f32.f64", doubles, np.uint32).tolist() == [0, 0x80000000, 0x00800000]


@pytest.mark.slow
@pytest.mark.parametrize("how", INTEGRAL)
@pytest.mark.parametrize("type_", FORMATS)
def test_floats_to_integral_floats(type_: str, how: str) -> None:
    f = FORMATS[type_]
    a = np.arange(65536, dtype=np.uint16) if f.bits == 16 else float_codes_for_integers(f)
    v = INTEGRAL[how](decoded(f, a))
    wanted = np.array([f.encode(float(x)) for x in v], f.dtype)
    if f is F64:
        wanted = floats.first_nan(wanted, [a])
    assert_same(convert(f"cvt.{how}.{type_}.{type_}", a, f.dtype), wanted, a)


def test_f32_to_f32() -> None:
    a = np.concatenate([np.array(floats.edges(F32), np.uint32), codes(F32, 512, 6)])
    v = a.view(np.float32)
    sat = np.where(v > 0, np.minimum(v, np.float32(1)), np.float32(0)).view(np.uint32)
    assert_same(convert("cvt.sat.f32.f32", a, np.uint32), sat, a)
    flushed = expect(F32, F32.flushing().encode, [a], ftz=True)
    assert_same(convert("cvt.ftz.f32.f32", a, np.uint32), flushed, a)
    both = np.where((a & 0x7F800000) == 0, 0, sat).astype(np.uint32)
    assert_same(convert("cvt.ftz.sat.f32.f32", a, np.uint32), both, a)
    rounded = np.clip(np.nan_to_num(np.rint(v), nan=0.0, posinf=1, neginf=0), 0, 1) + np.float32(0)
    assert_same(convert("cvt.rni.sat.f32.f32", a, np.uint32), rounded.astype(np.float32).view(np.uint32), a)


@pytest.mark.parametrize("modifiers", ["", ".relu", ".satfinite", ".relu.satfinite"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("f", [F16, BF16], ids=lambda f: f.name)
def test_f32_to_half_and_pairs(f: Format, mode: str, modifiers: str) -> None:
    a = np.concatenate([np.array(floats.edges(F32), np.uint32), codes(F32, 512, 8), near(F32, f)])

    def reference(x: float) -> int:
        x = 0.0 if ".relu" in modifiers and x <= 0 else x
        return f.encode(x, mode, saturate=".satfinite" in modifiers)

    wanted = np.array([reference(F32.decode(int(c))) for c in a], f.dtype)
    order = ".relu" * (".relu" in modifiers) + ".satfinite" * (".satfinite" in modifiers)
    assert_same(convert(f"cvt.{mode}{order}.{f.name}.f32", a, f.dtype), wanted, a)
    b = np.roll(a, 5)
    pair = per_lane(f"cvt.{mode}{order}.{f.name}x2.f32 %o, %i0, %i1;", a, b)
    assert_same(pair >> 16, wanted, a)
    assert_same(pair & 0xFFFF, np.roll(wanted, 5), b)


@pytest.mark.slow
@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("f", [E4M3, E5M2], ids=lambda f: f.name)
def test_f8(f: Format, relu: str) -> None:
    def reference(x: float) -> int:
        return f.encode(0.0 if relu and x <= 0 else x, "rn", saturate=True)

    a = np.concatenate([np.array(floats.edges(F32), np.uint32), codes(F32, 512, 8), near(F32, f)])
    wanted = np.array([reference(F32.decode(int(c))) for c in a], np.uint16)
    b = np.roll(a, 5)
    pair = per_lane(f"cvt.rn.satfinite{relu}.{f.name}x2.f32 %o, %i0, %i1;", a, b, output=np.uint16)
    assert_same(pair >> 8, wanted, a)
    assert_same(pair & 0xFF, np.roll(wanted, 5), b)
    # All f16.
    code = np.arange(65536, dtype=np.uint32)
    wanted = np.array([reference(F16.decode(int(c))) for c in code], np.uint16)
    pair = convert(f"cvt.rn.satfinite{relu}.{f.name}x2.f16x2", code | code[::-1] << 16, np.uint16)
    assert_same(pair & 0xFF, wanted, code)
    assert_same(pair >> 8, wanted[::-1], code)
    # And back: all pairs of two codes.
    code = np.arange(65536, dtype=np.uint16)
    half = np.array(
        [F16.encode(0.0 if relu and f.decode(c) <= 0 else f.decode(c)) for c in range(256)], np.uint32
    )
    found = convert(f"cvt.rn{relu}.f16x2.{f.name}x2", code, np.uint32)
    assert_same(found, half[code & 255] | half[code >> 8] << 16, code)


@pytest.mark.parametrize("modifiers", ["", ".relu", ".satfinite"])
@pytest.mark.parametrize("mode", ["rna", "rn", "rz"])
def test_tf32(mode: str, modifiers: str) -> None:
    if CODE == "sass" and modifiers == ".satfinite" and mode != "rna":
        pytest.skip("ptxas takes this for sm_100 and later")
    tf32 = Format("tf32", 8, 10, 0x3FFFF)
    a = np.concatenate([np.array(floats.edges(F32), np.uint32), codes(F32, 512, 8)])
    middle = codes(F32, 512, 9) & np.uint32(0xFFFFE000) | np.uint32(0x1000)
    a = np.concatenate([a, middle, middle + np.uint32(1), middle - np.uint32(1)])

    def reference(x: float) -> int:
        if math.isnan(x):  # away from zero: integer arithmetic, ignoring NaNs
            return -1 if mode == "rna" else F32.nan
        x = 0.0 if ".relu" in modifiers and x <= 0 else x
        return tf32.encode(x, mode, saturate=".satfinite" in modifiers) << 13

    if mode == "rna" and modifiers == ".relu":
        with pytest.raises(PtxError, match="relu"):
            convert(f"cvt.{mode}{modifiers}.tf32.f32", a, np.uint32)
        return
    results = [reference(F32.decode(int(c))) for c in a]
    lost = 0x2000 if ".satfinite" in modifiers else 0
    wanted = np.array([(int(c) & 0xFFFFE000) - lost if r < 0 else r for c, r in zip(a, results, strict=True)])
    assert_same(convert(f"cvt.{mode}{modifiers}.tf32.f32", a, np.uint32), wanted.astype(np.uint32), a)


def test_partly_executed_conversions_between_widths_keep_other_lanes() -> None:
    a = np.arange(64, dtype=np.uint32)
    found = per_lane(
        "setp.lt.u32 %p, %lane0, 20; mov.b64 %o, -1; @%p cvt.u64.u32 %o, %i0;",
        a,
        output=np.uint64,
        registers=".reg .pred %p;",
    )
    assert found.tolist() == [*range(20), *[2**64 - 1] * 44]


@functools.cache
def registers() -> str:
    return ".reg .b16 %h; .reg .b32 %r; .reg .b64 %d;"


@pytest.mark.parametrize(
    "instruction",
    [
        "cvt.rs.f16x2.f16x2 %r, %r, %r",
        "cvt.f16.f32 %h, %r",
        "cvt.s32.f32 %r, %r",
        "cvt.rn.s32.f32 %r, %r",
        "cvt.rni.f32.f64 %r, %d",
        "cvt.rn.s32.s16 %r, %h",
        "cvt.f32.s32 %r, %r",
        "cvt.rn.e4m3x2.f32 %h, %r, %r",
        "cvt.rna.f16.f32 %h, %r",
        "cvt.rn.satfinite.ue8m0x2.f32 %h, %r, %r",
        "cvt.rn.relu.f32.f64 %r, %d",
        "cvt.f64.f32 %r, %r",
    ],
)
def test_what_does_not_exist_is_refused_by_name(instruction: str) -> None:
    with pytest.raises(PtxError, match=instruction.split()[0]):
        per_lane(f"{instruction};", registers=registers())


@pytest.mark.parametrize("target", ["75", "90a"])
@pytest.mark.parametrize("code", ["ptx", "sass"])
@pytest.mark.parametrize("narrow", ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
def test_pack(narrow: str, code: str, target: str) -> None:
    """Two integers are clamped, the first above the second, and the third's lower bits above both."""
    bits, (least, most) = width(narrow), bounds(narrow)
    a, b, c = (integer_codes(32, 300, seed) for seed in (1, 2, 3))
    a[-3:] = [least % 2**32, most, (most + 1) % 2**32]
    b[-3:] = [(least - 1) % 2**32, (most + 1), least % 2**32]
    wide = bits == 16
    form = f"cvt.pack.sat.{narrow}.s32" + ("" if wide else ".b32")
    given = (a, b) if wide else (a, b, c)
    operands = ", ".join(f"%i{i}" for i in range(len(given)))
    found = per_lane(f"{form} %o, {operands};", *given, output=np.uint32, target=target, code=code)

    def clamped(x: int) -> int:
        return min(max(value_of(int(x), "s32"), least), most) % 2**bits

    expected = [
        ((0 if wide else int(z) << 2 * bits) | clamped(x) << bits | clamped(y)) % 2**32
        for x, y, z in zip(a, b, c, strict=True)
    ]
    np.testing.assert_array_equal(found, np.array(expected, np.uint32))
