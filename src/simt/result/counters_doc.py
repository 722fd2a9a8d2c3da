"""Writes docs/counters.md: `python -m simt.result.counters_doc > docs/counters.md`."""

from __future__ import annotations

from simt.result.counters import COUNTERS, FORMULA_NAMES

_PAGE = """\
# Counters

Written by `python -m simt.result.counters_doc` from the table in `src/simt/result/counters.py`; do not edit.

A counter has Nsight Compute's name where it means the same thing; names specific to simt begin with `simt__`.
A ratio without a denominator (no loads, no hits to count) is `null` in JSON and Parquet.
`simt.Result.totals` computes the same formulas from sums over launches.

| counter | unit | meaning | formula | Accel-Sim |
|---|---|---|---|---|
{counters}

## Names in the formulas

All other names are the engine's own counters, which `engine/stats/counters.hpp` lists.

| name | meaning |
|---|---|
{names}

## Differences from other tools

- A lookup of a sector that an earlier miss is already fetching is `hit_reserved`. In the L1 it counts as
  a hit, as in Nsight Compute: counted so, five published kernels of a V100 agree within 1.5 %. In the L2 it
  does not, as in Accel-Sim's `HIT` column. Retries (`reservation_fail`) are never counted as lookups.
- Nsight's `smsp__thread_inst_executed.sum` also counts predicated-off lanes. Traces do not contain them, so
  only `smsp__thread_inst_executed_pred_on.sum` is available.
- `gpc__cycles_elapsed.max` includes the launch latency of the specification, as a profiler's does; the field
  `launch_latency` of each launch gives its length.
- Accel-Sim prints sums since the start of the run; these counters are per launch.

## Adding a counter

A counter that follows from others is one entry of `COUNTERS` in `src/simt/result/counters.py`, with Nsight
Compute's name if there is one. Its formula may use the names above and the engine's counters. Results saved
by earlier versions show it too, as far as they hold what the formula needs; otherwise it is null.

A new event needs a line in `engine/stats/counters.hpp` and `++counters[Counter::name]` where it happens.
`counters` are those of the launch that the instruction or request belongs to (`slot`). They are added up over
SMs, L2 slices and channels, so an engine counter is always a sum. It appears in `LaunchResult.engine` and may
be used in formulas.

Test it in `tests/engine/` on a kernel whose count is known by hand, and run
`python -m simt.result.counters_doc > docs/counters.md`.
"""


def render_markdown() -> str:
    """The text of docs/counters.md."""
    return _PAGE.format(
        counters="\n".join(
            f"| `{c.name}` | {c.unit} | {c.meaning} | `{c.formula}` "
            f"| {f'`{c.accel_sim}`' if c.accel_sim else ''} |"
            for c in COUNTERS
        ),
        names="\n".join(f"| `{name}` | {meaning} |" for name, meaning in FORMULA_NAMES.items()),
    )


if __name__ == "__main__":
    print(render_markdown(), end="")
