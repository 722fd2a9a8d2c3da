"""Matrix products, and error bounds of floating-point sums."""

from __future__ import annotations

from typing import Any

import numpy as np


def product_bound(a: np.ndarray, b: np.ndarray, accumulator: Any) -> tuple[np.ndarray, np.ndarray]:
    """a @ b in double precision, and how much products summed in `accumulator`'s type in any order may
    differ, rounded after each multiplication or not (Higham, Accuracy and Stability of Numerical Algorithms,
    2002, section 3.5). Values must not be subnormal."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    rounding = (a.shape[-1] + 1) * float(np.finfo(accumulator).eps) / 2
    return a @ b, rounding / (1 - rounding) * (np.abs(a) @ np.abs(b))
