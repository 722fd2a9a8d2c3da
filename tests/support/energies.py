"""Energies with round numbers, for energies computed by hand."""

from __future__ import annotations

from simt.power import Energies, EnergyValue
from simt.power.energies import SECTIONS


def energies(uncertainty: float = 0.0, **values: float) -> Energies:
    """Energies of 0 except `values`: section__key = pJ (W for powers). Sources are the keys."""
    given = {name.replace("__", "."): value for name, value in values.items()}
    known = {f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys}
    assert given.keys() <= known
    found = {key: EnergyValue(given.get(key, 0.0), uncertainty, "published", key) for key in known}
    reference = {
        "core_mhz": 1000.0,
        "voltage": 1.0,
        "temperature": 50.0,
        "node_nm": 7,
        "tdp_w": 100,
        "idle_w": 9,
    }
    scaling = {"leakage_share": 0.5, "leakage_doubling": 20.0}
    return Energies(
        "hand",
        found,
        {key: EnergyValue(x, 0.0, "published", key) for key, x in reference.items()},
        ((500.0, 0.8), (1000.0, 1.0), (1500.0, 1.3)),
        {key: EnergyValue(x, 0.0, "published", key) for key, x in scaling.items()},
    )
