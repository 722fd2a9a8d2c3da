"""A Result on screen: compact table, text, HTML fragment for notebooks."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from simt.names import short_name, shortened
from simt.result.counters import Value
from simt.result.launch import LaunchResult
from simt.result.summary import bottleneck, sentences

if TYPE_CHECKING:
    from simt.result.result import Result


LEFT = (1, 2, 11)  # columns of the compact table that are text


def launch_rows(result: Result, limit: int) -> tuple[list[str], list[list[str]]]:
    """The compact table: header, rows of at most `limit` launches (the longest), and one of all others."""
    header = [
        "id",
        "kernel",
        "grid",
        "cycles",
        "time",
        "warp inst",
        "IPC/SM",
        "occ",
        "L1 hit",
        "L2 hit",
        "DRAM",
        "bound by",
    ]
    chosen = result.launches
    if len(chosen) > limit:
        longest = sorted(chosen, key=lambda x: -x.cycles)[:limit]
        chosen = tuple(sorted(longest, key=lambda x: x.index))
    rows, labels = [], result.labels(32)
    for x in chosen:
        c = x.counters
        rows.append(
            [
                str(x.id),
                labels[x.name],
                "x".join(map(str, x.grid)),
                cycles_text(x),
                format_time(x.seconds),
                _number(x.warp_instructions, "{:,}"),
                _number(_ipc(x), "{:.2f}"),
                _number(c["sm__warps_active.avg.pct_of_peak_sustained_active"], "{:.0f}%"),
                _number(c["l1tex__t_sector_hit_rate.pct"], "{:.0f}%"),
                _number(c["lts__t_sector_hit_rate.pct"], "{:.0f}%"),
                _number(c["dram__throughput.avg.pct_of_peak_sustained_elapsed"], "{:.0f}%"),
                bottleneck(x).kind,
            ]
        )
    if others := len(result.launches) - len(rows):
        shown, both = frozenset(x.index for x in chosen), zip(result.launches, result.shares, strict=True)
        left = [(x, own) for x, own in both if x.index not in shown]
        cycles = sum(own for _, own in left)
        row = dict.fromkeys(header, "") | {
            "kernel": f"{others:,} others",
            "cycles": f"{cycles:,.0f}",
            "time": format_time(cycles / (1000 * result.machine.core_khz)),
            "warp inst": _number(sum(x.warp_instructions for x, _ in left), "{:,}"),
        }
        rows.append(list(row.values()))
    return header, rows


def _number(value: Value, form: str) -> str:
    return "-" if value is None or value != value else form.format(value)


def cycles_text(launch: LaunchResult) -> str:
    """Its cycles; with ~ before them where they are projected or predicted."""
    sampled = launch.sampled is not None and launch.sampled.decision != "full"
    return f"{'~' * sampled}{launch.cycles:,}"


def plural(n: int, noun: str) -> str:
    """A number with its noun: `1 launch`, `2 launches`."""
    return f"{n:,} {noun}{'es' * (n != 1)}"


def format_time(seconds: float) -> str:
    """A time with a unit that suits it, such as `12.3 µs`."""
    if math.isnan(seconds):
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return (
                f"{seconds / scale:.3g} {unit}"
                if seconds < 1000 * scale
                else f"{seconds / scale:,.0f} {unit}"
            )
    return f"{seconds * 1e9:.3g} ns"


def kernel_label(name: str, width: int = 44) -> str:
    """A kernel's or stratum's name for a table: without `void`, cut in the middle."""
    return shortened(short_name(name).removeprefix("void "), width)


def percent(value: float | None, digits: int = 2) -> str:
    """A share or an error: 0.05 is `5 %`; at most `digits` decimals, `-` for None."""
    if value is None or math.isnan(value):
        return "-"
    if 0 < 100 * value < 0.5 * 10**-digits:
        return f"< {10**-digits:.{digits}f} %"
    text = f"{100 * value:,.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + " %"


def nanoseconds(value: float) -> str:
    """A time given in ns, see format_time."""
    return format_time(value * 1e-9)


def text_table(header: list[str], rows: list[list[str]], left: tuple[int, ...]) -> list[str]:
    """The lines of a table in plain text; the columns `left` are text, the others numbers."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return [
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]


def html_table(header: list[str], rows: list[list[str]], left: tuple[int, ...]) -> str:
    """An HTML table; the columns `left` are text, the others numbers."""

    def line(cells: list[str], tag: str) -> str:
        style = ("right", "left")
        return "".join(
            f'<{tag} style="text-align:{style[i in left]}">{html.escape(c)}</{tag}>'
            for i, c in enumerate(cells)
        )

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{line(header, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def fragment(title: str, body: str, notes: list[str], warnings: tuple[str, ...]) -> str:
    """A title, HTML, notes and warnings, for a notebook."""
    listed = "".join(f"<li>{html.escape(warning)}</li>" for warning in warnings)
    return (
        f"<p><b>{html.escape(title)}</b></p>{body}"
        + "".join(f"<p>{html.escape(note)}</p>" for note in notes if note)
        + (f"<ul>{listed}</ul>" if listed else "")
    )


def launch_text(x: LaunchResult) -> str:
    """A launch in a line: what it was, how long it took, and why."""
    grid, block = ("x".join(map(str, sizes)) for sizes in (x.grid, x.block))
    waits = {r: n for r, n in x.warp_stalls.items() if r not in ("selected", "not_selected") and n == n}
    facts = [f"{cycles_text(x)} cycles", f"IPC {_number(_ipc(x), '{:.2f}')} per SM"]
    if total := sum(waits.values()):
        reason = max(waits, key=lambda r: waits[r])
        facts.append(f"{waits[reason] / total:.0%} of waiting is {reason}")
    facts.append(f"bound by {bottleneck(x).kind}")
    return f"LaunchResult({x.id}: {short_name(x.name)}[{grid}, {block}]: {', '.join(facts)})"


def _ipc(x: LaunchResult) -> Value:
    return x.counters["sm__inst_executed.avg.per_cycle_elapsed"]


def text(result: Result) -> str:
    """The Result as a few lines of plain text."""
    t = result.totals
    lines = [
        f"Result: {plural(t.launches, 'launch')} on {result.machine.name}, {t.cycles:,} cycles "
        f"({format_time(t.seconds)}), "
        f"{t.warp_instructions:,} warp instructions"
        + ("" if result.status == "complete" else f", {result.status}")
    ]
    header, rows = launch_rows(result, limit=10)
    lines += ["  " + line for line in text_table(header, rows, LEFT)]
    lines += sentences(result)
    lines += [f"warning: {warning}" for warning in result.warnings]
    return "\n".join(lines)


def page_fragment(result: Result) -> str:
    """The Result as HTML for a notebook."""
    t = result.totals
    header, rows = launch_rows(result, limit=20)
    warnings = "".join(f"<li>{html.escape(warning)}</li>" for warning in result.warnings)
    return (
        f"<p><b>{plural(t.launches, 'launch')} on {html.escape(result.machine.name)}</b>: {t.cycles:,} "
        f"cycles "
        f"({format_time(t.seconds)}), {t.warp_instructions:,} warp instructions</p>"
        f"{html_table(header, rows, LEFT)}"
        + f"<p>{html.escape(' '.join(sentences(result)))}</p>"
        + (f"<ul>{warnings}</ul>" if warnings else "")
    )
