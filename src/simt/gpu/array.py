"""Arrays in the memory of a simulated GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError
from simt.pages import notebook

from .elements import contiguous_strides, element_type, extent, shape_of

if TYPE_CHECKING:
    from .exclusive import Exclusive
    from .gpu import GPU


class Allocation:
    """Device memory that is freed when it is no longer referenced."""

    def __init__(self, exclusive: Exclusive, address: int) -> None:
        self.freed = False
        self._exclusive = exclusive
        self._address = address

    def free(self) -> None:
        """Frees it as soon as no launch is running."""
        if not self.freed:
            self.freed = True
            self._exclusive.drop(self._address)

    def __del__(self) -> None:
        if hasattr(self, "_address"):
            self.free()


class DeviceArray:
    """An array in device memory, made by `GPU.array`, `GPU.empty` and similar functions, or by indexing
    another
    one.

    shape, dtype, strides (bytes): as in NumPy.
    address: device address of the first element.
    base: the array whose memory a view shares; None for an array with its own memory.

    Indexing (numbers, slices, `...`, None) returns views of the same memory or, if it names one element, its
    value. Reading values waits for all launches.
    """

    def __init__(
        self,
        gpu: GPU,
        address: int,
        shape: tuple[int, ...],
        dtype: npt.DTypeLike,
        memory: Any,
        *,
        strides: tuple[int, ...] | None = None,
        base: DeviceArray | None = None,
    ) -> None:
        """memory: what must live as long as the array: its Allocation, or the module of a variable."""
        self.gpu = gpu
        self.address = address
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.strides = contiguous_strides(shape, self.dtype.itemsize) if strides is None else strides
        self.base = base
        self.memory = memory

    # --- facts ------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are contiguous in C order, as kernels in CUDA C++ expect."""
        steps = contiguous_strides(self.shape, self.itemsize)
        return (
            self.strides == steps
            or not self.size
            or all(n == 1 or a == b for n, a, b in zip(self.shape, self.strides, steps, strict=True))
        )

    @property
    def is_freed(self) -> bool:
        """Whether its memory was freed with `free`."""
        return isinstance(self.memory, Allocation) and self.memory.freed

    def data_ptr(self) -> int:
        """The device address, under the name used by Triton and PyTorch."""
        return self.address

    # --- values -----------------------------------------------------------------------------------------

    def numpy(self) -> npt.NDArray[Any]:
        """A copy in host memory. Waits for all launches. Raises LaunchError after `free`."""
        with self.gpu.exclusive:
            self.gpu.synchronize()
            values: npt.NDArray[Any] = self._host()[1].copy("C")
            return values

    def get(self) -> npt.NDArray[Any]:
        """CuPy's name for `numpy`."""
        return self.numpy()

    def copy_to_host(self, ary: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """`numpy` under Numba's name. ary: a host array of the same shape that receives the values."""
        if ary is None:
            return self.numpy()
        if not isinstance(ary, np.ndarray) or ary.shape != self.shape or not ary.flags.writeable:
            raise LaunchError(
                f"the host array is {short(ary)}, expected a writable one of shape {self.shape}"
            )
        ary[...] = self.numpy()
        return ary

    def copy_to_device(self, ary: npt.ArrayLike) -> None:
        """`set` under Numba's name."""
        self.set(ary)

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        return self.numpy().tolist()

    def item(self, *index: int) -> Any:
        """One value as a Python number: the only one, or the one at an index."""
        try:
            return self.numpy().item(*index)
        except (ValueError, IndexError, TypeError) as error:
            raise LaunchError(f"an array of shape {self.shape} has no item {index}: {error}") from None

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("values in device memory must be copied to be a NumPy array")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Address and layout. The address is one of the simulated GPU: no real GPU can read it."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "data": (self.address if self.size else 0, False),
            "strides": None if self.is_contiguous else self.strides,
            "version": 3,
        }

    def __dlpack__(self, **options: Any) -> Any:
        """A copy in host memory, in the form used by `numpy.from_dlpack` and `torch.from_dlpack`."""
        if options.get("copy") is False:
            raise BufferError("values in device memory must be copied")
        options.pop("copy", None)
        options.pop("stream", None)  # of a real GPU; the copy has waited for all launches
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Host memory, where `__dlpack__` places the copy."""
        return 1, 0  # kDLCPU

    def set(self, values: npt.ArrayLike | DeviceArray) -> DeviceArray:
        """Copies values into the array, converted to its type and broadcast to its shape. Waits for all
        launches.

        Raises LaunchError if the shapes do not match, or after `free`.
        """
        try:
            source = np.broadcast_to(np.asarray(values).astype(self.dtype, copy=False), self.shape)
        except (TypeError, ValueError) as error:
            raise LaunchError(f"an array of shape {self.shape} cannot be set: {error}") from None
        with self.gpu.exclusive:
            self.gpu.synchronize()
            self._check_live()
            if self.is_contiguous:
                if self.nbytes:
                    self.gpu.write(self.address, np.ascontiguousarray(source))
                return self
            raw, elements = self._host()
            elements[...] = source
            begin, _ = extent(self.shape, self.strides, self.itemsize)
            self.gpu.write(self.address + begin, np.frombuffer(raw, np.uint8))
        return self

    def fill(self, value: Any) -> None:
        """Sets all elements to one value."""
        if np.ndim(value):
            raise LaunchError(f"fill takes one value, found an array of shape {np.shape(value)}")
        self.set(value)

    def copy(self) -> DeviceArray:
        """A contiguous copy with its own memory."""
        with self.gpu.exclusive:
            return self.gpu.empty(self.shape, self.dtype).set(self.numpy())

    def astype(self, dtype: npt.DTypeLike) -> DeviceArray:
        """A copy converted to another type."""
        to = element_type(dtype)
        with self.gpu.exclusive:
            return self.gpu.empty(self.shape, to).set(self.numpy().astype(to))

    # --- views ------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        view = self._select(key)
        return view.numpy()[()] if not view.ndim and _names_element(key, self.ndim) else view

    def __setitem__(self, key: Any, values: Any) -> None:
        self._select(key).set(values)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("an array without dimensions cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    @property
    def T(self) -> DeviceArray:
        """The transpose: a view with the dimensions in reverse order."""
        return self._view(self.address, self.shape[::-1], self.dtype, self.strides[::-1])

    def transpose(self, *axes: int) -> DeviceArray:
        """A view with the dimensions in another order, by default reversed."""
        order = axes[0] if len(axes) == 1 and np.iterable(axes[0]) else axes
        try:
            return self._from_numpy(self._layout().transpose(*([order] if order else [])))
        except (ValueError, TypeError) as error:
            raise LaunchError(f"an array of shape {self.shape} cannot be transposed so: {error}") from None

    def reshape(self, *shape: Any) -> DeviceArray:
        """The same elements in another shape, one size of which may be -1: a view if the array is contiguous,
        otherwise a copy. Raises LaunchError if the sizes do not match.
        """
        sizes = shape[0] if len(shape) == 1 else shape
        sizes = list(sizes) if np.iterable(sizes) else [sizes]
        known = math.prod(shape_of([n for n in sizes if n != -1]))
        if sizes.count(-1) == 1 and known and self.size % known == 0:
            sizes[sizes.index(-1)] = self.size // known
        if -1 in sizes or math.prod(sizes) != self.size:
            raise LaunchError(f"an array of shape {self.shape} cannot have shape {shape}")
        source = self if self.is_contiguous else self.copy()
        return source._view(source.address, shape_of(sizes), self.dtype)

    def ravel(self) -> DeviceArray:
        """The elements in one dimension, as by `reshape`."""
        return self.reshape(-1) if self.size else self.reshape(0)

    def view(self, dtype: npt.DTypeLike, shape: Sequence[int] | None = None) -> DeviceArray:
        """The same memory with other elements. It keeps the memory alive.

        Raises LaunchError if the array has gaps, or fewer bytes than the view needs.
        """
        to = element_type(dtype)
        if not self.is_contiguous:
            raise LaunchError(
                f"a view as {to} needs an array without gaps; this one has strides {self.strides}"
            )
        sizes = (self.nbytes // to.itemsize,) if shape is None else shape_of(shape)
        if math.prod(sizes) * to.itemsize > self.nbytes:
            raise LaunchError(
                f"a view of {math.prod(sizes) * to.itemsize} bytes of an array of {self.nbytes}"
            )
        return self._view(self.address, sizes, to)

    # --- life -------------------------------------------------------------------------------------------

    def free(self) -> None:
        """Frees the memory. A kernel that uses the array afterwards is at fault; reading it is an error.
        Raises
        LaunchError for a view.
        """
        if self.base is not None:
            raise LaunchError("a view cannot be freed; free the array that it shows (.base)")
        with self.gpu.exclusive:
            self.gpu.synchronize()
            self.discard()

    def discard(self) -> None:
        """Frees the memory without waiting for launches."""
        if isinstance(self.memory, Allocation):
            self.memory.free()

    # --- inside -----------------------------------------------------------------------------------------

    def _check_live(self) -> None:
        if self.is_freed:
            raise LaunchError(f"{self!r} was freed")

    def _host(self) -> tuple[bytearray, npt.NDArray[Any]]:
        """A copy of the memory spanned by the elements, and the array of the elements in it."""
        self._check_live()
        begin, end = extent(self.shape, self.strides, self.itemsize)
        raw = bytearray(self.gpu.memory.read(self.address + begin, end - begin) if end > begin else b"")
        return raw, np.ndarray(self.shape, self.dtype, raw, -begin, self.strides)

    def _layout(self) -> npt.NDArray[Any]:
        """A NumPy array of the same layout to find views with; its values must not be read."""
        stand_in = np.empty(1, self.dtype)
        return np.lib.stride_tricks.as_strided(stand_in, self.shape, self.strides)

    def _select(self, key: Any) -> DeviceArray:
        keys = key if isinstance(key, tuple) else (key,)
        for k in keys:
            if k is None or k is Ellipsis or isinstance(k, slice):
                continue
            if isinstance(k, (bool, np.bool_)) or not hasattr(k, "__index__") or np.ndim(k):
                raise LaunchError(
                    f"index {short(k)}: expected numbers, slices, `...` or None; index a copy, .numpy(), "
                    "with arrays"
                )
        whole = keys if Ellipsis in keys else (*keys, Ellipsis)  # so that one element is a view, too
        layout = self._layout()
        try:
            found = layout[whole]
        except (IndexError, TypeError, ValueError) as error:
            raise IndexError(f"array of shape {self.shape}: {error}") from None
        return self._from_numpy(found, layout)

    def _from_numpy(self, found: npt.NDArray[Any], layout: npt.NDArray[Any] | None = None) -> DeviceArray:
        offset = 0
        if layout is not None and found.size:
            offset = found.__array_interface__["data"][0] - layout.__array_interface__["data"][0]
        return self._view(self.address + offset, found.shape, self.dtype, found.strides)

    def _view(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None = None,
    ) -> DeviceArray:
        base = self if self.base is None else self.base
        return DeviceArray(self.gpu, address, shape, dtype, self.memory, strides=strides, base=base)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def _repr_html_(self) -> str:
        facts = {
            "GPU": self.gpu.name,
            "type": str(self.dtype),
            "shape": " x ".join(map(str, self.shape)) or "one value",
            "bytes": f"{self.nbytes:,}",
            "address": f"{self.address:#x}",
        }
        return notebook("DeviceArray", [(["", ""], [list(row) for row in facts.items()], (0,))])

    def __repr__(self) -> str:
        strides = "" if self.is_contiguous else f", strides {self.strides}"
        return f"DeviceArray({self.dtype}, shape {self.shape}{strides}, at {self.address:#x})"


def _names_element(key: Any, dimensions: int) -> bool:
    """Whether an index is a number for each dimension."""
    keys = key if isinstance(key, tuple) else (key,)
    return len(keys) == dimensions and all(hasattr(k, "__index__") for k in keys)


def short(value: Any) -> str:
    """A value for messages: its type and the beginning of its text."""
    text, kind = repr(value).split("\n", 1)[0], type(value).__name__
    text = text if text.startswith(kind) else f"{kind} {text}"
    return text if len(text) <= 60 else text[:59] + "…"
