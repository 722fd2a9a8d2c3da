"""Profiles for Vidur and Phantora, as their readers take them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from simt.errors import SimtError
from simt.network import OperatorTime, Prediction, architecture
from simt.spec import load_spec

LAYER = (
    "norm",
    "qkv",
    "rope, cache",
    "attention",
    "attention output",
    "norm",
    "gate, up",
    "activation",
    "down",
)
PRODUCTS = ("qkv", "attention output", "gate, up", "down", "head")


def rows(phase: str, tokens: int, scale: float) -> list[OperatorTime]:
    found = []
    for number, name in enumerate(("embedding", *LAYER, "last norm", "head")):
        kernel = "product" if name in PRODUCTS else "kernel"
        t = scale * (number + 1) * 1e-6
        times = t, t * 0.9, t * 1.2
        found.append(
            OperatorTime(
                phase, tokens, name, kernel, 1, *times, None, "DRAM", 1e6, 3e2, 1, True, 1.0, 0.0, None  # type: ignore[arg-type]
            )
        )  # fmt: skip
    return found


def prediction(batch: int = 1, model: str = "llama-3-8b") -> Prediction:
    operators = rows("prefill", 32, 10.0)
    operators += [*rows("decode", 33, 1.0), *rows("decode", 40, 2.0)]
    operators.append(replace(operators[-8], name="attention, join", seconds=1e-6))
    return Prediction(architecture(model), load_spec("h100"), batch, 32, 9, "same", tuple(operators))


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_vidur_finds_its_columns(tmp_path: Path) -> None:
    prediction().write_vidur(tmp_path)
    mlp, attention = read(tmp_path / "mlp.csv"), read(tmp_path / "attention.csv")
    assert [row["num_tokens"] for row in mlp] == ["32", "1"]
    first = mlp[0]
    assert float(first["time_stats.input_layernorm.median"]) == pytest.approx(0.02)
    assert float(first["time_stats.post_attention_layernorm.median"]) == pytest.approx(0.07)
    assert float(first["time_stats.mlp_up_proj.max"]) == pytest.approx(0.08 * 1.2)
    assert float(first["time_stats.attn_rope.min"]) == pytest.approx(0.04 * 0.9)
    assert first["time_stats.add.median"] == "0.0" and first["time_stats.emb.std"] == ""
    sizes = ("n_head", "n_kv_head", "n_embd", "n_expanded_embd", "vocab_size", "use_gated_mlp")
    assert [first[name] for name in sizes] == ["32", "8", "4096", "14336", "128256", "True"]
    places = ("batch_size", "prefill_chunk_size", "kv_cache_size", "is_prefill", "block_size")
    assert [[row[name] for name in places] for row in attention] == [
        ["1", "32", "0", "True", "16"],
        ["1", "0", "32", "False", "16"],
        ["1", "0", "39", "False", "16"],
    ]
    assert float(attention[0]["time_stats.attn_prefill.median"]) == pytest.approx(0.05)
    assert float(attention[2]["time_stats.attn_decode.median"]) == pytest.approx(0.01 + 0.001)


def test_rows_are_added_once(tmp_path: Path) -> None:
    prediction().write_vidur(tmp_path)
    prediction().write_vidur(tmp_path)
    assert len(read(tmp_path / "mlp.csv")) == 2
    prediction(batch=4).write_vidur(tmp_path)
    assert [row["num_tokens"] for row in read(tmp_path / "mlp.csv")] == ["32", "1", "128", "4"]
    # Vidur has no attention of several prompts at once.
    assert [row["batch_size"] for row in read(tmp_path / "attention.csv")] == ["1"] * 3 + ["4"] * 2
    (tmp_path / "mlp.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SimtError, match=r"mlp\.csv: has other columns"):
        prediction().write_vidur(tmp_path)
    with pytest.raises(SimtError, match="mixtral-8x7b: Vidur has no experts"):
        prediction(model="mixtral-8x7b").write_vidur(tmp_path / "other")


def test_phantora_finds_its_keys(tmp_path: Path) -> None:
    prediction(batch=2).write_phantora(tmp_path)
    compute, attention = read(tmp_path / "compute.csv"), read(tmp_path / "flash_attn.csv")
    shapes = [[one and one["shape"] for one in json.loads(row["key"])["Linear"]] for row in compute]
    assert shapes == [
        [[2, 32, 4096], [6144, 4096], None],
        [[2, 32, 4096], [4096, 4096], None],
        [[2, 32, 4096], [28672, 4096], None],
        [[2, 32, 14336], [4096, 14336], None],
    ]
    assert [row["nanos"] for row in compute] == ["30000", "60000", "80000", "100000"]
    assert {row["op"] for row in compute} == {"Linear"} and '"dtype":"BFloat16"' in compute[0]["key"]
    assert list(attention[0].values()) == [
        *("true", "true", "2", "32", "32", "32", "8", "128", "-1", "-1", "true", "50000"),
    ]
    assert "- **GPU:** h100\n" in (tmp_path / "manifest.md").read_text()
    with pytest.raises(SimtError, match="no linear layers"):
        replace(prediction(), weights="fp8").write_phantora(tmp_path)


def test_vidur_finds_the_all_reduces_of_several_gpus(tmp_path: Path) -> None:
    alone = prediction()
    alone.write_vidur(tmp_path / "alone")
    assert not (tmp_path / "alone" / "all_reduce.csv").exists()
    operators = []
    for row in alone.operators:
        operators.append(row)
        if row.name in ("attention output", "down"):
            operators.append(replace(row, name="all-reduce", kernel="all_reduce", seconds=1e-6 * row.tokens))
    several = replace(alone, operators=tuple(operators), tensor_parallel=2)
    several.write_vidur(tmp_path)
    rows = read(tmp_path / "all_reduce.csv")
    # Bytes of the sum, of 16 bits each; Vidur knows a size once.
    assert [row["size"] for row in rows] == [str(2 * 32 * 4096), str(2 * 4096)]
    assert float(rows[0]["time_stats.all_reduce.median"]) == pytest.approx(0.032)
    facts = ("rank", "num_workers", "collective", "devices_per_node", "max_devices_per_node")
    assert [rows[0][name] for name in facts] == ["0", "2", "all_reduce", "2", "2"]
    assert {row["num_tensor_parallel_workers"] for row in read(tmp_path / "mlp.csv")} == {"2"}
    assert read(tmp_path / "mlp.csv")[0]["n_head"] == "32"
