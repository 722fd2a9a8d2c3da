"""What an operator does on the device, recorded while its compiled code runs: the memory that it takes, and
its launches. Doing the same again needs neither Inductor nor Triton, and the record is kept on disk for
later processes.

For one operator with tensors of given sizes, strides and types, all that differs from call to call are the
addresses.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton

from simt.cache import cache_directory, used, write_whole
from simt.gpu.module import Launcher

from .gpus import SimulatedGpu, view
from .triton_driver import PACKED, loaded

ALIGNMENT = 16
"""Bytes at which Inductor assumes that tensors begin."""
_POINTER = struct.Struct("<Q")
_PLAIN = (torch.dtype, torch.layout, torch.memory_format, torch.device, torch.Size, str, type(None))
_NUMBERS = (bool, int, float, complex)
_CONTAINERS = {type(None): None, torch.Tensor: torch.Tensor, tuple: tuple, list: list}


class MadeTensor(NamedTuple):
    """A tensor that an operator makes. block: the number of its memory. stride, offset: in elements."""

    block: int
    dtype: torch.dtype
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Launched(NamedTuple):
    """A launch. arguments: its parameter block. pointers: where in it addresses are, each with the number of
    what they point into (the operator's tensors, then the memory that it takes) and the bytes from there.
    numbers: where the value of a tensor of the host is, its format, and the number of the tensor.
    """

    text: str
    image: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cluster: tuple[int, int, int]
    cooperative: bool
    arguments: bytes
    pointers: tuple[tuple[int, int, int], ...]
    numbers: tuple[tuple[int, str, int], ...] = ()


@dataclass
class OperatorRecord:
    """An operator's memory, launches and results.

    blocks: bytes of each piece of memory. results: what it makes, or the number of the tensor that it changes
    and returns, or None. shape: the type that holds them, or Tensor for a single one.
    """

    name: str
    blocks: tuple[int, ...]
    launches: tuple[Launched, ...]
    results: tuple[MadeTensor | int | None, ...]
    shape: type
    launchers: dict[int, list[Launcher]] = field(default_factory=dict)
    """What launches it, for each stream."""

    def run(self, gpu: SimulatedGpu, type: str, tensors: Sequence[torch.Tensor]) -> Any:
        """Does it again for other tensors. type: the name of their device."""
        launchers = self.launchers.get(gpu.stream)
        if launchers is None:
            launchers = self.launchers[gpu.stream] = [self._launcher(gpu, each) for each in self.launches]
        blocks = [gpu.block(nbytes) for nbytes in self.blocks]
        places = [tensor.data_ptr() for tensor in tensors]
        places += [block.address for block in blocks]
        gpu.annotation, before = self.name, gpu.annotation
        try:
            for launcher, launched in zip(launchers, self.launches, strict=True):
                arguments = bytearray(launched.arguments)
                for at, number, bytes_after in launched.pointers:
                    _POINTER.pack_into(arguments, at, places[number] + bytes_after)
                for at, form, number in launched.numbers:
                    struct.pack_into(form, arguments, at, tensors[number].item())
                gpu.launch(launcher, bytes(arguments))
        finally:
            gpu.annotation = before
        made: dict[int, torch.Tensor] = {}
        results: list[torch.Tensor | None] = []
        for result in self.results:
            if result is None:
                results.append(None)
            elif isinstance(result, int):
                results.append(tensors[result])
            else:
                number, dtype, size, stride, offset = result
                flat = made.get(number)
                if flat is None:
                    flat = made[number] = gpu.tensor(blocks[number], self.blocks[number], type)
                results.append(view(flat, dtype, size, stride, offset))
        return results[0] if self.shape is torch.Tensor else self.shape(results)

    @staticmethod
    def _launcher(gpu: SimulatedGpu, launched: Launched) -> Launcher:
        kernel = loaded(launched.text, launched.image, gpu.index)[launched.kernel]
        return Launcher(
            kernel,
            launched.grid,
            launched.block,
            launched.shared,
            gpu.stream_of(gpu.stream),
            launched.cluster,
            launched.cooperative,
        )


def followed(
    gpu: SimulatedGpu,
    code: Callable[[list[torch.Tensor]], Any],
    name: str,
    returned: Sequence[int | None],
    tensors: list[torch.Tensor],
) -> tuple[Any, OperatorRecord | None]:
    """The results of compiled code, and the record of what it did, if all of that is known.

    returned: for each result, which of the tensors it is.
    """
    results, recorder = _follow(gpu, code, tensors)
    hosts = [number for number, tensor in enumerate(tensors) if tensor.device.type == "cpu"]
    outputs: Any = results
    if recorder.is_whole and not recorder.is_clear and not hosts and all(t.numel() for t in tensors):
        found = _without_effect(gpu, code, [_stand_in(gpu, tensor) for tensor in tensors])
        if found is None:
            return results, None
        outputs, recorder = found
    elif recorder.is_whole and hosts:
        recorder.is_whole = len(hosts) == 1 and _find_number(gpu, code, tensors, hosts[0], recorder)
    return results, recorder.finished(name, outputs, returned)


def _without_effect(
    gpu: SimulatedGpu, code: Callable[[list[torch.Tensor]], Any], tensors: list[torch.Tensor]
) -> tuple[Any, Recorder] | None:
    """What compiled code would do, without launches; None if it cannot do without."""
    gpu.capture = []
    try:
        return _follow(gpu, code, tensors)
    except RuntimeError:  # it waits for the device
        return None
    finally:
        gpu.capture = None


def _stand_in(gpu: SimulatedGpu, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same layout in memory of its own."""
    shift = tensor.storage_offset() * tensor.element_size() % ALIGNMENT
    flat = gpu.storage(shift + _span(tensor), tensor.device.type)
    return view(flat, tensor.dtype, tensor.shape, tensor.stride(), shift // tensor.element_size())


def _follow(
    gpu: SimulatedGpu, code: Callable[[list[torch.Tensor]], Any], tensors: list[torch.Tensor]
) -> tuple[Any, Recorder]:
    gpu.recorder = recorder = Recorder(tensors)
    try:
        return code(tensors), recorder
    finally:
        gpu.recorder = None


def _find_number(
    gpu: SimulatedGpu,
    code: Callable[[list[torch.Tensor]], Any],
    tensors: list[torch.Tensor],
    at: int,
    recorder: Recorder,
) -> bool:
    """Finds where launches take the value of a tensor of the host: what differs with another value, without
    running anything. False if that does not tell.
    """
    value = tensors[at].item()
    if isinstance(value, complex):
        return False
    another = not value if isinstance(value, bool) else value + 1 if math.isfinite(value) else 1.0
    other = [*tensors]
    other[at] = torch.tensor(another, dtype=tensors[at].dtype)
    if other[at].item() == value:
        return False
    found = _without_effect(gpu, code, other)
    if found is None:
        return False
    _, again = found
    return again.is_whole and recorder.compare(again, at, value, other[at].item())


class Recorder:
    """Follows a call of compiled code. tensors: the operator's."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._tensors = [(tensor.data_ptr(), _span(tensor)) for tensor in tensors]
        self._blocks: list[tuple[int, int]] = []
        self._launches: list[Launched] = []
        self._layouts: list[Sequence[tuple[int, str]]] = []
        self.is_clear = _are_apart(
            [span for span, tensor in zip(self._tensors, tensors, strict=True) if not _is_number(tensor)]
        )
        """Whether an address tells which tensor is meant."""
        self.is_whole = True
        """Whether all that was done is known. Others set it to False where they do something else."""

    def allocated(self, address: int, nbytes: int) -> None:
        """Memory for a tensor was taken."""
        self._blocks.append((address, nbytes))

    def launched(self, launcher: Launcher, arguments: bytes, layout: Sequence[tuple[int, str]]) -> None:
        """A kernel was launched. layout: where its arguments are, and their types."""
        pointers = []
        for at, kind in layout:
            if kind[0] != "*":
                continue
            (address,) = _POINTER.unpack_from(arguments, at)
            if not address:  # of scratch memory that the kernel does not need
                continue
            found = self._place(address)
            if found is None:
                self.is_whole &= not self.is_clear  # of tensors that overlap, it does not matter
                return
            pointers.append((at, *found))
        self._layouts.append(layout)
        kernel, image = launcher.kernel, launcher.kernel.module.image
        self._launches.append(
            Launched(
                launcher.kernel.module.ptx.text,
                image.name,
                kernel.name,
                launcher.grid,
                launcher.block,
                launcher.shared,
                launcher.cluster,
                launcher.cooperative,
                arguments,
                tuple(pointers),
            )
        )

    def compare(self, again: Recorder, tensor: int, value: float, other: float) -> bool:
        """Notes which numbers are the value of a tensor of the host, given what was done with another value.
        False if that is not clear.
        """
        if len(self._launches) != len(again._launches):
            return False
        taken = 0
        for number, (first, second) in enumerate(zip(self._launches, again._launches, strict=True)):
            if first._replace(arguments=b"") != second._replace(arguments=b""):
                return False
            found = []
            for at, kind in self._layouts[number]:
                if kind[0] == "*" or kind not in PACKED:
                    continue
                form = "<" + PACKED[kind]
                was, became = (struct.unpack_from(form, x.arguments, at)[0] for x in (first, second))
                if was == became:
                    continue
                if (was, became) != tuple(
                    struct.unpack(form, struct.pack(form, x))[0] for x in (value, other)
                ):
                    return False
                found.append((at, form, tensor))
            self._launches[number] = first._replace(numbers=tuple(found))
            taken += len(found)
        return taken > 0

    def finished(self, name: str, outputs: Any, returned: Sequence[int | None]) -> OperatorRecord | None:
        """The record, if all that was done is known. outputs: of the operator. returned: for each, which of
        its tensors it is.
        """
        shape = _CONTAINERS.get(type(outputs))
        if not self.is_whole or not self.is_clear or shape is None:
            return None
        results: list[MadeTensor | int | None] = []
        for output, which in zip([outputs] if shape is torch.Tensor else outputs, returned, strict=True):
            if which is not None or output is None:
                results.append(which)
                continue
            found = self._place(output.untyped_storage().data_ptr()) if _is_plain(output) else None
            if found is None or found[0] < len(self._tensors) or found[1]:
                return None
            results.append(
                MadeTensor(
                    found[0] - len(self._tensors),
                    output.dtype,
                    tuple(output.shape),
                    output.stride(),
                    output.storage_offset(),
                )
            )
        blocks = tuple(nbytes for _, nbytes in self._blocks)
        return OperatorRecord(name, blocks, tuple(self._launches), tuple(results), shape)

    def _place(self, address: int) -> tuple[int, int] | None:
        """What an address points into, and how far. What was allocated last comes first: addresses are used
        again.
        """
        for number in range(len(self._blocks) - 1, -1, -1):
            first, nbytes = self._blocks[number]
            if first <= address < first + nbytes:
                return len(self._tensors) + number, address - first
        for number, (first, nbytes) in enumerate(self._tensors):
            if first <= address < first + nbytes:
                return number, address - first
        return None


def _is_number(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and not tensor.dim()


def _is_plain(output: Any) -> bool:
    return isinstance(output, torch.Tensor) and output.device.type != "cpu" and bool(output.numel())


def _span(tensor: torch.Tensor) -> int:
    """Bytes from a tensor's first element to its last."""
    if tensor.device.type == "cpu" or not tensor.numel():
        return 0
    last: int = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return (1 + last) * int(tensor.element_size())


def _are_apart(tensors: Sequence[tuple[int, int]]) -> bool:
    """Whether each address belongs to one tensor only; not with tensors of the host, or without elements."""
    spans = sorted(tensors)
    return all(nbytes for _, nbytes in spans) and all(
        first + nbytes <= other for (first, nbytes), (other, _) in pairwise(spans)
    )


@cache
def _environment(gpu: SimulatedGpu) -> bytes:
    """A digest of what kernels depend on besides an operator."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    settings = sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name.startswith(("TRITON_", "TORCH")) and not name.endswith(("_DIR", "_HOME"))
    )
    facts = torch.__version__, triton.__version__, gpu.gpu.functional, gpu.gpu.fmad, settings
    digest.update(repr(facts).encode() + gpu.gpu.spec.hash.encode())
    return digest.digest()


def place_of(gpu: SimulatedGpu, key: tuple[Any, ...]) -> Path | None:
    """The file of an operator's record; None for a key that only this process can understand."""
    for part in key[1:]:
        known = isinstance(part, _PLAIN) or (
            isinstance(part, tuple) and all(isinstance(x, (*_PLAIN, tuple, *_NUMBERS, type)) for x in part)
        )
        if not known and not isinstance(part, _NUMBERS):
            return None
    digest = hashlib.sha256(_environment(gpu) + repr(key).encode()).hexdigest()
    return cache_directory("operators") / digest


def read(path: Path | None) -> OperatorRecord | None:
    """A record that an earlier process has kept; None if there is none, or the file is damaged."""
    if path is None:
        return None
    try:
        found: OperatorRecord = pickle.loads(path.read_bytes())
    except Exception:  # damaged bytes may raise anything
        return None
    used(path)
    return found


def keep(path: Path | None, record: OperatorRecord) -> None:
    """Keeps a record for later processes."""
    if path is not None:
        write_whole(path, pickle.dumps(replace(record, launchers={})))
