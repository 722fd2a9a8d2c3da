"""`torch.compile` for tensors on "simt": Inductor compiles for "cuda", the other name of the same device.

AOTAutograd sees "simt" tensors, and so do the program and its gradients. Graphs get the other name just
before Inductor turns them into kernels, their inputs and results at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._functorch import config as functorch_config
from torch._guards import detect_fake_mode
from torch._inductor import compile_fx
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from .eager import renamed
from .graphs import move, without_values

_CUDA, _SIMT = "cuda", "simt"


def install() -> None:
    """Lets Inductor's entry point compile graphs of "simt" tensors."""
    entry = compile_fx.compile_fx
    inner = compile_fx.compile_fx_inner

    def compile_renamed(
        module: Any, inputs: Any, inner_compile: Callable[..., Any] = inner, *others: Any, **settings: Any
    ) -> Any:
        def compile_graph(graph: GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
            return _compile(inner_compile, graph, inputs, options)

        return entry(module, inputs, compile_graph, *others, **settings)

    compile_fx.compile_fx = compile_renamed
    functorch_config.enable_autograd_cache = False  # it would keep graphs without the other name


def _compile(inner: Callable[..., Any], graph: GraphModule, inputs: Sequence[Any], options: Any) -> Any:
    mode = detect_fake_mode(inputs) or FakeTensorMode()

    def device(found: torch.device) -> torch.device:
        return torch.device(_CUDA, found.index or 0) if found.type == _SIMT else found

    for part in graph.modules():
        for name, value in list(vars(part).items()) + list(part._buffers.items()):
            if isinstance(value, torch.Tensor) and value.device.type == _SIMT:
                setattr(part, name, renamed(value, _CUDA))
    move(graph, device)
    given = [
        without_values(mode, value, device(value.device)) if isinstance(value, torch.Tensor) else value
        for value in inputs
    ]
    FakeTensorProp(graph, mode=mode).propagate_dont_convert_inputs(*given)
    compiled = inner(graph, given, **options)
    call = compiled.current_callable

    def run(arguments: list[Any]) -> Any:
        places = {}
        for place, value in enumerate(arguments):
            if isinstance(value, torch.Tensor) and value.device.type == _SIMT:
                arguments[place] = other = renamed(value, _CUDA)
                places[id(other)] = value, other
        outputs = call(arguments)
        return [
            (places[id(x)][0] if id(x) in places else renamed(x, _SIMT))
            if isinstance(x, torch.Tensor) and x.device.type == _CUDA
            else x
            for x in outputs
        ]

    compiled.current_callable = run
    return compiled
