"""Loaded programs and their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from simt.cuda import PtxModule, compile_cuda, resources
from simt.errors import LaunchError, PtxError
from simt.result.listing import Origins

from .arguments import Arguments, Parameter, three
from .array import DeviceArray
from .texture import Sampler, Surface, Texture

if TYPE_CHECKING:
    from simt.result import LaunchResult

    from .gpu import GPU
    from .stream import Stream


@dataclass(frozen=True)
class KernelFacts:
    """What is known of a kernel before it runs.

    registers: per thread, of ptxas where its wheel is installed, else estimated; `registers_from` says which.
    shared_bytes: static shared memory of a CTA. max_threads: of `__launch_bounds__`, 0 for none.
    """

    name: str
    index: int
    parameters: tuple[Parameter, ...]
    registers: int
    registers_from: str
    shared_bytes: int
    max_threads: int
    cluster: tuple[int, int, int]


class Module:
    """A program in the memory of a GPU: kernels, and variables at global and constant scope.

    `module["name"]` or `module.name` is a kernel, by its PTX name, its C++ name or a name expression such as
    "f<float>" (which is compiled when asked for).
    """

    def __init__(self, gpu: GPU, ptx: PtxModule) -> None:
        self.gpu = gpu
        self.ptx = ptx if gpu.fmad else ptx.without_contraction()
        self._native = gpu.load_native(self.ptx)
        self._kernels: dict[str, Kernel] = {}
        self._instances: dict[str, Module] = {}
        self._bound: dict[str, Sampler | Surface | Texture] = {}

    @property
    def native(self) -> Any:
        """The module as the engine has it."""
        return self._native

    @cached_property
    def origins(self) -> Origins:
        """Where the instructions come from that the timing model is given."""
        rows = self._native.listing(self.gpu.spec.sm_version)
        return Origins(rows, self.ptx.text, self.ptx.source_text)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels in the PTX."""
        return tuple(self._native.kernels)

    def __getitem__(self, name: str) -> Kernel:
        try:
            ptx_name = self.ptx.kernel(name)
        except PtxError:
            if self.ptx.source is None or "<" not in name:
                raise
            if name not in self._instances:
                again = compile_cuda(self.ptx.source, name=self.ptx.name, arch=self.ptx.arch, kernels=[name])
                self._instances[name] = Module(self.gpu, again)
            return self._instances[name][name]
        if ptx_name not in self._kernels:
            self._kernels[ptx_name] = Kernel(self, self._facts(ptx_name))
        return self._kernels[ptx_name]

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except PtxError as error:
            raise AttributeError(str(error)) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def variable(self, name: str, dtype: npt.DTypeLike = "u1") -> DeviceArray:
        """A `__device__` or `__constant__` variable as an array of `dtype` elements.

        Raises LaunchError if there is none of that name.
        """
        variables = self._native.variables
        matches = [v for v in variables if v == name] or [
            v for v in variables if v.startswith("_Z") and f"{len(name)}{name}" in v
        ]
        if len(matches) != 1:
            raise LaunchError(
                f"{self.ptx.name}: no variable {name!r}; there are: {', '.join(variables) or 'none'}"
            )
        address, size = variables[matches[0]]
        raw = DeviceArray(self.gpu, address, (size,), "u1", owner=False)
        array = raw.view(dtype)
        array._module = self  # type: ignore[attr-defined]
        return array

    def bind_texture(self, name: str, texture: Texture | Sampler) -> None:
        """Binds a texture to a `.texref` variable, or a sampler to a `.samplerref`; what was bound before
        is replaced. Waits for all launches. Raises LaunchError if there is no such variable."""
        self._bind(name, texture, "samplerref" if isinstance(texture, Sampler) else "texref")

    def bind_surface(self, name: str, surface: Surface) -> None:
        """Binds a surface to a `.surfref` variable, as `bind_texture` does."""
        self._bind(name, surface, "surfref")

    def _bind(self, name: str, what: Sampler | Surface | Texture, type: str) -> None:
        references = self._native.references
        names = [n for n, (_, of) in references.items() if of == type]
        if name not in names:
            raise LaunchError(
                f"{self.ptx.name}: no .{type} variable {name!r}; there are: {', '.join(names) or 'none'}"
            )
        if what.gpu is not self.gpu:
            raise LaunchError(f"{self.ptx.name}: what is bound to {name!r} belongs to another GPU")
        self.gpu.synchronize()
        self.gpu.memory.write(references[name][0], what.descriptor)
        self._bound[name] = what

    def _facts(self, name: str) -> KernelFacts:
        facts = self._native.kernels[name]
        known = resources(self.ptx, self.gpu.arch)
        registers, registers_from = known[name].registers if known and name in known else 0, "ptxas"
        if not registers:
            # Live values, and a few for addresses and what ptxas keeps apart (docs/functional/timing.md).
            registers, registers_from = min(255, max(16, facts["max_live"] + 6)), "estimate"
        sizes = facts["max_threads"]
        return KernelFacts(
            name=name,
            index=facts["index"],
            parameters=tuple(
                Parameter(o, n, t if n in (1, 2, 4, 8) else "") for o, n, t, _ in facts["parameters"]
            ),
            registers=registers,
            registers_from=registers_from,
            shared_bytes=facts["shared_bytes"],
            max_threads=sizes[0] * max(1, sizes[1]) * max(1, sizes[2]),
            cluster=tuple(max(1, n) for n in facts["cluster"]),
        )

    def __repr__(self) -> str:
        return f"Module({self.ptx.name!r}: {', '.join(self.kernels) or 'no kernels'})"


class Kernel:
    """A kernel. `kernel[grid, block](arguments)` launches it, as do `[grid, block, shared]` and
    `[grid, block, shared, stream]`.

    grid, block: a number or up to three. shared: bytes of dynamic shared memory. A fifth entry: the cluster.
    """

    def __init__(self, module: Module, facts: KernelFacts) -> None:
        self.module = module
        self.facts = facts

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.facts.parameters

    def __getitem__(self, configuration: Any) -> Launcher:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 5:
            raise LaunchError(
                f"kernel `{self.name}`: launch it as kernel[grid, block], kernel[grid, block, shared] or "
                f"kernel[grid, block, shared, stream]"
            )
        grid, block, *rest = configuration
        shared, stream, cluster = (*rest, None, None, None)[:3]
        return Launcher(
            self,
            three(grid, f"kernel `{self.name}`: the grid"),
            three(block, f"kernel `{self.name}`: the block"),
            int(shared or 0),
            stream,
            three(cluster, f"kernel `{self.name}`: the cluster") if cluster else self.facts.cluster,
        )

    def __call__(self, *arguments: Any) -> None:
        raise LaunchError(f"kernel `{self.name}` needs a grid and a block: {self.name}[grid, block](...)")

    def __repr__(self) -> str:
        f = self.facts
        return (
            f"Kernel({self.name!r}: {len(f.parameters)} parameters, {f.registers} registers "
            f"({f.registers_from}), {f.shared_bytes} bytes of shared memory)"
        )


@dataclass(frozen=True)
class Launcher:
    """A kernel with its launch configuration; calling it launches."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: Stream | None
    cluster: tuple[int, int, int]

    def __call__(self, *arguments: Any) -> LaunchResult | None:
        """Launches. Host arrays are copied to the device and back.

        Returns the LaunchResult where it was timed and is finished: not with `functional=True`, and not in a
        stream. Raises LaunchError for arguments that do not fit, ProgramFault for what the program does.
        """
        gpu = self.kernel.module.gpu
        packed = Arguments(gpu, self.kernel.name, self.kernel.parameters, arguments)
        return gpu.launch(self, packed)
