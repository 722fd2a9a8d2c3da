"""Kernels of single operators: compiled by Inductor when they are first used, and kept on disk by it.

An operator is compiled for the sizes, strides and types of its tensors, and for its numbers. Numbers that
change from call to call (a learning rate) become arguments of the kernel.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch._inductor import compile_fx
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.replace_random import replace_random_passes
from torch._inductor.lowering import fallbacks
from torch._inductor.virtualized import V
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten
from triton import knobs

from . import gpus
from .inductor import DECOMPOSED, configure
from .operators import DECOMPOSITIONS, IN_PLACE
from .recorded import ALIGNMENT, OperatorRecord, followed, keep, place_of, read

aten = torch.ops.aten
_TRIALS = 3
"""How often what an operator does is recorded, until it is known."""
_HOST: Any = object()


def _added(self: Any, first: Any, second: Any, value: Any) -> Any:
    return self.add_(value * first / second)


def _added_product(self: Any, first: Any, second: Any, value: Any) -> Any:
    return self.add_(value * first * second)


def _filled(self: Any, value: Any) -> Any:
    if self.is_complex():
        return self.fill_(value)
    return self.copy_(value * torch.ones_like(self))  # a number becomes an argument of the kernel


_WITH_NUMBER: dict[Any, Callable[..., Any]] = {
    aten.fill_.Scalar: _filled,
    aten.addcdiv_.default: _added,
    aten.addcmul_.default: _added_product,
}
"""Operators whose number changes from call to call, such as an optimiser's step: with it as a tensor."""
_NONE = (
    "aten::nonzero",
    "aten::masked_select",
    "aten::_unique2",
    "aten::unique_consecutive",
    "aten::unique_dim",
    "aten::bincount",
    "aten::histc",
    "aten::equal",
    "aten::is_pinned",
    "aten::multinomial",
)
"""Operators whose results have sizes that depend on values, or that Inductor leaves to libraries."""


class NoKernelError(Exception):
    """Inductor has no kernel for an operator."""


class _Operator:
    """An operator that was used. record: what it does on the device; path: the file of it. call: Inductor's
    code for it, a function of the tensors.
    """

    __slots__ = ("call", "path", "record", "trials")

    def __init__(self, record: OperatorRecord | None, path: Path | None) -> None:
        self.record, self.path = record, path
        self.call: Any = None
        self.trials = 0


class OperatorCache:
    """Compiled operators, by operator and what is known of its arguments."""

    def __init__(self) -> None:
        self._known: dict[Any, _Operator] = {}
        self._running = threading.local()
        self._compiler = ThreadPoolExecutor(1, "simt-operators", configure)
        self._lock = threading.RLock()

    def run(self, op: Any, arguments: Any, settings_: Any) -> Any:
        """Runs an operator. Raises NoKernelError if there is no kernel for it."""
        if op in _WITH_NUMBER:
            arguments, settings_ = _with_tensor(arguments, settings_)
        leaves, structure = _flat(arguments, settings_)
        tensors: list[torch.Tensor] = []
        places: dict[int, int] = {}
        key: list[Any] = [op, *structure, torch.get_float32_matmul_precision()]
        device = None
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                at = places.get(id(leaf))
                if at is not None:
                    key.append(at)
                    continue
                places[id(leaf)] = len(tensors)
                where = leaf.device
                if where.type != "cpu":
                    if device is None or device.type == "cpu":
                        device = where
                elif leaf.dim():
                    where = None  # moved to the device
                offset = leaf.storage_offset() * leaf.element_size() % ALIGNMENT
                key.append((leaf.dtype, leaf.shape, leaf.stride(), offset, where))
                tensors.append(leaf)
            elif isinstance(leaf, torch.device):
                device = device or leaf
                key.append(leaf)
            else:
                key.append((type(leaf), leaf))
        if device is None:
            raise NoKernelError
        whole = tuple(key)
        gpu = gpus.gpu_of(device)
        known = self._known.get(whole)
        if known is None:
            _check_devices(op, tensors)
            if op._schema.name in _NONE:
                raise NoKernelError
            path = place_of(gpu, whole)
            known = self._known[whole] = _Operator(read(path), path)
        if known.record is not None and not _is_followed():
            gpu.not_recorded()
            return known.record.run(gpu, device.type, tensors)
        active = self._running.__dict__.setdefault("keys", [])
        if whole in active:  # Inductor's code calls the operator itself
            known.call = _HOST
        elif known.call is None:
            active.append(whole)
            try:
                everything = tree_flatten((arguments, settings_))
                known.call = self._compile(op, everything, tensors, places, device)
            finally:
                active.pop()
        if known.call is _HOST:
            raise NoKernelError
        active.append(whole)
        try:
            return self._recorded(known, gpu, tensors)
        finally:
            active.pop()

    def _recorded(self, known: _Operator, gpu: gpus.SimulatedGpu, tensors: list[torch.Tensor]) -> Any:
        """Runs compiled code, and keeps what it does."""
        if gpu.recorder is not None or gpu.capture is not None or known.trials == _TRIALS:
            return known.call(tensors)
        known.trials += 1
        code = known.call
        results, known.record = followed(gpu, code, code.name, code.returned, tensors)
        if known.record is not None:
            keep(known.path, known.record)
        return results

    def _compile(
        self,
        op: Any,
        everything: tuple[list[Any], Any],
        tensors: list[torch.Tensor],
        places: dict[int, int],
        device: torch.device,
    ) -> Any:
        if op in fallbacks and op not in DECOMPOSED and op not in IN_PLACE:
            return _HOST
        if threading.current_thread().name.startswith("simt-operators"):
            return _compiled(op, *everything, tensors, places, device)
        work = self._compiler.submit(_compiled, op, *everything, tensors, places, device)
        return work.result()


def _flat(arguments: Any, settings: Any) -> tuple[list[Any], list[Any]]:
    """The values of an operator's arguments, and how they are distributed. Arguments are values or lists of
    them."""
    leaves: list[Any] = []
    structure: list[Any] = []
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            leaves.extend(argument)
            structure.append(len(argument))
        else:
            leaves.append(argument)
            structure.append(-1)
    for name, argument in settings.items():
        structure.append(name)
        if isinstance(argument, (list, tuple)):
            leaves.extend(argument)
            structure.append(len(argument))
        else:
            leaves.append(argument)
    return leaves, structure


def _is_followed() -> bool:
    """Whether Triton's hooks follow launches."""
    return bool(knobs.runtime.launch_enter_hook.calls or knobs.runtime.launch_exit_hook.calls)


KERNELS = OperatorCache()


def _compiled(
    op: Any,
    leaves: list[Any],
    structure: Any,
    tensors: list[torch.Tensor],
    places: dict[int, int],
    device: torch.device,
) -> Any:
    """Inductor's code for the operator, or _HOST."""
    index = gpus.gpu_of(device).index
    there = torch.device("cuda", index)
    returned = _returned(op, leaves, structure, places)
    positions = [places[id(x)] if isinstance(x, torch.Tensor) else None for x in leaves]
    constants = [there if isinstance(x, torch.device) and x.type != "cpu" else x for x in leaves]
    made: list[Any] = []
    instead = _WITH_NUMBER.get(op) or IN_PLACE.get(op) or op
    last = _channels_last(op, tensors)

    def whole(*given: torch.Tensor) -> Any:
        filled = [given[p] if p is not None else c for p, c in zip(positions, constants, strict=True)]
        arguments, named = tree_unflatten(filled, structure)
        results, shape = tree_flatten(instead(*arguments, **named))
        if last is not None:
            results = [
                r.contiguous(memory_format=last) if r is not None and r.dim() > 2 else r for r in results
            ]
        made.append((shape, len(results)))
        return [r for i, r in enumerate(results) if returned.get(i) is None]

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    name = str(op).removeprefix("aten.").removesuffix(".default").replace(".", "_")
    with torch.no_grad():
        with mode:
            fakes = [_fake(t, there) for t in tensors]
        try:
            graph = _traced(whole, fakes, mode)
            with V.set_fake_mode(mode):
                replace_random_passes(graph)
                code = compile_fx.compile_fx_inner(graph, fakes, is_inference=True)
        except Exception:  # Inductor raises errors of many classes
            return _HOST
    call = code.current_callable if hasattr(code, "current_callable") else code
    shape, count = made[-1]
    return _Code(name, call, shape, tuple(returned.get(i) for i in range(count)), device)


class _Code:
    """Inductor's code for an operator.

    call: takes tensors on "cuda", and returns what is not among `returned`: for each result, which of the
    tensors it is. shape: of the results.
    """

    def __init__(
        self, name: str, call: Any, shape: Any, returned: tuple[int | None, ...], device: torch.device
    ) -> None:
        self.name, self.returned = name, returned
        self._call, self._shape = call, shape
        self._gpu = gpus.gpu_of(device)
        self._there = torch.device("cuda", self._gpu.index)
        self._renaming = device.type if device.type != "cuda" else None

    def __call__(self, given: list[torch.Tensor]) -> Any:
        from .eager import renamed

        passed = [
            t
            if t.device.type == "cuda" or (t.device.type == "cpu" and not t.dim())
            else _moved(t, self._there)
            for t in given
        ]
        self._gpu.annotation, before = self.name, self._gpu.annotation
        try:
            outputs = iter(self._call(passed))
        finally:
            self._gpu.annotation = before
        results = [given[k] if k is not None else next(outputs) for k in self.returned]
        if self._renaming is not None:
            results = [
                renamed(r, self._renaming) if k is None and r is not None else r
                for k, r in zip(self.returned, results, strict=True)
            ]
        return tree_unflatten(results, self._shape)


def _with_tensor(arguments: Any, named: Any) -> tuple[Any, Any]:
    """Makes the number of an operator a tensor: its last argument, or `value`, which is 1 by default."""
    numbers = [x for x in arguments if not isinstance(x, torch.Tensor)]
    value = numbers[0] if numbers else named.get("value", 1)
    tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
    if isinstance(value, float) and math.isfinite(value) and not tensors[0].dtype.is_floating_point:
        value = (
            value
            if tensors[0].is_complex()
            else bool(value)
            if tensors[0].dtype is torch.bool
            else int(value)
        )
    dtype = torch.float64 if isinstance(value, float) else None
    return (*tensors, torch.tensor(value, dtype=dtype)), {}


def _channels_last(op: Any, tensors: Sequence[torch.Tensor]) -> torch.memory_format | None:
    """The format of a convolution's results where it is that of cuDNN with channels last: if the input or the
    filters are (ATen/native/ConvUtils.h, `cudnn_conv_suggest_memory_format`).
    """
    if op._schema.name not in _CONVOLUTIONS:
        return None
    input, weight = tensors[1:3] if "backward" in op._schema.name else tensors[:2]
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(input.dim())
    if last is not None and any(
        x.is_contiguous(memory_format=last) and not x.is_contiguous() for x in (input, weight)
    ):
        return last
    return None


_CONVOLUTIONS = {
    f"aten::{name}{suffix}"
    for name in ("convolution", "convolution_backward")
    for suffix in ("", "_overrideable")
}
_ON_ONE_DEVICE = {
    *("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::convolution", "aten::cat"),
    *("aten::embedding", "aten::native_layer_norm", "aten::native_batch_norm", "aten::stack"),
}
"""Operators that take no tensors of the host, besides those that work element by element. Others may:
lengths and indices."""


def _check_devices(op: Any, tensors: Sequence[torch.Tensor]) -> None:
    """Raises RuntimeError for tensors of several devices, as PyTorch does. Numbers may be on the host."""
    found = {tensor.device for tensor in tensors if tensor.dim() or tensor.device.type != "cpu"}
    if len(found) < 2 or not (torch.Tag.pointwise in op.tags or op._schema.name in _ON_ONE_DEVICE):
        return
    first, second, *_ = sorted(map(str, found))
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {first} and "
        f"{second}! ({op})"
    )


def _moved(tensor: torch.Tensor, there: torch.device) -> torch.Tensor:
    from .eager import renamed

    return tensor.to(there) if tensor.device.type == "cpu" else renamed(tensor, "cuda")


def _fake(tensor: torch.Tensor, there: torch.device) -> torch.Tensor:
    """A tensor without values of the same layout."""
    at = there if tensor.device.type != "cpu" or tensor.dim() else torch.device("cpu")
    offset = tensor.storage_offset() * tensor.element_size() % ALIGNMENT // tensor.element_size()
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=at)
    if not offset:
        return made
    span = offset + 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n)
    return torch.empty(span, dtype=tensor.dtype, device=at).as_strided(tensor.shape, tensor.stride(), offset)


def _returned(op: Any, leaves: list[Any], structure: Any, places: dict[int, int]) -> dict[int, int | None]:
    """Which results are arguments that the operator changes: by number of the result, the tensor's."""
    arguments, named = tree_unflatten(leaves, structure)
    written: dict[str, Any] = {}
    for number, argument in enumerate(op._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = named.get(argument.name)
        if value is None and number < len(arguments):
            value = arguments[number]
        for label in argument.alias_info.before_set:
            written[label] = value
    found: dict[int, int | None] = {}
    at = 0
    for result in op._schema.returns:
        if result.alias_info is not None and result.alias_info.is_write:
            value = written.get(next(iter(result.alias_info.before_set)))
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                found[at] = places.get(id(tensor))
                at += 1
        else:
            at += 1
    return found


def _traced(whole: Callable[..., Any], fakes: Sequence[torch.Tensor], mode: FakeTensorMode) -> Any:
    """The operator as a graph of what Inductor has kernels for; what it changes is copied at the end. Its
    results have PyTorch's strides: others, Inductor may choose.
    """
    table = {**select_decomp_table(), **DECOMPOSITIONS}
    with mode:
        functional = torch.func.functionalize(whole, remove="mutations_and_views")
        graph = make_fx(functional, decomposition_table=table, tracing_mode="real")(*fakes)
    output = graph.graph.output_node()
    output.meta["user_visible_output_idxs"] = list(range(len(output.args[0])))
    return graph
