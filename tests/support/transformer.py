"""A transformer's launches with its data flow, and the same network in PyTorch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

import simt
from simt.network.architecture import Architecture
from simt.network.operators import Operator, Phase, operators

# Tensors of a launch by the network's: a name in capitals is of the layer, one with a dot is a weight.
_FLOW = {
    "embedding": {"tokens": "tokens", "table": ".table", "y": "x"},
    "norm": {"x": "x", "delta": "delta", "weight": ".norm", "y": "h"},
    "qkv": {"x": "h", "w": ".qkv", "y": "qkv"},
    "rope, cache": {
        "qkv": "qkv",
        "table": "angles",
        "positions": "positions",
        "slots": "slots",
        "keys": "KEYS",
        "values": "VALUES",
    },
    "attention": {
        "qkv": "qkv",
        "keys": "KEYS",
        "values": "VALUES",
        "pages": "pages",
        "parts": "parts",
        "peaks": "peaks",
        "y": "heads",
    },
    "attention, join": {"parts": "parts", "peaks": "peaks", "y": "heads"},
    "attention output": {"x": "heads", "w": ".output", "y": "delta"},
    "gate, up": {"x": "h", "w": ".up", "y": "up"},
    "activation": {"x": "up", "y": "act"},
    "down": {"x": "act", "w": ".down", "y": "delta"},
    "last norm": {"x": "x", "delta": "delta", "weight": ".norm", "y": "last"},
    "head": {"x": "last", "w": ".head", "y": "scores"},
}
PAGE = 16


class Transformer:
    """A network of the Llama kind with random weights. room: tokens of a sequence that the cache holds."""

    def __init__(self, model: Architecture, batch: int, room: int) -> None:
        self.model, self.batch, self.room = model, batch, -(-room // PAGE) * PAGE
        self._random = np.random.default_rng(1)
        self.weights: dict[str, Any] = {}

    def weight(self, name: str, shape: tuple[int, ...]) -> Any:
        """Of a layer's operator, made when it is first asked for."""
        if name not in self.weights:
            values = self._random.standard_normal(shape) / np.sqrt(shape[-1] if len(shape) > 1 else 1)
            if len(shape) == 1:
                values = 1 + 0.1 * values
            self.weights[name] = values.astype(ml_dtypes.bfloat16)
        return self.weights[name]

    def run(self, gpu: simt.GPU, phase: Phase, tokens: Any, length: int, state: dict[str, Any]) -> Any:
        """Scores of the next tokens. tokens: of all sequences; state: arrays that stay, such as the cache."""
        made = operators(self.model, phase, self.batch, length, gpu.spec)
        first, layer, last = made[:1], made[1:-2], made[-2:]
        count = len(tokens) // self.batch
        start = length - count
        places = np.arange(self.batch)[:, None] * self.room + np.arange(start, length)[None, :]
        half = self.model.head_dim // 2
        angle = np.arange(self.room)[:, None] / 10000 ** (np.arange(half) / half)[None, :]
        values = {
            "tokens": np.asarray(tokens, np.int32),
            "positions": np.tile(np.arange(start, length), self.batch).astype(np.int32),
            "slots": places.reshape(-1).astype(np.int32),
            "angles": np.concatenate([np.cos(angle), np.sin(angle)], 1).astype(np.float32),
            "pages": np.stack(
                [b * self.room // PAGE + np.arange(-(-length // PAGE)) for b in range(self.batch)]
            ).astype(np.int32),
        }
        arrays = {name: gpu.array(each) for name, each in values.items()}
        self._launch(gpu, first[0], "ends", arrays, state)
        arrays["delta"] = gpu.zeros(arrays["x"].shape, ml_dtypes.bfloat16)
        for number in range(self.model.layers):
            for i, each in enumerate(layer):
                second = "2" if each.name in [before.name for before in layer[:i]] else ""
                self._launch(gpu, each, f"{number}{second}", arrays, state)
        for one in last:
            self._launch(gpu, one, "ends", arrays, state)
        return arrays["scores"].get().astype(np.float32)

    def _launch(
        self, gpu: simt.GPU, operator: Operator, where: str, arrays: dict[str, Any], state: dict[str, Any]
    ) -> None:
        given = {}
        for name, tensor in operator.work.tensors.items():
            known = _FLOW[operator.name][name]
            if known.startswith("."):
                place, kept = f"{where}{known}", state
                if place not in state:
                    state[place] = gpu.array(self.weight(place, tensor.shape))
            elif known.isupper():
                place, kept = f"{where}{known}", state
                width = self.model.kv_heads * self.model.head_dim
                if place not in state:
                    state[place] = gpu.empty((self.batch * self.room, width), ml_dtypes.bfloat16)
            else:
                place, kept = known, arrays
                if tensor.role == "output":
                    dtype = getattr(ml_dtypes, tensor.dtype, tensor.dtype)
                    arrays[place] = gpu.empty(tensor.shape, dtype)
            given[name] = kept[place]
        operator.work.launch(gpu, given)

    def reference(self, tokens: Any) -> torch.Tensor:
        """Scores after whole sequences, in PyTorch, with roundings to bfloat16 where kernels store."""
        model = self.model
        names = {name: torch.from_numpy(value.astype(np.float32)) for name, value in self.weights.items()}

        def rounded(value: torch.Tensor) -> torch.Tensor:
            return value.bfloat16().float()

        def norm(value: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return rounded(value * torch.rsqrt(value.square().mean(-1, keepdim=True) + 1e-5) * weight)

        ids = torch.as_tensor(np.asarray(tokens)).reshape(self.batch, -1).long()
        x, length, half = names["ends.table"][ids], ids.shape[1], model.head_dim // 2
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(half) / half)[None, :]
        cosine, sine = angle.cos(), angle.sin()

        def turned(value: torch.Tensor) -> torch.Tensor:
            low, high = value[..., :half], value[..., half:]
            return rounded(torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1))

        for i in range(model.layers):
            h = norm(x, names[f"{i}.norm"])
            qkv = rounded(h @ names[f"{i}.qkv"].T).reshape(self.batch, length, -1, model.head_dim)
            q, k, v = qkv.transpose(1, 2).split([model.heads, model.kv_heads, model.kv_heads], 1)
            attended = torch.nn.functional.scaled_dot_product_attention(
                turned(q), turned(k), v, is_causal=True, enable_gqa=True
            )
            heads = rounded(attended).transpose(1, 2).reshape(self.batch, length, -1)
            x = rounded(x + rounded(heads @ names[f"{i}.output"].T))
            gate, up = rounded(norm(x, names[f"{i}2.norm"]) @ names[f"{i}.up"].T).chunk(2, -1)
            x = rounded(x + rounded(rounded(torch.nn.functional.silu(gate) * up) @ names[f"{i}.down"].T))
        return norm(x[:, -1], names["ends.norm"]) @ names["ends.head"].T
