"""The launches of a transformer's phases, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simt.spec import Spec

from . import works
from .architecture import Architecture, Weights
from .works import Work

Phase = Literal["prefill", "decode"]


@dataclass(frozen=True)
class Operator:
    """A launch of a phase. count: how often the phase makes it: once for each layer, or once in all."""

    name: str
    work: Work
    count: int


def operators(
    model: Architecture, phase: Phase, batch: int, length: int, spec: Spec, weights: Weights = "same"
) -> tuple[Operator, ...]:
    """The launches of one pass over the network.

    phase: "prefill" computes `length` tokens of each sequence, and the scores of the token that follows;
    "decode" one more token of each, which sees `length` cached ones, itself included. Experts get equally
    many tokens. model: of several GPUs, the share of one; what they have in part is added up after each
    layer's attention and MLP, and scores are gathered.
    """
    tokens = batch * length if phase == "prefill" else batch
    first = 0 if phase == "prefill" else length - 1
    kind, hidden, width = model.dtype, model.hidden, model.heads * model.head_dim
    shape = (batch, length, model.heads, model.kv_heads, model.head_dim, kind)
    attention = (
        (works.prefill_attention(*shape, spec),)
        if phase == "prefill"
        else works.decode_attention(*shape, spec)
    )
    learned = model.positions if model.layer_norm else 0
    rotated = works.rotate(
        tokens, first, model.heads, model.kv_heads, model.head_dim, kind, not model.layer_norm, length
    )

    together = []
    if model.ranks > 1:
        together = [("all-reduce", works.all_reduce(tokens * hidden, model.ranks, kind))]

    def product(n: int, k: int, bias: bool) -> Work:
        return works.product(tokens, n, k, spec, kind, weights, bias)

    layer = [
        ("norm", works.norm(tokens, hidden, kind, True, model.layer_norm)),
        ("qkv", product(model.qkv_width, hidden, model.qkv_bias)),
        ("rope, cache" if not model.layer_norm else "cache", rotated),
        *(("attention" if one.kind != "join" else "attention, join", one) for one in attention),
        ("attention output", product(hidden, width, model.bias)),
        *together,
        ("norm", works.norm(tokens, hidden, kind, True, model.layer_norm)),
    ]
    ups = model.inner * (2 if model.gated else 1)
    if model.experts:
        layer += _experts(model, tokens, spec, weights)
    else:
        layer += [
            ("gate, up" if model.gated else "up", product(ups, hidden, model.bias)),
            ("activation", works.activate(tokens, model.inner, kind, model.gated)),
            ("down", product(hidden, model.inner, model.bias)),
        ]
    layer += together
    last = length if phase == "prefill" else 1
    found = [Operator("embedding", works.embed(tokens, hidden, model.vocabulary, length, kind, learned), 1)]
    found += [Operator(name, work, model.layers) for name, work in layer]
    found += [
        Operator("last norm", works.norm(batch, hidden, kind, True, model.layer_norm, last), 1),
        Operator("head", works.product(batch, model.head_rows, hidden, spec, kind), 1),
    ]
    if model.ranks > 1:
        gathered = works.all_gather(batch * model.head_rows, model.ranks, kind)
        found.append(Operator("scores of all", gathered, 1))
    return tuple(found)


def _experts(model: Architecture, tokens: int, spec: Spec, weights: Weights) -> list[tuple[str, Work]]:
    kind, hidden, experts = model.dtype, model.hidden, model.experts
    each = -(-tokens * model.per_token // experts)
    ups = works.product(
        each, model.inner * (2 if model.gated else 1), hidden, spec, kind, weights, experts=experts
    )
    down = works.product(each, hidden, model.inner, spec, kind, weights, experts=experts)
    rows = max(ups.tensors["x"].shape[0], down.tensors["x"].shape[0])
    return [
        ("router", works.product(tokens, -(-experts // 16) * 16, hidden, spec, kind)),
        ("tokens to experts", works.gather(tokens, rows, hidden, kind)),
        ("experts: gate, up", ups),
        ("activation", works.activate(rows, model.inner, kind, model.gated)),
        ("experts: down", down),
        ("sum of experts", works.mix(tokens, rows, hidden, experts, model.per_token, kind)),
    ]
