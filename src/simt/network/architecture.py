"""What of a Hugging Face configuration decides a transformer's operators."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from simt.errors import SimtError
from simt.hints import did_you_mean

Weights = Literal["same", "fp8", "int4"]
WEIGHT_BITS: dict[Weights, int] = {"same": 16, "fp8": 8, "int4": 4}
"""Bits of an element of a layer's products; embeddings, norms and the head keep the type of activations."""

MOST_RANKS = 16
"""GPUs that share a layer, at most: those with a link to each other, which `peer_link` is for."""

_LLAMA = {"model_type": "llama", "hidden_act": "silu", "torch_dtype": "bfloat16"}
_SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
)
KNOWN: dict[str, dict[str, Any]] = {
    "llama-3-8b": _LLAMA | dict(zip(_SIZES, (4096, 14336, 32, 32, 8, 128256), strict=True)),
    "llama-3-70b": _LLAMA | dict(zip(_SIZES, (8192, 28672, 80, 64, 8, 128256), strict=True)),
    "llama-3.1-405b": _LLAMA | dict(zip(_SIZES, (16384, 53248, 126, 128, 8, 128256), strict=True)),
    "mistral-7b": _LLAMA
    | {"model_type": "mistral"}
    | dict(zip(_SIZES, (4096, 14336, 32, 32, 8, 32000), strict=True)),
    "mixtral-8x7b": _LLAMA
    | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    | dict(zip(_SIZES, (4096, 14336, 32, 32, 8, 32000), strict=True)),
    "qwen2.5-7b": _LLAMA
    | {"model_type": "qwen2"}
    | dict(zip(_SIZES, (3584, 18944, 28, 28, 4, 152064), strict=True)),
    "gpt2": {
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "n_embd": 768,
        "n_head": 12,
        "n_layer": 12,
        "n_positions": 1024,
        "vocab_size": 50257,
        "torch_dtype": "bfloat16",
    },
}
"""Configurations as their publishers have them on Hugging Face, without what changes no operator. `gpt2` is
published without a type; here it is bfloat16."""

_TYPES = ("llama", "mistral", "mixtral", "qwen2", "gpt2")
_DTYPES = ("bfloat16", "float16")
_WITHOUT_EFFECT = {
    *(
        "architectures",
        "_name_or_path",
        "transformers_version",
        "use_cache",
        "initializer_range",
        "pretraining_tp",
    ),
    *("bos_token_id", "eos_token_id", "pad_token_id", "task_specific_params", "max_window_layers"),
    *("rope_theta", "rope_scaling", "rope_parameters", "rms_norm_eps", "layer_norm_epsilon"),
    *(
        "attention_dropout",
        "attn_pdrop",
        "embd_pdrop",
        "resid_pdrop",
        "router_aux_loss_coef",
        "router_jitter_noise",
    ),
    *(
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
    ),
    *(
        "scale_attn_weights",
        "reorder_and_upcast_attn",
        "use_mrope",
        "output_router_logits",
        "n_ctx",
        "layer_types",
    ),
}
"""Fields that change values, or nothing here."""
_READ = {
    *_SIZES,
    "model_type",
    "hidden_act",
    "torch_dtype",
    "dtype",
    "head_dim",
    "tie_word_embeddings",
    "attention_bias",
    "mlp_bias",
    "num_local_experts",
    "num_experts_per_tok",
    "sliding_window",
    "use_sliding_window",
    "max_position_embeddings",
    "activation_function",
    "n_embd",
    "n_head",
    "n_layer",
    "n_positions",
    "n_inner",
}


@dataclass(frozen=True)
class Architecture:
    """A decoder-only transformer, by the sizes of its operators.

    heads, kv_heads, head_dim: of attention. inner: width of the MLP, of one expert where there are experts;
    per_token: experts of a token, 0 without experts. gated: silu(gate) * up; otherwise GELU. layer_norm:
    LayerNorm and learned positions; otherwise RMSNorm and RoPE. qkv_bias, bias: of the product of queries,
    keys and values, and of the others. dtype: of activations, the cache, and weights that are not quantised.
    ranks: GPUs that share its layers; heads, kv_heads and inner are then those of one, its `share`.
    """

    name: str
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    positions: int
    tied: bool
    dtype: str
    experts: int = 0
    per_token: int = 0
    gated: bool = True
    layer_norm: bool = False
    qkv_bias: bool = False
    bias: bool = False
    window: int | None = None
    ranks: int = 1

    def share(self, ranks: int) -> Architecture:
        """What one of `ranks` GPUs has with tensor parallelism (Shoeybi et al., Megatron-LM, 2019): its
        heads, its part of each MLP or expert, and its part of the head's vocabulary. Keys and values of
        fewer heads than GPUs are on several. Norms, routers and the table of embeddings are whole on each.

        Raises SimtError: they cannot be divided so.
        """
        if ranks == 1:
            return self
        if not 1 <= ranks <= MOST_RANKS:
            raise SimtError(f"tensor_parallel is {ranks}, expected 1 to {MOST_RANKS} GPUs")
        kv = self.kv_heads
        if self.heads % ranks or self.inner % (16 * ranks) or (kv % ranks and ranks % kv):
            raise SimtError(
                f"{self.name}: {self.heads} heads, {kv} of keys and values and MLPs of {self.inner:,} cannot "
                f"be shared by {ranks} GPUs; expected a divisor of the heads, and on each MLPs of a multiple "
                "of 16"
            )
        heads, kv = self.heads // ranks, max(1, kv // ranks)
        return replace(self, heads=heads, kv_heads=kv, inner=self.inner // ranks, ranks=ranks)

    @property
    def head_rows(self) -> int:
        """Rows of the head's matrix, a multiple of 64: tokens whose scores a GPU computes."""
        return -(-self.vocabulary // (64 * self.ranks)) * 64

    @property
    def qkv_width(self) -> int:
        """Elements of a token's queries, keys and values."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def layer_matrices(self) -> int:
        """Elements of a layer's matrices, those that `weights` quantises."""
        mlp = self.inner * self.hidden * (3 if self.gated else 2) * max(1, self.experts)
        return self.hidden * (self.qkv_width + self.heads * self.head_dim) + mlp

    @property
    def other_elements(self) -> int:
        """Elements of embeddings, head, norms, biases and routers."""
        norm = self.hidden * (2 if self.layer_norm else 1)
        one = 2 * norm + self.hidden * self.experts + (self.qkv_width if self.qkv_bias else 0)
        if self.bias:
            one += self.inner + 2 * self.hidden
        tables = self.vocabulary + (self.positions if self.layer_norm else 0)
        if not self.tied:
            tables += self.vocabulary if self.ranks == 1 else self.head_rows
        return self.layers * one + norm + tables * self.hidden

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return self.layers * self.layer_matrices + self.other_elements

    def weight_bytes(self, weights: Weights = "same") -> int:
        """Bytes of the weights; scales of FP8 (4 for each row) and 4-bit weights (4 for 128 elements)
        included."""
        scales = {"same": 0.0, "fp8": 4 / self.hidden, "int4": 4 / 128}[weights]
        return (
            int(self.layers * self.layer_matrices * (WEIGHT_BITS[weights] / 8 + scales))
            + 2 * self.other_elements
        )

    def cache_bytes(self, batch: int, length: int) -> int:
        """Bytes of the keys and values of `batch` sequences of `length` tokens."""
        return 2 * 2 * batch * length * self.layers * self.kv_heads * self.head_dim


def architecture(config: str | os.PathLike[str] | Mapping[str, Any]) -> Architecture:
    """Reads a configuration: a name of `KNOWN`, a path of a Hugging Face `config.json` or of its folder, or
    its content.

    Raises:
        SimtError: there is no such file or name, or the configuration has a type or fields that change
            operators in a way that is not covered; the message names them.
    """
    if isinstance(config, Mapping):
        return _read("configuration", config)
    text = os.fspath(config)
    if text in KNOWN:
        return _read(text, KNOWN[text])
    path = Path(text)
    if path.is_dir():
        path /= "config.json"
    if not path.is_file():
        raise SimtError(
            f"{text}: there is no such file, and no built-in configuration of this name"
            f"{did_you_mean(text, KNOWN)}; there are {', '.join(KNOWN)}"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SimtError(f"{path}: no configuration of Hugging Face in JSON: {error}") from None
    if not isinstance(content, dict):
        raise SimtError(f"{path}: expected a JSON object, found {type(content).__name__}")
    name = str(content.get("_name_or_path") or path.resolve().parent.name)
    return _read(name, content, str(path))


def _read(name: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    where = where or name
    kind = config.get("model_type")
    if kind not in _TYPES:
        raise SimtError(f"{where}: model_type is {kind!r}, expected one of {', '.join(_TYPES)}")
    others = [k for k, v in config.items() if v and k not in _READ | _WITHOUT_EFFECT]
    if others:
        raise SimtError(
            f"{where}: {', '.join(others)}: fields whose effect on operators is not known; remove those that "
            "have none (quantised weights: --weights)"
        )
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16").removeprefix("torch.")
    if dtype not in _DTYPES:
        raise SimtError(f"{where}: torch_dtype is {dtype!r}, expected one of {', '.join(_DTYPES)}")

    def size(key: str, default: int | None = None) -> int:
        value = config.get(key, default)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SimtError(f"{where}: {key} is {value!r}, expected a whole number above 0")
        return value

    if kind == "gpt2":
        act, hidden, heads = config.get("activation_function", "gelu_new"), size("n_embd"), size("n_head")
        found = Architecture(
            name,
            hidden,
            size("n_inner", 4 * hidden),
            size("n_layer"),
            heads,
            heads,
            hidden // heads,
            size("vocab_size"),
            size("n_positions", 1024),
            True,
            dtype,
            gated=False,
            layer_norm=True,
            qkv_bias=True,
            bias=True,
        )
        expected = "gelu_new"
    else:
        act, hidden, heads = (
            config.get("hidden_act", "silu"),
            size("hidden_size"),
            size("num_attention_heads"),
        )
        window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
        experts = size("num_local_experts", 8) if kind == "mixtral" else 0
        if config.get("mlp_bias") or config.get("attention_bias"):
            raise SimtError(f"{where}: mlp_bias and attention_bias are not covered, expected none")
        found = Architecture(
            name,
            hidden,
            size("intermediate_size"),
            size("num_hidden_layers"),
            heads,
            size("num_key_value_heads", heads),
            size("head_dim", max(1, hidden // heads)),
            size("vocab_size"),
            size("max_position_embeddings", 1 << 20),
            bool(config.get("tie_word_embeddings")),
            dtype,
            experts,
            size("num_experts_per_tok", 2) if experts else 0,
            qkv_bias=kind == "qwen2",
            window=window,
        )
        expected = "silu"
    if act != expected:
        raise SimtError(f"{where}: the activation is {act!r}, expected {expected} of {kind}")
    if found.heads % found.kv_heads or found.head_dim not in (16, 32, 64, 128, 256):
        raise SimtError(
            f"{where}: {found.heads} heads of {found.head_dim} elements on {found.kv_heads} of keys and "
            "values: expected a multiple, and 16, 32, 64, 128 or 256 elements"
        )
    if found.hidden % 16 or found.inner % 16:
        raise SimtError(f"{where}: widths {found.hidden} and {found.inner}: expected multiples of 16")
    return found
