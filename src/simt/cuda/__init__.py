"""Programs to PTX, without a GPU: CUDA C++, Triton, Numba, and PTX and machine code in compiled files.

`compile_triton` and `compile_numba` are in `simt.cuda.triton` and `simt.cuda.numba_cuda`.
"""

from .cubin_module import CubinModule
from .image import Image
from .link import link
from .load import load, load_images
from .nvrtc import compile_cuda
from .ptx_module import PtxModule
from .ptxas import Resources, machine_code, resources

__all__ = [
    "CubinModule",
    "Image",
    "PtxModule",
    "Resources",
    "compile_cuda",
    "link",
    "load",
    "load_images",
    "machine_code",
    "resources",
]
