"""`torch.load` of what lay on a device: PyTorch's interface for locations of storages."""

from __future__ import annotations

from typing import Any

import torch

from . import eager, gpus

_BEFORE_PYTORCH = 5
"""Priorities below 10 come before PyTorch's own."""


def _tag(storage: Any) -> str | None:
    device = storage.device
    return f"{device.type}:{device.index or 0}" if device.type in eager.KEYS else None


def _place(storage: Any, location: str) -> Any:
    type, _, index = location.partition(":")
    if type not in eager.KEYS:
        return None
    source = torch.empty(0, dtype=torch.uint8).set_(
        storage.untyped() if hasattr(storage, "untyped") else storage
    )
    to = gpus.gpu_of(int(index or 0)).storage(source.numel(), type)
    eager.copy(to, source)
    return to.untyped_storage()


def install() -> None:
    """Lets `torch.save` and `torch.load` know the devices."""
    torch.serialization.register_package(_BEFORE_PYTORCH, _tag, _place)
