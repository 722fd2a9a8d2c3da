"""Host arrays as arguments of a launch: copying them to the device and back."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError

from .array import DeviceArray
from .elements import element_type, extent, tensor_bytes

if TYPE_CHECKING:
    from .gpu import GPU

_Mask = npt.NDArray[np.bool_]


class HostArrays:
    """The host arrays of one launch, on the device.

    Arrays that share memory also share it on the device: contiguous arrays whose bytes overlap, and arrays
    that the kernel accesses with their strides (`strided`), are in one copy of everything they span. For a
    kernel that does not know strides, an array with gaps is copied without them. That would be wrong if
    another array that shows the same elements is written, which is therefore refused, as is writing to a
    read-only array. Writes are detected by comparing values.
    """

    def __init__(self, gpu: GPU, kernel: str, strided: bool) -> None:
        self._gpu = gpu
        self._kernel = kernel
        self._strided = strided
        self._views: dict[int, _View] = {}  # by the identity of what was given
        self._copies: list[_Copy] = []

    def __bool__(self) -> bool:
        return bool(self._views)

    def add(self, value: Any, array: npt.NDArray[Any], name: str) -> None:
        """An array passed to the launch, and the object it was passed as. name: for messages."""
        try:
            element_type(array.dtype, dates=self._strided)
        except LaunchError as error:
            raise LaunchError(f"kernel `{self._kernel}`, {name}: {error}") from None
        if id(value) not in self._views:
            self._views[id(value)] = _View(value, array, name)

    def address(self, value: Any) -> int | None:
        """Device address of the first element of an argument; None if it is not a host array."""
        view = self._views.get(id(value))
        return None if view is None else view.address

    def place(self) -> None:
        """Copies all of them to the device."""
        whole: list[_View] = []
        packed: list[_View] = []
        for view in self._views.values():
            (whole if self._strided or view.array.flags.c_contiguous else packed).append(view)
        same: dict[Any, list[_View]] = {}
        for view in packed:
            same.setdefault(view.layout, []).append(view)
        kinds: list[tuple[type[_Span | _Packed], list[_View]]] = []
        kinds += [(_Span, views) for views in _overlapping(whole)]
        kinds += [(_Packed, views) for views in same.values()]
        # In the order of the arguments: addresses on the device must not depend on those on the host.
        order = {id(view): number for number, view in enumerate(self._views.values())}
        for kind, views in sorted(kinds, key=lambda k: min(order[id(view)] for view in k[1])):
            self._copies.append(kind(self._gpu, views))

    def copy_back(self) -> None:
        """Copies what the kernel has written into the host arrays. Raises LaunchError if one of them cannot
        be written; then none is changed.
        """
        changed = [(copy, found) for copy in self._copies if (found := copy.read()) is not None]
        for copy, found in changed:
            copy.check(found, self._kernel)
            self._check_others(copy, found)
        for copy, found in changed:
            copy.write(found)
        self.discard()

    def discard(self) -> None:
        """Frees the copies."""
        for copy in self._copies:
            copy.device.discard()
        self._copies = []

    def _check_others(self, copy: _Copy, found: _Found) -> None:
        for other in self._copies:
            begin, end = max(copy.begin, other.begin), min(copy.end, other.end)
            if other is copy or begin >= end:
                continue
            written = copy.changed_bytes(found)[begin - copy.begin : end - copy.begin]
            if (written & other.shown_bytes()[begin - other.begin : end - other.begin]).any():
                raise LaunchError(
                    f"kernel `{self._kernel}` has written to {copy.names}, which shares memory with "
                    f"{other.names}; as one of them has gaps, they were separate copies on the device, and "
                    "the result may be wrong. Nothing was copied back; give arrays without gaps, or copies"
                )


@dataclass(eq=False)
class _View:
    """A host array as passed by the program."""

    value: Any
    array: npt.NDArray[Any]
    name: str
    address: int = 0

    @property
    def pointer(self) -> int:
        return int(self.array.__array_interface__["data"][0])

    @property
    def span(self) -> tuple[int, int]:
        begin, end = extent(self.array.shape, self.array.strides, self.array.itemsize)
        return self.pointer + begin, self.pointer + end

    @property
    def layout(self) -> tuple[Any, ...]:
        return self.pointer, self.array.shape, self.array.strides, self.array.dtype

    def inside(self, memory: npt.NDArray[np.uint8], begin: int) -> npt.NDArray[Any]:
        """Its elements in a copy of host memory that starts at address `begin`, each as a row of bytes."""
        a = self.array
        rows: npt.NDArray[Any] = np.ndarray(
            (*a.shape, a.itemsize), np.uint8, memory.data, self.pointer - begin, (*a.strides, 1)
        )
        return rows

    def refusal(self) -> str:
        """Why it cannot be written; empty if it can."""
        if not self.array.flags.writeable:
            return "is read-only"
        given = self.value
        if isinstance(given, (np.ndarray, np.generic)) or hasattr(given, "__array_interface__"):
            return ""
        if tensor_bytes(given) is not None:
            return ""
        if hasattr(given, "__array__") and np.asarray(given).__array_interface__["data"][0] != self.pointer:
            return f"is a copy that {type(given).__name__}.__array__ has made"
        return ""


_Found = npt.NDArray[np.uint8]
"""What lies in a copy on the device after the launch."""


class _Copy(ABC):
    """Device memory that replaces host memory from address `begin` to `end`."""

    def __init__(self, views: list[_View], device: DeviceArray, begin: int, end: int) -> None:
        self.views = views
        self.device = device
        self.begin, self.end = begin, end

    @property
    def names(self) -> str:
        return " and ".join(view.name for view in self.views)

    @abstractmethod
    def read(self) -> _Found | None:
        """Its current contents; None if they equal the host's."""

    @abstractmethod
    def check(self, found: _Found, kernel: str) -> None:
        """Raises LaunchError if a host array cannot be written."""

    @abstractmethod
    def write(self, found: _Found) -> None:
        """Writes the contents to the host arrays."""

    @abstractmethod
    def changed_bytes(self, found: _Found) -> _Mask:
        """The bytes from begin to end that differ from the host's."""

    def shown_bytes(self) -> _Mask:
        """The bytes from begin to end that belong to elements of the arrays."""
        return _shown(self.views, self.begin, self.end)

    def _refuse(self, view: _View, kernel: str) -> None:
        raise LaunchError(
            f"kernel `{kernel}` has written to {view.name}, which {view.refusal()}: nothing was copied back. "
            "Give a writable NumPy array, or one of the device (gpu.array)"
        )


class _Span(_Copy):
    """All bytes spanned by some arrays, at the same distances as on the host."""

    def __init__(self, gpu: GPU, views: list[_View]) -> None:
        begin = min(view.span[0] for view in views)
        end = max(view.span[1] for view in views)
        first = views[0].array
        lead = 0
        if len(views) == 1 and first.flags.c_contiguous and first.dtype.kind not in "mM":
            device = gpu.empty(first.shape, first.dtype)
        else:
            aligned = all((v.pointer - begin) % max(1, v.array.dtype.alignment) == 0 for v in views)
            lead = 0 if aligned else begin % 16
            device = gpu.empty(lead + end - begin, np.uint8)
        super().__init__(views, device, begin, end)
        self._gpu, self._address = gpu, device.address + lead
        for view in views:
            view.address = self._address + view.pointer - begin
        if end > begin:
            gpu.write(self._address, self._host())

    def _host(self) -> npt.NDArray[np.uint8]:
        memory: Any = (ctypes.c_uint8 * (self.end - self.begin)).from_address(self.begin)
        return np.frombuffer(memory, np.uint8)

    def read(self) -> _Found | None:
        if self.end == self.begin:
            return None
        found = np.frombuffer(self._gpu.peek(self._address, self.end - self.begin), np.uint8)
        return None if np.array_equal(found, self._host()) else found

    def changed_bytes(self, found: _Found) -> _Mask:
        return np.asarray(found != self._host())

    def check(self, found: _Found, kernel: str) -> None:
        closed = [view for view in self.views if view.refusal()]
        if not closed:
            return
        lost = self.changed_bytes(found)
        lost &= ~_shown([view for view in self.views if view not in closed], self.begin, self.end)
        for view in closed:
            if (lost & _shown([view], self.begin, self.end)).any():
                self._refuse(view, kernel)

    def write(self, found: _Found) -> None:
        host = self._host()
        for view in self.views:
            if not view.refusal():
                view.inside(host, self.begin)[...] = view.inside(found, self.begin)


class _Packed(_Copy):
    """A contiguous copy of an array with gaps. views: the array, and others identical to it."""

    def __init__(self, gpu: GPU, views: list[_View]) -> None:
        array = views[0].array
        device = gpu.array(array)
        super().__init__(views, device, *views[0].span)
        self._gpu = gpu
        for view in views:
            view.address = device.address

    def read(self) -> _Found | None:
        found = np.frombuffer(self._gpu.peek(self.device.address, self.device.nbytes), np.uint8)
        return None if np.array_equal(found, self._host()) else found

    def _host(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(np.ascontiguousarray(self.views[0].array).tobytes(), np.uint8)

    def changed_bytes(self, found: _Found) -> _Mask:
        memory = np.zeros(self.end - self.begin, np.uint8)
        view = self.views[0]
        elements = view.inside(memory, self.begin)
        elements |= (found != self._host()).reshape(elements.shape)
        return memory.view(np.bool_)

    def check(self, found: _Found, kernel: str) -> None:
        for view in self.views:
            if view.refusal():
                self._refuse(view, kernel)
        view = self.views[0]
        if _may_overlap_itself(view.array):
            raise LaunchError(
                f"kernel `{kernel}` has written to {view.name}, which shows the same memory more than once: "
                "nothing was copied back. Give a copy of the array"
            )

    def write(self, found: _Found) -> None:
        array = self.views[0].array
        array[...] = found.view(array.dtype).reshape(array.shape)


def _overlapping(views: list[_View]) -> list[list[_View]]:
    """Groups arrays whose bytes overlap."""
    empty = [[view] for view in views if not view.array.size]
    groups: list[list[_View]] = []
    end = 0
    for view in sorted((view for view in views if view.array.size), key=lambda v: v.span):
        begin, its_end = view.span
        if groups and begin < end:
            groups[-1].append(view)
            end = max(end, its_end)
        else:
            groups.append([view])
            end = its_end
    return groups + empty


def _shown(views: Iterable[_View], begin: int, end: int) -> _Mask:
    memory = np.zeros(end - begin, np.uint8)
    for view in views:
        view.inside(memory, begin)[...] = 1
    return memory.view(np.bool_)


def _may_overlap_itself(array: npt.NDArray[Any]) -> bool:
    """Whether two elements may share memory: not if each stride exceeds what the smaller ones span."""
    reach = array.itemsize
    for step, n in sorted((abs(s), n) for n, s in zip(array.shape, array.strides, strict=True) if n > 1):
        if step < reach:
            return True
        reach += step * (n - 1)
    return False
