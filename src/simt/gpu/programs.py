"""Compiling and loading programs for a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from simt import _engine
from simt.cuda import PtxModule, compile_cuda, link, load, machine_code
from simt.cuda.device_runtime import with_device_runtime
from simt.errors import PtxError

from .module import Module

if TYPE_CHECKING:
    from simt.spec import Spec

    from .exclusive import Exclusive
    from .gpu import GPU
    from .memory import Memory

TensorArithmetic = Literal["hardware", "exact"]
"""How matrix instructions of a program add."""
OLDEST_ARCH = 50  # NVRTC 12 compiles for nothing older
OLDEST_MACHINE_CODE = 75  # that nvdisasm of CUDA 13 decodes
Code = Literal["ptx", "sass"]
CODES: tuple[Code, ...] = get_args(Code)


def target_of(spec: Spec) -> str:
    """The compilation target of programs for a GPU, such as "sm_80"."""
    version = max(spec.sm_version, OLDEST_ARCH)
    return f"sm_{version}a" if version == 90 else f"sm_{version}"


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

    def load(self, program: str | os.PathLike[str] | PtxModule, **options: Any) -> Module:
        """Loads a `.cu` or `.ptx` file, a program or library compiled by nvcc, or their text.

        A file with several PTX modules that have kernels is refused; `simt.cuda.load` returns them one by
        one.
        """
        if isinstance(program, PtxModule):
            return Module(cast("GPU", self), program)
        every = load(program, self.arch, **{"fmad": self.fmad, **options})
        # One without kernels may have templates, which are compiled when they are asked for.
        modules = [m for m in every if m.kernels] if len(every) > 1 else every
        if len(modules) != 1:
            raise PtxError(
                f"{str(program)[:200]}: {len(modules)} PTX modules with kernels, expected one; "
                "choose one of simt.cuda.load(...)"
            )
        return Module(cast("GPU", self), modules[0])

    def link(self, programs: Sequence[str | os.PathLike[str] | PtxModule], **options: Any) -> Module:
        """Links several PTX or CUDA C++ files, texts or modules into one, as cuLink does, and loads it.

        Options: those of `simt.cuda.load`. Raises PtxError for a name that is defined twice, or not at all.
        """
        return Module(cast("GPU", self), link(programs, self.arch, **{"fmad": self.fmad, **options}))

    def triton(self, fn: Any) -> Any:
        """A `@triton.jit` function as a kernel: `gpu.triton(fn)[grid](arguments, num_warps=4, BLOCK=128)`."""
        from .triton_kernel import TritonFunction

        return TritonFunction(cast("GPU", self), fn)

    def numba(self, fn: Any, signature: Any = None, **options: Any) -> Any:
        """A Python function as compiled by Numba for CUDA: `gpu.numba(fn)[grid, block](arguments)`.

        signature: Numba types of the arguments, or text such as "void(float32[:], int64)"; None: the types of
            each launch's arguments. Options: those of `simt.cuda.numba_cuda.compile_numba`; options given to
            `@cuda.jit` apply as well.
        """
        from .numba_kernel import NumbaFunction

        return NumbaFunction(cast("GPU", self), fn, signature, options)

    def load_native(self, ptx: PtxModule, places: Mapping[str, int]) -> Any:
        """The engine's module. places: addresses for its variables, by name."""
        if self.code == "sass":
            return self._load_machine_code(ptx, places)
        with self.exclusive:
            return _engine.functional.load(
                with_device_runtime(ptx.text), ptx.name, self.memory.native, dict(places)
            )

    def _load_machine_code(self, ptx: PtxModule, places: Mapping[str, int]) -> Any:
        from simt.sass.program import load_program

        arch = self.arch if self.spec.sm_version >= OLDEST_MACHINE_CODE else f"sm_{OLDEST_MACHINE_CODE}"
        data = machine_code(ptx, arch)
        kernels = {x["name"]: x for x in _engine.PtxModule(ptx.text.encode(), ptx.name).kernels()}

        def types(kernel: str) -> list[str]:
            return [type_ for _, type_, *_ in kernels[kernel]["parameters"]] if kernel in kernels else []

        with self.exclusive:
            return load_program(data, ptx.name, self.memory.native, places, types)
