"""How Inductor compiles for simulated GPUs: its own way for CUDA, with products from Triton templates."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch._dynamo import device_interface
from torch._inductor import config, select_algorithm
from torch._inductor.virtualized import V

from simt.spec import Spec

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
    "cpp_wrapper": False,
    "compile_threads": 1,
    "use_static_triton_launcher": False,
    "triton.descriptive_names": "original_aten",
    "triton.unique_kernel_names": True,
    "triton.autotune_pointwise": False,
    "triton.autotune_at_compile_time": False,
}


@contextlib.contextmanager
def settings(spec: Spec, functional: bool) -> Iterator[None]:
    """Within the block, Inductor compiles for a simulated GPU of this specification."""
    tf32 = torch.get_float32_matmul_precision() != "highest"
    known = {k: v for k, v in _OPTIONS.items() if _has(k)}
    tag = f"simt {spec.name} {functional} {tf32}"
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(config.patch(known))
        enter(torch.compiler.config.patch(cache_key_tag=tag))
        enter(V.set_choices_handler(Choices(spec, functional)))
        enter(mock.patch("torch._inductor.utils.is_big_gpu", lambda *_: True))
        stack.callback(setattr, torch.backends.cudnn, "allow_tf32", torch.backends.cudnn.allow_tf32)
        torch.backends.cudnn.allow_tf32 = tf32
        enter(mock.patch.object(select_algorithm.get_algorithm_selector_cache(), "preprocessing_fns", [one]))
        yield


def _has(name: str) -> bool:
    found: Any = config
    for part in name.split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def install() -> None:
    """Tells PyTorch's compilers of the device: its own interface for CUDA, with the functions it has here."""
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

    for name in ("cuda", *(f"cuda:{index}" for index in range(gpus.count()))):
        device_interface.register_interface_for_device(name, Interface)
