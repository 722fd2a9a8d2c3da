"""Compiling and loading programs for a GPU."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from simt import _engine
from simt.cuda import CubinModule, Image, PtxModule, compile_cuda, link, load_images, machine_code
from simt.cuda.device_runtime import calls_in, refuse_launches, with_device_runtime
from simt.cuda.ptx_module import arch_number
from simt.cuda.ptxas import compiled_arch
from simt.errors import ImageError
from simt.options import Code
from simt.sass import Cubin
from simt.sass.program import load_program

from .module import Module

if TYPE_CHECKING:
    from simt._engine.functional import DeviceMemory
    from simt._engine.functional import Module as NativeModule
    from simt.spec import Spec

    from .exclusive import Exclusive
    from .gpu import GPU
    from .memory import Memory
    from .numba_kernel import NumbaFunction
    from .triton_kernel import TritonFunction

OLDEST_ARCH = 50  # NVRTC 12 compiles for nothing older


def target_of(spec: Spec) -> str:
    """The compilation target of programs for a GPU, such as "sm_80"."""
    version = max(spec.sm_version, OLDEST_ARCH)
    return f"sm_{version}a" if version == 90 else f"sm_{version}"


def load_compiled(
    ptx: PtxModule, device: str, memory: DeviceMemory, places: Mapping[str, int], options: Sequence[str] = ()
) -> NativeModule:
    """The engine's module of what ptxas makes of PTX for a device such as "sm_80".

    memory: the engine's. places: addresses for its variables, by name. options: of ptxas.

    Raises CompileError, ToolkitError, SassError.
    """
    cubin = Cubin.parse(machine_code(ptx, compiled_arch(ptx, device), *options), ptx.name)
    kernels = {x["name"]: x for x in _engine.PtxModule(ptx.text.encode(), ptx.name).kernels()}

    def types(kernel: str) -> list[str]:
        return [type_ for _, type_, *_ in kernels[kernel]["parameters"]] if kernel in kernels else []

    return load_program(cubin, memory, places, types)


class Programs:
    """The methods of `GPU` for programs: CUDA C++, PTX, Triton, Numba."""

    spec: Spec
    fmad: bool
    code: Code
    memory: Memory
    exclusive: Exclusive

    @property
    def arch(self) -> str:
        """The compilation target of programs, such as "sm_80"."""
        return target_of(self.spec)

    def compile(self, source: str, **options: Any) -> Module:
        """Compiles CUDA C++ with NVRTC and loads it. Options: those of `simt.cuda.compile_cuda`.

        Raises CompileError with NVRTC's log, PtxError if the program uses unsupported features.
        """
        return Module(
            cast("GPU", self), compile_cuda(source, arch=self.arch, **{"fmad": self.fmad, **options})
        )

    def load(self, program: str | os.PathLike[str] | bytes | Image | Cubin, **options: Any) -> Module:
        """Loads a `.cu`, `.ptx`, `.cubin` or `.fatbin` file, a program or library compiled by nvcc, their
        text or their bytes, or what `simt.sass.assemble` makes of machine code as text.

        A cubin is executed as it is. Of other files, `code="ptx"` takes the PTX, and machine code where there
        is no PTX for this GPU; `code="sass"` takes machine code, and compiles PTX where there is none.

        A file with several modules that have kernels is refused; `simt.cuda.load_images` returns them one by
        one. Raises ImageError if the file holds nothing that this GPU executes.
        """
        if isinstance(program, Cubin):
            return Module(cast("GPU", self), CubinModule(program.name, program.arch, program))
        if isinstance(program, Image):
            return Module(cast("GPU", self), program)
        every = load_images(program, self.arch, **{"fmad": self.fmad, "code": self.code, **options})
        # One without kernels may have templates, which are compiled when they are asked for.
        modules = [m for m in every if m.kernels] if len(every) > 1 else every
        if len(modules) != 1:
            name = options.get("name", "program") if isinstance(program, bytes) else str(program)[:200]
            raise ImageError(
                f"{name}: {len(modules)} modules with kernels, expected one; choose one of "
                "simt.cuda.load_images(...)"
            )
        return Module(cast("GPU", self), modules[0])

    def link(self, programs: Sequence[str | os.PathLike[str] | PtxModule], **options: Any) -> Module:
        """Links several PTX or CUDA C++ files, texts or modules into one, as cuLink does, and loads it.

        Options: those of `simt.cuda.load`. Raises PtxError for a name that is defined twice, or not at all.
        """
        return Module(cast("GPU", self), link(programs, self.arch, **{"fmad": self.fmad, **options}))

    def triton(self, fn: Any) -> TritonFunction:
        """A `@triton.jit` function as a kernel: `gpu.triton(fn)[grid](arguments, num_warps=4, BLOCK=128)`.

        It may be autotuned or have heuristics, and it may be one of Gluon (`@gluon.jit`).
        """
        from .triton_kernel import TritonFunction

        return TritonFunction(cast("GPU", self), fn)

    def numba(self, fn: Any, signature: Any = None, **options: Any) -> NumbaFunction:
        """A Python function as compiled by Numba for CUDA: `gpu.numba(fn)[grid, block](arguments)`.

        signature: Numba types of the arguments, or text such as "void(float32[:], int64)"; None: the types of
            each launch's arguments. Options: those of `simt.cuda.numba_cuda.compile_numba`; options given to
            `@cuda.jit` apply as well.
        """
        from .numba_kernel import NumbaFunction

        return NumbaFunction(cast("GPU", self), fn, signature, options)

    def load_native(self, image: Image, places: Mapping[str, int]) -> NativeModule:
        """The engine's module. places: addresses for its variables, by name."""
        if isinstance(image, CubinModule):
            image.require(self.arch, self.spec.name)
            refuse_launches(image.name, image.calls)
            self._note_other_code(image.arch)
            with self.exclusive:
                return load_program(image.cubin, self.memory.native, places)
        ptx = cast("PtxModule", image)
        refuse_launches(ptx.name, calls_in(ptx.text))
        if self.code == "sass":
            self._note_other_code(compiled_arch(ptx, self.arch))
            with self.exclusive:
                return load_compiled(ptx, self.arch, self.memory.native, places)
        with self.exclusive:
            return _engine.functional.load(
                with_device_runtime(ptx.text), ptx.name, self.memory.native, dict(places)
            )

    def _note_other_code(self, arch: str) -> None:
        """Warns where machine code of a later version stands for the GPU's own."""
        if arch_number(arch)[0] > arch_number(self.arch)[0]:
            warnings.warn(
                f"{self.spec.name} is {self.arch}: it executes {arch} code; it was given no other, or no "
                "installed ptxas makes any",
                stacklevel=4,
            )
