"""Whole models against published times on A100s (docs/records/models.md).

usage: python published_models.py [FIRST [LAST]]    rows of published_models.csv, from 1 on

Times of vLLM with its own all-reduce (github.com/vllm-project/vllm, pull request 2192, benchmark_latency.py),
and of TensorRT-LLM 0.6.1 (docs/source/performance.md), both with fixed batches in float16. TensorRT-LLM's
throughput is that of one GPU, as the document says of its first table.
"""

from __future__ import annotations

import csv
import sys
import time
from dataclasses import replace
from pathlib import Path

from simt.network import Architecture, predict

ROWS = Path(__file__).with_suffix(".csv")
_LLAMA = Architecture("llama-2-7b", 4096, 11008, 32, 32, 32, 128, 32000, 1 << 20, False, "float16")
_MODELS = {
    "llama-2-7b": _LLAMA,
    "llama-33b": replace(
        _LLAMA, name="llama-33b", hidden=6656, inner=17920, layers=60, heads=52, kv_heads=52
    ),
    "llama-2-70b": replace(
        _LLAMA, name="llama-2-70b", hidden=8192, inner=28672, layers=80, heads=64, kv_heads=8
    ),
}


def main() -> None:
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    last = int(sys.argv[2]) if len(sys.argv) > 2 else 99
    with ROWS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows, 1):
        if not first <= number <= last:
            continue
        begin = time.perf_counter()
        sizes = {name: int(row[name]) for name in ("batch", "prefill", "decode")}
        found = predict(_MODELS[row["model"]], row["gpu"], tensor_parallel=int(row["gpus"]), **sizes)
        if row["quantity"] == "first token ms":
            amount = found.time_to_first_token * 1e3
        elif row["quantity"] == "seconds":
            amount = found.seconds
        else:
            amount = found.tokens_per_second * (1 / int(row["gpus"]))
        measured = float(row["measured"])
        print(
            f"{number:2} {row['gpus']} x {row['gpu']} {row['model']:11} {row['batch']:>5} "
            f"{row['prefill']:>5} {row['decode']:>5} {row['quantity']:26}{measured:9,.4g}"
            f"{amount.value:9,.4g} ({amount.low:,.4g} to {amount.high:,.4g}) "
            f"{amount.value / measured - 1:+.1%} {time.perf_counter() - begin:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
