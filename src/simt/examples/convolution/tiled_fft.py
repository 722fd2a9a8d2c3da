"""Convolution by Fourier transforms of tiles."""

from __future__ import annotations

from .fft import FFT
from .problem import Convolution

SIDE = 32
MOST = 16


class TiledFFT(FFT):
    """Transforms of overlapping windows of 32 x 32 (overlap-save). Images may have any size, and filters are
    padded to less than in `FFT`.
    """

    name = "tiled_fft"
    summary = f"Fourier transforms of tiles of {SIDE} x {SIDE}"
    supports = f"filters of at most {MOST} x {MOST} with stride 1"

    @classmethod
    def can_compute(cls, problem: Convolution) -> bool:
        return problem.stride == 1 and max(problem.r, problem.s) <= MOST

    @property
    def _side(self) -> int:
        return SIDE
