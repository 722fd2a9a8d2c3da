"""What PTX, machine code with a scoreboard, and machine code with its control bits take, kernel by kernel.

    python validation/codes.py --out out/codes --gpu qv100 --gpu a100 --gpu h100
    python validation/codes.py --out out/codes --gpu a100 --only sgemm --quick

PTX and machine code are executed; with a scoreboard, the machine code's trace is replayed from version 5
text, which has no control bits. What DIR/codes.json has already is not simulated again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from programs import Program, programs

import simt
from simt.errors import SimtError
from simt.files import write_text
from simt.gpu import GPU
from simt.result import Result

WAYS = ("ptx", "scoreboard", "control bits")
MOST = 0.15  # a larger difference from control bits is to be explained


def summary(result: Result) -> dict[str, Any]:
    """By kernel: cycles, warp instructions, and warp-cycles by state, of all its launches."""
    kernels: dict[str, dict[str, Any]] = {}
    for launch in result.launches:
        known = kernels.setdefault(
            launch.name.split("(")[0], {"cycles": 0, "instructions": 0, "states": Counter()}
        )
        known["cycles"] += launch.cycles
        known["instructions"] += int(launch.counters["smsp__inst_executed.sum"])
        known["states"].update(launch.warp_stalls)
    return kernels


def compared(program: Program, gpu: str, threads: int) -> list[dict[str, Any]]:
    """A row for each kernel."""
    found: dict[str, dict[str, Any]] = {}
    for way, code in (("ptx", "ptx"), ("control bits", "sass")):
        simulated = GPU(gpu, code=code, threads=threads)
        error = program.run(simulated)()
        if not error <= program.tolerance:
            raise SimtError(f"{program.name} as {code}: its values are wrong by {error}")
        found[way] = summary(simulated.result())
    with tempfile.TemporaryDirectory() as folder:
        recorded = GPU(gpu, code="sass", threads=threads)
        with recorded.trace(Path(folder) / "trace"):
            program.run(recorded)
        found["scoreboard"] = summary(simt.simulate(Path(folder) / "trace", gpu, threads=threads))
    return [
        {
            "gpu": gpu,
            "suite": program.suite,
            "program": program.name,
            "kernel": kernel,
            **{way: found[way].get(kernel) for way in WAYS},
        }
        for kernel in found["ptx"]
    ]


def reason(row: dict[str, Any], way: str) -> str:
    """What differs most: instructions, and the states in which warps spend more or less of their time."""
    one, other = row[way], row["control bits"]
    parts = [f"{one['instructions'] / other['instructions']:.2f} × instructions"]
    change = {
        state: one["states"].get(state, 0) / other["cycles"] - other["states"].get(state, 0) / other["cycles"]
        for state in {*one["states"], *other["states"]}
    }
    for state in sorted(change, key=lambda s: -abs(change[s]))[:2]:
        total = sum(other["states"].values()) / other["cycles"]
        parts.append(f"{state} {100 * change[state] / total:+.0f} %")
    return ", ".join(parts)


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| GPU | program | kernel | PTX | scoreboard | control bits | PTX / bits | scoreboard / bits |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in rows:
        cycles = [row[way]["cycles"] for way in WAYS]
        ratios = " | ".join(f"{c / cycles[2]:.2f}" for c in cycles[:2])
        numbers = " | ".join(f"{c:,}" for c in cycles)
        lines.append(f"| {row['gpu']} | {row['program']} | `{row['kernel']}` | {numbers} | {ratios} |")
    lines += ["", f"More than {100 * MOST:.0f} % apart:", ""]
    for row in rows:
        for way in WAYS[:2]:
            ratio = row[way]["cycles"] / row["control bits"]["cycles"]
            if abs(ratio - 1) > MOST:
                what = f"{row['gpu']} {row['program']} `{row['kernel']}`, {way} {ratio:.2f}"
                lines.append(f"- {what}: {reason(row, way)}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--gpu", action="append", required=True, metavar="GPU")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="programs whose names have it"
    )
    parser.add_argument("--quick", action="store_true", help="those of a small campaign")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    file = arguments.out / "codes.json"
    rows: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    done = {(row["gpu"], row["suite"], row["program"]) for row in rows}
    for program in programs():
        name = f"{program.suite}/{program.name}"
        if (arguments.quick and not program.quick) or (
            arguments.only and not any(text in name for text in arguments.only)
        ):
            continue
        for gpu in arguments.gpu:
            if (gpu, program.suite, program.name) in done:
                continue
            try:
                rows += compared(program, gpu, arguments.threads)
            except SimtError as error:
                print(f"{gpu} {name}: {error}", file=sys.stderr)
                continue
            arguments.out.mkdir(parents=True, exist_ok=True)
            write_text(file, json.dumps(rows, indent=1) + "\n")
            print(f"{gpu} {name}", file=sys.stderr)
    print(table([row for row in rows if row["gpu"] in arguments.gpu]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
