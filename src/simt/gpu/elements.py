"""Shapes and element types supported for arrays of a GPU."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError

_REFUSED = {
    "O": "Python objects",
    "S": "bytes of text",
    "U": "text",
    "M": "dates",
    "m": "time differences",
}


def element_type(dtype: npt.DTypeLike, *, dates: bool = False) -> np.dtype[Any]:
    """A NumPy type that a GPU has, too. dates: datetime64 and timedelta64 are 64-bit integers there.

    Raises LaunchError for objects, text, dates, numbers in another byte order and types of no bytes.
    """
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise LaunchError(f"dtype is {dtype!r}, expected a NumPy type: {error}") from None
    leaf = found
    while leaf.subdtype is not None:
        leaf = leaf.subdtype[0]
    if leaf.fields:
        for field in leaf.fields.values():
            element_type(field[0], dates=dates)
        if found.itemsize:
            return found
    what = "" if dates and leaf.kind in "Mm" else _REFUSED.get(leaf.kind, "")
    if leaf.kind in "fc" and leaf.itemsize > (8 if leaf.kind == "f" else 16):
        what = "floats of more than 64 bits"
    if not what and not leaf.isnative:
        what = "big-endian numbers"
    if not found.itemsize:
        what = "of no bytes"
    if what:
        raise LaunchError(
            f"elements are {found} ({what}), which a GPU has no type for; convert the array, with .astype()"
        )
    return found


# PyTorch's element types that NumPy has only through the package ml_dtypes, with integers of the same size.
_ML_DTYPES = {
    "bfloat16": np.uint16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8, "float8_e4m3fnuz": np.uint8,
    "float8_e5m2fnuz": np.uint8, "float8_e8m0fnu": np.uint8,
}  # fmt: skip


def tensor_bytes(value: Any) -> npt.NDArray[Any] | None:
    """A tensor of PyTorch in the host's memory whose element type NumPy lacks, as an array over the same
    memory: of the type that ml_dtypes has, if that is installed, otherwise of integers of the same size. None
    for any other object.
    """
    name = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if name not in _ML_DTYPES or not hasattr(value, "untyped_storage") or value.device.type != "cpu":
        return None
    import torch

    integers = np.dtype(_ML_DTYPES[name])
    array: npt.NDArray[Any] = (
        value.detach().view(torch.int16 if integers.itemsize == 2 else torch.uint8).numpy()
    )
    try:
        import ml_dtypes
    except ImportError:
        return array.view(integers)
    return array.view(getattr(ml_dtypes, name, integers))


def shape_of(shape: Any) -> tuple[int, ...]:
    """A shape, from a number or several. Raises LaunchError where they are no whole numbers from 0."""
    try:
        sizes = tuple(operator.index(n) for n in shape) if np.iterable(shape) else (operator.index(shape),)
    except TypeError:
        raise LaunchError(f"shape is {shape!r}, expected whole numbers") from None
    if any(n < 0 for n in sizes):
        raise LaunchError(f"shape is {shape!r}, expected numbers of 0 or more")
    return sizes


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a contiguous array in C order."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(1, n)
    return tuple(reversed(strides))


def extent(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The start and end of an array's bytes, relative to the address of its first element."""
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    return sum(min(0, r) for r in reach), sum(max(0, r) for r in reach) + itemsize
