"""PyTorch on simulated GPUs, with PyTorch's CPU build.

    simt.torch.use("h100")
    model.to("simt")

Tensors on "simt" lie in the memory of a simulated GPU, operators run there as kernels, and so do
Triton's kernels. Scripts that say "cuda" run as they are: `python -m simt.torch script.py`. See
docs/pytorch-scripts.md.

    gpu = simt.GPU("h100")
    model = torch.compile(model, backend="simt", options={"gpu": gpu})
    output = model(input)

TorchInductor generates Triton kernels for the simulated GPU, matrix products and convolutions included;
forward, backward and, if it is compiled as well, the optimiser's step run there. Tensors are ordinary CPU
tensors: those that a compiled model makes lie in the GPU's memory, others are copied there for each call.
`gpu.result().operators()` lists what each operator of the model took. See docs/pytorch.md.
"""

from simt.extras import explained

try:
    from .backend import backend, gpu
    from .script import results, use
except ModuleNotFoundError as error:
    raise explained(error, "simt.torch") from None

__all__ = ["backend", "gpu", "results", "use"]
