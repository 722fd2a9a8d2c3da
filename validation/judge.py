"""How far a specification is from what a campaign measured: simulates the same programs and correlates.

    python validation/judge.py h200 --gpu h200.toml
    python validation/judge.py trial --gpu qv100 --program sgemm --program workloads/

Cycles and counters are compared with those of Nsight Compute where the campaign has them, cycles with times
at the core's clock that was measured. Results are kept in DIR/judged/NAME and not simulated again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import polars as pl
from programs import programs

from simt.errors import SimtError
from simt.files import replacing, write_text
from simt.gpu import GPU
from simt.spec import load_spec
from simt.validate import Correlation, correlate, find_programs, page
from simt.validate.correlation import CYCLES
from simt.version import __version__

# What the model of a GPU should reach in cycles (issue "Trust"): mean error, share within 25 %, correlation.
AIM = {"mae": 0.12, "within_25": 0.90, "pearson": 0.99}
SHOWN = {
    "mae": "mean absolute error",
    "p90": "90 % of launches within",
    "within_25": "launches within 25 %",
    "pearson": "correlation",
}


def simulate(out: Path, campaign: Path, gpu: str, only: list[str], threads: int) -> int:
    """Simulates the measured programs; those that are there already are not done again. Their number."""
    measured = {p.relative_to(campaign / "kernels/times") for p in (campaign / "kernels/times").glob("*/*")}
    count = 0
    for program in programs():
        name = Path(program.suite) / program.name
        if name not in measured or (only and not any(text in name.as_posix() for text in only)):
            continue
        count += 1
        target = out / "results" / name
        if target.exists():
            continue
        before = time.monotonic()
        simulated = GPU(gpu, threads=threads)
        program.run(simulated)
        result = simulated.result()
        target.parent.mkdir(parents=True, exist_ok=True)
        result.save(target)
        cycles = sum(x.cycles for x in result.launches)
        print(f"{name}: {cycles:,} cycles in {time.monotonic() - before:.1f} s", file=sys.stderr)
    return count


def judged(campaign: Path, results: Path) -> dict[str, Correlation]:
    """The pairs by what was measured: counters, times."""
    clock = json.loads((campaign / "campaign.json").read_text())["device"]["core_mhz"]
    folders = {kind: campaign / "kernels" / kind for kind in ("counters", "times")}
    return {
        kind: correlate(find_programs(results, folder), clock)
        for kind, folder in folders.items()
        if any(folder.glob("*/*"))
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("campaign", type=Path, metavar="DIR", help="what campaign.py wrote")
    parser.add_argument("--gpu", required=True, help="specification: a name of `simt gpus`, or a TOML file")
    parser.add_argument(
        "--program", action="append", default=[], help="only names with this text; may be repeated"
    )
    parser.add_argument("--threads", type=int, default=1, help="host threads; results do not depend on them")
    given = parser.parse_args()
    try:
        judge(given.campaign, given.gpu, given.program, given.threads)
    except SimtError as error:
        sys.exit(f"judge: {error}")


def judge(campaign: Path, gpu: str, only: list[str], threads: int) -> None:
    if not (campaign / "campaign.json").is_file():
        raise SimtError(f"{campaign}: no campaign.json: expected a folder that campaign.py wrote")
    spec = load_spec(gpu)
    out = campaign / "judged" / f"{spec.name}-{spec.hash[:8]}".replace("/", "-").replace(" ", "-")
    count = simulate(out, campaign, gpu, only, threads)
    if not count:
        raise SimtError(f"{campaign}: no measured program to simulate")
    record: dict[str, Any] = {"schema": "simt.judgement/1", "spec": spec.name, "spec_hash": spec.hash}
    record |= {"created": datetime.now(timezone.utc).isoformat(timespec="seconds"), "version": __version__}
    record |= {"programs": count, "aim": AIM, "against": {}}
    for kind, found in judged(campaign, out / "results").items():
        cycles = found.agreement().row(by_predicate=pl.col("counter") == CYCLES, named=True)
        by_suite = found.agreement(by_suite=True).filter(pl.col("counter") == CYCLES)
        record["against"][kind] = {
            "cycles": cycles,
            "missed": [name for name in AIM if not _reached(cycles[name], name)],
            "suites": by_suite.to_dicts(),
            "counters": found.agreement().to_dicts(),
            "unpaired": list(found.unpaired),
        }
        with replacing(out / f"{kind}.csv") as temporary:
            pl.concat([found.kernels, found.programs]).write_csv(temporary)
        page.write(found, out / f"{kind}.html", f"{spec.name} against {campaign}, {kind}")
        print(f"{spec.name}, cycles of {cycles['n']} launches of {count} programs against measured {kind}:")
        for name, label in SHOWN.items():
            print(f"  {label:24} {_shown(cycles[name], name)}")
    write_text(out / "judgement.json", json.dumps(record, indent=1) + "\n")
    print(f"{out}: judgement.json, and a CSV and a page for each")


def _shown(value: float | None, name: str) -> str:
    text = "-" if value is None else f"{value:.4f}" if name == "pearson" else f"{100 * value:.1f} %"
    aim = f"   (aim {AIM[name]:g}: {'reached' if _reached(value, name) else 'missed'})" if name in AIM else ""
    return f"{text:>9}{aim}"


def _reached(value: float | None, name: str) -> bool:
    return value is not None and (value <= AIM[name] if name == "mae" else value >= AIM[name])


if __name__ == "__main__":
    main()
