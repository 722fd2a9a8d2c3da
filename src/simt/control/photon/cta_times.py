"""Begin and end of CTAs, from those of their warps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..controller import WARP

Cycles = npt.NDArray[np.int64]


class CtaTimes:
    """Collects finished warps into finished CTAs."""

    def __init__(self, warps_per_cta: int) -> None:
        self._warps_per_cta = warps_per_cta
        self._pending: npt.NDArray[np.void] = np.empty(0, WARP)

    def add(self, warps: npt.NDArray[np.void]) -> tuple[Cycles, Cycles]:
        """The CTAs whose last warp is among these (dtype WARP, by end): begin of the first warp and end of
        the last in cycles, in the order in which the CTAs ended."""
        pending = np.concatenate([self._pending, warps])
        _, of_warp, counts = np.unique(pending["cta"], return_inverse=True, return_counts=True)
        whole = counts[of_warp] == self._warps_per_cta
        self._pending = pending[~whole]
        ended = pending[whole]
        ended = ended[np.argsort(ended["cta"], kind="stable")].reshape(-1, self._warps_per_cta)
        begin = ended["begin"].astype(np.int64).min(axis=1)
        end = ended["end"].astype(np.int64).max(axis=1)
        order = np.argsort(end, kind="stable")
        return begin[order], end[order]
