"""Creation of arrays on a GPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError

from .array import Allocation, DeviceArray
from .elements import element_type, shape_of, tensor_bytes

if TYPE_CHECKING:
    from .gpu import GPU


class ArrayCreation:
    """The methods of `GPU` that make arrays. Each raises LaunchError where the device's memory is full, and
    for shapes and element types that an array of a GPU cannot have."""

    def empty(
        self,
        shape: Any,
        dtype: npt.DTypeLike = np.float32,
        *,
        unbacked: bool = False,
        name: str | None = None,
    ) -> DeviceArray:
        """A new array; it holds zeros. shape: a whole number or several.

        unbacked: it takes no memory of the host and holds no values, for launches whose time does not depend
            on them. What kernels store there is lost; what they compute from what they load has no known
            values either, and reading it raises LaunchError. A launch in which an address or control flow
            depends on it raises ProgramFault.
        name: what messages call it.
        """
        sizes, element = shape_of(shape), element_type(dtype)
        nbytes = math.prod(sizes) * element.itemsize
        gpu = cast("GPU", self)
        label = name or f"array {sizes} of {element}"
        address = gpu.memory.allocate(max(1, nbytes), label, owned=True, unbacked=unbacked)
        return DeviceArray(gpu, address, sizes, element, Allocation(gpu.exclusive, address))

    def zeros(self, shape: Any, dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """A new array of zeros."""
        array = self.empty(shape, dtype)
        if (checking := cast("GPU", self).checking) is not None:
            checking.written(array.address, array.nbytes)
        return array

    def ones(self, shape: Any, dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """A new array of ones."""
        return self.full(shape, 1, dtype)

    def full(self, shape: Any, value: Any, dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """A new array filled with a value."""
        array = self.empty(shape, dtype)
        array.fill(value)
        return array

    def empty_like(self, array: Any, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """A new array with the shape, and if none is given the type, of one of the device or the host."""
        array = array if isinstance(array, DeviceArray) else np.asarray(array)
        return self.empty(array.shape, array.dtype if dtype is None else dtype)

    def zeros_like(self, array: Any, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """Like `empty_like`, with zeros."""
        return self.empty_like(array, dtype)

    def ones_like(self, array: Any, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """Like `empty_like`, with ones."""
        return self.full_like(array, 1, dtype)

    def full_like(self, array: Any, value: Any, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """Like `empty_like`, filled with a value."""
        like = self.empty_like(array, dtype)
        like.fill(value)
        return like

    def array(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """A copy of host values, or of another device array, in device memory."""
        try:
            tensor = tensor_bytes(values)
            host = np.asarray(values if tensor is None else tensor, dtype)
        except (TypeError, ValueError) as error:
            raise LaunchError(f"values cannot be an array: {error}") from None
        device = self.empty(host.shape, host.dtype)
        return device.set(host)

    def asarray(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """Returns an array of this GPU unchanged if it already has the requested type; otherwise a copy."""
        own = isinstance(values, DeviceArray) and values.gpu is self
        if isinstance(values, DeviceArray) and own and (dtype is None or values.dtype == np.dtype(dtype)):
            return values
        return self.array(values, dtype)

    def to_device(self, values: npt.ArrayLike) -> DeviceArray:
        """Numba's name for `array`."""
        return self.array(values)
