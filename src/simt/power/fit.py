"""Energies from measured power: non-negative least squares with the known values as priors."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simt.errors import PowerError
from simt.files import write_text
from simt.power.energies import LANES, SECTIONS, Energies, EnergyValue
from simt.power.measurements import PowerMeasurement

Floats = NDArray[np.float64]
_FIXED = 1e-6  # relative standard deviation of a value that is exact
_LEARNED = 0.01  # smallest change of a value or its uncertainty for which it counts as fitted
_LARGEST = 10.0  # relative standard deviation that a file can hold


@dataclass(frozen=True)
class EnergyFit:
    """Fitted energies.

    energies: with the values that the rows determine at least in part replaced; the others are as before.
    prior: the energies before. rows: those that were fitted.
    learned: by key of a replaced value, the share of its prior variance that the rows have removed: near 1,
        it follows from the rows; near 0, from the prior.
    """

    energies: Energies
    prior: Energies
    rows: Sequence[PowerMeasurement]
    learned: Mapping[str, float]

    def errors(self, rows: Sequence[PowerMeasurement]) -> list[float]:
        """Relative error of the fitted energies' power, by row."""
        return [row.predicted(self.energies) / row.watts - 1 for row in rows]


def mean_absolute(errors: Sequence[float]) -> float:
    return sum(map(abs, errors)) / len(errors)


def fit(
    rows: Sequence[PowerMeasurement], prior: Energies, *, error: float = 0.05, widen: float = 1.0
) -> EnergyFit:
    """The most probable energies, given measured powers and what is known of the energies.

    Minimises sum over rows of ((P - measured) / s)^2 plus sum over values of ((v - prior) / u)^2, with s^2 =
    deviation^2 + (error * measured)^2 and u = widen * the prior's standard deviation. Energies, and what an
    instruction takes beyond issue and registers, are at least 0. Standard deviations are those of the linear
    Gaussian model, with values at that limit held there.

    error: relative standard deviation of the rows beyond that of the measurement: errors of the events and of
        the model's form. widen: above 1, trusts the prior less.

    A value that is 0 or has no uncertainty stays.

    Raises PowerError.
    """
    from scipy.optimize import lsq_linear  # takes 0.2 s

    if not rows:
        raise PowerError("no rows to fit the energies to")
    if not 0 <= error < math.inf or not 0 < widen < math.inf:
        raise PowerError(f"error is {error!r} and widen {widen!r}, expected positive numbers")
    if any(row.deviation == 0 and error == 0 for row in rows):
        raise PowerError("rows without a deviation need an error above 0")
    keys = list(prior.values)
    value = np.array([prior[key] for key in keys])
    scale = np.where(value > 0, value, 1.0)
    relative = np.array([prior.values[key].uncertainty for key in keys]) * widen
    deviation = scale * np.where(value > 0, np.maximum(relative, _FIXED), _FIXED)

    # x: the values in units of the prior's, an instruction's without issue and registers. parts @ x are v.
    parts = _parts(prior, keys) * scale
    spread = np.array([math.hypot(row.deviation, error * row.watts) for row in rows])
    counts = np.array([[row.events.get(key, 0.0) / row.seconds for key in keys] for row in rows])
    measured = counts / spread[:, None] @ parts
    known = parts / deviation[:, None]
    a = np.vstack([measured, known])
    b = np.concatenate([np.array([row.watts for row in rows]) / spread, value / deviation])
    found = lsq_linear(a, b, bounds=(0.0, np.inf), method="bvls" if len(keys) < 200 else "trf", tol=1e-12)
    fitted = parts @ found.x

    free = (found.x > 0) | (found.active_mask == 0)
    left = np.linalg.norm(parts[:, free] @ np.linalg.pinv(a[:, free]), axis=1)

    used = np.abs(counts).max(axis=0) > 0
    learned: dict[str, float] = {}
    values: dict[str, EnergyValue] = {}
    names = ", ".join(row.name for row in rows)
    for i, key in enumerate(keys):
        old = prior.values[key]
        share = 1 - min(1.0, (left[i] / deviation[i])) ** 2
        moved = abs(fitted[i] - value[i]) > _LEARNED * scale[i]
        if (not used[i] and not moved) or (share < _LEARNED and not moved):
            values[key] = old
            continue
        learned[key] = float(share)
        new = float(fitted[i] / value[i] * old.value) if value[i] else old.value
        uncertainty = float(left[i] / fitted[i]) if fitted[i] > 0 else _LARGEST
        source = f"fitted to {names}; prior {old.value:.4g}: {old.source}"
        values[key] = replace(
            old, value=new, uncertainty=min(uncertainty, _LARGEST), origin="fitted", source=source
        )
    return EnergyFit(replace(prior, values=values), prior, rows, learned)


def _parts(prior: Energies, keys: Sequence[str]) -> Floats:
    """The matrix that makes values from x: an instruction's is its unit's plus issue and registers."""
    at = {key: i for i, key in enumerate(keys)}
    parts = np.eye(len(keys))
    for key in keys:
        if key.startswith("instructions."):
            each = prior.values[key]
            around = {"front_end.issue": 1 / LANES, "registers.read": each.reads}
            for part, n in {**around, "registers.write": each.writes}.items():
                # The scale of column `part` is applied by the caller.
                parts[at[key], at[part]] += n
    return parts


def to_toml(energies: Energies) -> str:
    """The energies as a file (`simt.power.energies`)."""
    lines = []
    tables = {
        "reference": energies.reference,
        **{
            section: {key: energies.values[f"{section}.{key}"] for key in keys}
            for section, keys in SECTIONS.items()
        },
        "scaling": energies.scaling,
    }
    for section, table in tables.items():
        lines.append(f"\n[{section}]")
        for key, each in table.items():
            registers = f", reads = {each.reads}, writes = {each.writes}" if section == "instructions" else ""
            lines.append(
                f"{key} = {{ value = {each.value:.6g}, uncertainty = {each.uncertainty:.4g}, "
                f"origin = {_text(each.origin)}, source = {_text(each.source)}{registers} }}"
            )
        if section == "scaling" and energies.voltages:
            points = ", ".join(f"[{mhz:g}, {volts:g}]" for mhz, volts in energies.voltages)
            lines.append(f"voltages = {{ value = [{points}] }}")
    if energies.opcodes:
        lines += ["\n[opcodes]", *(f"{opcode} = {_text(key)}" for opcode, key in energies.opcodes.items())]
    return "\n".join(lines).lstrip() + "\n"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML's escapes are JSON's


def write_toml(energies: Energies, path: str | os.PathLike[str]) -> None:
    """Writes the file. Raises PowerError."""
    write_text(Path(path), to_toml(energies), PowerError)
