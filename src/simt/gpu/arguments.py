"""From Python values to the bytes of a kernel's parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError

from .array import DeviceArray
from .texture import Surface, Texture

if TYPE_CHECKING:
    from .gpu import GPU

_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: where it lies in the parameter block, and its PTX type."""

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


class Arguments:
    """The arguments of one launch. Host arrays are copied to the device, and back by `copy_back`."""

    def __init__(
        self,
        gpu: GPU,
        kernel: str,
        parameters: Sequence[Parameter],
        arguments: Sequence[Any] | Callable[[Callable[[Any], int]], Sequence[Any]],
    ) -> None:
        """arguments: a value for each parameter, or what gives them from the device addresses of arrays."""
        self._gpu = gpu
        self._copies: dict[int, tuple[npt.NDArray[Any], DeviceArray]] = {}
        values = arguments(self._address_of) if callable(arguments) else arguments
        if len(values) != len(parameters):
            raise LaunchError(
                f"kernel `{kernel}` takes {len(parameters)} arguments, {len(values)} were given"
            )
        self._kept = list(values)  # device arrays must live until the launch is done
        size = max((p.offset + p.bytes for p in parameters), default=0)
        block = bytearray(size)
        for number, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
            try:
                raw = self._bytes(parameter, value)
            except (TypeError, ValueError, OverflowError) as error:
                raise LaunchError(
                    f"kernel `{kernel}`, argument {number + 1}: expected {parameter.description}, "
                    f"found {_short(value)}: {error}"
                ) from error
            block[parameter.offset : parameter.offset + parameter.bytes] = raw
        self.block = bytes(block)

    @property
    def has_host_arrays(self) -> bool:
        return bool(self._copies)

    def copy_back(self) -> None:
        """Copies what the kernel left in the device's copies into the host arrays."""
        for host, device in self._copies.values():
            if host.flags.writeable and host.nbytes:
                raw = np.frombuffer(self._gpu.memory.read(device.address, device.nbytes), host.dtype)
                host[...] = raw.reshape(host.shape)
        self.discard()

    def discard(self) -> None:
        """Frees the device's copies of host arrays."""
        for _, device in self._copies.values():
            device.discard()
        self._copies = {}

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
        array = host_array(value)
        if array is None:
            address = getattr(value, "data_ptr", None)
            if callable(address):
                return self._pointer(parameter, int(address()))
            raise TypeError("no number, array or buffer")
        return self._pointer(parameter, self._copy(array).address)

    def _address_of(self, value: Any) -> int:
        if isinstance(value, DeviceArray):
            return value.address
        return self._copy(np.asarray(value)).address

    def _copy(self, array: npt.NDArray[Any]) -> DeviceArray:
        """The device's copy of a host array; an array that is given twice has one."""
        key = array.__array_interface__["data"][0] if array.nbytes else id(array)
        if key not in self._copies or self._copies[key][0].nbytes < array.nbytes:
            self._copies[key] = (array, self._gpu.array(array))
        return self._copies[key][1]

    @staticmethod
    def _pointer(parameter: Parameter, address: int) -> bytes:
        if parameter.bytes != 8 or parameter.type in _FLOATS:
            raise TypeError("an array")
        return address.to_bytes(8, "little")


def host_array(value: Any) -> npt.NDArray[Any] | None:
    """A NumPy array over the memory of a host array or buffer; None if it is no such thing."""
    if isinstance(value, np.ndarray):
        return value
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


def three(value: Any, what: str) -> tuple[int, int, int]:
    """A launch dimension: a number, or one to three of them."""
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        whole = tuple(int(x) for x in numbers)
        if any(a != b for a, b in zip(whole, numbers, strict=True)):
            raise ValueError
    except (TypeError, ValueError):
        raise LaunchError(f"{what} is {value!r}, expected one to three whole numbers") from None
    if not 1 <= len(whole) <= 3 or any(not 0 < x < 1 << 32 for x in whole):
        raise LaunchError(f"{what} is {value!r}, expected one to three numbers of 1 or more")
    x, y, z = (*whole, 1, 1)[:3]
    return x, y, z


def _short(value: Any) -> str:
    text = f"{type(value).__name__} {value!r}".split("\n", 1)[0]
    return text if len(text) <= 60 else text[:59] + "…"
