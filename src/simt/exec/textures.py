"""Descriptors of a program's textures and surfaces, for the engine."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from simt import _engine

from .requests import Number

_MODES = ("wrap", "clamp", "mirror", "border")
"""In the order of `CUaddress_mode`."""


class Described(msgspec.Struct, array_like=True):
    """A texture or surface, as the program's library describes it.

    levels: for each, its address, bytes between rows, bytes between layers, width, height and layers.
    linear, between_levels: whether to filter within a level, and between two levels.
    modes: `CUaddress_mode` of each dimension.
    """

    surface: bool
    geometry: str
    channel: str
    channels: int
    channel_bytes: int
    linear_memory: bool
    normalized_float: bool
    srgb: bool
    mipmapped: bool
    levels: list[tuple[Number, Number, Number, Number, Number, Number]]
    normalized: bool
    linear: bool
    between_levels: bool
    modes: list[Annotated[int, msgspec.Meta(ge=0, lt=len(_MODES))]]
    border: list[float]
    level_bias: float
    least_level: float
    most_level: float

    def encoded(self) -> bytes:
        """The descriptor that a handle points to. Raises ValueError for what the engine does not support."""
        fields: dict[str, Any] = {
            "geometry": self.geometry,
            "channel": self.channel,
            "channels": self.channels,
            "channel_bytes": self.channel_bytes,
            "linear_memory": self.linear_memory,
            "normalized_float": self.normalized_float,
            "srgb": self.srgb,
            "mipmapped": self.mipmapped,
            "levels": self.levels,
        }
        if not self.surface:
            fields |= {
                "normalized": self.normalized or self.geometry in ("cube", "acube"),
                "filter": "linear" if self.linear else "point",
                "level_filter": "linear" if self.between_levels else "point",
                "address": [_MODES[mode] for mode in self.modes],
                "border": self.border,
                "level_bias": self.level_bias,
                "least_level": self.least_level,
                "most_level": self.most_level,
            }
        descriptor: bytes = _engine.functional.encode_texture(
            "surface" if self.surface else "texture", fields
        )
        return descriptor
