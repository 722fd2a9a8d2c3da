"""Converts Python values to the bytes of a kernel's parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError

from .array import DeviceArray, short
from .elements import tensor_bytes
from .host_arrays import HostArrays
from .texture import Surface, Texture

if TYPE_CHECKING:
    from .gpu import GPU

_MOST_CTAS = ((1 << 31) - 1, 65535, 65535)
MOST_THREADS = ((1 << 31) - 1, (1 << 31) - 1, 64)
"""Of a block, by dimension; how many it may have in all depends on the GPU."""
# What is no array even where NumPy would make one of it.
_NO_ARRAYS = (bool, int, float, complex, str, type(None), np.generic)
_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: its position in the parameter block, and its PTX type."""

    offset: int
    bytes: int
    type: str

    @property
    def description(self) -> str:
        if self.type in _FLOATS:
            return f"a {8 * self.bytes}-bit float"
        if self.bytes in (1, 2, 4, 8):
            return f"a {8 * self.bytes}-bit integer" + (" or a pointer" if self.bytes == 8 else "")
        return f"a structure of {self.bytes} bytes"


class LaunchArguments:
    """The arguments of a launch: the parameter block, and no host arrays."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self.keeps: list[Any] = []
        """Device memory that must live until the launch is done."""

    @property
    def has_host_arrays(self) -> bool:
        """Whether values must be copied back."""
        return False

    def copy_back(self) -> None:
        """Copies what the kernel has written into the host arrays. Raises LaunchError if that is not
        possible.
        """

    def discard(self) -> None:
        """Frees the device's copies of host arrays."""


class Arguments(LaunchArguments):
    """The arguments of one launch. Host arrays are copied to the device, and back by `copy_back`."""

    def __init__(
        self,
        gpu: GPU,
        kernel: str,
        parameters: Sequence[Parameter],
        given: Sequence[Any],
        values: Callable[[Callable[[Any], int]], Sequence[Any]] | None = None,
    ) -> None:
        """given: what the program gives, a value for each parameter.

        values: for kernels in Python, makes the values of the parameters from the addresses of the given
            arrays. Those kernels know strides: arrays with gaps lie on the device as on the host.
        """
        self._gpu = gpu
        self._kernel = kernel
        self._strided = values is not None
        self._hosts = HostArrays(gpu, kernel, self._strided)
        super().__init__(b"")
        if values is None:
            self._check_count(parameters, given)
        for number, value in enumerate(given):
            if not (values is None and isinstance(value, bytes) and parameters[number].bytes != 8):
                self._collect(value, f"argument {number + 1}")
        try:
            self._hosts.place()
            made = given if values is None else values(self._address_of)
            for value in made:
                self._keep(value)
            self.block = self._packed(parameters, made)
        except BaseException:
            self.discard()
            raise

    @property
    def has_host_arrays(self) -> bool:
        return bool(self._hosts)

    def copy_back(self) -> None:
        self._hosts.copy_back()

    def discard(self) -> None:
        self._hosts.discard()

    def _keep(self, value: Any) -> None:
        if isinstance(value, DeviceArray):
            self.keeps.append(value.memory)
        elif isinstance(value, (Surface, Texture)):
            self.keeps.append(value.keeps)

    def _collect(self, value: Any, name: str) -> None:
        """Finds host arrays, and checks what belongs to a GPU."""
        if isinstance(value, (DeviceArray, Surface, Texture)):
            if value.gpu is not self._gpu:
                raise LaunchError(
                    f"kernel `{self._kernel}`, {name}: {short(value)} is in the memory of another GPU "
                    f"({value.gpu.name}), not of this one ({self._gpu.name}); copy it, with gpu.array()"
                )
            self._keep(value)
            if isinstance(value, DeviceArray) and not (self._strided or value.is_contiguous):
                raise LaunchError(
                    f"kernel `{self._kernel}`, {name}: {short(value)} has gaps, which the kernel cannot "
                    "see; pass a copy, .copy()"
                )
        elif hasattr(value, "block_shape") and hasattr(value, "base"):  # Triton's tensor descriptors
            self._collect(value.base, name)
        elif self._strided and isinstance(value, (tuple, list)):
            for item in value:
                self._collect(item, name)
        elif self._strided and isinstance(value, np.void):
            self._hosts.add(value, np.asarray(value), name)
        elif not isinstance(value, _NO_ARRAYS) and (array := self._host_array(value, name)) is not None:
            self._hosts.add(value, array, name)

    def _host_array(self, value: Any, name: str) -> npt.NDArray[Any] | None:
        if hasattr(value, "__cuda_array_interface__"):
            raise LaunchError(
                f"kernel `{self._kernel}`, {name}: {short(value)} is in the memory of a real GPU; give a "
                "host array, or one that gpu.array() has made of it"
            )
        try:
            return host_array(value)
        except Exception as error:  # whatever __array__ raises
            raise LaunchError(
                f"kernel `{self._kernel}`, {name}: {short(value)} cannot be a NumPy array: {error}"
            ) from error

    def _check_count(self, parameters: Sequence[Parameter], values: Sequence[Any]) -> None:
        if len(values) != len(parameters):
            raise LaunchError(
                f"kernel `{self._kernel}` takes {len(parameters)} arguments, {len(values)} were given"
            )

    def _packed(self, parameters: Sequence[Parameter], values: Sequence[Any]) -> bytes:
        self._check_count(parameters, values)
        block = bytearray(max((p.offset + p.bytes for p in parameters), default=0))
        for number, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
            try:
                raw = self._bytes(parameter, value)
            except (TypeError, ValueError, OverflowError) as error:
                raise LaunchError(
                    f"kernel `{self._kernel}`, argument {number + 1}: expected {parameter.description}, "
                    f"found {short(value)}: {error}"
                ) from error
            block[parameter.offset : parameter.offset + parameter.bytes] = raw
        return bytes(block)

    def _bytes(self, parameter: Parameter, value: Any) -> bytes:
        if isinstance(value, DeviceArray):
            return self._pointer(parameter, value.address)
        if isinstance(value, (Surface, Texture)):
            return self._pointer(parameter, value.handle)
        if value is None:
            return self._pointer(parameter, 0)
        if isinstance(value, np.void) or (isinstance(value, bytes) and parameter.bytes not in (1, 2, 4, 8)):
            raw = value.tobytes() if isinstance(value, np.void) else bytes(value)
            if len(raw) != parameter.bytes:
                raise ValueError(f"{len(raw)} bytes")
            return raw
        if isinstance(value, (bool, int, float, np.generic)):
            return _scalar(parameter, value)
        address = self._hosts.address(value)
        if address is None:
            if not callable(pointer := getattr(value, "data_ptr", None)):
                raise TypeError("no number, array or buffer")
            address = int(pointer())
        return self._pointer(parameter, address)

    def _address_of(self, value: Any) -> int:
        if isinstance(value, DeviceArray):
            return value.address
        address = self._hosts.address(value)
        if address is None:
            raise TypeError(f"{short(value)} is no array")
        return address

    @staticmethod
    def _pointer(parameter: Parameter, address: int) -> bytes:
        if parameter.bytes != 8 or parameter.type in _FLOATS:
            raise TypeError("an array")
        return address.to_bytes(8, "little")


def host_array(value: Any) -> npt.NDArray[Any] | None:
    """A NumPy array over the memory of a host array or buffer; None if the object is neither."""
    if isinstance(value, np.ndarray):
        return value
    if (array := tensor_bytes(value)) is not None:
        return array
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        return np.asarray(value)
    try:
        return np.frombuffer(value, np.uint8)
    except (TypeError, ValueError, BufferError):
        return None


def _scalar(parameter: Parameter, value: Any) -> bytes:
    if parameter.type in _FLOATS:
        return bytes(_FLOATS[parameter.type](value).tobytes())
    if isinstance(value, (float, np.floating)):
        if isinstance(value, np.floating) and value.nbytes == parameter.bytes:
            return bytes(value.tobytes())  # the bits of a float in an untyped parameter
        if not (parameter.type.startswith("b") and parameter.bytes in (4, 8)):
            raise TypeError("a float")
        return bytes((np.float32 if parameter.bytes == 4 else np.float64)(value).tobytes())
    number = int(value)
    if parameter.bytes not in (1, 2, 4, 8):
        raise TypeError("a number")
    if not -(1 << (8 * parameter.bytes - 1)) <= number < 1 << (8 * parameter.bytes):
        raise OverflowError("it does not fit")
    return (number % (1 << (8 * parameter.bytes))).to_bytes(parameter.bytes, "little")


def three(value: Any, what: str, most: tuple[int, int, int] = _MOST_CTAS) -> tuple[int, int, int]:
    """A launch dimension: one to three numbers, each from 1 to the corresponding one of `most`."""
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        whole = tuple(int(x) for x in numbers)
        if any(a != b for a, b in zip(whole, numbers, strict=True)):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise LaunchError(f"{what} is {value!r}, expected one to three whole numbers") from None
    if not 1 <= len(whole) <= 3 or any(x < 1 for x in whole):
        raise LaunchError(f"{what} is {value!r}, expected one to three numbers of 1 or more")
    for x, limit, axis in zip(whole, most, "xyz", strict=False):
        if x > limit:
            raise LaunchError(f"{what} is {value!r}: its {axis} is {x:,}, CUDA allows {limit:,} at most")
    x, y, z = (*whole, 1, 1)[:3]
    return x, y, z


def shared_bytes(value: Any, what: str) -> int:
    """Bytes of dynamic shared memory: a whole number from 0, or None for 0."""
    try:
        number = operator.index(0 if value is None else value)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 31:
        raise LaunchError(f"{what} is {value!r}, expected a whole number of bytes")
    return number
