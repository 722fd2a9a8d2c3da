"""One entry for profiles of every format; which one a file has is seen from its content."""

from __future__ import annotations

import os
from collections.abc import Mapping

from simt.errors import ProfileError
from simt.profile.nsys_sqlite import read_nsys_sqlite
from simt.profile.profile import Profile
from simt.profile.source import Report, Source
from simt.profile.table import read_csv, read_parquet


def read_profile(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    process: int | None = None,
    progress: Report | None = None,
) -> Profile:
    """Reads a profile; docs/profiles.md lists the formats and what becomes of each.

    columns: for a CSV or Parquet table of no known tool, our column (or a counter's name) to the table's
        column, which a unit may follow: `{"name": "kernel", "duration_ns": "time:us"}`.
    process: id of the one process whose launches are wanted, where the file holds several.
    progress: called now and then with the fraction read so far.

    Raises ProfileError naming the file, the place, what was found and what was expected.
    """
    source = Source(path, progress)
    head = source.head
    if head.startswith(b"PAR1"):
        return read_parquet(source, columns, process)
    if columns is not None:
        return read_csv(source, columns, process)
    if head.startswith(b"SQLite format 3\0"):
        return read_nsys_sqlite(source, process)
    if b"\0" in head:
        raise ProfileError(
            f"{source.name}: not a profile of a known tool; docs/profiles.md lists the formats"
        )
    return read_csv(source, columns, process)
