"""How long CUTLASS's main loops take on a B200: simulated against SemiAnalysis's rows, in the mean of errors.

The loops and the halves of the groups are those of rank_main_loops.py. `automatic` are the rows of all groups
in which CUTLASS chose the number of stages: as many as fit into a CTA's shared memory beside 1 KiB.

    python docs/records/scripts/main_loops.py b200-cutlass-mainloop.csv --use held-out
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np
from rank_main_loops import BYTES, Row, groups_of, rows_of, simulated

SHARED = 232448  # bytes of a CTA
BESIDE = 1024  # bytes: barriers, and the address of tensor memory


def automatic(path: Path) -> list[Row]:
    lines = (line for line in path.read_text().splitlines() if not line.startswith("#"))
    found = []
    for row in csv.DictReader(lines):
        if row["STAGES"] == "0":
            m, n, k, depth = (int(row[name]) for name in ("TILE_M", "TILE_N", "K", "TILE_K"))
            stages = (SHARED - BESIDE) // ((m + n) * depth * BYTES[row["dtype"]])
            found.append(Row(row["dtype"], m, n, k, depth, stages, float(row["time_ms"]) / 1e3))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--use", choices=("tuning", "held-out", "automatic"), default="tuning")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.use == "automatic":
        groups: dict[str, list[Row]] = {}
        for row in automatic(given.rows):
            groups.setdefault(row.group, []).append(row)
    else:
        groups = groups_of(rows_of(given.rows), given.use)
    out, errors = [], []
    for name, rows in groups.items():
        ratios = [simulated(row) / row.seconds for row in rows]
        mine = [ratio - 1 for ratio in ratios]
        errors += mine
        out.append(
            {
                "group": name,
                "times": [[r.depth, r.stages, x] for r, x in zip(rows, ratios, strict=True)],
            }
        )
        print(
            f"{name:18} {len(rows):3} rows, mean error {np.mean(np.abs(mine)):.1%}, "
            f"bias {np.mean(mine):+.1%}, {min(mine):+.1%} to {max(mine):+.1%}",
            flush=True,
        )
        if given.json:
            given.json.write_text(json.dumps(out, indent=1) + "\n")
    sizes = np.abs(errors)
    print(
        f"{given.use}: {len(errors)} rows, mean error {np.mean(sizes):.1%}, bias {np.mean(errors):+.1%}, "
        f"at most {np.max(sizes):.1%}, within 20 %: {np.mean(sizes <= 0.2):.0%}"
    )


if __name__ == "__main__":
    main()
