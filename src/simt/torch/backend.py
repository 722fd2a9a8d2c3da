"""The backend of `torch.compile`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._inductor import compile_fx
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule, Node
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from simt.errors import SimtError
from simt.gpu import GPU
from simt.options import DEFAULT_GPU

from .device import TorchDevice
from .graphs import move, parts, without_values
from .imitation import imitated, trace_triton_kernels, tracing
from .operators import DECOMPOSITIONS, attention

_CUDA = torch.device("cuda", 0)
_gpus: dict[tuple[Any, ...], GPU] = {}


def gpu(name: str = DEFAULT_GPU, **options: Any) -> GPU:
    """The GPU of models compiled with these options; `options={"gpu": name, ...}`, by default an H100.

    name: a specification. options: of `simt.GPU`.
    """
    key = name, *sorted((k, repr(v)) for k, v in options.items())
    if key not in _gpus:
        _gpus[key] = GPU(name, **options)
    return _gpus[key]


def device_of(options: Mapping[str, Any] | None) -> TorchDevice:
    """The device that the options of `torch.compile` name."""
    given = dict(options or {})
    chosen = given.pop("gpu", DEFAULT_GPU)
    if isinstance(chosen, GPU):
        if given:
            raise SimtError(
                f'torch.compile(backend="simt"): options {sorted(given)} are for a GPU that is named; '
                "give them to simt.GPU"
            )
    elif isinstance(chosen, str):
        chosen = gpu(chosen, **given)
    else:
        raise SimtError(
            f'torch.compile(backend="simt"): option "gpu" is {chosen!r}, expected a simt.GPU or a name'
        )
    found: TorchDevice = chosen.attached.get(TorchDevice) or chosen.attached.setdefault(
        TorchDevice, TorchDevice(chosen)
    )
    return found


def backend(module: GraphModule, inputs: list[Any], *, options: Mapping[str, Any] | None = None) -> Any:
    """Compiles a graph for a simulated GPU; `torch.compile(model, backend="simt", options=...)` calls it.

    options: "gpu", a `simt.GPU` or the name of a specification; with a name, the options of `simt.GPU`.

    Raises SimtError for wrong options.
    """
    device = device_of(options)
    _replace_attention(module)
    with tracing(device.gpu.spec):
        return compile_fx.compile_fx(
            module,
            inputs,
            inner_compile=functools.partial(_compile, device),
            decompositions={**select_decomp_table(), **DECOMPOSITIONS},
        )


trace_triton_kernels(backend)


def _compile(device: TorchDevice, graph: GraphModule, inputs: Any, **options: Any) -> Any:
    """Compiles a graph of ATen operators on the CPU for the GPU."""
    constants = _lift_constants(graph)
    mode = detect_fake_mode(inputs) or FakeTensorMode()
    move(graph, _on_cuda, _make_on_cuda)
    with imitated(device.gpu.spec, device.gpu.functional):
        given = [
            without_values(mode, value, _CUDA) if isinstance(value, torch.Tensor) else value
            for value in [*inputs, *constants]
        ]
        FakeTensorProp(graph, mode=mode).propagate_dont_convert_inputs(*given)
        compiled = compile_fx.compile_fx_inner(graph, given, **options)
    call, written = compiled.current_callable, compiled.mutated_input_idxs
    compiled.current_callable = _runner(device, call, constants, written)
    return compiled


def _runner(
    device: TorchDevice, call: Callable[[list[Any]], Any], constants: list[torch.Tensor], written: Any
) -> Callable[[list[Any]], Any]:
    """Calls generated code with arguments that are in the GPU's memory. written: positions of those that it
    changes.
    """

    def run(arguments: list[Any]) -> Any:
        given = [*arguments, *constants]
        arguments.clear()
        placed = [device.copied(v) if isinstance(v, torch.Tensor) else v for v in given]
        changed = [(given[i], placed[i]) for i in written if placed[i] is not given[i]]
        del given
        with device.running():
            outputs = call(placed)
        with torch.no_grad():
            for original, copy in changed:
                original.copy_(copy)
        return outputs

    return run


def _replace_attention(module: GraphModule) -> None:
    for part in parts(module):
        for node in part.graph.nodes:
            if node.target is torch.nn.functional.scaled_dot_product_attention:
                node.target = attention
        part.recompile()


def _lift_constants(graph: GraphModule) -> list[torch.Tensor]:
    """Makes the graph's tensors further inputs, as they are in the host's memory."""
    found: list[torch.Tensor] = []
    last = [node for node in graph.graph.nodes if node.op == "placeholder"][-1:]
    for node in list(graph.graph.nodes):
        if node.op != "get_attr":
            continue
        value = functools.reduce(getattr, str(node.target).split("."), graph)
        if not isinstance(value, torch.Tensor):
            continue
        first = next(iter(graph.graph.nodes))
        with graph.graph.inserting_after(last[0]) if last else graph.graph.inserting_before(first):
            lifted = graph.graph.placeholder(f"constant_{len(found)}")
        lifted.meta = dict(node.meta)
        node.replace_all_uses_with(lifted)
        graph.graph.erase_node(node)
        last = [lifted]
        found.append(value)
    graph.recompile()
    return found


def _on_cuda(device: torch.device) -> torch.device:
    return _CUDA if device.type == "cpu" else device


def _make_on_cuda(node: Node) -> None:
    """Lets an operator that makes a tensor on the default device make it on the GPU."""
    made = node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
    if made and "device" not in node.kwargs and _makes_tensor(node.target):
        node.kwargs = {**node.kwargs, "device": _CUDA}


def _makes_tensor(operator: Any) -> bool:
    """Whether an operator makes tensors from no others, on a device that it is told."""
    arguments = operator._schema.arguments
    return any(a.name == "device" for a in arguments) and not any(
        isinstance(a.type, torch.TensorType) for a in arguments
    )
