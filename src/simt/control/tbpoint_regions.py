"""TBPoint inside a kernel: a homogeneous region is simulated until its IPC repeats, the rest skipped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from simt.control.controller import GO_ON, Controller, Decision, Interval, LaunchView, Skip
from simt.control.projection import Projection
from simt.parameter_checks import integer, one_of, real

Floats = npt.NDArray[np.float64]
_DATA_SPACES = ("Global", "Local", "Generic", "Texture")


@dataclass(frozen=True)
class Region:
    """CTAs [begin, end) of the grid that behave alike. instructions: warp instructions per CTA, if known."""

    begin: int
    end: int
    instructions: float | None


@dataclass(frozen=True)
class _Skipped:
    """CTAs that were skipped, and the stretch whose rates represent them."""

    ctas: int
    instructions: float
    counters: Mapping[str, int]
    cycles: int


class TBPointRegions(Controller):
    """TBPoint's sampling inside a launch (Huang et al., "TBPoint", IPDPS'14), reconstructed from its abstract
    and PKA's published scripts.

    The grid is divided into epochs of one wave of CTAs each. Epochs are clustered by two features, memory
    instructions per instruction and instructions per CTA (Ward, up to `threshold`); adjacent epochs of one
    cluster form a homogeneous region. In each region, one wave is simulated as warm-up, followed by further
    waves until the IPC of two consecutive ones differs by less than `tolerance`. The region's other CTAs are
    skipped: they are estimated to take their instructions / IPC of the last wave, with the counters in the
    same proportion as in that wave.

    The features come from a functional preview of `ctas_per_epoch` CTAs of each epoch; without a preview, all
    CTAs are one region. `simt.sampling.TBPoint` is the other half of the method; it chooses launches.

    threshold: distance of features up to which clusters are merged.
    scale: `mean`: features are divided by their mean over the epochs (TBPoint); `zscore`: standardised, as in
        PKA's scripts, which separates epochs even if they differ little.
    tolerance: relative difference between the IPC of two waves.
    interval: core cycles between observations.
    """

    method: ClassVar[str] = "tbpoint"
    _learned: list[Region] | None = None

    def __init__(
        self,
        threshold: float = 0.2,
        scale: Literal["mean", "zscore"] = "mean",
        tolerance: float = 0.05,
        ctas_per_epoch: int = 2,
        interval: int = 500,
    ) -> None:
        self.threshold = threshold
        self.scale = scale
        self.tolerance = tolerance
        self.ctas_per_epoch = ctas_per_epoch
        self.interval = interval

    def validate(self) -> None:
        real("threshold", self.threshold, 0)
        one_of("scale", self.scale, ("mean", "zscore"))
        real("tolerance", self.tolerance, 0)
        integer("ctas_per_epoch", self.ctas_per_epoch, 1)
        integer("interval", self.interval, 1)

    def study(self, launch: LaunchView, intervals: Sequence[Interval]) -> None:
        self._learned = self.regions_of(launch, *_epochs_of_timeline(launch, intervals))

    def begin(self, launch: LaunchView) -> Decision:
        self._launch = launch
        if self._learned is None:
            self._regions = self._preview(launch)
        else:
            self._regions, self._learned = self._learned, None
        self._region = 0
        self._left_out: list[_Skipped] = []
        self._unit: Interval | None = None  # begin of the wave being measured
        self._ipc = 0.0  # of the previous wave
        self._waves, self._closest = 0, math.inf  # measured; smallest relative difference of two of a region
        return GO_ON

    @property
    def why_full(self) -> str:
        launch, wave = self._launch, self._launch.wave_size
        longest = max(region.end - region.begin for region in self._regions)
        if longest <= 3 * wave:
            return (
                f"no homogeneous region has more than three waves of {wave:,} CTAs, which are simulated "
                f"anyway: {len(self._regions)} regions of {launch.cta_count:,} CTAs, the longest {longest:,}"
            )
        if math.isinf(self._closest):
            return f"no two waves of a region were measured before it ended ({self._waves} measured in all)"
        return (
            f"the IPC of a region's waves did not repeat within {self.tolerance:.3g}: two differed by "
            f"{self._closest:.2g} at least"
        )

    def regions_of(self, launch: LaunchView, features: Floats, instructions: Floats) -> list[Region]:
        """Homogeneous regions.

        features: (epochs, 2). instructions: per CTA of each epoch; NaN where unknown.
        """
        from simt.sampling.ward import Ward

        epochs, wave = len(features), launch.wave_size
        scaled = features.copy()
        if self.scale == "zscore":
            scaled -= scaled.mean(axis=0)
        size = features.std(axis=0) if self.scale == "zscore" else np.abs(features.mean(axis=0))
        scaled /= np.where(size > 0, size, 1)
        labels = Ward(scaled, np.ones(epochs), self.threshold).labels(self.threshold)
        first = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), epochs]
        regions = []
        for a, b in pairwise(first):
            known = instructions[a:b][np.isfinite(instructions[a:b])]
            regions.append(
                Region(a * wave, min(b * wave, launch.cta_count), float(known.mean()) if len(known) else None)
            )
        return regions

    def _preview(self, launch: LaunchView) -> list[Region]:
        whole = [Region(0, launch.cta_count, None)]
        wave = launch.wave_size
        epochs = -(-launch.cta_count // wave) if wave else 0
        if launch.code is None or epochs < 2:
            return whole
        preview = launch.code.preview(0.0, at_least_ctas=epochs * self.ctas_per_epoch, at_least_warps=1)
        blocks, code = launch.code.blocks, launch.code.instructions
        memory = np.array([i["space"].name in _DATA_SPACES for i in code], np.int64)
        ends = np.concatenate([[0], np.cumsum(memory)])
        requests = ends[blocks.first + blocks.length] - ends[blocks.first]
        counts = preview.counts.reshape(len(preview.ctas), -1, len(blocks)).sum(axis=1, dtype=np.float64)
        executed, accesses = counts @ blocks.length, counts @ requests
        epoch = np.array(preview.ctas) // wave
        seen = np.bincount(epoch, minlength=epochs)
        per_cta = np.bincount(epoch, executed, epochs) / np.maximum(seen, 1)
        share = np.bincount(epoch, accesses, epochs) / np.maximum(np.bincount(epoch, executed, epochs), 1)
        if not seen.all():  # the last epoch may be too short to contain a CTA of the preview
            known = np.flatnonzero(seen)
            nearest = known[np.abs(np.arange(epochs)[:, None] - known).argmin(axis=1)]
            per_cta, share = per_cta[nearest], share[nearest]
        return self.regions_of(launch, np.stack([share, per_cta], axis=1), per_cta)

    def observe(self, interval: Interval) -> Decision:
        dispatched = interval.counters["ctas"] + sum(s.ctas for s in self._left_out)
        region = self._regions[self._region]
        if dispatched >= region.end and self._region + 1 < len(self._regions):
            while self._region + 1 < len(self._regions) and dispatched >= self._regions[self._region].end:
                self._region += 1
            self._unit, self._ipc = None, 0.0
            return GO_ON
        wave = self._launch.wave_size
        if self._unit is None:
            # Warm-up: once a wave of this region has been dispatched, only its CTAs run.
            if dispatched >= min(region.begin + 2 * wave, region.end):
                self._unit = interval
            return GO_ON
        start = self._unit
        if interval.counters["ctas_finished"] - start.counters["ctas_finished"] < wave:
            return GO_ON
        cycles = interval.end - start.end
        measured = {name: n - start.counters[name] for name, n in interval.counters.items()}
        ipc, before = measured["warp_instructions"] / cycles, self._ipc
        self._unit, self._ipc = interval, ipc
        self._waves += 1
        if before:
            self._closest = min(self._closest, abs(ipc - before) / before)
        # Some more are dispatched before the decision takes effect.
        left = region.end - dispatched - interval.difference["ctas"]
        if left <= 0 or not before or not ipc or abs(ipc - before) > self.tolerance * before:
            return GO_ON
        each = region.instructions
        if each is None:
            each = measured["finished_instructions"] / max(1, measured["ctas_finished"])
        self._left_out.append(_Skipped(left, each * left, measured, cycles))
        return Skip(
            left,
            f"{left:,} of {region.end - region.begin:,} CTAs of a homogeneous region: IPC {before:.4g}, then "
            f"{ipc:.4g}",
        )

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        """The simulated part plus, for the CTAs of each skip, the rates of the wave before it."""
        done, guessed = now.counters["warp_instructions"], sum(s.instructions for s in self._left_out)
        scale = 1.0
        if launch.warp_instructions is not None and guessed:
            scale = max(0, launch.warp_instructions - done) / guessed
        totals = {name: float(n) for name, n in now.counters.items()}
        cycles = float(now.end)
        for skipped in self._left_out:
            waves = skipped.instructions * scale / skipped.counters["warp_instructions"]
            cycles += waves * skipped.cycles
            for name, n in skipped.counters.items():
                totals[name] += waves * n
        exact = {
            "ctas": launch.cta_count,
            "ctas_finished": launch.cta_count,
            "warps": launch.cta_count * launch.warps_per_cta,
            "warp_instructions": launch.warp_instructions,
            "finished_instructions": launch.warp_instructions,
            "thread_instructions": launch.thread_instructions,
        }
        how = "simulated part + that of each region's last wave, by the skipped CTAs' instructions"
        projected = dict.fromkeys(totals, how)
        for name, value in exact.items():
            if name in totals and value is not None:
                totals[name], projected[name] = value, "exact: known of the launch"
        projected["cycles"] = (
            f"{cycles - now.end:,.0f} more cycles for {len(self._left_out)} skipped stretches"
        )
        return Projection(round(cycles), totals, projected)


def _epochs_of_timeline(launch: LaunchView, intervals: Sequence[Interval]) -> tuple[Floats, Floats]:
    """Features and instructions per CTA of the epochs of a completed run: stretches in which a wave of CTAs
    ends; the last may be shorter."""
    wave = max(1, launch.wave_size)
    features, each = [], []
    memory = executed = ctas = instructions = 0
    for i, interval in enumerate(intervals):
        d = interval.difference
        memory, executed = memory + d["l1_accesses"], executed + d["warp_instructions"]
        ctas, instructions = ctas + d["ctas_finished"], instructions + d["finished_instructions"]
        while ctas >= wave or (i + 1 == len(intervals) and ctas > 0):
            part = min(1.0, wave / ctas)
            features.append([memory / max(1, executed), instructions / ctas])
            each.append(instructions / ctas)
            if ctas <= wave:
                memory = executed = ctas = instructions = 0
                break
            memory, executed = round(memory * (1 - part)), round(executed * (1 - part))
            instructions -= round(instructions * part)
            ctas -= wave
    if not features:
        return np.zeros((1, 2)), np.full(1, np.nan)
    epochs = -(-launch.cta_count // wave)
    rows = np.minimum(np.arange(epochs), len(features) - 1)
    return np.array(features)[rows], np.array(each)[rows]
