"""Loaded programs and their kernels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from simt import _engine
from simt.cuda import Image, PtxModule, compile_cuda, resources
from simt.cuda.ptxas import compiled_arch
from simt.errors import ImageError, LaunchError, PtxError
from simt.names import function_name, short_name
from simt.pages import notebook
from simt.result.listing import Origins
from simt.run.faults import explained
from simt.run.l2 import AccessWindow

from .arguments import MOST_THREADS, Arguments, Parameter, shared_bytes, three
from .array import DeviceArray
from .occupancy import Occupancy, occupancy_of
from .stream import Stream, stream_of
from .texture import Surface, Texture, TextureSampler

if TYPE_CHECKING:
    from simt.engine_types import LoadedKernel
    from simt.result import LaunchResult
    from simt.result.launch import MaybeNone

    from .gpu import GPU


@dataclass(frozen=True)
class KernelFacts:
    """Properties of a kernel known before it runs.

    registers: per thread, from ptxas if its wheel is installed or the program is machine code, otherwise
        estimated; `registers_from` says which.
    shared_bytes: static shared memory per CTA.
    max_threads: from `__launch_bounds__`, or 0.
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

    `module["name"]` or `module.name` is a kernel, by its name in the program, its C++ name or a name
    expression such as "f<float>", which is compiled on demand.
    """

    def __init__(self, gpu: GPU, image: Image, places: Mapping[str, int] | None = None) -> None:
        """places: addresses for its variables, by name."""
        self.gpu = gpu
        self.image = image if gpu.fmad else image.without_contraction()
        """The program itself: PTX or machine code."""
        self._native = gpu.load_native(self.image, places or {})
        self._known: dict[str, KernelFacts] = {}
        self.instances: dict[str, Module] = {}
        """Instances of its templates that were compiled on demand, by name expression."""
        self.bound: dict[str, TextureSampler | Surface | Texture] = {}
        """What is bound to its texture, surface and sampler variables."""

    @property
    def native(self) -> _engine.functional.Module:
        """The engine's module."""
        return self._native

    @property
    def ptx(self) -> PtxModule:
        """The program's PTX. Raises PtxError if it is machine code."""
        if not isinstance(self.image, PtxModule):
            raise PtxError(f"{self.image.name}: it is machine code, without PTX")
        return self.image

    @property
    def executed(self) -> str:
        """What is executed of it: "PTX", or "machine code for sm_80" and the like."""
        if not self._native.is_machine_code:
            return "PTX"
        image = self.image
        arch = compiled_arch(image, self.gpu.arch) if isinstance(image, PtxModule) else image.arch
        return f"machine code for {arch}"

    @cached_property
    def digest(self) -> bytes:
        """Of its contents."""
        return hashlib.sha256(self.image.contents).digest()

    @cached_property
    def explained(self) -> explained:
        """A context in which the engine's errors about its kernels become simt's."""
        return explained(self.image.source_text)

    @cached_property
    def origins(self) -> Origins:
        """Origins of the instructions given to the timing model."""
        rows = self._native.listing(self.gpu.spec.sm_version)
        text = self.image.text if isinstance(self.image, PtxModule) else ""
        return Origins(rows, text, self.image.source_text)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels in the program."""
        return tuple(self._native.kernels)

    def __getitem__(self, name: str) -> Kernel:
        image = self.image
        try:
            known = image.kernel(name)
        except ImageError:
            if not isinstance(image, PtxModule) or image.source is None or "<" not in name:
                raise
            if name not in self.instances:
                again = compile_cuda(
                    image.source, name=image.name, arch=image.arch, kernels=[name], **image.settings
                )
                self.instances[name] = Module(self.gpu, again)
            return self.instances[name][name]
        if known not in self._known:
            self._known[known] = self._facts(known)
        return Kernel(self, self._known[known])  # not kept: module and GPU are freed when unused

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except ImageError as error:
            raise AttributeError(str(error)) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def variable(self, name: str, dtype: npt.DTypeLike = "u1") -> DeviceArray:
        """A `__device__` or `__constant__` variable as an array of `dtype` elements.

        Raises LaunchError if there is no variable of that name.
        """
        variables = self._native.variables
        matches = [v for v in variables if v == name] or [
            v for v in variables if v.startswith("_Z") and f"{len(name)}{name}" in v
        ]
        if len(matches) != 1:
            raise LaunchError(
                f"{self.image.name}: no variable {name!r}; there are: {', '.join(variables) or 'none'}"
            )
        address, size = variables[matches[0]]
        return DeviceArray(self.gpu, address, (size,), "u1", self).view(dtype)

    def bind_texture(self, name: str, texture: Texture | TextureSampler) -> None:
        """Binds a texture to a `.texref` variable, or a sampler to a `.samplerref`, in place of the previous
        binding. Waits for all launches. Raises LaunchError if there is no such variable.
        """
        self._bind(name, texture, "samplerref" if isinstance(texture, TextureSampler) else "texref")

    def bind_surface(self, name: str, surface: Surface) -> None:
        """Binds a surface to a `.surfref` variable, as `bind_texture` does."""
        self._bind(name, surface, "surfref")

    @property
    def places(self) -> dict[str, int]:
        """Addresses of all its variables, by name in the program; also of those that the compiler made."""
        return {
            name: address
            for name, (address, _) in {
                **self._native.variables,
                **self._native.hidden_variables,
                **self._native.references,
            }.items()
        }

    @property
    def keeps(self) -> list[object]:
        """Objects that its launches need until they are done, besides their arguments."""
        return [what.keeps for what in self.bound.values()]

    def _bind(self, name: str, what: TextureSampler | Surface | Texture, type: str) -> None:
        references = self._native.references
        names = [n for n, (_, of) in references.items() if of == type]
        if name not in names:
            raise LaunchError(
                f"{self.image.name}: no .{type} variable {name!r}; there are: {', '.join(names) or 'none'}"
            )
        if what.gpu is not self.gpu:
            raise LaunchError(f"{self.image.name}: what is bound to {name!r} belongs to another GPU")
        with self.gpu.exclusive:
            self.gpu.synchronize()
            self.gpu.memory.native.write(references[name][0], what.descriptor)
            self.bound[name] = what

    def _facts(self, name: str) -> KernelFacts:
        facts = self._native.kernels[name]
        registers, registers_from = self._allocated(name, facts), "ptxas"
        if not registers:
            # Live values, and a few for addresses and what ptxas keeps apart (docs/functional/timing.md).
            registers, registers_from = min(255, max(16, facts["max_live"] + 6)), "estimate"
        sizes, (x, y, z) = facts["max_threads"], facts["cluster"]
        return KernelFacts(
            name=name,
            index=facts["index"],
            parameters=tuple(
                Parameter(o, n, t if n in (1, 2, 4, 8) else "") for o, n, t in facts["parameters"]
            ),
            registers=registers,
            registers_from=registers_from,
            shared_bytes=facts["shared_bytes"],
            max_threads=sizes[0] * max(1, sizes[1]) * max(1, sizes[2]),
            cluster=(max(1, x), max(1, y), max(1, z)),
        )

    def _allocated(self, kernel: str, facts: LoadedKernel) -> int:
        """Registers per thread, as ptxas allocated them; 0 where that is not known."""
        if self._native.is_machine_code or not isinstance(self.image, PtxModule):
            return facts["registers"]
        known = resources(self.image, self.gpu.arch)
        return known[kernel].registers if known and kernel in known else 0

    def __dir__(self) -> list[str]:
        """With the kernels that Python can name, so that completion offers them."""
        names = (function_name(kernel) for kernel in self.kernels)
        return [*super().__dir__(), *(name for name in names if name.isidentifier())]

    def _repr_html_(self) -> str:
        rows = []
        for name in self.kernels:
            f = self[name].facts
            rows.append([short_name(name), str(len(f.parameters)), str(f.registers), f"{f.shared_bytes:,}"])
        header = ["kernel", "parameters", "registers", "bytes of shared memory"]
        return notebook(
            f"Module {self.image.name} on {self.gpu.name}: {self.executed}", [(header, rows, (0,))]
        )

    def __repr__(self) -> str:
        return f"Module({self.image.name!r}: {', '.join(self.kernels) or 'no kernels'})"


class Kernel:
    """A kernel. `kernel[grid, block](arguments)` launches it, as do `[grid, block, shared]` and `[grid,
    block,
    shared, stream]`.

    grid, block: a number, or up to three.
    shared: bytes of dynamic shared memory.

    A fifth entry is the cluster size.
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
        what = f"kernel `{self.name}`: the"
        return Launcher(
            self,
            three(grid, f"{what} grid"),
            three(block, f"{what} block", MOST_THREADS),
            shared_bytes(shared, f"{what} dynamic shared memory"),
            stream_of(self.module.gpu, stream, f"{what} stream"),
            three(cluster, f"{what} cluster") if cluster else self.facts.cluster,
        )

    def __call__(self, *arguments: Any, shared_mem: int = 0, stream: Any = None) -> LaunchResult | MaybeNone:
        """Launches in CuPy's form: `kernel((grid,), (block,), (arguments...), shared_mem=0, stream=None)`."""
        if len(arguments) != 3 or not all(isinstance(x, (tuple, list)) for x in arguments):
            raise LaunchError(
                f"kernel `{self.name}` needs a grid and a block: {self.name}[grid, block](...), or "
                f"{self.name}((grid,), (block,), (arguments...))"
            )
        grid, block, given = arguments
        return self[tuple(grid), tuple(block), shared_mem, stream](*given)

    def occupancy(self, block: Any, shared: int = 0) -> Occupancy:
        """How many CTAs with this many threads and this much dynamic shared memory fit into an SM of the GPU.

        Raises LaunchError if not even one fits.
        """
        return occupancy_of(self, three(block, f"kernel `{self.name}`: the block", MOST_THREADS), shared)

    def _repr_html_(self) -> str:
        f = self.facts
        rows = [[str(i), str(p.offset), str(p.bytes), p.type or "-"] for i, p in enumerate(f.parameters)]
        title = (
            f"Kernel {short_name(self.name)}: {f.registers} registers ({f.registers_from}), "
            f"{f.shared_bytes:,} bytes "
            "of shared memory"
        )
        return notebook(title, [(["parameter", "offset", "bytes", "type"], rows, (3,))])

    def __repr__(self) -> str:
        f = self.facts
        return (
            f"Kernel({self.name!r}: {len(f.parameters)} parameters, {f.registers} registers "
            f"({f.registers_from}), {f.shared_bytes} bytes of shared memory)"
        )


@dataclass(frozen=True)
class Launcher:
    """A kernel with its launch configuration; calling it launches.

    window: memory whose accesses have properties of their own in the L2; None: as its stream says.
    first, state: where a launch that a checkpoint interrupted continues: CTAs before `first` have finished;
        `state` is that of those that have begun.
    """

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: Stream | None
    cluster: tuple[int, int, int]
    cooperative: bool = False
    first: int = 0
    state: bytes = b""
    window: AccessWindow | None = None

    @cached_property
    def native(self) -> _engine.functional.Launch:
        """The engine's description of the launch, without its parameters."""
        module, facts = self.kernel.module, self.kernel.facts
        return _engine.functional.Launch(
            module.native,
            facts.index,
            self.grid,
            self.block,
            self.cluster,
            self.shared,
            module.gpu.machine_facts,
            self.cooperative,
            self.first,
            self.state,
        )

    @cached_property
    def refusal(self) -> str:
        """Why an SM has too few registers for a block, if their number is certain; else empty."""
        kernel, available = self.kernel, self.kernel.module.gpu.spec.sm.register_file.registers
        if kernel.facts.registers_from != "ptxas" or self.registers <= available:
            return ""
        return (
            f"kernel `{kernel.name}`: a block of {math.prod(self.block)} threads needs {self.registers:,} "
            f"registers ({kernel.facts.registers} a thread); an SM of this GPU has {available:,}"
        )

    @cached_property
    def registers(self) -> int:
        """Registers that an SM allocates per CTA."""
        sm, kernel = self.kernel.module.gpu.spec.sm, self.kernel.facts
        unit = max(1, sm.register_file.allocation_unit)
        of_warp = -(-kernel.registers * sm.warp_size // unit) * unit
        return -(-math.prod(self.block) // sm.warp_size) * of_warp

    def __call__(
        self, *arguments: Any, stream: Any = None, cooperative: bool = False
    ) -> LaunchResult | MaybeNone:
        """Launches. Host arrays are copied to the device and back. stream: in place of the configuration's.
        cooperative: all CTAs are on the GPU at once and may wait for each other, as `this_grid().sync()` of
        CUDA's cooperative groups does; LaunchError where they do not fit.

        Returns the LaunchResult where it was timed and is finished: not with `functional=True`, and not in a
        stream. Raises LaunchError for arguments that do not fit, ProgramFault for what the program does.
        """
        kernel, gpu = self.kernel, self.kernel.module.gpu
        launcher = self.cooperatively() if cooperative else self
        return launcher.launch(lambda: Arguments(gpu, kernel.name, kernel.parameters, arguments), stream)

    def cooperatively(self) -> Launcher:
        """The same as a cooperative launch. Raises LaunchError if its CTAs do not fit on the GPU."""
        occupancy, spec = self.kernel.occupancy(self.block, self.shared), self.kernel.module.gpu.spec
        ctas, fit = math.prod(self.grid), occupancy.ctas * spec.sm.count
        if ctas > fit:
            error = LaunchError(
                f"kernel `{self.kernel.name}`: a cooperative launch of {ctas:,} CTAs, of which {fit:,} fit "
                f"on {spec.name} at once: {occupancy.ctas} on each of {spec.sm.count} SMs, limited by "
                f"{occupancy.limited_by}; let fewer CTAs loop over the work"
            )
            if (checking := self.kernel.module.gpu.checking) is not None:
                checking.refused(error)
            raise error
        return replace(self, cooperative=True)

    def launch(self, arguments: Callable[[], Arguments], stream: Any = None) -> LaunchResult | MaybeNone:
        """Same as calling it, with a function that makes the arguments once the GPU is held."""
        gpu, launcher = self.kernel.module.gpu, self
        if stream is not None:
            given = stream_of(gpu, stream, f"kernel `{self.kernel.name}`: the stream")
            launcher = replace(self, stream=given)
        return gpu.launch(launcher, arguments)
