"""How the tensor cores of each generation add: bits kept and cut off, groups, rounding, special values."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.floats import F16, F32
from support.matrices import (
    BITS,
    FORMATS,
    a_position,
    b_position,
    c_position,
    pack,
    random_codes,
    run_registers,
    shape_of,
    unpack,
)
from support.tensor_cores import WARP, Addition, add, find, format_of, product

MMA = {
    75: [("m16n8k8", "f16", "f16")],
    80: [
        ("m16n8k16", "f16", "f16"),
        ("m16n8k8", "bf16", "bf16"),
        ("m16n8k16", "bf16", "bf16"),
        ("m16n8k4", "tf32", "tf32"),
        ("m16n8k8", "tf32", "tf32"),
    ],
    89: [("m16n8k32", "e4m3", "e5m2"), ("m16n8k16", "e5m2", "e5m2"), ("m16n8k16", "f16", "f16")],
    90: [("m16n8k16", "f16", "f16"), ("m16n8k16", "bf16", "bf16"), ("m16n8k8", "tf32", "tf32")],
    120: [("m16n8k32", "e4m3", "e4m3"), ("m16n8k8", "f16", "f16")],
}
CASES = [(sm, *case) for sm, cases in MMA.items() for case in cases]


def multiply(
    sm: int, shape: str, types: tuple[str, str, str, str], matrices: tuple[np.ndarray, ...]
) -> np.ndarray:
    """Codes of D by mma.sync."""
    d, a, b, c = types
    m, n, k = sizes = shape_of(shape)
    place_c = partial(c_position, sizes)
    inputs = {
        "a": pack(matrices[0], a, m * k // 32, partial(a_position, sizes, a)),
        "b": pack(matrices[1], b, n * k // 32, partial(b_position, sizes, b)),
        "c": pack(matrices[2], c, m * n // 32, place_c),
    }
    found = run_registers(
        f"mma.sync.aligned.{shape}.row.col.{d}.{a}.{b}.{c} {{d}}, {{a}}, {{b}}, {{c}};",
        inputs,
        {"d": (m * n // 32 * BITS[d] // 32, np.uint32)},
        machine={"sm_version": sm},
    )
    return unpack(found["d"], d, m * n // 32, place_c, (m, n))


def one(
    sm: int, shape: str, types: tuple[str, str, str, str], a: list[float], b: list[float], c: float
) -> float:
    """D's first element from numbers of A's first row and B's first column."""
    m, n, k = shape_of(shape)
    matrices = np.zeros((m, k), np.uint32), np.zeros((k, n), np.uint32), np.zeros((m, n), np.uint32)
    matrices[0][0, : len(a)] = [format_of(types[1]).encode(x) for x in a]
    matrices[1][: len(b), 0] = [format_of(types[2]).encode(x) for x in b]
    matrices[2][0, 0] = FORMATS[types[3]].encode(c)
    return FORMATS[types[0]].decode(int(multiply(sm, shape, types, matrices)[0, 0]))


HALVES = ("f32", "f16", "f16", "f32")


@pytest.mark.parametrize(
    ("sm", "shape", "type_", "bits"),
    [
        (70, "m16n8k8", "f16", 23),  # a shape of later generations: only the arithmetic is Volta's
        (75, "m16n8k8", "f16", 24),
        (80, "m16n8k16", "bf16", 24),
        (86, "m16n8k4", "tf32", 24),
        (89, "m16n8k16", "f16", 24),
        (89, "m16n8k32", "e5m2", 13),
        (90, "m16n8k16", "f16", 25),
        (90, "m16n8k8", "tf32", 25),
        (120, "m16n8k32", "e5m2", 25),
    ],
)
def test_bits_below_the_largest_exponent_are_cut_off(sm: int, shape: str, type_: str, bits: int) -> None:
    """1 and four products of 2^-bits: their sum shows in the result. Of half of that, nothing is left."""
    types = ("f32", type_, type_, "f32")
    half = bits // 2
    assert one(sm, shape, types, [2.0**-half] * 4, [2.0 ** (half - bits)] * 4, 1.0) == 1 + 4 * 2.0**-bits
    assert one(sm, shape, types, [2.0**-half] * 4, [2.0 ** (half - bits - 1)] * 4, 1.0) == 1
    # Toward zero: each of these lacks a little.
    assert one(sm, shape, types, [2.0**-half] * 4, [-(2.0 ** (half - bits - 1))] * 4, 1.0) == 1
    assert (
        one(sm, shape, types, [2.0**-half * 1.5] * 4, [2.0 ** (half - bits)] * 4, 1.0) == 1 + 4 * 2.0**-bits
    )


@pytest.mark.parametrize(
    ("sm", "shape", "type_", "group"),
    [
        (70, "m16n8k8", "f16", 4),
        (75, "m16n8k16", "f16", 8),
        (80, "m16n8k16", "f16", 8),
        (80, "m16n8k8", "tf32", 4),
        (89, "m16n8k32", "e5m2", 16),
        (90, "m16n8k16", "f16", 16),
        (90, "m16n8k8", "tf32", 8),
        (120, "m16n8k32", "e5m2", 32),
    ],
)
def test_products_are_added_in_groups(sm: int, shape: str, type_: str, group: int) -> None:
    """A small product survives next to large ones that cancel only if they are of an earlier group."""
    types = ("f32", type_, type_, "f32")
    k = shape_of(shape)[2]
    for at in range(2, k):
        a = [2.0**14, -(2.0**14)] + [0.0] * (at - 2) + [2.0**-14]
        b = [2.0**14, 2.0**14] + [0.0] * (at - 2) + [1.0]
        assert one(sm, shape, types, a, b, 0.0) == (0 if at < group else 2.0**-14), at


@pytest.mark.parametrize("sm", [61, 110])
def test_unknown_generations_add_exactly(sm: int) -> None:
    assert one(sm, "m16n8k8", HALVES, [2.0**-13] * 8, [2.0**-13] * 8, 1.0) == 1 + 2.0**-23


@pytest.mark.parametrize("sm", [75, 80, 90])
def test_results_are_rounded_by_the_accumulators_type(sm: int) -> None:
    step = 2.0**-23
    assert one(sm, "m16n8k8", HALVES, [2.0**-12, 2.0**-12], [2.0**-12, 2.0**-12], 1.0) == 1 + step
    assert one(sm, "m16n8k8", HALVES, [2.0**-12], [2.0**-12], -1.0 - step) == -1  # f32: toward zero
    halves = ("f16", "f16", "f16", "f16")
    assert one(sm, "m16n8k8", halves, [2.0**-6], [2.0**-5], 1.0) == 1  # f16: to nearest, ties to even
    assert one(sm, "m16n8k8", halves, [2.0**-6], [2.0**-5], 1 + 2.0**-10) == 1 + 2.0**-9
    assert one(sm, "m16n8k8", halves, [2.0**-6, 2.0**-10], [2.0**-5, 2.0**-10], 1.0) == 1 + 2.0**-10


@pytest.mark.parametrize("sm", [80, 90])
def test_f16_accumulators_are_rounded_between_groups(sm: int) -> None:
    halves = ("f16", "f16", "f16", "f16")
    a = [2.0**-6] + [0.0] * 7 + [2.0**-6]
    b = [2.0**-5] + [0.0] * 7 + [2.0**-5]
    # 2^-11 twice: lost twice, or one place of the result.
    assert one(sm, "m16n8k16", halves, a, b, 1.0) == (1 if sm == 80 else 1 + 2.0**-10)


@pytest.mark.parametrize(("sm", "d"), [(75, "f32"), (80, "f16"), (90, "f32"), (90, "f16")])
def test_special_values(sm: int, d: str) -> None:
    types = (d, "f16", "f16", d)
    m, n, k = 16, 8, 8
    a, b = np.zeros((m, k), np.uint32), np.zeros((k, n), np.uint32)
    c = np.zeros((m, n), np.uint32)
    infinity, nan, sign = FORMATS[d].infinity, FORMATS[d].nan, FORMATS[d].sign
    b[0] = b[1] = 0x3C00
    a[0, 0], a[0, 1] = 0x7C00, 0xFC00  # infinities of both signs
    a[1, 0] = 0xFC00
    a[2, 2] = 0x7C00  # times zero
    a[3, 0] = 0x7E01
    a[4, 0], c[4] = 0x7C00, infinity | sign
    a[5, 0], c[5] = 0x3C00, nan - 1
    c[6] = sign  # -0 + 0
    a[7, 0], c[7] = 0xBC00, FORMATS[d].encode(1.0)  # cancel
    found = multiply(sm, "m16n8k8", types, (a, b, c))
    wanted = [nan, infinity | sign, nan, nan, nan, nan, 0, 0]
    np.testing.assert_array_equal(found[:8], np.repeat(np.array(wanted, np.uint32)[:, None], n, axis=1))


@pytest.mark.parametrize(("sm", "d"), [(75, "f32"), (80, "f16"), (90, "f32"), (90, "f16")])
def test_products_with_zeros(sm: int, d: str) -> None:
    types = (d, "f16", "f16", d)
    a, b, c = np.zeros((16, 8), np.uint32), np.zeros((8, 8), np.uint32), np.zeros((16, 8), np.uint32)
    a[0], c[1] = 0x3C00, FORMATS[d].sign
    assert not multiply(sm, "m16n8k8", types, (a, b, c)).any()
    c[2, 3] = FORMATS[d].encode(1.0)
    found = multiply(sm, "m16n8k8", types, (a, b, c))
    assert found[2, 3] == c[2, 3] and np.count_nonzero(found) == 1
    a[5, 2] = 0x7C00  # an infinity
    found = multiply(sm, "m16n8k8", types, (a, b, c))
    assert (found[5] == FORMATS[d].nan).all() and np.count_nonzero(found) == 9
    a[:], b[1, 4] = 0, 0xFC00
    found = multiply(sm, "m16n8k8", types, (a, b, c))
    assert (found[:, 4] == FORMATS[d].nan).all() and np.count_nonzero(found) == 17


def test_f32_results_overflow_to_infinity() -> None:
    largest, huge = F32.decode(F32.infinity - 1), 2.0**64
    bf16 = ("f32", "bf16", "bf16", "f32")
    assert one(80, "m16n8k8", bf16, [huge], [huge], 0.0) == np.inf
    assert one(80, "m16n8k8", bf16, [-huge], [huge], 0.0) == -np.inf
    assert one(80, "m16n8k8", bf16, [huge], [huge * 2.0**-26], largest) == largest  # cut off
    assert one(80, "m16n8k8", bf16, [2.0**60, 1.0], [2.0**-200, 1.0], 0.0) == 1


def test_zero_has_the_least_exponent_of_f32() -> None:
    """A product with zero may have a larger exponent than everything else, which is then cut off."""
    bf16 = ("f32", "bf16", "bf16", "f32")
    assert one(80, "m16n8k8", bf16, [0.0], [2.0**127], 2.0**-30) == 0
    assert one(80, "m16n8k8", bf16, [0.0], [2.0**90], 2.0**-30) == 2.0**-30


@pytest.mark.parametrize("case", CASES, ids=lambda case: ".".join(map(str, case)))
@pytest.mark.parametrize("accumulator", ["f32", "f16"])
def test_random_products(case: tuple[int, str, str, str], accumulator: str) -> None:
    sm, shape, a, b = case
    if accumulator == "f16" and a in ("bf16", "tf32"):
        return
    addition = find(WARP[sm], a)
    m, n, k = shape_of(shape)
    rng = np.random.default_rng(sm)
    codes_a, codes_b = random_codes(rng, a, (m, k)), random_codes(rng, b, (k, n))
    codes_a[4:8], codes_b[:, 2:4] = random_bits(rng, a, (4, k)), random_bits(rng, b, (k, 2))
    codes_c = random_codes(rng, accumulator, (m, n))
    codes_c[8:12] = random_bits(rng, accumulator, (4, n))
    types = (accumulator, a, b, accumulator)
    found = multiply(sm, shape, types, (codes_a, codes_b, codes_c))
    np.testing.assert_array_equal(found, product(addition, codes_a, codes_b, codes_c, types))


def random_bits(rng: np.random.Generator, type_: str, shape: tuple[int, int]) -> np.ndarray:
    return rng.integers(0, 1 << BITS[type_], shape, np.uint64).astype(np.uint32)


@pytest.mark.parametrize("shape", ["m16n8k16", "m16n8k32"])
@pytest.mark.parametrize("d", ["f32", "f16"])
def test_f8_of_a_warp_on_hopper(shape: str, d: str) -> None:
    """ptxas multiplies the lower pairs of each four as f16, then the upper ones, and adds C at last."""
    m, n, k = shape_of(shape)
    rng = np.random.default_rng(3)
    a, b = random_codes(rng, "e4m3", (m, k)), random_codes(rng, "e5m2", (k, n))
    c = random_codes(rng, d, (m, n))
    types = (d, "e4m3", "e5m2", d)
    halves_a, halves_b = (
        np.vectorize(lambda x, t=t: F16.encode(FORMATS[t].decode(int(x))))(codes)
        for codes, t in ((a, "e4m3"), (b, "e5m2"))
    )
    order = [x for x in range(k) if x % 4 < 2] + [x for x in range(k) if x % 4 >= 2]
    addition = Addition(min(16, k // 2), 25)
    halves = (d, "f16", "f16", d)
    sums = product(addition, halves_a[:, order], halves_b[order], np.zeros_like(c), halves)
    f = FORMATS[d]
    numbers = [np.vectorize(lambda x: f.decode(int(x)))(codes) for codes in (sums, c)]
    wanted = np.vectorize(lambda x: f.encode(float(x)))(numbers[0] + numbers[1])
    np.testing.assert_array_equal(multiply(90, shape, types, (a, b, c)), wanted)


codes_of_half = st.one_of(st.integers(0, 0xFFFF), st.sampled_from([0, 0x8000, 1, 0x3C00, 0xBC00, 0x7BFF]))
codes_of_float = st.one_of(st.integers(0, 0xFFFFFFFF), st.floats(width=32).map(lambda x: F32.encode(x)))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    sm=st.sampled_from([70, 75, 80, 90]),
    factors=st.lists(st.tuples(codes_of_half, codes_of_half), min_size=16, max_size=16),
    c=codes_of_float,
    accumulator=st.sampled_from(["f32", "f16"]),
)
@example(90, [(0x7BFF, 0x7BFF)] * 16, F32.encode(2.0**32), "f32")  # a sum of more than 32 bits
@example(90, [(0xFBFF, 0x7BFF)] * 16, F32.encode(-(2.0**32)), "f16")
def test_any_sum(sm: int, factors: list[tuple[int, int]], c: int, accumulator: str) -> None:
    code = c if accumulator == "f32" else c >> 16
    a, b, d = np.zeros((16, 16), np.uint32), np.zeros((16, 8), np.uint32), np.zeros((16, 8), np.uint32)
    a[9], b[:, 5] = [x for x, _ in factors], [y for _, y in factors]
    d[9, 5] = code
    found = multiply(sm, "m16n8k16", (accumulator, "f16", "f16", accumulator), (a, b, d))
    addition = find(WARP[sm], "f16")
    for first in range(0, 16, addition.products):
        group = factors[first : first + addition.products]
        code = add(addition, group, "f16", "f16", code, accumulator)
    assert int(found[9, 5]) == code
