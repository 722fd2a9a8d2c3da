"""Makes Inductor generate host code that calls `simt.torch.generated`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.codegen.common import DeviceOpOverrides
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.utils import aggregate_origins
from torch._inductor.virtualized import V

_MODULE = "nn_module_stack", "fwd_nn_module_stack"


class DeviceOps(DeviceOpOverrides):  # type: ignore[misc]
    """There is one device, and one stream."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"def {name}(_): return 0"

    def set_device(self, device_idx: int) -> str:
        return "pass"

    def synchronize(self) -> str:
        return "pass"

    def device_guard(self, device_idx: int) -> str:
        return "contextlib.nullcontext()"


def operator_name(nodes: Any) -> str:
    """What the model calls the work of these nodes: "layer1.0.conv1: convolution, relu"."""
    operators: dict[str, None] = {}
    modules: dict[str, None] = {}
    origins = [node for node in _origins(nodes) if node.op == "call_function"]
    if origins and len({node.graph for node in origins}) == 1:
        order = {node: index for index, node in enumerate(origins[0].graph.nodes)}
        origins.sort(key=lambda node: order[node])
    for node in origins:
        found = node.meta.get("original_aten") or node.target
        if isinstance(found, torch._ops.OpOverload):
            name = str(found.overloadpacket).removeprefix("aten.").lstrip("_")
            operators[name] = None
        stack = next((node.meta[key] for key in _MODULE if node.meta.get(key)), None)
        if stack:
            modules[_path(list(stack.values())[-1][0])] = None
    path = _common([module.split(".") for module in modules if module])
    text = ", ".join(operators) or "copy"
    return f"{path}: {text}" if path else text


def _origins(nodes: Any) -> Iterable[Any]:
    """The operators of a graph that became these nodes. A template counts as its own operator, not as those
    whose results it reads.
    """
    found: dict[Any, None] = {}
    for node in nodes:
        inner = getattr(node, "node", None)
        if isinstance(inner, ir.TemplateBuffer) and inner.origin_node is not None:
            found[inner.origin_node] = None
        else:
            found |= dict.fromkeys(aggregate_origins([node]))
    return found


def _path(text: str) -> str:
    """The path of a module as in `named_modules`: "L['self'].layer1._modules['0']" is "layer1.0"."""
    return re.sub(r"\._modules\['(\w+)'\]", r".\1", re.sub(r"^L\['\w+'\]", "", text)).strip(".")


def _common(paths: list[list[str]]) -> str:
    """The module, or the innermost that contains all, or the first if that is the whole model."""
    found = paths[0] if paths else []
    while any(path[: len(found)] != found for path in paths):
        found = found[:-1]
    return ".".join(found or (paths[0] if paths else []))


class Scheduling(TritonScheduling):  # type: ignore[misc]
    def codegen_comment(self, node_schedule: Any, kernel_name: str | None = None) -> None:
        super().codegen_comment(node_schedule, kernel_name)
        V.graph.wrapper_code.writeline(f"simt_generated.annotate({operator_name(node_schedule)!r})")


class Wrapper(PythonWrapperCodegen):  # type: ignore[misc]
    @staticmethod
    def create(
        is_subgraph: bool, subgraph_name: str | None, parent_wrapper: Any, partition_signatures: Any = None
    ) -> PythonWrapperCodegen:
        if is_subgraph:
            return PythonWrapperCodegen.create(True, subgraph_name, parent_wrapper, partition_signatures)
        return Wrapper()

    def write_header(self) -> None:
        super().write_header()
        self.header.splice(
            """
                import contextlib
                from simt.torch import generated as simt_generated
                async_compile = simt_generated.Kernels()
                empty_strided_cuda = simt_generated.empty_strided
                device = simt_generated.host
            """,
            strip=True,
        )

    def generate_fallback_kernel(self, node: Any) -> None:
        self._on_host(node)
        super().generate_fallback_kernel(node)

    def generate_extern_kernel_alloc(self, node: Any) -> None:
        self._on_host(node)
        super().generate_extern_kernel_alloc(node)

    def generate_extern_kernel_out(self, node: Any) -> None:
        if not isinstance(node, ir.RandomSeeds):  # a few numbers, which a GPU would get from the host as well
            self._on_host(node)
        super().generate_extern_kernel_out(node)

    def generate_extern_kernel_multi_out(self, node: Any) -> None:
        self._on_host(node)
        super().generate_extern_kernel_multi_out(node)

    def generate_scatter_fallback(self, node: Any) -> None:
        self._on_host(node)
        super().generate_scatter_fallback(node)

    def generate_index_put_fallback(self, node: Any) -> None:
        self._on_host(node)
        super().generate_index_put_fallback(node)

    def _on_host(self, node: Any) -> None:
        found = getattr(node, "op_overload", None)
        name = str(found) if found is not None else str(node.get_kernel_name())
        self.writeline(f"simt_generated.on_host({name!r})")
