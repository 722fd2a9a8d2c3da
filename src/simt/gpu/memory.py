"""Raw memory of a simulated GPU, by address."""

from __future__ import annotations

import resource
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simt.errors import LaunchError

if TYPE_CHECKING:
    from simt._engine.functional import DeviceMemory

    from .gpu import GPU

_Found = TypeVar("_Found")

_LEAST = 64 << 20
"""Bytes of device memory below which none is made."""
_SHARE = 4
"""Of the addresses that the host leaves to the process, device memory takes one part in so many: copies of
it, and all else, need others."""


def reserve(make: Callable[[int], DeviceMemory], size: int, gpu: str) -> DeviceMemory:
    """The engine's memory of `size` bytes. Where the host limits addresses (`ulimit -v`) or files, it is
    smaller, which a warning says.

    make: makes it, of this size. gpu: the name for messages. Raises LaunchError if there is no room at all.
    """
    found = _largest(make, min(size, max(_LEAST, _addresses_left() // _SHARE)))
    if found is None:
        raise LaunchError(
            f"{gpu}: the host gives no addresses for device memory (`ulimit -v` is "
            f"{_limit(resource.RLIMIT_AS)} bytes, `ulimit -f` {_limit(resource.RLIMIT_FSIZE)}); raise it"
        )
    if found.capacity < size:
        warnings.warn(
            f"{gpu}: device memory is {found.capacity:,} bytes instead of {size:,}: the host limits "
            f"addresses (`ulimit -v`: {_limit(resource.RLIMIT_AS)} bytes) or files (`ulimit -f`: "
            f"{_limit(resource.RLIMIT_FSIZE)}); raise the limit, or choose the size with memory=",
            stacklevel=3,
        )
    return found


def _largest(make: Callable[[int], DeviceMemory], size: int) -> DeviceMemory | None:
    while size >= _LEAST:
        try:
            return make(size)
        except MemoryError:
            size //= 2
    try:
        return make(size)
    except MemoryError:
        return None


def _addresses_left() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return 1 << 63
    with suppress(OSError, ValueError):  # elsewhere than on Linux nobody knows
        limit -= int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return max(0, limit)


def _limit(which: int) -> str:
    limit, _ = resource.getrlimit(which)
    return "unlimited" if limit == resource.RLIM_INFINITY else f"{limit:,}"


class Memory:
    """Device memory by address, for programs that manage it themselves (`GPU.memory`).

    An address is a number, which can be passed for a pointer; offsets can be added to it. `read`, `write` and
    `free` wait for work queued in streams.

    capacity: bytes of the whole memory.
    """

    def __init__(self, gpu: GPU, native: DeviceMemory) -> None:
        self.native = native
        self.capacity = self.native.capacity
        self._gpu = weakref.ref(gpu)  # a GPU that is dropped frees its memory at once

    @property
    def used(self) -> int:
        """Bytes allocated."""
        return self.native.used

    def allocate(
        self, size: int, label: str = "raw memory", *, owned: bool = False, unbacked: bool = False
    ) -> int:
        """Allocates `size` bytes of zeros and returns their address, a multiple of 256.

        label: the name used in fault messages. owned: an object will free it, so that it cannot leak.
        unbacked: without memory of the host, as for `GPU.empty`.

        Raises LaunchError if there is no room, if size is not a whole number of 0 or more, or if what is
        unbacked were to be checked.
        """
        size = whole("size", size)
        if unbacked and (gpu := self._gpu()) is not None and gpu.checking is not None:
            raise LaunchError("`check` follows values, and unbacked memory has none; leave one of them out")
        make = self.native.allocate_unbacked if unbacked else self.native.allocate
        try:
            address = 0 if size > self.capacity else self._within(lambda: make(max(1, size), label), False)
        except MemoryError:
            raise LaunchError(
                f"the host gives too few mappings for {size:,} bytes of unbacked memory; raise the kernel's "
                "limit vm.max_map_count"
            ) from None
        if not address:
            raise LaunchError(f"no room for {size:,} bytes: {self.used:,} of {self.capacity:,} are in use")
        if (gpu := self._gpu()) is not None and gpu.checking is not None:
            gpu.checking.allocated(address, size, owned)
        return address

    def free(self, address: int) -> None:
        """Frees an allocation; a program that uses it afterwards is at fault.

        Raises LaunchError unless the address is the beginning of an allocation.
        """
        address = whole("address", address)
        is_known = self._within(lambda: self.native.free(address))
        if (gpu := self._gpu()) is not None and gpu.checking is not None:
            gpu.checking.freed(address, is_known)
        if not is_known:
            raise LaunchError(f"{address:#x} cannot be freed: it is {self.native.describe(address)}")

    def read(self, address: int, size: int) -> bytes:
        """A copy of `size` bytes. Raises LaunchError unless they are within one allocation."""
        address, size = whole("address", address), whole("size", size)
        try:
            return self._within(lambda: self.native.read(address, size))
        except IndexError as error:
            raise LaunchError(f"{size:,} bytes at {address:#x} cannot be read: {error}") from None

    def write(self, address: int, data: bytes) -> None:
        """Writes bytes. Raises LaunchError unless they are within one allocation."""
        address, data = whole("address", address), bytes(data)
        gpu = self._gpu()

        def put() -> None:
            self.native.write(address, data)
            if gpu is not None:
                gpu.copied_from_host(address, len(data))

        try:
            self._within(put)
        except IndexError as error:
            raise LaunchError(f"{len(data):,} bytes at {address:#x} cannot be written: {error}") from None

    def allocations(self) -> list[tuple[int, int, str, bool]]:
        """All allocations in address order: address, size, label, and whether a kernel's malloc made it."""
        return self.native.allocations()

    def _within(self, act: Callable[[], _Found], wait: bool = True) -> _Found:
        gpu = self._gpu()
        if gpu is None:
            return act()
        with gpu.exclusive:
            if wait:
                gpu.synchronize()
            return act()

    def __repr__(self) -> str:
        return f"Memory({self.used:,} of {self.capacity:,} bytes in use)"


def whole(name: str, value: Any) -> int:
    """A whole number of 0 or more; an address, of 64 bits. Raises LaunchError for anything else."""
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        number = -1
    if number < 0 or (name == "address" and number >= 1 << 64):
        raise LaunchError(f"{name} is {value!r}, expected a whole number of 0 or more")
    return int(number)
