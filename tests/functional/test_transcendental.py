"""Approximate functions: within NVIDIA's bounds over all exponents, and special values as documented."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from support.floats import BF16, F16, assert_same
from support.ptx import CODE, per_lane

# NumPy warns of signalling NaNs.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")

NAN32 = 0x7FFFFFFF


def every_exponent(seed: int) -> np.ndarray:
    """f32: each sign and exponent with 40 random mantissas, including the smallest and largest."""
    rng = np.random.default_rng(seed)
    top = np.arange(512, dtype=np.uint32) << np.uint32(23)
    mantissa = rng.integers(0, 1 << 23, (512, 40), np.uint32)
    mantissa[:, 0], mantissa[:, 1] = 0, (1 << 23) - 1
    return (top[:, None] | mantissa).reshape(-1).view(np.float32)


def run(mnemonic: str, x: np.ndarray) -> np.ndarray:
    return per_lane(f"{mnemonic} %o, %i0;", x, output=x.dtype)


def flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def ulps(found: np.ndarray, exact: np.ndarray) -> float:
    """Largest error in units in the last place of the correctly rounded result."""
    unit = np.spacing(np.abs(exact.astype(np.float32))).astype(np.longdouble)
    return float(np.max(np.abs(found.astype(np.longdouble) - exact) / unit))


def relative(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.max(np.abs(found.astype(np.longdouble) / exact - 1)))


def absolute(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.max(np.abs(found.astype(np.longdouble) - exact)))


SPECIAL = np.array([-np.inf, -1.0, -0.0, 0.0, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ex2", [0.0, 0.5, 1.0, 1.0, np.inf, np.nan]),
        ("lg2", [np.nan, np.nan, -np.inf, -np.inf, np.inf, np.nan]),
        ("sin", [np.nan, None, -0.0, 0.0, np.nan, np.nan]),
        ("cos", [np.nan, None, 1.0, 1.0, np.nan, np.nan]),
        ("rsqrt", [np.nan, np.nan, -np.inf, np.inf, 0.0, np.nan]),
        ("rcp", [-0.0, -1.0, -np.inf, np.inf, 0.0, np.nan]),
        ("sqrt", [np.nan, np.nan, -0.0, 0.0, np.inf, np.nan]),
        ("tanh", [-1.0, None, -0.0, 0.0, 1.0, np.nan]),
    ],
)
def test_special_values(name: str, wanted: list[float | None]) -> None:
    variants = [""] if name == "tanh" else ["", ".ftz"]
    for ftz in variants:
        found = run(f"{name}.approx{ftz}.f32", SPECIAL).view(np.uint32)
        for code, value in zip(found.tolist(), wanted, strict=True):
            if value is None:
                continue
            expected = NAN32 if np.isnan(value) else int(np.float32(value).view(np.uint32))
            assert code == expected, (name, ftz, value)


@pytest.mark.parametrize("name", ["ex2", "lg2", "sin", "cos", "rsqrt", "rcp", "sqrt"])
def test_ftz(name: str) -> None:
    """Same as the form without it, with flushed operands and a flushed result."""
    x = every_exponent(1)
    found = run(f"{name}.approx.ftz.f32", x)
    wanted = flushed(run(f"{name}.approx.f32", flushed(x)))
    assert_same(found.view(np.uint32), wanted.view(np.uint32), x.view(np.uint32))


def test_ex2() -> None:
    x = np.concatenate([every_exponent(2), np.random.default_rng(3).uniform(-152, 130, 1 << 16)])
    x = x[~np.isnan(x)].astype(np.float32)
    found = run("ex2.approx.f32", x)
    with np.errstate(over="ignore"):
        exact = np.exp2(x.astype(np.longdouble))
        rounded = exact.astype(np.float32)
    infinite = np.isinf(rounded)
    assert (found[infinite] == np.inf).all()
    assert ulps(found[~infinite], exact[~infinite]) <= 1.0  # NVIDIA: 2 ulp


def test_ex2_of_integers_is_exact() -> None:
    x = np.arange(-149, 128, dtype=np.float32)
    assert (run("ex2.approx.f32", x) == np.ldexp(np.float32(1), x.astype(int))).all()


def test_lg2() -> None:
    x = np.abs(every_exponent(4))
    x = x[np.isfinite(x) & (x > 0)]
    exact = np.log2(x.astype(np.longdouble))
    far = (x <= 0.5) | (x >= 2)
    assert relative(run("lg2.approx.f32", x)[far], exact[far]) <= 2.0**-23  # NVIDIA: 2^-22
    near = np.random.default_rng(5).uniform(0.5, 2, 1 << 16).astype(np.float32)
    near = np.concatenate([near, 1 + np.float32(2) ** np.arange(-23, 0, dtype=np.float32)])
    exact = np.log2(near.astype(np.longdouble))
    found = run("lg2.approx.f32", near)
    assert absolute(found, exact) <= 2.0**-23  # NVIDIA: 2^-22
    one = near == 1
    assert ulps(found[~one], exact[~one]) <= 2


def test_lg2_of_powers_of_two_is_exact() -> None:
    x = np.arange(-149, 128, dtype=np.float32)
    assert (run("lg2.approx.f32", np.ldexp(np.float32(1), x.astype(int))) == x).all()


@pytest.mark.parametrize(("name", "function"), [("sin", np.sin), ("cos", np.cos)])
def test_sine_and_cosine(name: str, function: Callable[[np.ndarray], np.ndarray]) -> None:
    rng = np.random.default_rng(6)
    near = rng.uniform(-2 * np.pi, 2 * np.pi, 1 << 15).astype(np.float32)
    far = rng.uniform(-100 * np.pi, 100 * np.pi, 1 << 15).astype(np.float32)
    for x, documented in ((near, 2.0**-20.5), (far, 2.0**-14.7)):
        exact = function(x.astype(np.longdouble))
        # In machine code, the argument is multiplied by 1 / 2 pi and rounded before MUFU takes it.
        bound = documented if CODE == "sass" else 2.0**-23
        assert absolute(run(f"{name}.approx.f32", x), exact) <= bound
    if CODE == "sass":
        return
    x = every_exponent(7)
    x = x[np.isfinite(x)]
    found = run(f"{name}.approx.f32", x)
    assert absolute(found, function(x.astype(np.float64))) <= 2.0**-23
    small = (np.abs(x) < 2.0**-13) & (x != 0)
    if name == "sin":
        assert (found[small] == x[small]).all()


def test_tanh() -> None:
    x = np.concatenate([every_exponent(8), np.random.default_rng(9).uniform(-12, 12, 1 << 16)])
    x = x[np.isfinite(x) & (x != 0)].astype(np.float32)
    found = run("tanh.approx.f32", x)
    assert relative(found, np.tanh(x.astype(np.longdouble))) <= 2.0**-22  # NVIDIA: 2^-11
    subnormal = np.abs(x) < 2.0**-126
    assert (found[subnormal] == x[subnormal]).all()


def test_reciprocals_and_roots() -> None:
    x = every_exponent(10)
    x = x[np.isfinite(x) & (x != 0)]
    with np.errstate(over="ignore"):
        found, exact = run("rcp.approx.f32", x), 1 / x.astype(np.longdouble)
        infinite = np.isinf(exact.astype(np.float32))
        assert np.isinf(found[infinite]).all()
        # NVIDIA: 1 ulp. In machine code, MUFU's result is scaled, which rounds subnormal ones once more.
        assert ulps(found[~infinite], exact[~infinite]) <= (1 if CODE == "sass" else 0.5)
    x = x[x > 0]
    root = np.sqrt(x.astype(np.longdouble))
    assert relative(run("sqrt.approx.f32", x), root) <= 2.0**-24  # NVIDIA: 2^-23
    assert relative(run("rsqrt.approx.f32", x), 1 / root) <= 2.0**-22.9  # NVIDIA: 2^-22.9


def test_rsqrt_of_doubles() -> None:
    x = np.exp2(np.random.default_rng(11).uniform(-1022, 1023, 4096))
    assert relative(run("rsqrt.approx.f64", x), 1 / np.sqrt(x.astype(np.longdouble))) <= 2.0**-52
    special = np.array([-np.inf, -1.0, -0.0, 0.0, np.inf])
    found = run("rsqrt.approx.f64", special)
    assert np.isnan(found[:2]).all()
    assert found[2:].tolist() == [-np.inf, np.inf, 0.0]


def halves(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All inputs, as codes and as f32."""
    code = np.arange(65536, dtype=np.uint32)
    if name == "f16":
        return code.astype(np.uint16), code.astype(np.uint16).view(np.float16).astype(np.float32)
    return code.astype(np.uint16), (code << 16).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("type_", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["ex2", "tanh"])
def test_half_precision_of_all_inputs(name: str, type_: str) -> None:
    f = F16 if type_ == "f16" else BF16
    code, x = halves(type_)
    ftz = ".ftz" if (name, type_) == ("ex2", "bf16") else ""
    found = per_lane(f"{name}.approx{ftz}.{type_} %o, %i0;", code, output=np.uint16)
    nan = np.isnan(x)
    assert (found[nan] == f.nan).all()
    if ftz:
        x = flushed(x)
    with np.errstate(over="ignore"):
        exact = (np.exp2 if name == "ex2" else np.tanh)(x.astype(np.longdouble))
    value = np.array([f.decode(int(c)) for c in found])
    # If the exact result is out of range or subnormal, the result is its rounded value.
    least, most = 2.0 ** (1 - f.bias), f.decode(f.infinity - 1)
    normal = ~nan & (np.abs(exact) >= least) & (np.abs(exact) <= most)
    if name == "ex2":  # NVIDIA: relative, 2^-9.9 and 2^-7
        bound = 2.0**-10.9 if f is F16 else 2.0**-7.9
        assert np.max(np.abs(value[normal] / exact[normal] - 1)) <= bound
    else:  # NVIDIA: absolute, 2^-10.987 and 2^-8
        bound = 2.0**-11.9 if f is F16 else 2.0**-8.9
        assert np.max(np.abs(value[normal] - exact[normal])) <= bound
    small = ~nan & (np.abs(exact) < least)
    unit = least / 2**f.mantissa_bits
    assert np.max(np.abs(value[small] - exact[small])) <= (least if ftz else 0.6 * unit)
    assert (value[~nan & (exact > most * (1 + 2.0**-f.mantissa_bits))] == np.inf).all()
    # Packed, with the same inputs in the opposite halves.
    pair = code.astype(np.uint32) | code[::-1].astype(np.uint32) << 16
    packed = per_lane(f"{name}.approx{ftz}.{type_}x2 %o, %i0;", pair, output=np.uint32)
    assert ((packed & 0xFFFF).astype(np.uint16) == found).all()
    assert ((packed >> 16).astype(np.uint16) == found[::-1]).all()
