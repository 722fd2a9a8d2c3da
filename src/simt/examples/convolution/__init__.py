"""Convolution algorithms as CUDA kernels, and a study of how a GPU runs them: see docs/convolution.md."""

from .algorithm import DIRECTIONS, Algorithm
from .atomic_gemm import AtomicGemm
from .direct import Direct
from .explicit_gemm import ExplicitGemm
from .fft import FFT
from .implicit_gemm import ImplicitGemm
from .indexed_gemm import IndexedGemm
from .problem import Convolution
from .tiled_fft import TiledFFT
from .winograd_fused import WinogradFused
from .winograd_nonfused import WinogradNonfused

ALGORITHMS: dict[str, type[Algorithm]] = {
    algorithm.name: algorithm
    for algorithm in (
        Direct,
        ImplicitGemm,
        WinogradFused,
        WinogradNonfused,
        FFT,
        TiledFFT,
        ExplicitGemm,
        IndexedGemm,
        AtomicGemm,
    )
}

__all__ = ["ALGORITHMS", "DIRECTIONS", "Algorithm", "Convolution"]
