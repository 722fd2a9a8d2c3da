"""`assert_kernel`: runs a kernel and compares what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .budgets import Budget

if TYPE_CHECKING:
    from simt.gpu.module import Launcher
    from simt.result import LaunchResult
    from simt.result.launch import MaybeNone

Expected = Mapping[int, npt.ArrayLike] | Callable[..., npt.ArrayLike | Mapping[int, npt.ArrayLike]]


def assert_kernel(
    launcher: Launcher,
    *arguments: Any,
    expected: Expected,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    budget: str | Sequence[str] = (),
) -> LaunchResult | MaybeNone:
    """Launches a kernel on copies of its host arrays, and compares the arrays that it wrote.

    launcher: `kernel[grid, block]`. arguments: of the kernel, host arrays among them; they are not changed.
    expected: by position of an argument, from 0, what it holds afterwards; or a function of the arguments
    that
        returns this, or the values of the first array argument.
    rtol, atol: as for `numpy.testing.assert_allclose`; of integers, values must be equal.
    budget: such as "<= 4000 cycles"; several.

    Returns the LaunchResult where the GPU times launches. Raises AssertionError, which names the kernel, the
    argument, the first element that differs, and how many do; LaunchError for arguments that do not fit.
    """
    __tracebackhide__ = True  # pytest shows the line that called it
    given = [np.array(x) if isinstance(x, np.ndarray) else x for x in arguments]
    wanted = (
        expected(*(np.array(x) if isinstance(x, np.ndarray) else x for x in arguments))
        if callable(expected)
        else expected
    )
    if not isinstance(wanted, Mapping):
        first = next((i for i, x in enumerate(arguments) if isinstance(x, np.ndarray)), None)
        if first is None:
            raise AssertionError(
                f"kernel `{launcher.kernel.name}`: none of its arguments is a host array to compare"
            )
        wanted = {first: wanted}
    result = launcher(*given)
    for position, values in wanted.items():
        _compare(launcher.kernel.name, position, np.asarray(given[position]), np.asarray(values), rtol, atol)
    if result is not None:
        for text in [budget] if isinstance(budget, str) else budget:
            if problem := Budget.read(text).problem([result]):
                raise AssertionError(problem)
    return result


def _compare(
    kernel: str, position: int, found: npt.NDArray[Any], wanted: npt.NDArray[Any], rtol: float, atol: float
) -> None:
    __tracebackhide__ = True
    where = f"kernel `{kernel}`, argument {position}"
    if found.shape != wanted.shape:
        raise AssertionError(f"{where}: has the shape {found.shape}, expected {wanted.shape}")
    exact = not np.issubdtype(found.dtype, np.inexact)
    same = found == wanted if exact else np.isclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True)
    if same.all():
        return
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    raise AssertionError(
        f"{where}: {np.count_nonzero(~same):,} of {same.size:,} elements differ; the first is "
        f"[{', '.join(map(str, at))}]: found {found[at]}, expected {wanted[at]}"
    )
