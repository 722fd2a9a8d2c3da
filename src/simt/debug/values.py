"""Values of memory and registers: their distances and their text forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .result import ComparedValue

_FLOATS = ("f16", "bf16", "f32", "f64")
_PTX_TYPES = {"pred": "?", "f16": "float16", "f32": "float32", "f64": "float64"}


@dataclass(frozen=True)
class Tolerance:
    """Floats a (ours) and b (reference) are equal if |a - b| <= absolute + relative * |b|, as in NumPy's
    `isclose`; so are any two NaNs. With both 0, the default, equal means bitwise equal.
    """

    relative: float = 0.0
    absolute: float = 0.0

    @property
    def exact(self) -> bool:
        return self.relative == 0.0 and self.absolute == 0.0


@dataclass(frozen=True)
class ArrayDifference:
    """first: flat index of the first element that differs. largest_ulps: of all that do; None without floats
    or where NaNs or infinities are among them."""

    first: int
    differing: int
    elements: int
    largest_ulps: int | None


def dtype_of(ptx_type: str, size: int) -> np.dtype[Any]:
    """The NumPy type for a variable of a PTX type, or bytes if there is no such type."""
    kind, digits = ptx_type[:1], ptx_type[1:]
    if ptx_type in _PTX_TYPES:
        found = np.dtype(_PTX_TYPES[ptx_type])
    elif kind in "busf" and digits in ("8", "16", "32", "64"):
        found = np.dtype(f"{'i' if kind == 's' else 'u'}{int(digits) // 8}")
    else:
        found = np.dtype("u1")
    return found if size % found.itemsize == 0 else np.dtype("u1")


def is_float(dtype: np.dtype[Any]) -> bool:
    return np.issubdtype(dtype, np.floating) or dtype.name.startswith(("bfloat", "float"))


def compare_arrays(
    ours: bytes, reference: bytes, dtype: np.dtype[Any], tolerance: Tolerance
) -> ArrayDifference | None:
    """Where the contents of two arrays of `dtype` differ; None if they are equal. Both have the same size."""
    if ours == reference:
        return None
    a, b = np.frombuffer(ours, dtype), np.frombuffer(reference, dtype)
    differs = _bits(a) != _bits(b)
    if differs.ndim > 1:
        differs = differs.any(axis=1)
    where = np.flatnonzero(differs)
    if is_float(dtype) and not tolerance.exact:
        where = where[~_close(a[where], b[where], tolerance)]
    if not len(where):
        return None
    distances = [ulps(x, y) for x, y in zip(a[where[:100_000]], b[where[:100_000]], strict=True)]
    known = [d for d in distances if d is not None]
    return ArrayDifference(
        first=int(where[0]),
        differing=len(where),
        elements=len(a),
        largest_ulps=max(known) if known and len(known) == len(where) else None,
    )


def equal(ours: int, reference: int, kind: str, tolerance: Tolerance) -> bool:
    """Whether the bits of two registers of a PTX type are equal."""
    if ours == reference:
        return True
    if kind.endswith("x2"):
        halves = zip(_halves(ours, kind), _halves(reference, kind), strict=True)
        return all(equal(a, b, kind[:-2], tolerance) for a, b in halves)
    if tolerance.exact or kind not in _FLOATS:
        return False
    a, b = _number(ours, kind), _number(reference, kind)
    return bool(_close(np.array([a]), np.array([b]), tolerance)[0])


def ulps(a: Any, b: Any) -> int | None:
    """The number of floats between two floats, plus one: 0 for equal ones, 1 for neighbours. +0 and -0 are
    neighbours here. None unless both are finite floats.
    """
    dtype = np.asarray(a).dtype
    if not is_float(dtype) or dtype.itemsize > 8 or not (np.isfinite(a) and np.isfinite(b)):
        return None
    return abs(_place(a) - _place(b))


def register_value(bits: int, kind: str) -> ComparedValue:
    """The value of a register of a PTX type."""
    width = _bit_width(kind)
    bits &= (1 << width) - 1
    shown = f"{bits:#0{2 + width // 4}x}" if width > 1 else ""
    if kind == "pred":
        return ComparedValue(str(bool(bits)), "")
    if kind.endswith("x2"):
        return ComparedValue(", ".join(register_value(b, kind[:-2]).text for b in _halves(bits, kind)), shown)
    if kind in _FLOATS:
        return ComparedValue(_text(_number(bits, kind)), shown)
    if kind[0] == "b":
        return ComparedValue(shown, shown)
    return ComparedValue(str(bits - (bits >> width - 1 << width) if kind[0] == "s" else bits), shown)


def element_value(element: Any) -> ComparedValue:
    """The value of an array's element, with its bits."""
    raw = np.asarray(element).tobytes()
    bits = "0x" + raw[::-1].hex() if len(raw) <= 16 else ""
    return ComparedValue(_text(element), bits)


def register_ulps(ours: int, reference: int, kind: str) -> int | None:
    if kind not in ("f16", "f32", "f64"):
        return None
    return ulps(_number(ours, kind), _number(reference, kind))


def _text(number: Any) -> str:
    return str(number.item() if isinstance(number, (np.integer, np.bool_)) else number)


def _bit_width(kind: str) -> int:
    if kind == "pred":
        return 1
    return 2 * _bit_width(kind[:-2]) if kind.endswith("x2") else int(kind.lstrip("busf"))


def _halves(bits: int, kind: str) -> tuple[int, int]:
    """The lower and the upper half of a vector register."""
    width = _bit_width(kind) // 2
    return bits & (1 << width) - 1, bits >> width


def _number(bits: int, kind: str) -> Any:
    if kind == "bf16":
        bits, kind = bits << 16, "f32"
    dtype = np.dtype(_PTX_TYPES[kind])
    return np.array([bits & ((1 << 8 * dtype.itemsize) - 1)], f"u{dtype.itemsize}").view(dtype)[0]


def _place(number: Any) -> int:
    """Rank of a float among all floats of its type; -0 precedes +0."""
    array = np.array([number])
    bits = int(array.view(f"u{array.dtype.itemsize}")[0])
    sign = 1 << (8 * array.dtype.itemsize - 1)
    return bits if bits < sign else sign - 1 - bits


def _bits(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    size = array.dtype.itemsize
    if size in (1, 2, 4, 8):
        return array.view(f"u{size}")
    return array.view("u1").reshape(len(array), size)


def _close(a: npt.NDArray[Any], b: npt.NDArray[Any], tolerance: Tolerance) -> npt.NDArray[np.bool_]:
    wide = np.float64 if a.dtype.itemsize <= 8 else a.dtype
    x, y = a.astype(wide), b.astype(wide)
    close: npt.NDArray[np.bool_] = np.isclose(
        x, y, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True
    )
    return close
