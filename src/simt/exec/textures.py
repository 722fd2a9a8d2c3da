"""Descriptors of a program's textures and surfaces, for the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simt import _engine

from .requests import ImageRecord, SamplingRecord

if TYPE_CHECKING:
    from simt.engine_types import TextureFields

_MODES = ("wrap", "clamp", "mirror", "border")
"""In the order of `CUaddress_mode`."""


def descriptor_of(image: ImageRecord, sampling: SamplingRecord | None) -> bytes:
    """What a handle points to; of a surface without sampling. Raises ValueError for what the engine does not
    support.
    """
    fields: TextureFields = {
        "geometry": image.geometry,
        "channel": image.channel,
        "channels": image.channels,
        "channel_bytes": image.channel_bytes,
        "linear_memory": image.linear_memory,
        "normalized_float": image.normalized_float,
        "srgb": image.srgb,
        "mipmapped": image.mipmapped,
        "levels": image.levels,
    }
    if sampling is None:
        return _engine.functional.encode_texture("surface", fields)
    for mode in sampling.modes:
        if mode >= len(_MODES):
            raise ValueError(f"address mode {mode}, expected less than {len(_MODES)}")
    fields |= {
        "normalized": sampling.normalized or image.geometry in ("cube", "acube"),
        "filter": "linear" if sampling.linear else "point",
        "level_filter": "linear" if sampling.between_levels else "point",
        "address": [_MODES[mode] for mode in sampling.modes],
        "border": list(sampling.border),
        "level_bias": sampling.level_bias,
        "least_level": sampling.least_level,
        "most_level": sampling.most_level,
    }
    return _engine.functional.encode_texture("texture", fields)
