"""Copies and memsets of a run: work in stream order that occupied a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from msgspec import Meta

from simt.written import Count, WrittenAs, columns_of


@dataclass(frozen=True)
class Transfer:
    """A copy, or a memset."""

    link: Annotated[
        str,
        WrittenAs(Literal["host_to_device", "device_to_host", "device", "peer_to_device", "device_to_peer"]),
    ]
    stream: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None  # None: in no stream
    nbytes: Count  # over the link; bytes copied within the device count twice: they are read and written
    start_cycle: Count
    end_cycle: Count

    @property
    def cycles(self) -> int:
        return self.end_cycle - self.start_cycle


TransferColumns = columns_of(Transfer)
"""Transfers as they are written."""
COLUMNS = tuple(field.name for field in fields(Transfer))


def to_columns(transfers: Sequence[Transfer]) -> dict[str, list[Any]]:
    return {name: [getattr(transfer, name) for transfer in transfers] for name in COLUMNS}


def from_columns(columns: Mapping[str, Sequence[Any]]) -> tuple[Transfer, ...]:
    return tuple(Transfer(*row) for row in zip(*(columns[name] for name in COLUMNS), strict=True))
