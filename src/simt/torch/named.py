"""The device "simt": PyTorch's interface for devices of extensions (PrivateUse1), written in Python.

"simt:0" and "cuda:0" are two names of the same simulated GPU. `torch.simt` is what `torch.cuda` is.
"""

from __future__ import annotations

import types
from typing import Any

import torch

from . import gpus, named_compile

NAME = "simt"
_SHARED = (
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_stream",
    "stream",
    "synchronize",
)
"""Functions of `torch.cuda` that the device has as well."""


class _Hooks(torch._C._acc.PrivateUse1Hooks):  # type: ignore[misc]
    def is_available(self) -> bool:
        return True

    def has_primary_context(self, device: int) -> bool:
        return any(found.index == device for found in gpus.made())

    def is_built(self) -> bool:
        return True


def _module() -> types.ModuleType:
    module: Any = types.ModuleType(f"torch.{NAME}", "The simulated GPUs, under their own name.")
    for name in _SHARED:
        setattr(module, name, getattr(torch.cuda, name))
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False
    module._lazy_init = lambda: None
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16, torch.float32]
    return module  # type: ignore[no-any-return]


def install() -> None:
    """Gives PyTorch the device "simt"."""
    torch.utils.rename_privateuse1_backend(NAME)
    torch.utils.generate_methods_for_privateuse1_backend()
    torch._register_device_module(NAME, _module())
    torch._C._acc.register_python_privateuseone_hook(_Hooks())
    named_compile.install()
