"""Operators on tensors of simulated GPUs: what PyTorch's dispatcher calls for "cuda" and "simt" tensors.

Views change sizes and strides only. Copies, memsets and what reads a value on the host are transfers. Random
numbers come from the host's generator. Everything else is a kernel of `operator_cache`, or, where there is
none, runs on the host, on the same memory.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch._C._dynamo.eval_frame import set_eval_frame
from torch.library import Library
from torch.utils._pytree import tree_flatten, tree_unflatten

from simt import _engine
from simt.run.l2 import MemoryRows
from simt.run.session import QueuedTransfer

from . import gpus
from .device import HostOperatorWarning
from .operator_cache import KERNELS, NoKernelError

aten = torch.ops.aten
KEYS = {"cuda": "CUDA", "simt": "PrivateUse1"}
"""PyTorch's dispatch keys of the two names that a simulated GPU has."""
_CPU = DispatchKeySet(DispatchKey.CPU)
_HERE = Path(__file__).parent
_VIEWS = (
    "view",
    "as_strided",
    "as_strided_",
    "_reshape_alias",
    "unfold",
    "view_as_real",
    "view_as_complex",
    "set_.source_Storage_storage_offset",
    "set_.source_Tensor",
)
"""Views whose kernels for the CPU do not look at elements, and so serve every device."""
_RANDOM = (
    "normal_",
    "uniform_",
    "random_",
    "random_.from",
    "random_.to",
    "bernoulli_.float",
    "bernoulli_.Tensor",
    "bernoulli.out",
    "exponential_",
    "geometric_",
    "log_normal_",
    "cauchy_",
    "randperm.generator_out",
    "randint.low_out",
    "randint.out",
    "multinomial",
    "poisson",
    "normal.Tensor_float",
    "normal.float_Tensor",
    "normal.Tensor_Tensor",
)
_WITH_GENERATOR = {"randint.low_out": "randint.low_generator_out", "randint.out": "randint.generator_out"}
"""Operators without one that have a sibling with one."""
_WHOLE = (
    "abs",
    "native_layer_norm",
    "native_layer_norm_backward",
    "native_group_norm",
    "native_group_norm_backward",
    "native_batch_norm",
    "native_batch_norm_backward",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit.no_stats",
    "_batch_norm_with_update",
    "_batch_norm_no_update",
    "batch_norm_backward",
    "native_dropout",
    "native_dropout_backward",
    "convolution",
    "convolution_overrideable",
    "convolution_backward",
    "convolution_backward_overrideable",
    "embedding",
    "embedding_dense_backward",
    "_softmax",
    "_log_softmax",
    "_softmax_backward_data",
    "_log_softmax_backward_data",
    "mean.dim",
    "index_put_",
    "index_put",
    "_index_put_impl_",
    "repeat",
    "constant_pad_nd",
    "stack",
    "cat",
    "logsumexp",
)
"""Operators that PyTorch would take apart into several, and that are one kernel here, as on a GPU."""


def host_view(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements as a tensor of the CPU."""
    if tensor.device.type not in KEYS:
        return tensor
    storage = tensor.untyped_storage()
    nbytes = storage.nbytes()
    if not nbytes or not tensor.numel():
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    flat = gpus.wrapped(storage.data_ptr(), nbytes, "cpu", 0, storage)
    if tensor.dtype is not torch.uint8:
        flat = aten.empty.memory_format([0], dtype=tensor.dtype).set_(
            flat.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride()
        )
        flat = flat.conj() if tensor.is_conj() else flat
        return torch._neg_view(flat) if tensor.is_neg() else flat
    return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def renamed(tensor: torch.Tensor, type: str) -> torch.Tensor:
    """The same elements under the other name of its device, "cuda" or "simt"."""
    storage = tensor.untyped_storage()
    flat = gpus.wrapped(storage.data_ptr(), storage.nbytes(), type, tensor.device.index, storage)
    return gpus.view(flat, tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset())


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    """A tensor of a simulated GPU. stride: in elements."""
    if layout is not None and layout is not torch.strided:
        raise NotImplementedError(f"simt.torch: tensors of layout {layout} are not on simulated GPUs")
    dtype = torch.get_default_dtype() if dtype is None else dtype
    type = device.type if device is not None else "cuda"
    found = gpus.gpu_of(device)
    last = 1
    for n, s in zip(size, stride, strict=True):
        if n == 0:
            last = 0
            break
        last += (n - 1) * s
    return gpus.view(found.storage(last * dtype.itemsize, type), dtype, size, stride, 0)


def empty(
    size: Sequence[int],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """`torch.empty` on a simulated GPU."""
    return empty_strided(size, _strides(size, memory_format), dtype, layout, device)


def _strides(size: Sequence[int], memory_format: torch.memory_format | None) -> list[int]:
    if memory_format in (None, torch.contiguous_format, torch.preserve_format):
        order = range(len(size) - 1, -1, -1)
    else:
        order = [1, *range(len(size) - 1, 1, -1), 0]  # type: ignore[assignment]
    strides, step = [1] * len(size), 1
    for at in order:
        strides[at] = step
        step *= max(1, size[at])
    return strides


def _is_dense(tensor: torch.Tensor) -> bool:
    step = 1
    for n, s in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda pair: pair[1]):
        if n == 1:
            continue
        if s != step:
            return False
        step *= n
    return True


def _device_of(*tensors: torch.Tensor) -> torch.device:
    return next(t.device for t in tensors if t.device.type in KEYS)


def copy(to: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """`Tensor.copy_`, where one or both are on a simulated GPU."""
    if to is source or not to.numel():
        return to
    source_there, to_there = source.device.type in KEYS, to.device.type in KEYS
    if source_there and to_there and source.device.index == to.device.index:
        same = source.dtype == to.dtype and source.shape == to.shape and source.stride() == to.stride()
        alike = source.is_conj() == to.is_conj() and source.is_neg() == to.is_neg()
        if alike and not (same and _is_dense(to)):
            return run(aten.copy_.default, (to, source), {})
        link = "device"
    else:
        link = "host_to_device" if to_there else "device_to_host"
        if source_there and to_there:
            link = "peer_to_device"
    for tensor in (source, to):
        if tensor.device.type in KEYS and gpus.gpu_of(tensor.device).capture is None:
            gpus.gpu_of(tensor.device).synchronize()
    target, origin = host_view(to), host_view(source)
    found = gpus.gpu_of(to.device if to_there else source.device)

    def act() -> None:
        with torch.no_grad():
            target.copy_(origin)
        found.transferred(link if link != "peer_to_device" else "device", target.nbytes)

    found.capture_or_do(act)
    return to


def copy_from(source: torch.Tensor, to: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """What PyTorch calls for `copy_` on devices of its extensions."""
    return copy(to, source, non_blocking)


def copy_from_and_resize(source: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
    to.resize_(source.shape)
    return copy(to, source)


def zero(tensor: torch.Tensor) -> torch.Tensor:
    """`Tensor.zero_`: a memset, as on a GPU, or a kernel where there are gaps."""
    if not tensor.numel():
        return tensor
    if not _is_dense(tensor):
        return run(aten.fill_.Scalar, (tensor, 0), {})
    found = gpus.gpu_of(tensor.device)
    address, nbytes = tensor.data_ptr(), tensor.numel() * tensor.element_size()

    def act() -> None:
        fill = _engine.functional.filling(found.gpu.memory.native, address, 0, 1, nbytes)
        if found.gpu.functional:
            fill()
            return
        stream = found.stream_of(found.stream)
        rows = MemoryRows(address, nbytes, use="written")
        number = stream.number if stream is not None else None
        memset = QueuedTransfer("device", nbytes, number, touched=[rows], perform=fill)
        found.queue(memset, "Memset", stream is None)

    found.capture_or_do(act)
    return tensor


def resize(
    tensor: torch.Tensor, size: Sequence[int], memory_format: torch.memory_format | None = None
) -> torch.Tensor:
    """`Tensor.resize_`."""
    strides = _strides(size, memory_format)
    needed = (math.prod(size) + tensor.storage_offset()) * tensor.element_size()
    storage = tensor.untyped_storage()
    if needed > storage.nbytes():
        flat = gpus.gpu_of(tensor.device).storage(needed, tensor.device.type)
        if storage.nbytes():
            copy(
                flat[: storage.nbytes()],
                gpus.wrapped(
                    storage.data_ptr(), storage.nbytes(), tensor.device.type, tensor.device.index, storage
                ),
            )
        storage = flat.untyped_storage()
        aten.set_.source_Storage_storage_offset.redispatch(
            _CPU, tensor, storage, tensor.storage_offset(), list(size), strides
        )
        return tensor
    aten.set_.source_Storage_storage_offset.redispatch(
        _CPU, tensor, storage, tensor.storage_offset(), list(size), strides
    )
    return tensor


def set_empty(tensor: torch.Tensor) -> torch.Tensor:
    """`Tensor.set_()`: without elements."""
    flat = gpus.gpu_of(tensor.device).storage(0, tensor.device.type)
    return aten.set_.source_Storage_storage_offset.redispatch(
        _CPU, tensor, flat.untyped_storage(), 0, [0], [1]
    )


def set_storage(tensor: torch.Tensor, source: Any) -> torch.Tensor:
    """`Tensor.set_(storage)`."""
    n = source.nbytes() // tensor.element_size()
    return aten.set_.source_Storage_storage_offset.redispatch(_CPU, tensor, source, 0, [n], [1])


def item(tensor: torch.Tensor) -> Any:
    """`Tensor.item`: waits, and reads a value."""
    found = gpus.gpu_of(tensor.device)
    found.synchronize()
    found.transferred("device_to_host", tensor.element_size())
    return host_view(tensor).item()


def record_stream(tensor: torch.Tensor, stream: Any) -> None:
    """Memory of queued launches is kept whatever their streams are."""


def index(tensor: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """`Tensor[indices]`. Masks become the numbers of what they keep, which the host counts."""
    found: list[torch.Tensor | None] = []
    for one in indices:
        if one is not None and one.dtype in (torch.bool, torch.uint8):
            found.extend(one.nonzero().unbind(1))
        else:
            found.append(one)
    result: torch.Tensor = run(aten.index.Tensor, (tensor, found), {})
    return result


def histogram(tensor: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    """`torch.histc`, on the host; also of integers, as on a GPU."""
    given = tensor if tensor.is_floating_point() else tensor.double()
    found: torch.Tensor = on_host(aten.histc.default, (given, bins, min, max), {})
    return found.to(tensor.dtype)


def unscale(grads: Sequence[torch.Tensor], found_infinite: torch.Tensor, inverse: torch.Tensor) -> None:
    """What `torch.amp.GradScaler` does to gradients: a kernel for each, for all of one shape the same."""
    for grad in grads:
        run(aten._amp_foreach_non_finite_check_and_unscale_.default, ([grad], found_infinite, inverse), {})


def fused(op: Any) -> Callable[..., None]:
    """An optimiser's step of all parameters: a kernel for each, for all of one shape the same. The step
    size is an argument of the kernel.
    """
    other = op.overloadpacket.tensor_lr

    def step(*lists: Any, lr: Any, **settings: Any) -> None:
        lr = lr if isinstance(lr, torch.Tensor) else torch.tensor(lr, dtype=torch.float64)
        for number in range(len(lists[0])):
            run(other, tuple(of[number : number + 1] for of in lists), {**settings, "lr": lr})

    return step


def no_library(*arguments: Any, **settings: Any) -> bool:
    """Whether a closed library computes this."""
    return False


def random(op: Any) -> Callable[..., Any]:
    """An operator that draws random numbers: on the host, with the device's generator."""

    name = str(op).removeprefix("aten.")
    target = _operator(_WITH_GENERATOR[name]) if name in _WITH_GENERATOR else op
    takes = any(argument.name == "generator" for argument in target._schema.arguments)

    def draw(*arguments: Any, **settings: Any) -> Any:
        if takes and settings.get("generator") is None:
            leaves = [x for x in tree_flatten((arguments, settings))[0] if isinstance(x, torch.Tensor)]
            index = next((t.device.index for t in leaves if t.device.type in KEYS), 0)
            torch.cuda._lazy_init()
            settings["generator"] = torch.cuda.default_generators[index]
        # Inductor's seeds are a few numbers, which a GPU would get from the host as well.
        return on_host(target, arguments, settings, note=name != "randint.low_out")

    return draw


def on_host(op: Any, arguments: Any, settings: Any, note: bool = True) -> Any:
    """Runs an operator on the host, on the memory of the device. note: whether it is to be named."""
    leaves, structure = tree_flatten((arguments, settings))
    device = next((x.device for x in leaves if isinstance(x, torch.Tensor) and x.device.type in KEYS), None)
    if device is None:
        device = next(x for x in leaves if isinstance(x, torch.device) and x.type in KEYS)
    found = gpus.gpu_of(device)
    if note:
        ran_on_host(found, str(op))
    if found.capture is None:
        found.synchronize()
    views = {id(x): host_view(x) for x in leaves if isinstance(x, torch.Tensor)}
    back = {id(views[id(x)]): x for x in leaves if isinstance(x, torch.Tensor)}
    given = [
        views[id(x)]
        if isinstance(x, torch.Tensor)
        else torch.device("cpu")
        if isinstance(x, torch.device) and x.type in KEYS
        else x
        for x in leaves
    ]
    if found.capture is not None:
        return _captured(op, found, device, given, structure, back)
    arguments, settings = tree_unflatten(given, structure)
    with torch.no_grad():
        results, shape = tree_flatten(op(*arguments, **settings))
    outputs = []
    for result in results:
        if not isinstance(result, torch.Tensor):
            outputs.append(result)
        elif id(result) in back:
            outputs.append(back[id(result)])
        else:
            made = empty_strided(result.shape, result.stride(), result.dtype, None, device)
            with torch.no_grad():
                host_view(made).copy_(result)
            outputs.append(made)
    return tree_unflatten(outputs, shape)


def _captured(
    op: Any,
    found: gpus.SimulatedGpu,
    device: torch.device,
    given: list[Any],
    structure: Any,
    back: dict[int, torch.Tensor],
) -> Any:
    """Records an operator of the host in the graph that is captured. given: its arguments on the host.
    back: the tensors of the device that they are, by id.
    """
    if {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output} & set(op.tags):
        raise NotImplementedError(
            f"simt.torch: what {op} gives depends on values, so a CUDA graph cannot capture it"
        )
    copies = [x.clone() if isinstance(x, torch.Tensor) else x for x in given]
    of = {id(c): back[id(x)] for c, x in zip(copies, given, strict=True) if id(x) in back}
    arguments, settings = tree_unflatten(copies, structure)
    with torch.no_grad():  # for the sizes of the results; what is captured does not run
        results, shape = tree_flatten(op(*arguments, **settings))
    outputs: list[Any] = []
    for result in results:
        known = of.get(id(result))
        outputs.append(
            known
            if known is not None
            else empty_strided(result.shape, result.stride(), result.dtype, None, device)
        )
    targets = [None if id(r) in of else host_view(o) for r, o in zip(results, outputs, strict=True)]

    def act() -> None:
        found.synchronize()
        arguments, settings = tree_unflatten(given, structure)
        with torch.no_grad():
            for target, result in zip(targets, tree_flatten(op(*arguments, **settings))[0], strict=True):
                if target is not None:
                    target.copy_(result)

    found.capture_or_do(act)
    return tree_unflatten(outputs, shape)


def ran_on_host(found: gpus.SimulatedGpu, operator: str) -> None:
    """Counts it, names it once, and notes it in the Result."""
    if operator not in found.host_operators:
        text = f"{operator} has no kernel for the GPU: it runs on the host, and is not timed"
        warnings.warn(text, HostOperatorWarning, stacklevel=_levels())
        if not found.gpu.functional:
            found.gpu.session.note(text)
    found.host_operators[operator] = found.host_operators.get(operator, 0) + 1


def _levels() -> int:
    """How far up the line is that called an operator, from who calls this."""
    frame, found = sys._getframe(1), 1
    while frame.f_back is not None and Path(frame.f_code.co_filename).parent == _HERE:
        frame, found = frame.f_back, found + 1
    return found


def run(op: Any, arguments: Any, settings: Any) -> Any:
    """Runs an operator as a kernel, or on the host."""
    op, arguments = _with_tensors(op, arguments)
    for name, value in settings.items():
        if isinstance(value, torch.Tensor) and not value.numel() and _is_out(op, name):
            _size_outputs(op, arguments, settings)
            break
    try:
        return KERNELS.run(op, arguments, settings)
    except NoKernelError:
        return on_host(op, arguments, settings)


_places: dict[Any, tuple[int, ...]] = {}


def _with_tensors(op: Any, arguments: Any) -> tuple[Any, Any]:
    """The operator for numbers in place of tensors, or the numbers as tensors: PyTorch gives Python numbers
    for tensors that it made of them.
    """
    places = _places.get(op)
    if places is None:
        packet = op._schema.name.removeprefix("aten::")
        taken = torch._C._should_allow_numbers_as_tensors(packet)
        places = _places[op] = tuple(
            place
            for place, argument in enumerate(op._schema.arguments)
            if isinstance(argument.type, torch.TensorType) and not taken
        )
    numbers = [n for n in places if n < len(arguments) and isinstance(arguments[n], (int, float, complex))]
    if not numbers:
        return op, arguments
    name = op._overloadname.replace("Tensor", "Scalar")
    if numbers == [1] and name != op._overloadname and name in op.overloadpacket.overloads():
        return getattr(op.overloadpacket, name), arguments
    return op, [torch.tensor(x) if n in numbers else x for n, x in enumerate(arguments)]


def _is_out(op: Any, name: str) -> bool:
    found = next(argument for argument in op._schema.arguments if argument.name == name)
    return found.alias_info is not None and found.alias_info.is_write


def _size_outputs(op: Any, arguments: Any, settings: Any) -> None:
    """Gives empty `out=` tensors the sizes of the results."""

    def without_values(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
        return torch.device("meta") if isinstance(leaf, torch.device) else leaf

    leaves, structure = tree_flatten((arguments, settings))
    positional, named = tree_unflatten([without_values(leaf) for leaf in leaves], structure)
    try:
        op(*positional, **named)
    except NotImplementedError:  # only its results tell: of copies
        copies = [host_view(leaf).clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        positional, named = tree_unflatten(copies, structure)
        op(*positional, **named)
    for name, value in settings.items():
        if isinstance(value, torch.Tensor) and _is_out(op, name) and value.shape != named[name].shape:
            resize(value, named[name].shape)


def _fallback(op: Any, *arguments: Any, **settings: Any) -> Any:
    return run(op, arguments, settings)


def _operator(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload or "default")


def _kernel(op: Any) -> Callable[..., Any]:
    def kernel(*arguments: Any, **settings: Any) -> Any:
        return run(op, arguments, settings)

    return kernel


def _view(op: Any) -> Callable[..., Any]:
    def view(*arguments: Any, **settings: Any) -> Any:
        return op.redispatch(_CPU, *arguments, **settings)

    return view


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that Dynamo leaves alone: where a compiled program goes on in Python, it would compile what
    operators call here.
    """

    def call(*arguments: Any, **settings: Any) -> Any:
        before = set_eval_frame(None)
        try:
            return function(*arguments, **settings)
        finally:
            set_eval_frame(before)

    return call


_libraries: list[Library] = []
"""Registrations last as long as these."""
_SPECIAL: dict[str, Callable[..., Any]] = {
    "empty.memory_format": empty,
    "empty_strided": empty_strided,
    "copy_": copy,
    "_copy_from": copy_from,
    "_copy_from_and_resize": copy_from_and_resize,
    "zero_": zero,
    "resize_": resize,
    "set_": set_empty,
    "set_.source_Storage": set_storage,
    "_local_scalar_dense": item,
    "record_stream": record_stream,
    "index.Tensor": index,
    "histc": histogram,
    "_amp_foreach_non_finite_check_and_unscale_": unscale,
    "_use_miopen_ctc_loss": no_library,
    "_use_miopen_ctc_loss.Tensor": no_library,
    "_use_cudnn_ctc_loss": no_library,
    "_use_cudnn_ctc_loss.Tensor": no_library,
}


def install(type: str) -> None:
    """Registers the operators for "cuda" or "simt"."""
    key = KEYS[type]
    library, rest = Library("aten", "IMPL"), Library("_", "IMPL")
    done = set()

    def add(name: str, function: Callable[..., Any]) -> None:
        try:
            op = _operator(name)
        except AttributeError:
            return
        if name not in done:
            done.add(name)
            library.impl(op, apart(function), key)

    for name, function in _SPECIAL.items():
        add(name, function)
    for optimiser in ("adam", "adamw", "sgd"):
        for overload in ("", ".tensor_lr"):
            add(f"_fused_{optimiser}_{overload}", fused(_operator(f"_fused_{optimiser}_")))
    for name in _VIEWS:
        add(name, _view(_operator(name)))
    for name in _RANDOM:
        if hasattr(aten, name.partition(".")[0]):
            add(name, random(_operator(name)))
    for name in _WHOLE:
        if hasattr(aten, name.partition(".")[0]):
            add(name, _kernel(_operator(name)))
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for full in torch._C._dispatch_get_all_op_names():
        if full.startswith("aten::") and has(full, "CompositeExplicitAutogradNonFunctional"):
            name = full.removeprefix("aten::")
            try:
                add(name, _kernel(_operator(name)))
            except (AttributeError, RuntimeError):
                continue
    rest.fallback(apart(_fallback), key)
    _libraries.extend((library, rest))
    if len(_libraries) == 2:
        host = Library("aten", "IMPL")
        host.impl("_pin_memory", lambda tensor, device=None: tensor, "CPU")
        _libraries.append(host)
