"""Objects of a program other than memory and modules: textures, tensor maps, linked programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from simt import _engine
from simt.cuda import CubinModule, PtxModule, link
from simt.cuda.fatbin import images_in, ptx_in
from simt.errors import CompileError, DynamicParallelismError, ImageError, ToolkitError
from simt.gpu import GPU
from simt.gpu.module import Module

from . import codes
from .requests import (
    LinkRequest,
    MadeBytes,
    PlacedTexture,
    ReferenceRequest,
    Refusal,
    TensorMapRequest,
    TextureRequest,
)
from .textures import descriptor_of

_PTX = 1
"""The `CUjitInputType` of PTX; the others are files that contain PTX."""


_LINKED = "// linked by simt\n"


def ptx_of(image: bytes, name: str) -> PtxModule:
    """PTX text as a module. Raises PtxError."""
    module = PtxModule.from_text(image.rstrip(b"\0").decode("utf-8", "replace"), name)
    return replace(module, linked=module.text.startswith(_LINKED))


class Objects(ABC):
    """Takes a program's requests on these objects."""

    _program: str
    _modules: dict[int, Module]
    lacking: str
    """What simt lacked to execute the program, if anything."""

    @property
    @abstractmethod
    def gpu(self) -> GPU:
        """The device's GPU."""

    def texture(self, request: TextureRequest) -> PlacedTexture:
        native, place = self.gpu.memory.native, request.place
        try:
            descriptor = descriptor_of(request.image, request.sampling)
        except ValueError as error:
            return PlacedTexture(problem=f"texture: {error}")
        if place == 0:
            place = native.allocate(len(descriptor), "texture")
        if place != 0:
            native.write(place, descriptor)
        return PlacedTexture(place)

    def reference(self, request: ReferenceRequest) -> int:
        references = self._modules[request.module].native.references
        address, type = references.get(request.name, (0, request.type))
        return int(address) if type == request.type else 0

    def tensor_map(self, request: TensorMapRequest) -> MadeBytes:
        corners = request.corners
        try:
            return MadeBytes(
                _engine.functional.encode_tensor_map(
                    request.type,
                    request.address,
                    request.dims,
                    request.strides,
                    request.box,
                    request.element_strides,
                    request.interleave,
                    request.swizzle,
                    request.fill,
                    None if corners is None else (corners.lower, corners.upper),
                    along_w=corners is not None and corners.wide > 0,
                    of_128=corners is not None and corners.wide == 2,
                )
            )
        except ValueError as error:
            return MadeBytes(refusal=Refusal(codes.INVALID_VALUE, f"tensor map: {error}"))

    def link(self, request: LinkRequest) -> MadeBytes:
        """Machine code is not linked here; nvcc or nvJitLink may have done so. Then, one of the inputs is the
        whole program, which is taken in place of the PTX of the others if that is missing, or as `GPU.code`
        says.
        """
        arch = self.gpu.arch
        units: list[PtxModule] = []
        whole: list[CubinModule] = []
        passed_over: list[str] = []
        try:
            for type, contents, name in zip(request.types, request.data, request.names, strict=True):
                if type == _PTX:
                    units.append(ptx_of(contents, name))
                    continue
                try:
                    found = images_in(contents, name, arch, "sass")
                    whole += [unit for unit in found if isinstance(unit, CubinModule)]
                    units += ptx_in(contents, name, arch)
                except ImageError as error:  # nvcc's own libraries may not be needed
                    passed_over.append(str(error))
            is_whole = len(whole) == 1 and whole[0].cubin.is_linked and _PTX not in request.types
            if is_whole and (self.gpu.code == "sass" or not units):
                return MadeBytes(whole[0].contents)
            if not units:
                code = [f"{unit.name}: machine code cannot be linked: simt links PTX" for unit in whole]
                return MadeBytes(refusal=Refusal(codes.NO_BINARY_FOR_GPU, "; ".join([*code, *passed_over])))
            return MadeBytes((_LINKED + link(units, arch).text).encode())
        except DynamicParallelismError as error:
            self.lacking = str(error)
            return MadeBytes(refusal=Refusal(codes.NOT_SUPPORTED, str(error)))
        except (ImageError, CompileError, ToolkitError) as error:
            return MadeBytes(refusal=Refusal(codes.INVALID_PTX, "; ".join([str(error), *passed_over])))
