"""Graphs of ATen operators, moved from one device to another before Inductor compiles them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule, Node
from torch.fx.node import map_aggregate


def parts(module: GraphModule) -> list[GraphModule]:
    """A graph and those that it calls."""
    return [m for m in module.modules() if isinstance(m, GraphModule)]


def move(
    graph: GraphModule,
    device: Callable[[torch.device], torch.device],
    change: Callable[[Node], None] = lambda node: None,
) -> None:
    """Gives operators another device. device: for each that one names. change: what else a node needs."""

    def moved(value: Any) -> Any:
        return device(value) if isinstance(value, torch.device) else value

    for part in parts(graph):
        for node in part.graph.nodes:
            node.args = map_aggregate(node.args, moved)
            node.kwargs = map_aggregate(node.kwargs, moved)
            change(node)
        part.recompile()


def without_values(mode: FakeTensorMode, value: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the same layout on a device, without values."""
    with mode:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
