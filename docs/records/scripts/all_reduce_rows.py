"""All-reduces of simt's kernel against published times of others' kernels (docs/records/models.md).

usage: python all_reduce_rows.py

NCCL's are medians of Vidur's profiles (github.com/microsoft/vidur, data/profiling/network), those by Triton
of a kernel that also computes RMSNorm (github.com/flagos-ai/FlagGems-vllm, pull request 773).
"""

from __future__ import annotations

import csv
from pathlib import Path

from simt.network.scaled import estimate
from simt.network.works import all_reduce
from simt.spec import load_spec

ROWS = Path(__file__).with_suffix(".csv")


def main() -> None:
    print(f"{'GPU':6}{'GPUs':>5}{'MB':>9}{'by':>8}{'measured, µs':>14}{'here':>9}{'':>9}")
    with ROWS.open(newline="") as file:
        for row in csv.DictReader(file):
            work = all_reduce(int(row["bytes"]) // 2, int(row["ranks"]), "bfloat16")
            seconds = estimate(work, load_spec(row["gpu"])).seconds
            measured = float(row["measured_us"])
            print(
                f"{row['gpu']:6}{row['ranks']:>5}{int(row['bytes']) / 1e6:9.2f}{row['by']:>8}"
                f"{measured:14.1f}{1e6 * seconds:9.1f}{1e6 * seconds / measured - 1:+9.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
