"""Objects of a program other than memory and modules: textures, tensor maps, linked programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from simt import _engine
from simt.cuda import CubinModule, PtxModule, link
from simt.cuda.fatbin import images_in, ptx_in
from simt.errors import CompileError, DynamicParallelismError, ImageError, ToolkitError
from simt.gpu import GPU
from simt.gpu.module import Module

from . import codes
from .requests import Number
from .textures import Described

_PTX = 1
"""The `CUjitInputType` of PTX; the others are files that contain PTX."""


_LINKED = "// linked by simt\n"


def ptx_of(image: bytes, name: str) -> PtxModule:
    """PTX text as a module. Raises PtxError."""
    module = PtxModule.from_text(image.rstrip(b"\0").decode("utf-8", "replace"), name)
    return replace(module, linked=module.text.startswith(_LINKED))


class Objects(ABC):
    """Operations of a `Device` on these objects."""

    operations = frozenset(["texture", "reference", "tensor_map", "link"])

    _program: str
    _modules: dict[int, Module]
    lacking: str
    """What simt lacked to execute the program, if anything."""

    @property
    @abstractmethod
    def gpu(self) -> GPU:
        """The device's GPU."""

    def texture(self, place: Number, described: Described) -> int | str:
        """Writes the descriptor of a texture or surface to new memory, or to a
        reference's variable at `place`. Returns its address, 0 if memory is exhausted, or an error text.
        """
        native = self.gpu.memory.native
        try:
            descriptor = described.encoded()
        except ValueError as error:
            return f"texture: {error}"
        if place == 0:
            place = int(native.allocate(len(descriptor), "texture"))
        if place != 0:
            native.write(place, descriptor)
        return place

    def reference(self, module: Number, name: str, type: str) -> int:
        """The address of a `.texref` or `.surfref` variable of a module; 0 if it has none."""
        address, found = self._modules[module].native.references.get(name, (0, type))
        return int(address) if found == type else 0

    def tensor_map(
        self,
        type: Number,
        address: Number,
        dims: list[int],
        strides: list[int],
        box: list[int],
        element_strides: list[int],
        interleave: Number,
        swizzle: Number,
        fill: Number,
        corners: tuple[list[int], list[int]] | None = None,
    ) -> dict[str, Any]:
        """The bytes of a tensor map (`_engine.functional.encode_tensor_map`); or an error code and its
        text.
        """
        try:
            return {
                "bytes": _engine.functional.encode_tensor_map(
                    type,
                    address,
                    dims,
                    strides,
                    box,
                    element_strides,
                    interleave,
                    swizzle,
                    fill,
                    corners,
                )
            }
        except ValueError as error:
            return {"error": codes.INVALID_VALUE, "text": f"tensor map: {error}"}

    def link(self, types: list[int], data: list[bytes], names: list[str]) -> dict[str, Any]:
        """Links PTX, including that in fat binaries, objects and libraries. types: `CUjitInputType` of each.
        Machine code is not linked here; nvcc or nvJitLink may have done so. Then, one of the inputs is the
        whole program, which is taken in place of the PTX of the others if that is missing, or as `GPU.code`
        says. Returns the linked PTX or machine code, or an error code and its text.
        """
        arch = self.gpu.arch
        units: list[PtxModule] = []
        whole: list[CubinModule] = []
        passed_over: list[str] = []
        try:
            for type, contents, name in zip(types, data, names, strict=True):
                if type == _PTX:
                    units.append(ptx_of(contents, name))
                    continue
                try:
                    found = images_in(contents, name, arch, "sass")
                    whole += [unit for unit in found if isinstance(unit, CubinModule)]
                    units += ptx_in(contents, name, arch)
                except ImageError as error:  # nvcc's own libraries may not be needed
                    passed_over.append(str(error))
            is_whole = len(whole) == 1 and whole[0].cubin.is_linked and _PTX not in types
            if is_whole and (self.gpu.code == "sass" or not units):
                return {"bytes": whole[0].contents}
            if not units:
                code = [f"{unit.name}: machine code cannot be linked: simt links PTX" for unit in whole]
                return {"error": codes.NO_BINARY_FOR_GPU, "text": "; ".join([*code, *passed_over])}
            return {"bytes": (_LINKED + link(units, arch).text).encode()}
        except DynamicParallelismError as error:
            self.lacking = str(error)
            return {"error": codes.NOT_SUPPORTED, "text": str(error)}
        except (ImageError, CompileError, ToolkitError) as error:
            return {"error": codes.INVALID_PTX, "text": "; ".join([str(error), *passed_over])}
