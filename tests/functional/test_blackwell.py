"""What PTX has from sm_100 on, besides tensor memory: small floating-point numbers, reductions of floats,
four rows of a tensor, and launches that clusters ask for.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import test_tensor_maps as maps

from simt import _engine
from support import tensor_memory as tm
from support.ptx import Device, per_lane, ptx_only

# --- small numbers ----------------------------------------------------------------------------------------


def numbers_of(type_: str) -> list[float]:
    return [tm.number(code, type_)[0] for code in range(16 if type_ == "e2m1" else 64)]


def nearest(v: float, type_: str) -> int:
    """The code of the nearest number, of two that are equally near the even one; beyond, the largest."""
    values = numbers_of(type_)
    half = len(values) // 2
    if math.isnan(v):
        return half - 1
    magnitude = min(range(half), key=lambda c: (abs(values[c] - min(abs(v), 1000)), c & 1))
    return magnitude | (half if math.copysign(1, v) < 0 else 0)


def some_floats(limit: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    values = (rng.standard_normal(500) * 2.0 ** rng.integers(-6, 6, 500)).astype(np.float32)
    ties = np.arange(-2 * limit, 2 * limit, 0.0625, np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e30], np.float32)
    return np.concatenate([values, ties, special])


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize(("type_", "shift"), [("e2m1", 4), ("e2m3", 8), ("e3m2", 8)])
def test_pairs_of_small_numbers(type_: str, shift: int, relu: str) -> None:
    upper = some_floats(8)
    lower = np.roll(upper, 7)
    register = ".reg .b8 %e;" if shift == 4 else ".reg .b16 %e;"
    widen = "cvt.u32.u8 %o, %e;" if shift == 4 else "cvt.u32.u16 %o, %e;"
    body = f"cvt.rn.satfinite{relu}.{type_}x2.f32 %e, %i0, %i1; {widen}"
    found = per_lane(body, upper.view(np.uint32), lower.view(np.uint32), registers=register, target="100a")

    def code(v: float) -> int:
        return 0 if relu and v <= 0 else nearest(v, type_)

    assert found.tolist() == [code(u) << shift | code(x) for u, x in zip(upper, lower, strict=True)]


@ptx_only("ptxas 13.0 takes no forms to bf16; test_blackwell_forms.py has them")
@pytest.mark.parametrize("to", ["f16", "bf16"])
@pytest.mark.parametrize(("type_", "shift"), [("e2m1", 4), ("e2m3", 8), ("e3m2", 8)])
def test_small_numbers_as_halves(type_: str, shift: int, to: str) -> None:
    values = numbers_of(type_)
    pairs = np.array([i << shift | (i * 7 + 3) % len(values) for i in range(len(values))], np.uint16)
    if shift == 4:
        body, register = f"cvt.u8.u16 %e, %i0; cvt.rn.{to}x2.e2m1x2 %o, %e;", ".reg .b8 %e;"
    else:
        body, register = f"cvt.rn.{to}x2.{type_}x2 %o, %i0;", ""
    found = per_lane(body, pairs, registers=register, target="100a").view(np.uint16)
    expected = np.array(
        [(values[(i * 7 + 3) % len(values)], values[i]) for i in range(len(values))], np.float32
    )
    # A bf16 is the upper half of a float.
    codes = expected.astype(np.float16).view(np.uint16) if to == "f16" else expected.view(np.uint32) >> 16
    np.testing.assert_array_equal(found.reshape(-1, 2), codes)


@pytest.mark.parametrize("finite", ["", ".satfinite"])
@pytest.mark.parametrize("rounding", ["rz", "rp"])
def test_scale_factors(rounding: str, finite: str) -> None:
    values = np.array(
        [
            1,
            1.5,
            2,
            3.99,
            -2.5,
            0,
            2.0**-126,
            2.0**-127,
            1.1 * 2.0**-127,
            2.0**-140,
            1.5 * 2.0**127,
            np.inf,
            np.nan,
        ],
        np.float32,
    )
    body = f".reg .b16 %e; cvt.{rounding}{finite}.ue8m0x2.f32 %e, %i0, %i0; cvt.u32.u16 %o, %e;"
    found = per_lane(body, values.view(np.uint32), target="100a")

    def code(v: float) -> int:
        if math.isnan(v):
            return 0xFF
        if math.isinf(v):
            return 0xFE if finite else 0xFF
        if v == 0:
            return 0
        mantissa, exponent = math.frexp(abs(v))  # 0.5 <= mantissa < 1
        up = rounding == "rp" and mantissa > 0.5
        return min(max(exponent - 1 + up + 127, 0), 0xFE if finite else 0xFF)

    assert found.tolist() == [code(float(v)) << 8 | code(float(v)) for v in values]


def test_scale_factors_as_bf16() -> None:
    codes = np.arange(256, dtype=np.uint16)
    found = per_lane("cvt.rn.bf16x2.ue8m0x2 %o, %i0;", codes | codes << 8, target="100a")
    numbers = (found >> 16 << 16).view(np.float32)
    assert (found >> 16 == found & 0xFFFF).all()
    np.testing.assert_array_equal(numbers[:255], np.ldexp(np.float32(1), np.arange(255) - 127))
    assert found[255] == 0x7FFF7FFF


# --- reductions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("absolute", ["", ".abs"])
@pytest.mark.parametrize("nan", ["", ".NaN"])
def test_reductions_of_floats(operation: str, absolute: str, nan: str) -> None:
    rng = np.random.default_rng(2)
    for present in (0, 3, 32):
        a = rng.standard_normal(32).astype(np.float32)
        a[:present] = np.nan
        body = f"redux.sync.{operation}{absolute}{nan}.f32 %o, %i0, -1;"
        found = per_lane(body, a.view(np.uint32), target="100a")
        values = np.abs(a) if absolute else a
        rest = values[~np.isnan(values)]
        is_nan = len(rest) == 0 or (nan and present)
        wanted = 0x7FFFFFFF if is_nan else int(getattr(rest, operation)().view(np.uint32))
        assert set(found.tolist()) == {wanted}


def test_minus_zero_is_less_than_zero() -> None:
    a = np.zeros(32, np.float32)
    a[5] = -0.0
    for operation, wanted in (("min", 0x80000000), ("max", 0)):
        found = per_lane(f"redux.sync.{operation}.f32 %o, %i0, -1;", a.view(np.uint32), target="100a")
        assert set(found.tolist()) == {wanted}


# --- tensors ----------------------------------------------------------------------------------------------

ROWS = (5, 0, 9, 2)


def test_four_rows_are_gathered() -> None:
    array = np.arange(10 * 16, dtype=np.float32).reshape(10, 16)
    rows = (5, 0, 12, 2)  # one beyond the tensor
    text = maps.kernel(
        5,
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
        " [%s], [%m, {%c0, %c1, %c2, %c3, %c4}], [%b];",
        128,
        "mbarrier.init.shared::cta.b64 [%b], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 128;",
    )
    device, data = Device(text, target="100a"), np.zeros(128, np.uint8)
    device.run("k", maps.encode(device.upload(array), array, (1, 8)), data, 4, *rows)
    expected = [array[r, 4:12] if r < 10 else np.zeros(8) for r in rows]
    np.testing.assert_array_equal(data.view(np.float32).reshape(4, 8), np.array(expected, np.float32))


def test_four_rows_are_scattered() -> None:
    array = np.zeros((10, 16), np.float32)
    data = np.arange(32, dtype=np.float32).view(np.uint8)
    text = maps.kernel(
        5,
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
        " [%m, {%c0, %c1, %c2, %c3, %c4}], [%s];",
        128,
    )
    device = Device(text, target="100a")
    address = device.upload(array)
    device.run("k", maps.encode(address, array, (1, 8)), data.copy(), 4, *ROWS)
    expected = array.copy()
    expected[list(ROWS), 4:12] = data.view(np.float32).reshape(4, 8)
    np.testing.assert_array_equal(device.download(address, array), expected)


def test_four_rows_need_boxes_of_one() -> None:
    array = np.zeros((10, 16), np.float32)
    text = maps.kernel(
        5,
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
        " [%m, {%c0, %c1, %c2, %c3, %c4}], [%s];",
        128,
    )
    device = Device(text, target="100a")
    with pytest.raises(_engine.functional.ProgramFault, match="its box has 2 rows"):
        device.run("k", maps.encode(device.upload(array), array, (2, 8)), np.zeros(128, np.uint8), 4, *ROWS)


# --- launches ---------------------------------------------------------------------------------------------


def test_nothing_is_left_to_cancel() -> None:
    """Each CTA does its own part, asks for more, and ends."""
    text = """
    .visible .entry k(.param .b64 out)
    {
      .reg .b32 %s, %b, %v, %x, %y; .reg .b64 %o, %l<2>; .reg .b128 %answer; .reg .pred %p;
      .shared .align 16 .b8 buffer[16]; .shared .align 8 .b64 bar;
      mov.u32 %s, buffer; mov.u32 %b, bar; mov.u32 %v, %ctaid.x; mov.u32 %y, 0;
      mbarrier.init.shared::cta.b64 [%b], 1;
    NEXT:
      ld.param.b64 %o, [out]; mad.wide.u32 %o, %v, 4, %o; add.u32 %y, %y, 1; atom.global.add.u32 %x, [%o], 1;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 16;
      clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%s], [%b];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;
      ld.shared.v2.b64 {%l0, %l1}, [%s]; mov.b128 %answer, {%l0, %l1};
      clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %answer;
      clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %v, %answer;
      @%p bra NEXT;
      ret;
    }
    """
    out = np.zeros(5, np.uint32)
    Device(text, target="100a").run("k", out, grid=(5, 1, 1), block=(1, 1, 1))
    assert out.tolist() == [1] * 5
