"""Numbers, times and names as text for people, and tables of text."""

from __future__ import annotations

import math

from simt.names import short_name, shortened


def plural(n: int, noun: str) -> str:
    """A number with its noun: `1 launch`, `2 launches`, `3 findings`."""
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{n:,} {noun if n == 1 else noun + ending}"


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
    return _with_prefix(seconds, "s")


def format_energy(joules: float) -> str:
    """An energy with a unit that suits it, such as `1.42 mJ`."""
    return _with_prefix(joules, "J")


def _with_prefix(value: float, unit: str) -> str:
    if math.isnan(value):
        return "-"
    for prefix, scale in (("", 1.0), ("m", 1e-3), ("µ", 1e-6)):
        if value >= scale:
            number = value / scale
            return f"{number:.3g} {prefix}{unit}" if number < 1000 else f"{number:,.0f} {prefix}{unit}"
    return f"{value * 1e9:.3g} n{unit}"


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
