"""Descriptors of a program's textures and surfaces, for the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simt import _engine

_MODES = ("wrap", "clamp", "mirror", "border")
"""In the order of `CUaddress_mode`."""


def describe(
    surface: bool,
    geometry: str,
    channel: str,
    channels: int,
    channel_bytes: int,
    linear_memory: bool,
    normalized_float: bool,
    srgb: bool,
    mipmapped: bool,
    levels: Sequence[Sequence[int]],
    normalized: bool,
    linear: bool,
    between_levels: bool,
    modes: Sequence[int],
    border: Sequence[float],
    level_bias: float,
    least_level: float,
    most_level: float,
) -> bytes:
    """The descriptor that a handle points to.

    levels: for each, its address, bytes between rows, bytes between layers, width, height and layers.
    linear, between_levels: whether to filter within a level, and between two levels.
    modes: `CUaddress_mode` of each dimension.

    Raises ValueError for what the engine does not support.
    """
    fields: dict[str, Any] = {
        "geometry": geometry,
        "channel": channel,
        "channels": channels,
        "channel_bytes": channel_bytes,
        "linear_memory": linear_memory,
        "normalized_float": normalized_float,
        "srgb": srgb,
        "mipmapped": mipmapped,
        "levels": [tuple(level) for level in levels],
    }
    if not surface:
        fields |= {
            "normalized": normalized or geometry in ("cube", "acube"),
            "filter": "linear" if linear else "point",
            "level_filter": "linear" if between_levels else "point",
            "address": [_MODES[mode] for mode in modes],
            "border": list(border),
            "level_bias": level_bias,
            "least_level": least_level,
            "most_level": most_level,
        }
    descriptor: bytes = _engine.functional.encode_texture("surface" if surface else "texture", fields)
    return descriptor
