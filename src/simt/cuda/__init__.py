"""Programs to PTX, without a GPU: CUDA C++, Triton, Numba, and PTX in compiled files.

`compile_triton` and `compile_numba` are in `simt.cuda.triton` and `simt.cuda.numba_cuda`.
"""

from .link import link
from .load import load
from .nvrtc import compile_cuda
from .ptx_module import PtxModule
from .ptxas import Resources, machine_code, resources

__all__ = ["PtxModule", "Resources", "compile_cuda", "link", "load", "machine_code", "resources"]
