"""How often intervals of `simt model` hold: for each row of a file the errors of the other rows give one.

python docs/records/scripts/models_intervals.py           rows that intervals come from, each left out
python docs/records/scripts/models_intervals.py FILE      other rows, by the intervals as they are
"""

import csv
import sys
from pathlib import Path

from simt.network.errors_of_parts import FILE, LOOPS, half_width, width_of


def rows(path: Path) -> list[tuple[str, str, float]]:
    """Kind, launch and relative error, of the estimate."""
    with path.open(newline="") as file:
        return [
            (row["kind"], f"{row['launch']} {row['gpu']}", float(row["estimate"]) / float(row["whole"]) - 1)
            for row in csv.DictReader(file)
        ]


def main() -> None:
    found = rows(Path(sys.argv[1]) if sys.argv[1:] else FILE)
    held = 0
    for number, (kind, launch, error) in enumerate(found):
        if sys.argv[1:]:
            width = half_width(kind, False)
        else:
            width = width_of(
                [
                    abs(e)
                    for n, (k, _, e) in enumerate(found)
                    if n != number and (k in LOOPS) == (kind in LOOPS)
                ]
            )
        whole = 1 / (1 + error)
        holds = 1 / (1 + width) <= whole <= 1 / (1 - width)
        held += holds
        print(f"{kind},{launch}: {error:+.1%} in ±{width:.1%}: {'holds' if holds else 'DOES NOT HOLD'}")
    mean = sum(abs(error) for *_, error in found) / len(found)
    print(f"{held} of {len(found)} hold; {mean:.1%} off in the mean")


if __name__ == "__main__":
    main()
