"""Floating-point arithmetic against exact rationals, rounded once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest

from simt.errors import PtxError
from support import floats
from support.floats import BF16, F16, F32, F64, MODES, Format, assert_same, codes, expect
from support.ptx import CODE, per_lane, ptx_only

COUNT = 1024
OPERATIONS: dict[str, tuple[int, Callable[..., int]]] = {
    "add": (2, floats.add),
    "sub": (2, floats.sub),
    "mul": (2, floats.mul),
    "fma": (3, floats.fma),
    "div": (2, floats.div),
    "rcp": (1, floats.rcp),
    "sqrt": (1, floats.sqrt),
}


def operands(f: Format, count: int, seed: int = 1) -> list[np.ndarray]:
    return [codes(f, COUNT, seed + k) for k in range(count)]


def run(mnemonic: str, f: Format, inputs: list[np.ndarray]) -> np.ndarray:
    names = ", ".join(f"%i{k}" for k in range(len(inputs)))
    return per_lane(f"{mnemonic} %o, {names};", *inputs, output=f.dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", [F32, F64], ids=lambda f: f.name)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_results_are_rounded_once(operation: str, f: Format, mode: str) -> None:
    count, reference = OPERATIONS[operation]
    inputs = operands(f, count)
    wanted = expect(f, functools.partial(reference, f, mode), inputs)
    if f is F64:
        terms = list(inputs)
        if CODE == "sass" and operation == "sub":  # DADD a, -b: of a NaN b, the sign changes, too
            terms[1] = terms[1] ^ np.uint64(f.sign)
        wanted = floats.first_nan(wanted, terms)
    assert_same(run(f"{operation}.{mode}.{f.name}", f, inputs), wanted, *inputs)


@pytest.mark.parametrize("mode", ["rn", "rm"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_ftz_takes_and_gives_zeros_for_subnormal_numbers(operation: str, mode: str) -> None:
    count, reference = OPERATIONS[operation]
    inputs = operands(F32, count)
    # Products and quotients near the least normal number, which random numbers rarely reach.
    inputs[0][: COUNT // 4] = (inputs[0][: COUNT // 4] & 0x807FFFFF) | 0x20000000
    if count > 1 and operation != "div":
        inputs[1][: COUNT // 4] = (inputs[1][: COUNT // 4] & 0x807FFFFF) | 0x20000000
    wanted = expect(F32, functools.partial(reference, F32.flushing(), mode), inputs, ftz=True)
    assert_same(run(f"{operation}.{mode}.ftz.f32", F32, inputs), wanted, *inputs)


def test_what_is_tiny_is_decided_after_rounding_with_unbounded_exponents() -> None:
    """As when ptxas folds constants: (1 - 2^-24) 2^-126 is tiny; a longer number that rounds up is not."""
    a = np.array([0x00FFFFFF, 0x1F800002, 0x9F800002], np.uint32)
    b = np.array([0x3F000000, 0x207FFFFC, 0x207FFFFC], np.uint32)
    zero = np.zeros(3, np.uint32)
    for found in (run("mul.ftz.f32", F32, [a, b]), run("fma.rn.ftz.f32", F32, [a, b, zero])):
        assert found.tolist() == [0, 0x00800000, 0x80800000]
    assert run("mul.f32", F32, [a, b]).tolist() == [0x00800000, 0x00800000, 0x80800000]
    assert run("mul.rz.ftz.f32", F32, [a, b]).tolist() == [0, 0, 0x80000000]
    product = np.array([F32.decode(int(x)) * F32.decode(int(y)) for x, y in zip(a, b, strict=True)])
    found = per_lane("cvt.rn.ftz.f32.f64 %o, %i0;", product)
    assert found.tolist() == [0, 0x00800000, 0x80800000]


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_sat_clamps_to_0_and_1_and_gives_0_for_nan(operation: str) -> None:
    count, reference = OPERATIONS[operation]
    inputs = operands(F32, count)
    plain = expect(F32, functools.partial(reference, F32, "rn"), inputs).view(np.float32)
    wanted = np.where(plain > 0, np.minimum(plain, np.float32(1)), np.float32(0)).view(np.uint32)
    assert_same(run(f"{operation}.rn.sat.f32", F32, inputs), wanted, *inputs)


@ptx_only("machine code of sm_100 and later is not executed")
@pytest.mark.parametrize("ftz", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_each_f32_of_a_pair_is_rounded_once(operation: str, mode: str, ftz: bool) -> None:
    count, reference = OPERATIONS[operation]
    inputs = operands(F32, count)
    inputs[0][: COUNT // 4] = (inputs[0][: COUNT // 4] & 0x807FFFFF) | 0x20000000
    inputs[1][: COUNT // 4] = (inputs[1][: COUNT // 4] & 0x807FFFFF) | 0x20000000
    f = F32.flushing() if ftz else F32
    wanted = expect(F32, functools.partial(reference, f, mode), inputs, ftz=ftz).astype(np.uint64)
    pairs = [a.astype(np.uint64) | np.roll(a, 7).astype(np.uint64) << np.uint64(32) for a in inputs]
    names = ", ".join(f"%i{k}" for k in range(count))
    text = f"{operation}.{mode}{'.ftz' if ftz else ''}.f32x2 %o, {names};"
    found = per_lane(text, *pairs, output=np.uint64, target="100")
    assert_same(found, wanted | np.roll(wanted, 7) << np.uint64(32), *pairs)


@pytest.mark.parametrize("f", [F16, BF16], ids=lambda f: f.name)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_half_precision_is_rounded_once(operation: str, f: Format) -> None:
    count, reference = OPERATIONS[operation]
    inputs = operands(f, count)
    wanted = expect(f, functools.partial(reference, f, "rn"), inputs)
    found = run(f"{operation}.rn.{f.name}", f, inputs)
    assert_same(found, wanted, *inputs)
    # Packed: each half independently.
    pairs = [(a.astype(np.uint32) | np.roll(a, 7).astype(np.uint32) << 16) for a in inputs]
    packed = run(f"{operation}.rn.{f.name}x2", F32, pairs)
    assert_same(packed & 0xFFFF, wanted)
    assert_same(packed >> 16, np.roll(wanted, 7))


def test_half_fma_whose_double_rounding_would_differ() -> None:
    # 32784 is halfway between two numbers of f16; the smallest number decides. The sum needs more bits than
    # f32 has and, for bf16, more than f64 has.
    a, b = (np.array([F16.encode(x)] * 2, np.uint16) for x in (683.0, 48.0))
    assert F16.decode(int(a[0])) * F16.decode(int(b[0])) == 32784.0
    c = np.array([0x0001, 0x8001], np.uint16)
    assert run("fma.rn.f16", F16, [a, b, c]).tolist() == [F16.encode(32800.0), F16.encode(32768.0)]
    # (1 + 2^-7)(1 + 2^-1) = 1.5 + 2^-7 + 2^-8: between two numbers of bf16.
    a, b = (np.array([BF16.encode(x)] * 2, np.uint16) for x in (1 + 2**-7, 1.5))
    found = run("fma.rn.bf16", BF16, [a, b, c])
    assert found.tolist() == [BF16.encode(1.5 + 2**-6), BF16.encode(1.5 + 2**-7)]


def test_bf16_fma_of_ordinary_products() -> None:
    """Warps without very large or small products take a faster path."""
    rng = np.random.default_rng(4)
    a, b = (rng.integers(0x3000, 0x5000, COUNT, np.uint16) for _ in range(2))
    a[::17] = 0
    b |= rng.integers(0, 2, COUNT, np.uint16) << np.uint16(15)
    c = codes(BF16, COUNT, 6)
    # Products whose sum with c is nearly 0, or halfway between two numbers except for c.
    product = [BF16.encode(-BF16.decode(int(x)) * BF16.decode(int(y))) for x, y in zip(a, b, strict=True)]
    c[::3] = np.array(product, np.uint16)[::3]
    c[1::3] = np.array(product, np.uint16)[1::3] - np.uint16(9 << 7)
    wanted = expect(BF16, functools.partial(floats.fma, BF16, "rn"), [a, b, c])
    assert_same(run("fma.rn.bf16", BF16, [a, b, c]), wanted, a, b, c)


def test_half_clamps() -> None:
    inputs = operands(F16, 3)
    plain = expect(F16, functools.partial(floats.fma, F16, "rn"), inputs).view(np.float16)
    sat = np.where(plain > 0, np.minimum(plain, np.float16(1)), np.float16(0)).view(np.uint16)
    assert_same(run("fma.rn.sat.f16", F16, inputs), sat, *inputs)
    relu = np.where(np.isnan(plain), plain, np.where(plain > 0, plain, np.float16(0))).view(np.uint16)
    assert_same(run("fma.rn.relu.f16", F16, inputs), relu, *inputs)
    flushed = expect(F16, functools.partial(floats.fma, F16.flushing(), "rn"), inputs, ftz=True)
    assert_same(run("fma.rn.ftz.f16", F16, inputs), flushed, *inputs)
    inputs = operands(BF16, 3)
    codes_ = expect(BF16, functools.partial(floats.fma, BF16, "rn"), inputs)
    relu = np.where((codes_ & 0x8000 != 0), 0, codes_).astype(np.uint16)
    assert_same(run("fma.rn.relu.bf16", BF16, inputs), relu, *inputs)


@pytest.mark.parametrize("f", [F16, BF16], ids=lambda f: f.name)
def test_factors_from_outside_of_a_tensor_give_zero(f: Format) -> None:
    """Only 0x7fff as a factor does; other NaNs, and 0x7fff as the addend, do not."""
    inputs = operands(f, 3)
    for k, operand in enumerate(inputs):
        operand[k::5] = 0x7FFF
    inputs[0][3::5] = 0x7FFE
    outside = (inputs[0] == 0x7FFF) | (inputs[1] == 0x7FFF)
    for relu in ("", ".relu"):
        wanted = np.where(outside, 0, run(f"fma.rn{relu}.{f.name}", f, inputs))
        assert_same(run(f"fma.rn.oob{relu}.{f.name}", f, inputs), wanted.astype(np.uint16), *inputs)
        pairs = [operand.view(np.uint32) for operand in inputs]
        packed = per_lane(f"fma.rn.oob{relu}.{f.name}x2 %o, %i0, %i1, %i2;", *pairs)
        assert_same(packed.view(np.uint16), wanted.astype(np.uint16), *inputs)


def extreme(f: Format, greater: bool, nan: bool, xorsign: bool, a: float, b: float) -> int:
    sign = floats.negative(a) != floats.negative(b)
    if xorsign:
        a, b = abs(a), abs(b)
    if math.isnan(a) or math.isnan(b):
        if nan or (math.isnan(a) and math.isnan(b)):
            return f.nan
        result = b if math.isnan(a) else a
    else:
        ordered = sorted((a, b), key=lambda x: (x, not floats.negative(x)))
        result = ordered[1] if greater else ordered[0]
    if xorsign:
        result = -abs(result) if sign else abs(result)
    return f.encode(result)


EXTREMES = [
    (f, m) for f in (F16, F32) for m in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz", ".ftz.NaN")
]
EXTREMES += [(BF16, m) for m in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs")] + [(F64, "")]


@pytest.mark.parametrize(("f", "modifiers"), EXTREMES, ids=lambda x: x.name if isinstance(x, Format) else x)
@pytest.mark.parametrize("name", ["min", "max"])
def test_min_and_max(name: str, modifiers: str, f: Format) -> None:
    inputs = operands(f, 2)
    inputs[1][::5] = inputs[0][::5]
    inputs[1][1::5] = inputs[0][1::5] ^ np.array(f.sign, f.dtype)
    reference = functools.partial(extreme, f, name == "max", ".NaN" in modifiers, ".xorsign" in modifiers)
    wanted = expect(f, reference, inputs, ftz=".ftz" in modifiers)
    if f is F64:
        both = np.isnan(inputs[0].view(np.float64)) & np.isnan(inputs[1].view(np.float64))
        # The PTX ISA does not say which of two NaNs it is; ptxas's DSETP.MIN and selections leave the second.
        wanted[both] = floats.first_nan(wanted, inputs[::-1])[both]
    assert_same(run(f"{name}{modifiers}.{f.name}", f, inputs), wanted, *inputs)


@ptx_only("machine code of sm_100 and later is not executed")
@pytest.mark.parametrize("modifiers", ["", ".NaN", ".abs", ".ftz", ".ftz.NaN.abs"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_min_and_max_of_three(name: str, modifiers: str) -> None:
    inputs = operands(F32, 3)
    for k, other in ((1, 0), (2, 1)):
        inputs[k][k::5] = inputs[other][k::5]
        inputs[k][2 + k :: 5] = inputs[other][2 + k :: 5] ^ np.uint32(F32.sign)

    def reference(a: float, b: float, c: float) -> int:
        if ".abs" in modifiers:
            a, b, c = abs(a), abs(b), abs(c)
        of = functools.partial(extreme, F32, name == "max", ".NaN" in modifiers, False)
        return of(F32.decode(of(a, b)), c)

    wanted = expect(F32, reference, inputs, ftz=".ftz" in modifiers)
    found = per_lane(f"{name}{modifiers}.f32 %o, %i0, %i1, %i2;", *inputs, target="100")
    assert_same(found, wanted, *inputs)


@pytest.mark.parametrize("f", [F16, BF16, F32, F64], ids=lambda f: f.name)
@pytest.mark.parametrize("name", ["abs", "neg"])
def test_signs(name: str, f: Format) -> None:
    a = np.arange(65536, dtype=np.uint16) if f.bits == 16 else codes(f, 4096, 3)
    sign = np.array(f.sign, f.dtype)
    wanted = a & ~sign if name == "abs" else a ^ sign
    nan = (a & ~sign) > np.array(f.infinity, f.dtype)
    if f is F64:
        wanted[nan] |= np.uint64(0x0008000000000000)
    else:
        wanted[nan] = f.nan
    assert_same(run(f"{name}.{f.name}", f, [a]), wanted, a)


def test_copysign_takes_the_sign_of_its_first_operand() -> None:
    for f in (F32, F64):
        a, b = operands(f, 2)
        sign = np.array(f.sign, f.dtype)
        assert_same(run(f"copysign.{f.name}", f, [a, b]), (a & sign) | (b & ~sign), a, b)


@pytest.mark.parametrize("f", [F32, F64], ids=lambda f: f.name)
def test_testp(f: Format) -> None:
    a = np.concatenate([np.array(floats.edges(f), f.dtype), codes(f, 512, 5)])
    v = a.view(np.float32 if f is F32 else np.float64)
    m = np.abs(v)
    least = np.finfo(v.dtype).tiny
    wanted = {
        "finite": np.isfinite(v),
        "infinite": np.isinf(v),
        "number": ~np.isnan(v),
        "notanumber": np.isnan(v),
        "normal": np.isfinite(v) & ((m >= least) | (m == 0)),  # zeros are normal
        "subnormal": (m < least) & (m > 0),
    }
    for name, truth in wanted.items():
        found = per_lane(
            f"testp.{name}.{f.name} %p, %i0; selp.u32 %o, 1, 0, %p;", a, registers=".reg .pred %p;"
        )
        assert_same(found, truth.astype(np.uint32), a)


def test_approximate_division() -> None:
    a, b = operands(F32, 2)
    v, w = a.view(np.float32), b.view(np.float32)
    with np.errstate(all="ignore"):
        exact = v.astype(np.float64) / w.astype(np.float64)
    full = run("div.full.f32", F32, [a, b])
    rounded = expect(F32, functools.partial(floats.div, F32, "rn"), [a, b])
    if CODE == "sass":  # a product with MUFU.RCP, both scaled; PTX ISA: at most 2 ulp off
        special = ~np.isfinite(rounded.view(np.float32)) | (rounded.view(np.float32) == 0)
        assert (np.isnan(full.view(np.float32)) == np.isnan(rounded.view(np.float32))).all()
        assert (np.abs(full.astype(np.int64) - rounded.astype(np.int64))[~special] <= 2).all()
    else:
        assert_same(full, rounded, a, b)
    found = run("div.approx.f32", F32, [a, b]).view(np.float32)
    large = (np.abs(w) > 2.0**126) & np.isfinite(w)
    assert large.any()
    assert np.isnan(found[large & np.isinf(v)]).all()
    assert (found[large & np.isfinite(v)] == 0).all()
    rest = ~large & np.isfinite(exact) & (np.abs(exact) < 2.0**127) & (np.abs(exact) >= 2.0**-126)
    assert np.max(np.abs(found[rest] / exact[rest] - 1)) <= 2.0**-22


@pytest.mark.parametrize("name", ["rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"])
def test_coarse_reciprocals_are_of_upper_words(name: str) -> None:
    a = np.concatenate([np.array(floats.edges(F64), np.uint64), codes(F64, 2048, 9)])
    found = run(name, F64, [a])
    upper = a & np.uint64(0xFFFFFFFF00000000)
    assert (found & np.uint64(0xFFFFFFFF) == 0).all()
    v, r = upper.view(np.float64).copy(), found.view(np.float64)
    v[np.abs(v) < 2.0**-1022] *= 0
    with np.errstate(all="ignore"):
        exact = 1 / v if "rcp" in name else 1 / np.sqrt(v)
        if "rsqrt" in name:
            exact[v == 0] = np.copysign(np.inf, v[v == 0])
    nan = np.isnan(exact)
    assert (found[nan] == 0x7FFFFFFF00000000).all()
    exact[np.abs(exact) < 2.0**-1022] *= 0
    finite = np.isfinite(exact) & (exact != 0)
    assert np.max(np.abs(r[finite] / exact[finite] - 1)) <= 2.0**-20
    other = ~finite & ~nan
    assert (r[other].view(np.uint64) == exact[other].view(np.uint64)).all()


def test_the_same_source_and_destination_register() -> None:
    a = codes(F32, 64, 1)
    found = per_lane("add.f32 %i0, %i0, %i0; mov.b32 %o, %i0;", a)
    assert_same(found, expect(F32, lambda x: floats.add(F32, "rn", x, x), [a]), a)


def test_lanes_outside_the_guard_keep_their_values() -> None:
    a = codes(F16, 64, 1).astype(np.uint32)
    found = per_lane(
        "setp.lt.u32 %p, %lane0, 20; mov.b32 %o, %i0; @%p add.f16x2 %o, %i0, %i0;",
        a,
        registers=".reg .pred %p;",
    )
    wanted = expect(F16, lambda x: floats.add(F16, "rn", x, x), [a.astype(np.uint16)]).astype(np.uint32)
    wanted[20:] = a[20:]
    assert_same(found, wanted, a)


@pytest.mark.parametrize(
    "instruction",
    [
        "add.sat.f32x2 %d, %d, %d",
        "div.rn.f32x2 %d, %d, %d",
        "add.rz.f16 %h, %h, %h",
        "add.relu.f32 %f, %f, %f",
        "min.NaN.f64 %d, %d, %d",
        "max.f64 %d, %d, %d, %d",
        "fma.rn.oob.f32 %f, %f, %f, %f",
        "fma.rn.oob.sat.f16 %h, %h, %h, %h",
        "div.approx.f64 %d, %d, %d",
        "sqrt.approx.f64 %d, %d",
        "mul.rn.f32.f16 %f, %h, %f",
        "add.rn.f64.f16 %d, %h, %d",
        "fma.rn.bogus.f32 %f, %f, %f, %f",
        "div.rn.f16 %h, %h, %h",
        "mul.sat.bf16 %h, %h, %h",
    ],
)
def test_what_does_not_exist_is_refused_by_name(instruction: str) -> None:
    with pytest.raises(PtxError, match=instruction.split()[0]):
        per_lane(f"{instruction};", registers=".reg .f16 %h; .reg .f32 %f; .reg .f64 %d;")
