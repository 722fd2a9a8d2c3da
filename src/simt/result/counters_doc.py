"""Writes docs/counters.md: `python -m simt.result.counters_doc > docs/counters.md`."""

from __future__ import annotations

from simt.result.counters import COUNTERS, FORMULA_NAMES


def render_markdown() -> str:
    """The text of docs/counters.md."""
    lines = [
        "# Counters",
        "",
        "Written by `python -m simt.result.counters_doc` from the table in `src/simt/result/counters.py`; "
        "do not edit.",
        "",
        "A counter has Nsight Compute's name where it means the same thing; what exists only here "
        "begins with `simt__`.",
        "A ratio without a denominator (no loads, no hits to count) is `null` in JSON and Parquet. "
        "`simt.Result.totals`",
        "computes the same formulas from sums over launches.",
        "",
        "| counter | unit | meaning | formula | Accel-Sim |",
        "|---|---|---|---|---|",
    ]
    for c in COUNTERS:
        accel_sim = f"`{c.accel_sim}`" if c.accel_sim else ""
        lines.append(f"| `{c.name}` | {c.unit} | {c.meaning} | `{c.formula}` | {accel_sim} |")
    lines += [
        "",
        "## Names in the formulas",
        "",
        "All other names are the engine's own counters, which `engine/stats/counters.hpp` lists.",
        "",
        "| name | is |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in FORMULA_NAMES.items()]
    lines += [
        "",
        "## Differences to know of",
        "",
        "- A look-up of a sector that an earlier miss is already fetching is `hit_reserved`: no hit, as "
        "in Accel-Sim's",
        "  `HIT` column. Retries (`reservation_fail`) are never look-ups.",
        "- Nsight's `smsp__thread_inst_executed.sum` counts predicated-off lanes too; traces do not "
        "hold them, so only",
        "  `smsp__thread_inst_executed_pred_on.sum` is given.",
        "- `gpc__cycles_elapsed.max` includes the launch latency of the specification, as a profiler's "
        "does; the field",
        "  `launch_latency` of each launch says how much that is.",
        "- Accel-Sim prints sums since the start; these are per launch.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(render_markdown(), end="")
