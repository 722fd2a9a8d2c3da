"""PyTorch and Triton scripts as they are: what `use` sets up."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from simt.errors import SimtError
from simt.exec import numbered
from simt.gpu import GPU
from simt.result import Result

from . import cuda_build, eager, gpus, inductor, locations, named, patches, profiling, proton, triton_driver

if TYPE_CHECKING:
    from simt.check.findings import Finding

_installed = False


def use(
    gpu: str | os.PathLike[str] | GPU | Sequence[Any] = "h100",
    *,
    timed: bool = True,
    device: str = "simt",
    **options: Any,
) -> None:
    """Makes simulated GPUs PyTorch's devices "simt:0", "simt:1", ...; Triton's kernels run there as well.

    gpu: a specification, a `simt.GPU`, or a list for several devices. timed: False computes values only.
    device: "cuda" for programs that say so: then these are the names of the devices.
    options: of `simt.GPU`.

    Raises SimtError if a GPU is in use already, or PyTorch has another version.
    """
    names = [gpu] if isinstance(gpu, (str, os.PathLike, GPU)) else list(gpu)
    if not timed:
        options["functional"] = True
    output = options.pop("output", None)
    gpus.choose(
        [(name, {**options, "output": place}) for name, place in zip(names, numbered(output), strict=False)]
    )
    _install(device)


def _install(type: str) -> None:
    global _installed
    if _installed:
        return
    if not torch.__version__.startswith(patches.VERSIONS["torch"] + "."):
        raise SimtError(
            f"simt.torch is for PyTorch {patches.VERSIONS['torch']}, found {torch.__version__}: install "
            f"torch=={patches.VERSIONS['torch']}.*"
        )
    _installed = True
    cuda_build.install()
    if type == named.NAME:
        named.install()
    patches.install(type)
    for name in eager.KEYS:
        eager.install(name)
    locations.install()
    triton_driver.install()
    profiling.install(type)
    proton.install()
    inductor.install()
    atexit.register(_end)


def _end() -> None:
    """The program ends: what is queued runs, and Results are saved."""
    for found in gpus.made():
        found.gpu.synchronize()
        if not found.gpu.functional:
            found.gpu.save()


def findings() -> list[Finding]:
    """What the checker found on the devices in use, with the option `check`."""
    return [finding for found in gpus.made() for finding in found.gpu.findings()]


def results() -> list[Result]:
    """The Results of the devices in use."""
    return [found.gpu.result() for found in gpus.made()]
