"""Copies and memsets of a run: work in stream order that occupied a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Transfer:
    """A copy, or a memset."""

    link: str  # "host_to_device", "device_to_host" or "device"
    stream: int | None  # None: in no stream
    nbytes: int  # over the link; bytes copied within the device count twice, since they are read and written
    start_cycle: int
    end_cycle: int

    @property
    def cycles(self) -> int:
        return self.end_cycle - self.start_cycle


COLUMNS = tuple(field.name for field in fields(Transfer))


def to_columns(transfers: Sequence[Transfer]) -> dict[str, list[Any]]:
    return {name: [getattr(transfer, name) for transfer in transfers] for name in COLUMNS}


def from_columns(columns: Mapping[str, Sequence[Any]]) -> tuple[Transfer, ...]:
    return tuple(Transfer(*row) for row in zip(*(columns[name] for name in COLUMNS), strict=True))
