"""A simulated GPU to run programs on: memory, modules, kernels, streams."""

from .array import DeviceArray
from .gpu import GPU
from .module import Kernel, Module
from .stream import Event, Stream
from .texture import Surface, Texture, TextureSampler

__all__ = [
    "GPU",
    "DeviceArray",
    "Event",
    "Kernel",
    "Module",
    "Stream",
    "Surface",
    "Texture",
    "TextureSampler",
]
