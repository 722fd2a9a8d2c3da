"""Checkpoints of a `simt.GPU`, at the beginning of a launch or within one."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from simt.cuda import CubinModule, Image, PtxModule, compile_cuda
from simt.errors import CheckpointError, ImageError, LaunchError
from simt.gpu.arguments import LaunchArguments
from simt.gpu.array import Allocation, DeviceArray
from simt.gpu.elements import element_type
from simt.gpu.module import Launcher, Module
from simt.gpu.stream import Stream
from simt.gpu.texture import Surface, Texture, TextureHandle, TextureSampler
from simt.options import TensorArithmetic
from simt.spec import Spec
from simt.spec.files import validate

from .folder import CheckpointReader, CheckpointWriter, Natural, Span
from .l2 import L2State, require_l2, restore_l2, save_l2
from .memory import MemoryState, require_room, restore_memory, save_memory
from .point import CTAS, Begun, CheckpointPoint, Size, engine_digest

if TYPE_CHECKING:
    from simt.gpu import GPU

Made = TypeVar("Made", bound="GPU")

KIND = "GPU"
_PROGRAMS = "programs.zst"

Object = DeviceArray | Module | Texture | Surface | TextureSampler | Stream
"""What a checkpoint can keep under a name."""


class _Array(msgspec.Struct, tag="array"):
    """base: the number of the array whose memory it shows. owner: the number of its module, if it is a
    variable; without either, the allocation at `address` is its own."""

    address: Natural
    shape: tuple[Natural, ...]
    strides: tuple[int, ...]
    dtype: str
    base: Natural | None = None
    owner: Natural | None = None


class _Program(msgspec.Struct):
    """A module's PTX or machine code, where its variables are, and instances of its templates. What follows
    `arch` and `text` up to `linked` is of PTX."""

    name: str
    arch: str
    text: list[Span]
    source: list[Span] | None
    log: str
    names: dict[str, str]
    settings: dict[str, Any]
    linked: bool
    variables: dict[str, Natural]
    instances: dict[str, _Program]
    machine_code: bool = False


class _Module(msgspec.Struct, tag="module"):
    """bound: numbers of the textures, by the variable that they are bound to."""

    program: _Program
    bound: dict[str, Natural]


class _Handle(msgspec.Struct, tag="handle"):
    """A texture, surface or sampler. kind: its class. memory: number of the array that holds its descriptor.
    arrays: numbers of the arrays that it gives access to."""

    kind: str
    descriptor: bytes
    memory: Natural
    arrays: list[Natural]


class _Stream(msgspec.Struct, tag="stream"):
    number: Natural


class _Inside(Begun):
    """A launch that the point is within. module, stream: their numbers. instance: which of the module's
    templates, if it is one."""

    module: Natural
    instance: str | None
    kernel: str
    grid: Size
    block: Size
    cluster: Size
    shared: Natural
    stream: Natural | None
    parameters: bytes
    annotation: str


class _State(msgspec.Struct):
    """objects: what the names stand for, and what these objects refer to. names: to their numbers.
    position: as of `GPU`. inside: None at the beginning of a launch. l2: None for an empty one.
    tensor_arithmetic: that of checkpoints from before there was a choice, if missing."""

    spec: dict[str, Any]
    fmad: bool
    position: tuple[Natural, Natural, str]
    memory: MemoryState
    objects: list[_Array | _Module | _Handle | _Stream]
    names: dict[str, Natural]
    inside: _Inside | None
    l2: L2State | None
    tensor_arithmetic: TensorArithmetic = "exact"


class Saving:
    """A checkpoint that is being made: of `objects`, with what the L2 holds if it is `warm`.

    Leaving the block without `finish` leaves nothing at `path`. Raises CheckpointError if something is there
    already, or there is no L2 to keep.
    """

    def __init__(
        self, gpu: GPU, path: str | os.PathLike[str], objects: Mapping[str, Object], warm: bool
    ) -> None:
        if gpu.memory.native.has_unknown:
            raise CheckpointError(
                "unbacked memory is in use, which holds no values that a checkpoint could keep; free it first"
            )
        if warm:
            require_l2(gpu.session)
        self._gpu, self._objects, self._warm = gpu, objects, warm
        self._writer = CheckpointWriter(path, KIND)
        self._table = _Table(gpu, self._writer)

    def __enter__(self) -> Saving:
        return self

    def __exit__(self, *_: Any) -> None:
        self._writer.discard()

    def finish(self) -> None:
        """Writes the checkpoint, after all queued work."""
        gpu = self._gpu
        with gpu.exclusive:
            gpu.synchronize()
            self._write(self._l2(), None)

    def finish_within(self, point: CheckpointPoint, launcher: Launcher, parameters: bytes) -> Launcher:
        """Writes the checkpoint at a point within the next launch, which is executed up to there, without
        timing. Returns what is left of it.

        launcher: in its stream, if any.
        """
        gpu, until = self._gpu, point.within(launcher)
        gpu.synchronize()
        l2 = self._l2()
        state = gpu.run_values(launcher, parameters, point.launch, until=until)
        module, instance = self._module(launcher.kernel.module)
        inside = _Inside(
            cta=until[0],
            state=self._writer.add(CTAS, state),
            engine=engine_digest(),
            executed=launcher.kernel.module.executed,
            module=module,
            instance=instance,
            kernel=launcher.kernel.name,
            grid=launcher.grid,
            block=launcher.block,
            cluster=launcher.cluster,
            shared=launcher.shared,
            stream=None if launcher.stream is None else self._table.number(launcher.stream, "stream"),
            parameters=parameters,
            annotation=gpu.annotation,
        )
        self._write(l2, inside)
        return replace(launcher, first=until[0], state=state)

    def _l2(self) -> L2State | None:
        return save_l2(self._writer, self._gpu.session) if self._warm else None

    def _module(self, module: Module) -> tuple[int, str | None]:
        """Number of a module, and which template if it is an instance of an object's."""
        for name, value in self._objects.items():
            for instance, found in value.instances.items() if isinstance(value, Module) else ():
                if found is module:
                    return self._table.number(value, name), instance
        return self._table.number(module, "the interrupted launch's module"), None

    def _write(self, l2: L2State | None, inside: _Inside | None) -> None:
        gpu = self._gpu
        names = {name: self._table.number(value, name) for name, value in self._objects.items()}
        self._writer.finish(
            _State(
                spec=gpu.spec.values(),
                fmad=gpu.fmad,
                position=gpu.position,
                memory=save_memory(self._writer, gpu.memory.native),
                objects=self._table.found,
                names=names,
                inside=inside,
                l2=l2,
                tensor_arithmetic=gpu.tensor_arithmetic,
            )
        )


class InterruptedLaunch(LaunchArguments):
    """A launch that a checkpoint interrupted: what is left of it, and its parameters."""

    def __init__(self, launcher: Launcher, parameters: bytes, annotation: str) -> None:
        super().__init__(parameters)
        self.launcher = launcher
        self.annotation = annotation


class _Table:
    """Numbers the objects of a checkpoint."""

    def __init__(self, gpu: GPU, writer: CheckpointWriter) -> None:
        self.found: list[Any] = []
        self._gpu, self._writer = gpu, writer
        self._numbers: dict[int, int] = {}

    def number(self, value: Any, name: str) -> int:
        known = self._numbers.get(id(value))
        if known is not None:
            return known
        if not isinstance(value, Object):
            raise CheckpointError(
                f"object {name!r} is {type(value).__name__}, which a checkpoint cannot keep: it keeps "
                "arrays, modules, textures, surfaces, samplers and streams of the GPU"
            )
        if value.gpu is not self._gpu:
            raise CheckpointError(f"object {name!r} belongs to another GPU")
        state = self._state(value, name)
        self.found.append(state)
        self._numbers[id(value)] = len(self.found) - 1
        return len(self.found) - 1

    def _state(self, value: Any, name: str) -> Any:
        if isinstance(value, DeviceArray):
            return self._array(value, name)
        if isinstance(value, Module):
            bound = {at: self.number(what, name) for at, what in value.bound.items()}
            return _Module(self._program(value), bound)
        if isinstance(value, Stream):
            return _Stream(value.number)
        arrays = [self.number(array, name) for array in value.arrays]
        kind = "Sampler" if isinstance(value, TextureSampler) else type(value).__name__  # the name in files
        return _Handle(kind, value.descriptor, self.number(value.memory, name), arrays)

    def _array(self, array: DeviceArray, name: str) -> _Array:
        if array.is_freed:
            raise CheckpointError(f"object {name!r} was freed: {array!r}")
        described = np.lib.format.dtype_to_descr(array.dtype)
        if np.lib.format.descr_to_dtype(described) != array.dtype:
            raise CheckpointError(
                f"object {name!r} has elements {array.dtype}, which a checkpoint cannot keep"
            )
        return _Array(
            array.address,
            array.shape,
            array.strides,
            repr(described),
            None if array.base is None else self.number(array.base, name),
            self.number(array.memory, name) if isinstance(array.memory, Module) else None,
        )

    def _program(self, module: Module) -> _Program:
        image = module.image
        program = _Program(
            name=image.name,
            arch=image.arch,
            text=self._writer.add(_PROGRAMS, image.contents),
            source=None,
            log="",
            names=dict(image.names),
            settings={},
            linked=False,
            variables=module.places,
            instances={name: self._program(one) for name, one in module.instances.items()},
            machine_code=not isinstance(image, PtxModule),
        )
        if isinstance(image, PtxModule):
            program.source = (
                None if image.source is None else self._writer.add(_PROGRAMS, image.source.encode())
            )
            program.log, program.linked = image.log, image.linked
            program.settings = msgspec.to_builtins(image.settings, enc_hook=os.fspath)
        return program


def restore(
    make: type[Made],
    path: str | os.PathLike[str],
    spec: str | os.PathLike[str] | Spec | None,
    warm: bool,
    options: dict[str, Any],
) -> Made:
    """See `GPU.from_checkpoint`."""
    with CheckpointReader(path, KIND) as reader:
        state = reader.state(_State)
        options.setdefault("fmad", state.fmad)
        options.setdefault("tensor_arithmetic", state.tensor_arithmetic)
        if state.inside is not None:
            options.setdefault("code", "ptx" if state.inside.executed == "PTX" else "sass")
        if spec is None:
            options.setdefault("memory", state.memory.capacity)
            spec = validate(state.spec, {}, f"the specification in {reader.path}")
        gpu = make(spec, **options)
        require_room(reader, state.memory, gpu.memory.native, gpu.name)
        gpu.position = state.position
        objects = _Restored(gpu, reader, state.objects)
        restore_memory(reader, state.memory, gpu.memory.native)
        if state.names and max(state.names.values()) >= len(objects.made):
            reader.damaged("a name of an object that it does not have")
        gpu.objects.update({name: objects.made[number] for name, number in state.names.items()})
        if state.l2 is not None and warm and not gpu.functional:
            restore_l2(reader, state.l2, gpu.session)
        if state.inside is not None:
            gpu.interrupted = objects.interrupted(state.inside)
    return gpu


class _Restored:
    """Makes the objects of a checkpoint; their memory must then be restored."""

    def __init__(self, gpu: GPU, reader: CheckpointReader, states: list[Any]) -> None:
        self.made: list[Any] = []
        self._gpu, self._reader = gpu, reader
        self._memory: dict[int, Allocation] = {}
        for state in states:
            self.made.append(self._make(state))

    def _make(self, state: Any) -> Any:
        if isinstance(state, _Array):
            return self._array(state)
        if isinstance(state, _Stream):
            return Stream(self._gpu, state.number)
        if isinstance(state, _Module):
            module = self._module(state.program)
            module.bound.update({name: self._before(at, TextureHandle) for name, at in state.bound.items()})
            return module
        arrays = [self._before(at, DeviceArray) for at in state.arrays]
        memory = self._before(state.memory, DeviceArray)
        if state.kind == "Sampler":
            return TextureSampler(self._gpu, state.descriptor, memory)
        if state.kind == "Texture" and arrays:
            return Texture(self._gpu, state.descriptor, arrays, memory)
        if state.kind == "Surface" and arrays:
            return Surface(self._gpu, state.descriptor, arrays[0], memory)
        self._reader.damaged(f"an object of kind {state.kind!r} with {len(arrays)} arrays")

    def interrupted(self, inside: _Inside) -> InterruptedLaunch:
        """The launch that the point is within."""
        inside.require_usable(self._reader, self._gpu)
        module = self._before(inside.module, Module)
        if inside.instance is not None:
            module = module.instances.get(inside.instance, module)
        if inside.kernel not in module.kernels:
            self._reader.damaged(f"a launch of {inside.kernel!r}, which its module does not have")
        stream = None if inside.stream is None else self._before(inside.stream, Stream)
        shape = inside.grid, inside.block, inside.shared, stream, inside.cluster
        launcher = inside.rest_of(Launcher(module[inside.kernel], *shape), self._reader)
        return InterruptedLaunch(launcher, inside.parameters, inside.annotation)

    def _before(self, number: int, kind: Any) -> Any:
        """An object that another one refers to, which precedes it."""
        if number >= len(self.made) or not isinstance(self.made[number], kind):
            self._reader.damaged(f"object {len(self.made)} refers to object {number}")
        return self.made[number]

    def _array(self, state: _Array) -> DeviceArray:
        try:
            dtype = element_type(np.lib.format.descr_to_dtype(ast.literal_eval(state.dtype)))
        except (LaunchError, ValueError, TypeError, SyntaxError, MemoryError) as error:
            self._reader.damaged(f"an array's type: {error}")
        if len(state.shape) != len(state.strides):
            self._reader.damaged(f"an array of shape {state.shape} with strides {state.strides}")
        base = None if state.base is None else self._before(state.base, DeviceArray)
        if base is not None:
            memory = base.memory
        elif state.owner is not None:
            memory = self._before(state.owner, Module)
        else:
            memory = self._memory.setdefault(state.address, Allocation(self._gpu.exclusive, state.address))
        return DeviceArray(
            self._gpu, state.address, state.shape, dtype, memory, strides=state.strides, base=base
        )

    def _module(self, state: _Program) -> Module:
        try:
            module = Module(self._gpu, self._for_gpu(self._image(state)), state.variables)
        except (ImageError, UnicodeDecodeError) as error:
            raise CheckpointError(f"{self._reader.path}: a module cannot be loaded again: {error}") from error
        for name, instance in state.instances.items():
            module.instances[name] = self._module(instance)
        return module

    def _image(self, state: _Program) -> Image:
        read = self._reader.read
        contents = read(_PROGRAMS, state.text)
        if state.machine_code:
            return replace(CubinModule.parse(contents, state.name), names=state.names)
        return PtxModule(
            text=contents.decode(),
            name=state.name,
            arch=state.arch,
            source=None if state.source is None else read(_PROGRAMS, state.source).decode(),
            log=state.log,
            names=state.names,
            settings=state.settings,
            linked=state.linked,
        )

    def _for_gpu(self, image: Image) -> Image:
        """The program for this GPU, compiled again if its PTX does not run there."""
        arch = self._gpu.arch
        if image.runs_on(arch):
            return image
        if not isinstance(image, PtxModule) or image.source is None:
            what = "PTX" if isinstance(image, PtxModule) else "machine code"
            raise CheckpointError(
                f"{self._reader.path}: module {image.name!r} is {what} for {image.arch}, which does not run "
                f"on {self._gpu.name} ({arch}); make the checkpoint with PTX for an older architecture"
            )
        return compile_cuda(
            image.source, name=image.name, arch=arch, kernels=list(image.names), **image.settings
        )
