"""How values are compared: bits, tolerances, NaN, distances in ULP, how registers are shown."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.debug.values import (
    Tolerance,
    compare_arrays,
    dtype_of,
    element_value,
    equal,
    register_ulps,
    register_value,
    ulps,
)

EXACT, LOOSE = Tolerance(), Tolerance(relative=1e-3)
NAN_A, NAN_B = struct.unpack("<2f", struct.pack("<2I", 0x7FC00000, 0x7FC00001))


def arrays(a: list[float], b: list[float], dtype: str = "f4") -> tuple[bytes, bytes, np.dtype[np.generic]]:
    return np.array(a, dtype).tobytes(), np.array(b, dtype).tobytes(), np.dtype(dtype)


def test_bit_by_bit() -> None:
    assert compare_arrays(*arrays([1, 2, 3], [1, 2, 3]), EXACT) is None
    found = compare_arrays(*arrays([0.0, 1, 2], [-0.0, 1, 2]), EXACT)
    assert found is not None
    assert (found.first, found.differing, found.elements, found.largest_ulps) == (0, 1, 3, 1)
    nans = np.array([0x7FC00000, 1], "u4").tobytes(), np.array([0x7FC00001, 1], "u4").tobytes()
    found = compare_arrays(*nans, np.dtype("f4"), EXACT)
    assert found is not None
    assert (found.first, found.largest_ulps) == (0, None)
    assert compare_arrays(*nans, np.dtype("f4"), LOOSE) is None


def test_tolerances_are_those_of_isclose() -> None:
    a, b = [1.0, 1.0005, math.inf, -math.inf, 5.0], [1.002, 1.0, math.inf, math.inf, math.nan]
    found = compare_arrays(*arrays(a, b), LOOSE)
    assert found is not None
    assert (found.first, found.differing) == (0, 3)  # 1.002, an infinity of the other sign, NaN against 5
    assert compare_arrays(*arrays([1, 2], [1, 3], "i4"), LOOSE) is not None, "integers know no tolerance"
    assert compare_arrays(*arrays([1e-9], [0]), Tolerance(absolute=1e-8)) is None
    assert compare_arrays(*arrays([1e-9], [0]), Tolerance(relative=0.5)) is not None


def test_elements_that_are_no_numbers() -> None:
    record = np.dtype([("x", "f4"), ("n", "i1")])
    a, b = np.zeros(4, record), np.zeros(4, record)
    b["n"][2] = 1
    found = compare_arrays(a.tobytes(), b.tobytes(), record, LOOSE)
    assert found is not None
    assert (found.first, found.differing, found.elements, found.largest_ulps) == (2, 1, 4, None)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 200))
def test_ulps_count_floats(start: float, steps: int) -> None:
    first = last = np.float32(start)
    for _ in range(steps):
        last = np.nextafter(last, np.float32(np.inf))
    if np.isfinite(last):
        # nextafter treats both zeros as equal; their bits differ.
        crossed = first < 0 < last or (first < 0 and last == 0 and not np.signbit(last))
        assert ulps(first, last) in ((steps, steps + 1) if crossed or first == 0 else (steps,))
        assert ulps(last, first) == ulps(first, last)


def test_ulps_by_hand() -> None:
    assert ulps(np.float32(1), np.float32(1)) == 0
    assert ulps(np.float32(1), np.float32(1 + 2**-23)) == 1
    assert ulps(np.float64(1), np.float64(1 + 2**-23)) == 2**29
    assert ulps(np.float16(1), np.float16(2)) == 1024
    assert ulps(np.float32(-0.0), np.float32(0.0)) == 1
    assert ulps(np.float32(np.nan), np.float32(1)) is None
    assert ulps(np.int32(1), np.int32(2)) is None


@pytest.mark.parametrize(
    ("bits", "kind", "text", "shown"),
    [
        (0x3FC00000, "f32", "1.5", "0x3fc00000"),
        (0x3FF8000000000000, "f64", "1.5", "0x3ff8000000000000"),
        (0x3E00, "f16", "1.5", "0x3e00"),
        (0x3FC0, "bf16", "1.5", "0x3fc0"),
        (0x3E00BC00, "f16x2", "-1.0, 1.5", "0x3e00bc00"),
        (0x3FC0BF80, "bf16x2", "-1.0, 1.5", "0x3fc0bf80"),
        (0xFFFFFFFF, "s32", "-1", "0xffffffff"),
        (0xFFFFFFFF, "u32", "4294967295", "0xffffffff"),
        (0xFF, "s8", "-1", "0xff"),
        (5, "b64", "0x0000000000000005", "0x0000000000000005"),
        (1, "pred", "True", ""),
        (0, "pred", "False", ""),
    ],
)
def test_registers_are_shown_by_their_type(bits: int, kind: str, text: str, shown: str) -> None:
    value = register_value(bits, kind)
    assert (value.text, value.bits) == (text, shown)


def test_registers_are_compared_by_their_type() -> None:
    one, near = 0x3F800000, 0x3F800001
    assert not equal(one, near, "f32", EXACT)
    assert equal(one, near, "f32", LOOSE)
    assert not equal(one, near, "u32", LOOSE)
    assert equal(0x3C003C00, 0x3C003C01, "f16x2", LOOSE)
    assert equal(0x3F803F80, 0x3F803F81, "bf16x2", Tolerance(relative=0.01))
    assert not equal(0x3C003C00, 0x40003C01, "f16x2", LOOSE)
    assert register_ulps(one, near, "f32") == 1
    assert register_ulps(one, near, "b32") is None


def test_types_of_variables() -> None:
    assert dtype_of("f32", 8) == np.float32
    assert dtype_of("s16", 4) == np.int16
    assert dtype_of("b64", 8) == np.uint64
    assert dtype_of("f32", 7) == np.uint8, "seven bytes are no floats"
    assert dtype_of("b8", 3) == np.uint8
    assert element_value(np.float32(1.5)).bits == "0x3fc00000"
