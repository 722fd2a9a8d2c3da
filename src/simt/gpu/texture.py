"""Textures, samplers and surfaces of a simulated GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simt import _engine
from simt.errors import LaunchError

from .array import DeviceArray

if TYPE_CHECKING:
    from simt.engine_types import TextureFields

    from .gpu import GPU

Source = DeviceArray | npt.ArrayLike

# Of each kind: its name in PTX, and how many dimensions an array of it has.
_KINDS = {
    "1d": ("1d", 1),
    "linear": ("1d", 1),
    "2d": ("2d", 2),
    "3d": ("3d", 3),
    "1d_layered": ("a1d", 2),
    "2d_layered": ("a2d", 3),
    "cubemap": ("cube", 3),
    "cubemap_layered": ("acube", 3),
}
_BY_DIMENSIONS = {1: "1d", 2: "2d", 3: "3d"}
_CHANNELS = {"u": ("unsigned", (1, 2, 4)), "i": ("signed", (1, 2, 4)), "f": ("float", (2, 4))}
_MODES = ("wrap", "mirror", "clamp", "border")
_FILTERS = ("point", "linear")
_MOST_LEVELS = 16


class TextureHandle:
    """An object in device memory, with its address.

    memory: where its descriptor is already; None: it is written to new memory.
    arrays: the device arrays that it gives access to.
    """

    arrays: tuple[DeviceArray, ...] = ()

    def __init__(self, gpu: GPU, descriptor: bytes, memory: DeviceArray | None = None) -> None:
        self.gpu = gpu
        self.descriptor = descriptor
        if memory is None:
            memory = gpu.empty(len(descriptor), np.uint8)
            gpu.memory.native.write(memory.address, descriptor)
        self.memory = memory

    @property
    def handle(self) -> int:
        """The 64-bit value passed to kernels."""
        return self.memory.address

    @property
    def keeps(self) -> list[object]:
        """The memory that its launches need until they are done."""
        return [self.memory.memory]

    def free(self) -> None:
        """Frees the handle; using it afterwards is a fault. Its arrays are not freed."""
        self.memory.free()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.handle:#x})"


class TextureSampler(TextureHandle):
    """How textures are read, for `.samplerref` variables of PTX. Made by `GPU.sampler`."""


class Texture(TextureHandle):
    """A texture object: an argument of kernels with a `cudaTextureObject_t`. Made by `GPU.texture`.

    levels: the arrays that it reads, more than one if it has mipmaps. array: the first one.
    """

    def __init__(
        self,
        gpu: GPU,
        descriptor: bytes,
        levels: Sequence[DeviceArray],
        memory: DeviceArray | None = None,
    ) -> None:
        super().__init__(gpu, descriptor, memory)
        self.levels = self.arrays = tuple(levels)

    @property
    def array(self) -> DeviceArray:
        return self.levels[0]

    @property
    def keeps(self) -> list[object]:
        return [*super().keeps, *(level.memory for level in self.levels)]


class Surface(TextureHandle):
    """A surface object: an argument of kernels with a `cudaSurfaceObject_t`. Made by `GPU.surface`.

    array: the device array that it reads and writes.
    """

    def __init__(
        self, gpu: GPU, descriptor: bytes, array: DeviceArray, memory: DeviceArray | None = None
    ) -> None:
        super().__init__(gpu, descriptor, memory)
        self.array = array
        self.arrays = (array,)

    @property
    def keeps(self) -> list[object]:
        return [*super().keeps, self.array.memory]

    def numpy(self) -> npt.NDArray[Any]:
        """A copy of its array in host memory. Waits for all launches."""
        return self.array.numpy()


def make_sampler(
    gpu: GPU,
    *,
    filter: str,
    address: str | Sequence[str],
    unnormalized: bool,
    border: Sequence[float],
    level_filter: str,
    level_bias: float,
    level_range: tuple[float, float],
) -> TextureSampler:
    """See `GPU.sampler`."""
    fields = _sampling(filter, address, border, level_filter, level_bias, level_range)
    fields |= {"normalized": False, "force_unnormalized": unnormalized}
    return TextureSampler(gpu, _encode("sampler", fields))


def make_texture(
    gpu: GPU,
    source: Source | Sequence[Source],
    *,
    kind: str | None,
    channels: int,
    width: int | None,
    filter: str,
    address: str | Sequence[str],
    normalized: bool,
    read: str,
    border: Sequence[float],
    srgb: bool,
    level_filter: str,
    level_bias: float,
    level_range: tuple[float, float],
) -> Texture:
    """See `GPU.texture`."""
    mipmapped = isinstance(source, (list, tuple)) and any(
        isinstance(level, (np.ndarray, DeviceArray)) for level in source
    )
    levels = [_on_device(gpu, level) for level in (source if mipmapped else [source])]  # type: ignore[union-attr]
    base = levels[0]
    kind = kind or _kind_of(base, channels)
    fields = _layout("texture", base.dtype, kind, channels)
    if read not in ("element", "normalized"):
        raise LaunchError(f"texture: read is {read!r}, expected 'element' or 'normalized'")
    as_numbers = base.dtype.kind == "f" or read == "normalized"
    if read == "normalized" and (base.dtype.kind == "f" or base.dtype.itemsize > 2):
        raise LaunchError(
            f"texture: read='normalized' is for integers of 8 and 16 bits, the array is {base.dtype}"
        )
    fields |= _sampling(filter, address, border, level_filter, level_bias, level_range)
    if "linear" in (filter, level_filter) and not as_numbers:
        raise LaunchError(
            f"texture: {base.dtype} elements cannot be filtered; use filter='point', or read='normalized' "
            "for integers of 8 and 16 bits"
        )
    if kind == "linear" and filter == "linear":
        raise LaunchError("texture: kind='linear' is memory without filter; use kind='1d'")
    if not normalized and kind not in ("linear", "cubemap", "cubemap_layered"):
        repeating = {"wrap", "mirror"} & set(fields["address"])
        if repeating:
            raise LaunchError(f"texture: address={repeating.pop()!r} needs normalized=True")
    if srgb and (base.dtype != np.uint8 or read != "normalized"):
        raise LaunchError("texture: srgb is for uint8 arrays with read='normalized'")
    if mipmapped and not normalized:
        raise LaunchError("texture: mipmaps need normalized=True")
    if len(levels) > _MOST_LEVELS:
        raise LaunchError(f"texture: {len(levels)} levels, expected at most {_MOST_LEVELS}")
    sizes = [_size("texture", level, kind, channels, width if level is base else None) for level in levels]
    for number, (level, size) in enumerate(zip(levels, sizes, strict=True)):
        expected = [max(1, n >> number) for n in sizes[0]]
        if kind not in ("3d",):
            expected[2] = sizes[0][2]
        if level.dtype != base.dtype or list(size) != expected:
            raise LaunchError(
                f"texture: level {number} is {level.dtype} with {_text(size)} texels, "
                f"expected {base.dtype} with {_text(expected)}"
            )
    fields |= {
        "levels": [_level(level, size, channels) for level, size in zip(levels, sizes, strict=True)],
        "linear_memory": kind == "linear",
        "normalized": normalized or kind.startswith("cubemap"),
        "normalized_float": read == "normalized",
        "srgb": srgb,
        "mipmapped": mipmapped,
    }
    return Texture(gpu, _encode("texture", fields), levels)


def make_surface(gpu: GPU, source: Source, *, kind: str | None, channels: int) -> Surface:
    """See `GPU.surface`."""
    array = _on_device(gpu, source)
    kind = kind or _kind_of(array, channels)
    if kind == "linear":
        raise LaunchError("surface: kind='linear' is for textures; use kind='1d'")
    fields = _layout("surface", array.dtype, kind, channels) | {
        "levels": [_level(array, _size("surface", array, kind, channels, None), channels)],
        "linear_memory": False,
        "normalized_float": False,
        "srgb": False,
        "mipmapped": False,
    }
    return Surface(gpu, _encode("surface", fields), array)


def _on_device(gpu: GPU, source: Any) -> DeviceArray:
    if isinstance(source, DeviceArray):
        if source.gpu is not gpu:
            raise LaunchError("the array is in the memory of another GPU")
        return source
    return gpu.array(np.asarray(source))


def _kind_of(array: DeviceArray, channels: int) -> str:
    dimensions = len(array.shape) - (channels > 1)
    if dimensions not in _BY_DIMENSIONS:
        raise LaunchError(
            f"an array of shape {array.shape} with {channels} channels is not a texture of 1 to 3 dimensions"
        )
    return _BY_DIMENSIONS[dimensions]


def _layout(what: str, dtype: np.dtype[Any], kind: str, channels: int) -> TextureFields:
    if kind not in _KINDS:
        raise LaunchError(f"{what}: kind is {kind!r}, expected one of {', '.join(_KINDS)}")
    if channels not in (1, 2, 4):
        raise LaunchError(f"{what}: channels is {channels!r}, expected 1, 2 or 4")
    name, sizes = _CHANNELS.get(dtype.kind, ("", ()))
    if dtype.itemsize not in sizes:
        raise LaunchError(
            f"{what}: elements are {dtype}, expected integers of 8, 16 or 32 bits, float16 or float32"
        )
    return {
        "geometry": _KINDS[kind][0],
        "channel": name,
        "channels": channels,
        "channel_bytes": dtype.itemsize,
    }


def _size(what: str, array: DeviceArray, kind: str, channels: int, width: int | None) -> tuple[int, int, int]:
    """Width, height and layers (or depth) in texels."""
    shape = array.shape
    if channels > 1:
        if not shape or shape[-1] != channels:
            raise LaunchError(f"{what}: shape {shape}, expected {channels} channels as the last dimension")
        shape = shape[:-1]
    if kind == "cubemap_layered" and len(shape) == 4 and shape[1] == 6:
        shape = (shape[0] * 6, *shape[2:])
    dimensions = _KINDS[kind][1]
    if len(shape) != dimensions or 0 in shape:
        raise LaunchError(
            f"{what}: shape {array.shape} with {channels} channels, expected {dimensions} dimensions for "
            f"kind={kind!r}, none of them 0"
        )
    if kind.startswith("cubemap") and (
        shape[1] != shape[2] or (shape[0] != 6 if kind == "cubemap" else shape[0] % 6)
    ):
        raise LaunchError(
            f"{what}: shape {array.shape}, expected {'' if kind == 'cubemap' else 'n * '}6 squares"
        )
    if width is not None and not 1 <= width <= shape[-1]:
        raise LaunchError(f"{what}: width is {width}, rows have {shape[-1]} texels")
    columns = shape[-1] if width is None else width
    rows = shape[-2] if kind not in ("1d", "linear", "1d_layered") else 1
    layers = shape[0] if dimensions == 3 or kind == "1d_layered" else 1
    return columns, rows, layers


def _level(
    array: DeviceArray, size: tuple[int, int, int], channels: int
) -> tuple[int, int, int, int, int, int]:
    """Address, bytes between rows and between layers, width, height, layers."""
    columns = array.shape[-2] if channels > 1 else array.shape[-1]
    pitch = columns * channels * array.dtype.itemsize
    return array.address, pitch, pitch * size[1], *size


def _sampling(
    filter: str,
    address: str | Sequence[str],
    border: Sequence[float],
    level_filter: str,
    level_bias: float,
    level_range: tuple[float, float],
) -> TextureFields:
    for name, value in (("filter", filter), ("level_filter", level_filter)):
        if value not in _FILTERS:
            raise LaunchError(f"texture: {name} is {value!r}, expected 'point' or 'linear'")
    modes = [address] * 3 if isinstance(address, str) else list(address)
    if not 1 <= len(modes) <= 3 or any(mode not in _MODES for mode in modes):
        raise LaunchError(
            f"texture: address is {address!r}, expected one of {', '.join(_MODES)}, or one each for x, y, z"
        )
    colour = [float(x) for x in border]
    if len(colour) != 4:
        raise LaunchError(f"texture: border is {border!r}, expected four numbers")
    return {
        "filter": filter,
        "address": (modes + [modes[-1]] * 2)[:3],
        "border": colour,
        "level_filter": level_filter,
        "level_bias": float(level_bias),
        "least_level": float(level_range[0]),
        "most_level": float(level_range[1]),
    }


def _encode(kind: str, fields: TextureFields) -> bytes:
    try:
        return _engine.functional.encode_texture(kind, fields)
    except ValueError as error:
        raise LaunchError(f"{kind}: {error}") from error


def _text(size: Sequence[int]) -> str:
    return " x ".join(str(n) for n in size)
