"""Machine code as a program to load: a cubin, and the GPUs that execute it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NoReturn

from simt.errors import ImageError, SassError
from simt.sass import Cubin

from .image import Image
from .ptx_module import arch_number

_OLDEST_DECODED = 70
_SUCCESSOR = 75
"""Volta executes Turing's code here as well, since CUDA 13 compiles none for Volta."""


@dataclass(frozen=True)
class CubinModule(Image):
    """Machine code of one architecture."""

    error: ClassVar[type[ImageError]] = SassError

    name: str
    """File, for messages."""
    arch: str
    """The architecture, such as "sm_90a"."""
    cubin: Cubin
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of kernels in the CUDA C++ that it was compiled from, to those in the cubin."""

    @classmethod
    def parse(cls, data: bytes, name: str) -> CubinModule:
        """Raises SassError, and ToolkitError as `Cubin.parse`."""
        cubin = Cubin.parse(data, name)
        return cls(name, cubin.arch, cubin)

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        return tuple(kernel.name for kernel in self.cubin.kernels if kernel.is_entry)

    @property
    def calls(self) -> Iterator[tuple[str, str]]:
        """What each kernel or function refers to by a relocation: their names."""
        for kernel in self.cubin.kernels:
            for held in kernel.code_addresses:
                yield kernel.name, held.symbol

    @property
    def contents(self) -> bytes:
        return self.cubin.data

    def runs_on(self, device: str) -> bool:
        return code_runs_on(self.arch, device)

    def require(self, device: str, gpu: str) -> None:
        """Raises SassError unless a device executes it. gpu: its name, for the message."""
        if not self.runs_on(device):
            raise SassError(
                f"{self.name}: machine code for {self.arch} does not run on {gpu}, which needs "
                f"{code_needed(device)}"
            )

    def without_contraction(self) -> NoReturn:
        raise SassError(
            f"{self.name}: fmad=False does not apply to machine code, whose products and sums are contracted "
            "already; compile it with nvcc --fmad=false, or load its PTX"
        )


def code_arch(device: str) -> str:
    """The architecture of the machine code that a device executes here: its own; for older ones than Volta,
    Volta's, since simt executes no older code.
    """
    return device if arch_number(device)[0] >= _OLDEST_DECODED else f"sm_{_OLDEST_DECODED}"


def successor_of(arch: str) -> str | None:
    """The architecture whose code stands for that of another where there is no compiler for it."""
    return f"sm_{_SUCCESSOR}" if arch_number(arch)[0] < _SUCCESSOR else None


def code_runs_on(code: str, device: str) -> bool:
    """Whether machine code for one architecture runs on a device of another: of the same major version, and
    the same minor one or an older; with "a", of just that version. Volta runs Turing's, too.
    """
    (made, letter), (has, _) = arch_number(code), arch_number(code_arch(device))
    if letter == "a":
        return made == has
    return made // 10 == has // 10 and made <= max(has, _SUCCESSOR)


def code_needed(device: str) -> str:
    """The machine code that a device executes, for messages."""
    number, _ = arch_number(code_arch(device))
    oldest = number // 10 * 10
    return f"sm_{number}" if oldest == number else f"sm_{oldest} to sm_{number}"
