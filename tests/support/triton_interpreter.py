"""Runs kernels of `triton_kernels` in Triton's interpreter, which computes with NumPy what they say.

python triton_interpreter.py FOLDER, with TRITON_INTERPRET=1: runs each launch of FOLDER/launches.json, whose
arrays are FOLDER/NAME.npy and are overwritten with what the kernel leaves in them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


class Storage:
    """A tensor's memory."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def cpu(self) -> Storage:
        return Storage(self.array.copy())

    def copy_(self, other: Storage) -> None:
        self.array[...] = other.array


class Tensor:
    """The part of PyTorch's tensor interface that the interpreter uses."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    @property
    def dtype(self) -> str:
        return f"torch.{self.storage.array.dtype}"

    def data_ptr(self) -> int:
        return self.storage.data_ptr()

    def untyped_storage(self) -> Storage:
        return self.storage

    def new_empty(self, size: int, device: str) -> Tensor:
        return Tensor(self.storage)

    def set_(self, storage: Storage, *shape: Any) -> None:
        self.storage = storage

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.storage.array.shape

    def stride(self) -> tuple[int, ...]:
        return ()


def main() -> None:
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from support import triton_kernels as kernels

    for kernel, grid, arguments, constants in json.loads((folder / "launches.json").read_text()):
        tensors = {a: Tensor(Storage(np.load(folder / f"{a}.npy"))) for a in arguments if isinstance(a, str)}
        getattr(kernels, kernel)[tuple(grid)](*[tensors.get(a, a) for a in arguments], **constants)
        for name, tensor in tensors.items():
            np.save(folder / f"{name}.npy", tensor.storage.array)


if __name__ == "__main__":
    main()
