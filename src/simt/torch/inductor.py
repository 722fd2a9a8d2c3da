"""How Inductor compiles for simulated GPUs: its own way for CUDA, with products from Triton templates."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch._dynamo import device_interface, trace_rules
from torch._inductor import config, select_algorithm
from torch._inductor.cudagraph_utils import CUDAGraphPolicy

import simt

from . import gpus
from .choices import Choices, one
from .operators import DECOMPOSITIONS

DECOMPOSED = set(DECOMPOSITIONS)
_OPTIONS: dict[str, Any] = {
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "TRITON",
    "max_autotune_conv_backends": "TRITON",
    "max_autotune_conv_bwd_input_backends": "TRITON",
    "max_autotune_conv_bwd_weight_backends": "TRITON",
    "autotune_in_subproc": False,
    "autotune_fallback_to_aten": False,
    "benchmark_kernel": False,
    "benchmark_fusion": False,
    "shape_padding": False,  # it measures products with and without
    "cpp_wrapper": False,
    # One configuration of each kernel: measuring them all would simulate each.
    "deterministic": True,
    "compile_threads": 1,
    "use_static_triton_launcher": False,
    "triton.descriptive_names": "original_aten",
    "triton.unique_kernel_names": True,
    "triton.autotune_pointwise": False,
    "triton.autotune_at_compile_time": False,
    # They share memory by an allocator in C++; `Graphs` takes their place.
    "triton.cudagraph_trees": False,
}


class Graphs(CUDAGraphPolicy):  # type: ignore[misc]
    """CUDA graphs that the compiler makes: the copies of a graph's inputs to where it expects them, then its
    kernels.

    A graph saves time of the host, of which there is none here. So nothing is captured, and every call has
    results of its own.
    """

    def cudagraphify(
        self,
        model: Callable[..., Any],
        example_inputs: Sequence[Any],
        static_input_idxs: Sequence[int],
        *,
        mutated_input_idxs: Sequence[int] = (),
        **settings: Any,
    ) -> Callable[..., Any]:
        static = {*static_input_idxs, *mutated_input_idxs}

        def run(inputs: list[Any]) -> Any:
            for place, given in enumerate(inputs):
                if place not in static and isinstance(given, torch.Tensor) and given.device.type != "cpu":
                    copy = torch.empty_strided(
                        given.size(), given.stride(), dtype=given.dtype, device=given.device
                    )
                    inputs[place] = copy.copy_(given)
            return model(inputs)

        return run


def _timed() -> str:
    return "functional" if any(options.get("functional") for _, options in gpus.chosen()) else "timed"


@cache
def _take_templates() -> None:
    select_algorithm.add_preprocessing_fn(one)


def _choices() -> Choices:
    _take_templates()
    found = gpus.gpu_of().gpu
    return Choices(found.spec, found.functional)


def configure() -> None:
    """Sets the configuration of PyTorch's compilers, which each thread has for itself."""
    names = ", ".join(str(name) for name, _ in gpus.chosen())
    for name, value in {**_OPTIONS, "inductor_choices_class": _choices}.items():
        setattr(config, name, value)
    config.cudagraph_policy = Graphs()
    torch.compiler.config.cache_key_tag = f"simt {names} {_timed()}"


def install() -> None:
    """Tells PyTorch's compilers of the device, by its interface for CUDA with what is here, and
    sets their configuration."""
    configure()
    # Dynamo compiles what a program does, not what simulates it.
    *others, last = sorted({module.name for module in pkgutil.iter_modules(simt.__path__)} - {"examples"})
    trace_rules.SKIP_DIRS.extend(str(Path(simt.__path__[0], name)) for name in others)
    trace_rules.add(f"simt.{last}")  # which compiles an expression of all
    device_interface.init_device_reg()

    class Interface(device_interface.CudaInterface):  # type: ignore[misc]
        Event = torch.cuda.Event
        Stream = torch.cuda.Stream
        get_raw_stream = staticmethod(torch._C._cuda_getCurrentRawStream)
        exchange_device = staticmethod(torch.cuda._exchange_device)
        maybe_exchange_device = staticmethod(torch.cuda._maybe_exchange_device)

        @staticmethod
        def is_triton_capable(device: Any = None) -> bool:
            return True

        @staticmethod
        def raise_if_triton_unavailable(device: Any = None) -> None:
            """It is there."""

    for type in ("cuda", "simt"):
        for name in (type, *(f"{type}:{index}" for index in range(gpus.count()))):
            device_interface.register_interface_for_device(name, Interface)
