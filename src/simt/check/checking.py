"""The checker of a GPU: what the engine finds, and what the host does."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from simt import _engine
from simt.errors import LaunchError, ProgramFault

from .findings import REMEDIES, Access, Check, Finding, plain_names
from .order import Place, WorkOrder

if TYPE_CHECKING:
    from simt.gpu import GPU
    from simt.gpu.module import Launcher
    from simt.run.faults import SourceText

_PACKAGE = str(Path(__file__).parents[1])
_NEAR = 256
"""Bytes behind an allocation that are taken for an index beyond it, whoever has memory of that address."""
_LEAST_POINTER = 1 << 20
"""Addresses below are offsets from a null pointer."""


class Checking:
    """Checks the launches of a GPU. checks: what to look for, as `checks_of` gives it."""

    _gpus: ClassVar[weakref.WeakSet[GPU]] = weakref.WeakSet()
    """Those that are checked, to find out whose an address is."""

    def __init__(self, gpu: GPU, checks: Sequence[str]) -> None:
        self._checks = checks
        self.native = _engine.functional.Checker(list(checks))
        self._gpu = weakref.ref(gpu)
        self._failed = False
        """A fault has ended the program: it could not free what it has allocated."""
        self._gpus.add(gpu)
        self.native.watch(gpu.memory.native)
        self.order = WorkOrder(self.native.forget_work)
        """Of launches, copies and fills: which of them may run at the same time."""
        self._places: dict[int, Place] = {}
        """Of work that has not begun."""
        self._texts: list[tuple[int, SourceText]] = []
        """From which finding of the engine on a program's text explains them."""
        self._of_host: list[Finding] = []
        self._allocated: dict[int, tuple[str, int | None]] = {}
        """Where the host has allocated, by address."""
        self._freed: dict[int, tuple[str, int | None]] = {}

    @contextmanager
    def launch(self, launcher: Launcher) -> Iterator[_engine.functional.Checker]:
        """Surrounds a launch, or a part of one: a fault of the program becomes a finding as well."""
        self._texts.append((len(self.native.findings), launcher.kernel.module.image.source_text))
        try:
            yield self.native
        except ProgramFault as fault:
            self._fault(fault, launcher.kernel.module.image.name)
            raise
        except OverflowError as error:
            raise LaunchError(f"kernel `{launcher.kernel.name}`: {error}; check a smaller grid") from None

    def findings(self) -> list[Finding]:
        """What has been found, equal findings as one; memory that is still allocated is a leak."""
        found = []
        texts = iter(self._texts)
        ahead = next(texts, None)
        text_of: Callable[[str, int], str] = lambda file, line: ""  # noqa: E731
        for number, raw in enumerate(self.native.findings):
            while ahead is not None and ahead[0] <= number:
                text_of, ahead = ahead[1], next(texts, None)
            if raw["count"]:  # else it has turned out to be none
                found.append(Finding.from_native(raw, text_of))
        equal: dict[tuple[object, ...], Finding] = {}
        for one in [*found, *self._of_host, *self._leaks()]:
            before = equal.get(one.identity)
            equal[one.identity] = one if before is None else before.with_count(before.count + one.count)
        return list(equal.values())

    # --- order ------------------------------------------------------------------------------------------

    def submitted(self, number: int, stream: int, after: Iterable[int]) -> None:
        """Work has been submitted to a stream, after other work; numbers grow."""
        self._places[number] = self.order.begin(number, stream, after)

    def launches(self, number: int) -> None:
        """The next launch is this work."""
        place = self._places.pop(number)
        self.native.begin_work(place.number, place.others, place.kept)

    def moved(self, number: int, what: str, rows: Sequence[tuple[int, int, int, int, bool]]) -> None:
        """Work that is no launch has been done. rows: address, bytes, number, bytes apart, and whether they
        are written."""
        place = self._places.pop(number)
        self.native.host_work(place.number, place.others, place.kept, what, rows)

    # --- the host ---------------------------------------------------------------------------------------

    def allocated(self, address: int, size: int, owned: bool) -> None:
        """The host has allocated memory that holds nothing; owned: an object frees it."""
        self.native.begin_fresh(address, size)
        if not owned:
            self._allocated[address] = _caller()

    def owes(self, address: int) -> None:
        """A process has allocated memory, and must free it."""
        self._allocated[address] = "", None

    def paid(self, address: int) -> None:
        """A process has freed it."""
        self._allocated.pop(address, None)

    def written(self, address: int, nbytes: int, rows: int = 1, pitch: int = 0) -> None:
        """The host has written rows of memory, `pitch` bytes apart."""
        for row in range(rows):
            self.native.written(address + row * pitch, nbytes)

    def freed(self, address: int, is_known: bool) -> None:
        """The host frees memory; is_known: whether it was allocated."""
        if is_known:
            self._allocated.pop(address, None)
            self._freed[address] = _caller()
        elif "memory" in self._checks and address in self._freed:
            self._add(
                "memory", "double-free", f"the host frees {address:#x}, which it has freed before", _caller()
            )

    def refused(self, error: LaunchError) -> None:
        """A cooperative launch was refused: its blocks cannot be resident together."""
        if "sync" in self._checks:
            self._add("sync", "cooperative-residency", str(error), _caller())

    def _leaks(self) -> Iterator[Finding]:
        gpu = self._gpu()
        if gpu is None or "leak" not in self._checks or self._failed:
            return
        heap = dict(self.native.heap())
        for address, size, label, by_kernel in gpu.memory.allocations():
            if by_kernel:
                made = Access.from_native(heap[address], self._text_of) if address in heap else None
                message = f"a kernel has not freed {size:,} bytes of its malloc"
                found = _of_host("leak", "leak-heap", message)
                yield (
                    found
                    if made is None
                    else replace(
                        found, kernel=heap[address]["kernel"], file=made.file, line=made.line, second=made
                    )
                )
            elif address in self._allocated:
                file, line = self._allocated[address]
                message = f"{size:,} bytes (`{label}`) have not been freed"
                yield _of_host("leak", "leak-device", message, "", file, line)

    def _text_of(self, file: str, line: int) -> str:
        return self._texts[-1][1](file, line) if self._texts else ""

    def _fault(self, fault: ProgramFault, module: str) -> None:
        for gpu in self._gpus:
            if gpu.checking is not None:
                gpu.checking._failed = True
        check, kind = self._kind_of(fault)
        if kind and check in self._checks:
            message = str(fault).partition("\n")[0].partition(": ")[2] or str(fault)
            awaited = self.native.awaited if kind == "deadlock" else []
            message = plain_names("; ".join([message, *awaited]))
            if any("than it expects" in each or " 0 arrivals and " in each for each in awaited):
                kind = "mbarrier"  # only bytes do not add up
            second = Access(
                what="access" if check == "memory" else "wait",
                file=fault.source_file or (module if fault.ptx_line else ""),
                line=fault.source_line or fault.ptx_line or None,
                instruction=fault.instruction,
                thread=fault.thread,
                block=fault.block,
                address=fault.address,
                source=fault.source_text,
            )
            self._of_host.append(
                Finding(
                    check, kind, fault.kernel, second.file, second.line, message, REMEDIES[kind], None, second
                )
            )

    def _kind_of(self, fault: ProgramFault) -> tuple[Check, str]:
        text = str(fault)
        if fault.kind == "illegal address":
            return "memory", self._kind_of_address(fault, text)
        if fault.kind == "misaligned address":
            return "memory", "misaligned"
        if fault.kind == "mbarrier":
            return "sync", "mbarrier"
        if fault.kind == "divergent warp operation":
            return "sync", "mask"
        if fault.kind == "endless wait":
            return "sync", "deadlock"
        if fault.kind == "divergent barrier":
            return "sync", "barrier-count" if "is waited at for" in text else "deadlock"
        if fault.kind == "illegal instruction" and "barrier" in text:
            return "sync", "barrier-count"
        if fault.kind == "invalid free":
            return "memory", "double-free"
        return "memory", ""

    def _kind_of_address(self, fault: ProgramFault, text: str) -> str:
        address, gpu = fault.address, self._gpu()
        if "bytes into freed" in text:
            return "use-after-free"
        if address is None or gpu is None or address < _LEAST_POINTER or "of shared memory" in text:
            return "out-of-bounds"
        memory = gpu.memory.native
        if any(begin <= address < begin + size for begin, size, _, _ in gpu.memory.allocations()):
            return "out-of-bounds"
        if (
            not memory.base - _LEAST_POINTER <= address < memory.base + memory.capacity
            and address >> 32 not in (6, 7)
        ):
            return "host-pointer" if not self._is_of_other(address) else "wrong-gpu"
        # Memories of GPUs that do not see each other have the same addresses.
        own = any(
            begin <= address < begin + size + max(size, _NEAR)
            for begin, size, _, _ in gpu.memory.allocations()
        )
        return "wrong-gpu" if not own and self._is_of_other(address) else "out-of-bounds"

    def _is_of_other(self, address: int) -> bool:
        others = [gpu.memory.allocations() for gpu in self._gpus if gpu is not self._gpu()]
        return any(begin <= address < begin + size for every in others for begin, size, _, _ in every)

    def _add(self, check: Check, kind: str, message: str, place: tuple[str, int | None]) -> None:
        self._of_host.append(_of_host(check, kind, message, "", *place))


def _of_host(
    check: Check, kind: str, message: str, kernel: str = "", file: str = "", line: int | None = None
) -> Finding:
    return Finding(check, kind, kernel, file, line, message, REMEDIES[kind], None, None)


def _caller() -> tuple[str, int | None]:
    """File and line of the program that called simt."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PACKAGE + os.sep) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
