"""Predicted models as the profiles that simulators of serving and of clusters read: Vidur, Phantora."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import SimtError
from simt.files import write_bytes

from .works import PAGE

if TYPE_CHECKING:
    from .prediction import OperatorTime, Prediction

Row = dict[str, Any]

_VIDUR_MLP = {
    "emb": ("embedding",),
    "input_layernorm": ("norm", 0),
    "attn_pre_proj": ("qkv",),
    "attn_rope": ("rope, cache",),
    "attn_post_proj": ("attention output",),
    "post_attention_layernorm": ("norm", 1),
    "mlp_up_proj": ("gate, up", "up"),
    "mlp_act": ("activation",),
    "mlp_down_proj": ("down",),
    "add": (),
}
"""Vidur's operators, and those here: by name, or by name and place among those of this name. What is not here
is part of another: 0."""
_STATISTICS = ("min", "max", "mean", "median", "std")


def write_vidur(prediction: Prediction, folder: Path) -> None:
    """Adds rows to `mlp.csv` and `attention.csv` of a folder, with several GPUs also to `all_reduce.csv`, as
    Vidur's profiler writes them; makes files that are not there.

    Times are in milliseconds; the least and the largest are the interval's ends, and a standard deviation is
    left out. There is a row of `mlp.csv` for each number of tokens of a pass, one of `attention.csv` for each
    pass. Vidur profiles the attention of prompts one by one: with a batch of several it has no row.

    Raises SimtError for experts, which Vidur has not, and for files with other columns.
    """
    if prediction.model.experts:
        raise SimtError(f"{prediction.model.name}: Vidur has no experts; its tables cannot be written")
    mlp = [_vidur_mlp(prediction, rows) for rows in _passes(prediction)]
    attention = [_vidur_attention(prediction, rows) for rows in _passes(prediction)]
    folder.mkdir(parents=True, exist_ok=True)
    # Passes of one number of tokens are equal but for their attention.
    _add(folder / "mlp.csv", list({row["num_tokens"]: row for row in mlp}.values()))
    _add(folder / "attention.csv", [row for row in attention if row])
    reduced = [row for rows in _passes(prediction) for row in _vidur_all_reduces(prediction, rows)]
    if reduced:
        _add(folder / "all_reduce.csv", list({row["size"]: row for row in reduced}.values()))


def _passes(prediction: Prediction) -> list[list[OperatorTime]]:
    return [prediction.rows("prefill"), *prediction.steps]


def _named(rows: Sequence[OperatorTime], name: str, place: int = 0) -> list[OperatorTime]:
    return [row for row in rows if row.name == name][place : place + 1]


def _statistics(name: str, rows: Sequence[OperatorTime]) -> Row:
    def total(key: Callable[[OperatorTime], float]) -> float:
        return 1e3 * sum(map(key, rows))

    value = total(lambda row: row.seconds)
    values = (total(lambda row: row.low), total(lambda row: row.high), value, value, "")
    return {f"time_stats.{name}.{kind}": one for kind, one in zip(_STATISTICS, values, strict=True)}


def _vidur_mlp(prediction: Prediction, rows: Sequence[OperatorTime]) -> Row:
    model = prediction.model
    found: Row = {}
    for name, given in _VIDUR_MLP.items():
        place = next((one for one in given if isinstance(one, int)), 0)
        own = [row for one in given if isinstance(one, str) for row in _named(rows, one, place)]
        found |= _statistics(name, own)
    tokens = prediction.prefill if rows[0].phase == "prefill" else 1
    return found | {
        "n_head": model.heads,
        "n_kv_head": model.kv_heads,
        "n_embd": model.hidden,
        "n_expanded_embd": model.inner,
        "vocab_size": model.vocabulary,
        "use_gated_mlp": model.gated,
        "num_tokens": prediction.batch * tokens,
        "num_tensor_parallel_workers": prediction.tensor_parallel,
    }


def _vidur_all_reduces(prediction: Prediction, rows: Sequence[OperatorTime]) -> list[Row]:
    ranks = prediction.tensor_parallel
    facts = {"rank": 0, "num_workers": ranks, "collective": "all_reduce"}
    facts |= {"devices_per_node": ranks, "max_devices_per_node": ranks}
    tokens = prediction.prefill if rows[0].phase == "prefill" else 1
    size = 2 * prediction.batch * tokens * prediction.model.hidden
    return [_statistics("all_reduce", [row]) | facts | {"size": size} for row in _named(rows, "all-reduce")]


def _vidur_attention(prediction: Prediction, rows: Sequence[OperatorTime]) -> Row:
    model, is_prefill = prediction.model, rows[0].phase == "prefill"
    if is_prefill and prediction.batch > 1:
        return {}
    attention = _named(rows, "attention") + _named(rows, "attention, join")
    found = _statistics("attn_kv_cache_save", _named(rows, "cache"))
    for name in ("attn_input_reshape", "attn_output_reshape"):
        found |= _statistics(name, [])
    for name, own in (("attn_prefill", is_prefill), ("attn_decode", not is_prefill)):
        found |= _statistics(name, attention if own else [])
    return found | {
        "n_embd": model.hidden,
        "n_q_head": model.heads,
        "n_kv_head": model.kv_heads,
        "block_size": PAGE,
        "num_tensor_parallel_workers": prediction.tensor_parallel,
        "max_model_len": model.positions,
        "batch_size": prediction.batch,
        "prefill_chunk_size": prediction.prefill if is_prefill else 0,
        "kv_cache_size": 0 if is_prefill else rows[0].tokens - 1,
        "is_prefill": is_prefill,
        "attention_backend": "simt",
    }


# --- Phantora ----------------------------------------------------------------------------------------------

_KINDS = {"bfloat16": "BFloat16", "float16": "Half"}


def write_phantora(prediction: Prediction, folder: Path) -> None:
    """Adds rows to `compute.csv` and `flash_attn.csv` of a folder, a database of Phantora's (`--perf-db`),
    and writes its `manifest.md`.

    They are what of the prefill is an operator of PyTorch's: linear layers, with queries, keys and values in
    one product, and gate and up in one, and causal attention of FlashAttention. Norms, RoPE and activations
    are fused here as they are in none of PyTorch's operators, and have no row.

    Raises SimtError for experts and for weights in fewer bits, and for files with other columns.
    """
    model = prediction.model.share(prediction.tensor_parallel)
    if model.experts or prediction.weights != "same":
        raise SimtError(
            f"{model.name}: experts and weights in fewer bits are no linear layers of PyTorch; Phantora's "
            "database cannot be written"
        )
    kind, tokens = _KINDS[model.dtype], [prediction.batch, prediction.prefill]
    linear = []
    for row in prediction.rows("prefill"):
        if row.kernel != "product" or row.name == "head":
            continue
        n, k = {
            "qkv": (model.qkv_width, model.hidden),
            "attention output": (model.hidden, model.heads * model.head_dim),
            "down": (model.hidden, model.inner),
        }.get(row.name, (model.inner * (2 if model.gated else 1), model.hidden))
        bias = [n] if (model.qkv_bias if row.name == "qkv" else model.bias) else None
        key = [[*tokens, k], [n, k], bias]
        tensors = [one and {"shape": one, "dtype": kind} for one in key]
        text = json.dumps({"Linear": tensors}, separators=(",", ":"))
        linear.append({"op": "Linear", "key": text, "nanos": round(1e9 * row.seconds)})
    attention = [
        {
            "is_fwd": "true",
            "is_bf16": str(model.dtype == "bfloat16").lower(),
            "batch": prediction.batch,
            "seqlen_q": prediction.prefill,
            "seqlen_k": prediction.prefill,
            "num_heads": model.heads,
            "num_heads_k": model.kv_heads,
            "head_size": model.head_dim,
            "win_left": -1,
            "win_right": -1,
            "is_causal": "true",
            "nanos": round(1e9 * row.seconds),
        }
        for row in _named(prediction.rows("prefill"), "attention")
    ]
    folder.mkdir(parents=True, exist_ok=True)
    counts = [
        _add(folder / name, rows) for name, rows in (("compute.csv", linear), ("flash_attn.csv", attention))
    ]
    manifest = (
        "# Phantora performance database\n\n"
        f"- **GPU:** {prediction.spec.name}\n- **Schema version:** 1\n- **compute entries:** {counts[0]}\n"
        f"- **sequence entries:** 0\n- **memcpy entries:** 0\n- **flash_attn entries:** {counts[1]}\n"
    )
    write_bytes(folder / "manifest.md", manifest.encode(), SimtError)


def _add(path: Path, rows: Sequence[Mapping[str, Any]]) -> int:
    """Adds rows to a CSV file, without those that it has. Returns how many it has then."""
    columns = list(rows[0]) if rows else []
    before: list[dict[str, str]] = []
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            before = list(reader)
            if columns and list(reader.fieldnames or ()) != columns:
                raise SimtError(
                    f"{path}: has other columns than are to be added; expected {', '.join(columns)}"
                )
    new = [{name: str(value) for name, value in row.items()} for row in rows]
    all_rows = list({tuple(row.values()): row for row in [*before, *new]}.values())
    if new:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(all_rows)
        write_bytes(path, text.getvalue().encode(), SimtError)
    return len(all_rows)
