"""Makes PyTorch's compiler generate code for a GPU that this computer does not have.

Inductor asks PyTorch for the properties of the CUDA device while it generates code. Inside `imitated`, a
PyTorch built without CUDA answers with those of a specification.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._dynamo import device_interface
from torch._dynamo.eval_frame import innermost_backend
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._inductor import config, select_algorithm, utils
from torch._inductor.codegen import common
from torch._inductor.kernel import mm
from torch._inductor.runtime.hints import DeviceProperties
from torch._inductor.virtualized import V
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver as triton_driver

from simt.cuda.ptx_module import arch_number
from simt.spec import Spec

from .choices import Choices, one
from .operators import attention
from .wrapper import DeviceOps, Scheduling, Wrapper

_LOCK = threading.RLock()
_CUDA, _META = 1, 14  # PyTorch's numbers of device types (c10/core/DeviceType.h)

_OF_DEVICE = DeviceProperties.create, utils.get_max_num_sms, utils.using_b200, mm._is_sm7x_or_older_gpu
"""Functions that remember what they found about the device."""

_OPTIONS: dict[str, Any] = {
    # Matrix products and convolutions from templates: there are no closed libraries here.
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "TRITON",
    "max_autotune_conv_backends": "TRITON",
    "max_autotune_conv_bwd_input_backends": "TRITON",
    "max_autotune_conv_bwd_weight_backends": "TRITON",
    "autotune_in_subproc": False,
    "autotune_fallback_to_aten": False,
    # Nothing is timed while compiling.
    "epilogue_fusion": True,
    "benchmark_kernel": False,
    "benchmark_fusion": False,
    "triton.cudagraphs": False,
    "triton.autotune_at_compile_time": False,
    "cpp_wrapper": False,
    "compile_threads": 1,
    # A cache would have to know the specification.
    "fx_graph_cache": False,
    "fx_graph_remote_cache": False,
    "force_disable_caches": True,
    "triton.descriptive_names": "original_aten",
    "triton.unique_kernel_names": True,
}


def properties(spec: Spec) -> SimpleNamespace:
    """What `torch.cuda.get_device_properties` would say of a GPU, as far as Inductor asks."""
    number = arch_number(f"sm_{spec.sm_version}")[0]
    return SimpleNamespace(
        name=f"NVIDIA {spec.name.upper()}",  # programs look for the maker in it
        major=number // 10,
        minor=number % 10,
        multi_processor_count=spec.sm.count,
        regs_per_multiprocessor=spec.sm.register_file.registers,
        max_threads_per_multi_processor=spec.sm.max_warps * spec.sm.warp_size,
        max_threads_per_block=min(1024, spec.sm.max_warps * spec.sm.warp_size),
        shared_memory_per_block_optin=spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta,
        warp_size=spec.sm.warp_size,
        gcnArchName="",
    )


def _interface(found: SimpleNamespace) -> type[device_interface.DeviceInterface]:
    class Interface(device_interface.DeviceInterface):  # type: ignore[misc]
        class Worker:
            @staticmethod
            def set_device(device: int) -> None: ...

            @staticmethod
            def current_device() -> int:
                return 0

            @staticmethod
            def get_device_properties(device: Any = None) -> Any:
                return found

        @staticmethod
        def current_device() -> int:
            return 0

        @staticmethod
        def set_device(device: Any) -> None: ...

        @staticmethod
        def device_count() -> int:
            return 1

        @staticmethod
        def is_available() -> bool:
            return True

        @staticmethod
        def synchronize(device: Any = None) -> None: ...

        @staticmethod
        def get_device_properties(device: Any = None) -> Any:
            return found

        @staticmethod
        def get_compute_capability(device: Any = None) -> int:
            return int(10 * found.major + found.minor)

        @staticmethod
        def get_raw_stream(device_index: int) -> int:
            return 0

        @staticmethod
        def is_bf16_supported(including_emulation: bool = False) -> bool:
            return bool(found.major >= 8)

        @staticmethod
        def is_triton_capable(device: Any = None) -> bool:
            return True

        @staticmethod
        def raise_if_triton_unavailable(device: Any = None) -> None: ...

    return Interface


@contextlib.contextmanager
def _device_guard() -> Iterator[None]:
    """Within the block, C++ code may switch to a CUDA device, which does nothing.

    A PyTorch built without CUDA has no device guard for it, and some operators on tensors without values ask
    for one. That of the "meta" device fits: its tensors have no values either.
    """
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    try:
        guards = (ctypes.c_void_p * (_META + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    except ValueError:  # linked otherwise: only those operators fail
        yield
        return
    before = guards[_CUDA]
    guards[_CUDA] = before or guards[_META]
    try:
        yield
    finally:
        guards[_CUDA] = before


def _triton_target(found: SimpleNamespace) -> contextlib.AbstractContextManager[Any]:
    """Within the block, Triton compiles for a GPU of these properties."""
    target = GPUTarget("cuda", 10 * found.major + found.minor, found.warp_size)
    return mock.patch.object(triton_driver, "_active", SimpleNamespace(get_current_target=lambda: target))


@contextlib.contextmanager
def imitated(spec: Spec, functional: bool) -> Iterator[None]:
    """Within the block, "cuda:0" has the properties of `spec`, for tensors without values only.

    functional: whether code is generated for a GPU without timing.
    """
    found = properties(spec)
    capability = (found.major, found.minor)
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(_LOCK)
        enter(_device_guard())
        common.init_backend_registration()
        device_interface.init_device_reg()
        common.get_device_op_overrides("cuda")
        for name, answer in {
            "is_available": True,
            "is_initialized": True,
            "device_count": 1,
            "current_device": 0,
            "get_device_properties": found,
            "get_device_capability": capability,
            "is_bf16_supported": found.major >= 8,
            "is_tf32_supported": found.major >= 8,
            "synchronize": None,
            "get_rng_state": torch.zeros(16, dtype=torch.uint8),
            "set_rng_state": None,
            "_exchange_device": 0,
            "_maybe_exchange_device": 0,
        }.items():
            enter(mock.patch.object(torch.cuda, name, lambda *_, answer=answer, **__: answer))
        enter(mock.patch("torch._subclasses.fake_tensor.init_gpu_context", lambda device: None))
        enter(mock.patch("torch._inductor.scheduler.has_triton", lambda *_: True))
        enter(_triton_target(found))
        enter(mock.patch("torch._inductor.runtime.triton_helpers.set_driver_to_gpu", lambda: None))
        interfaces = device_interface.device_interfaces
        enter(mock.patch.dict(interfaces, {"cuda": _interface(found), "cuda:0": _interface(found)}))
        codegen = common.DeviceCodegen(Scheduling, Wrapper)
        enter(mock.patch.dict(common.device_codegens, {"cuda": codegen}))
        enter(mock.patch.dict(common.device_op_overrides_dict, {"cuda": DeviceOps()}))
        # On few SMs, products would go to a library, which does not exist here.
        enter(mock.patch("torch._inductor.utils.is_big_gpu", lambda *_: True))
        for remembered in _OF_DEVICE:
            remembered.cache_clear()
            stack.callback(remembered.cache_clear)
        enter(config.patch(_OPTIONS))
        # By default the templates of gradients allow TF32, those of convolutions themselves do not.
        tf32 = torch.get_float32_matmul_precision() != "highest"
        stack.callback(setattr, torch.backends.cudnn, "allow_tf32", torch.backends.cudnn.allow_tf32)
        torch.backends.cudnn.allow_tf32 = tf32
        enter(V.set_choices_handler(Choices(spec, functional)))
        enter(mock.patch.object(select_algorithm.get_algorithm_selector_cache(), "preprocessing_fns", [one]))
        yield


def trace_triton_kernels(compiler: Callable[..., Any]) -> None:
    """From now on, models that are compiled by this backend may launch Triton kernels of their own.

    Dynamo makes a launch part of the graph if PyTorch has a device for Triton, which it asks before it calls
    the backend.
    """

    def has_triton() -> bool:
        try:
            used = innermost_backend(InstructionTranslator.current_tx().output.compiler_fn)
        except AttributeError:  # nothing is being traced
            used = None
        return getattr(used, "compiler_fn", used) is compiler or bool(of_this_computer())

    of_this_computer = _triton.has_triton
    _triton.has_triton = has_triton


@contextlib.contextmanager
def tracing(spec: Spec) -> Iterator[None]:
    """Within the block, graphs are traced without what is for the CPU only: patterns, and fused attention.

    spec: the GPU that Triton kernels of the model are for.
    """
    with (
        _LOCK,
        _triton_target(properties(spec)),
        mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", attention),
        sdpa_kernel(SDPBackend.MATH),
        mock.patch("torch._inductor.fx_passes.joint_graph.lazy_init", lambda *_: None),
        config.patch(_OPTIONS),
    ):
        yield
