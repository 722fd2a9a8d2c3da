"""Numbers, times and names as text for people, and tables of text."""

from __future__ import annotations

import math

from simt.names import short_name, shortened


def plural(n: int, noun: str) -> str:
    """A number with its noun: `1 launch`, `2 launches`."""
    return f"{n:,} {noun}{'es' * (n != 1)}"


def percent(value: float | None, digits: int = 2) -> str:
    """A share or an error: 0.05 is `5 %`; at most `digits` decimals, `-` for None."""
    if value is None or math.isnan(value):
        return "-"
    if 0 < 100 * value < 0.5 * 10**-digits:
        return f"< {10**-digits:.{digits}f} %"
    text = f"{100 * value:,.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + " %"


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


def format_energy(joules: float) -> str:
    """An energy with a unit that suits it, such as `1.42 mJ`."""
    if math.isnan(joules):
        return "-"
    for unit, scale in (("J", 1.0), ("mJ", 1e-3), ("µJ", 1e-6)):
        if joules >= scale:
            return (
                f"{joules / scale:,.3g} {unit}" if joules < 1000 * scale else f"{joules / scale:,.0f} {unit}"
            )
    return f"{joules * 1e9:.3g} nJ"


def nanoseconds(value: float) -> str:
    """A time given in ns, see format_time."""
    return format_time(value * 1e-9)


def kernel_label(name: str, width: int = 44) -> str:
    """A kernel's or stratum's name for a table: without `void`, cut in the middle."""
    return shortened(short_name(name).removeprefix("void "), width)


def text_table(header: list[str], rows: list[list[str]], left: tuple[int, ...]) -> list[str]:
    """The lines of a table in plain text; the columns `left` are text, the others numbers."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return [
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]
