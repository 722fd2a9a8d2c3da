"""A simulated GPU to run programs on: memory, modules, kernels, streams."""

from .array import DeviceArray
from .gpu import GPU
from .module import Kernel, Module
from .stream import Event, Stream
from .texture import Sampler, Surface, Texture

__all__ = ["GPU", "DeviceArray", "Event", "Kernel", "Module", "Sampler", "Stream", "Surface", "Texture"]
