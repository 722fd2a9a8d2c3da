"""How often intervals of `simt model` hold: for each row of a file the errors of the other rows give one.

python docs/records/scripts/models_intervals.py           rows that intervals come from, each left out
python docs/records/scripts/models_intervals.py FILE      other rows, by the intervals as they are
"""

import csv
import sys
from pathlib import Path

from simt.network.errors_of_parts import FILE, class_of, half_width, width_of
from simt.network.scaled import Way

Row = tuple[Way, str, str, float, float]


def rows(path: Path) -> list[Row]:
    """How it was estimated, kind, launch, relative error of the estimate, and what a scale model states."""
    with path.open(newline="") as file:
        return [
            (
                "scale model" if row["way"] == "scale model" else "parts",
                row["kind"],
                f"{row['launch']} {row['gpu']}",
                float(row["estimate"]) / float(row["whole"]) - 1,
                float(row.get("stated") or 0),
            )
            for row in csv.DictReader(file)
        ]


def main() -> None:
    found = rows(Path(sys.argv[1]) if sys.argv[1:] else FILE)
    held = 0
    for number, (way, kind, launch, error, stated) in enumerate(found):
        if sys.argv[1:]:
            width = half_width(kind, way, stated)
        else:
            others = [
                abs(e)
                for n, (w, k, _, e, _) in enumerate(found)
                if n != number and class_of(w, k) == class_of(way, kind)
            ]
            width = max(stated, width_of(others))
        whole = 1 / (1 + error)
        holds = 1 / (1 + width) <= whole <= 1 / (1 - width)
        held += holds
        print(f"{way},{kind},{launch}: {error:+.1%} in ±{width:.1%}: {'holds' if holds else 'DOES NOT HOLD'}")
    mean = sum(abs(error) for *_, error, _ in found) / len(found)
    print(f"{held} of {len(found)} hold; {mean:.1%} off in the mean")


if __name__ == "__main__":
    main()
