"""TBPoint: hierarchical clustering of launches (Huang et al., IPDPS'14; PKA's variant, MICRO'21)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from simt.errors import PlanError
from simt.names import listed
from simt.parameter_checks import one_of, real, refuse
from simt.profile import Profile
from simt.sampling.columns import (
    LANES,
    THREAD_INSTRUCTIONS,
    WARP_INSTRUCTIONS,
    Floats,
    available,
    complete,
    instructions,
    read,
    times,
)
from simt.sampling.features import (
    PAPER,
    Features,
    Groups,
    Ints,
    Standard,
    check_features,
    identical,
    select,
    stratum_names,
)
from simt.sampling.sampler import Choice, Sampler
from simt.sampling.ward import Ward

MOST_UNIQUE = 30_000  # distinct feature vectors, all pairs of which are compared
_THRESHOLDS = [round(0.01 * step, 2) for step in range(1, 21)]
_REQUESTS = tuple(f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st"))
_SECTORS = tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st"))
VARIATION = "cta_instructions_cov"  # CoV of the CTAs' instructions, if known from a functional simulation


class TBPoint(Sampler):
    """Hierarchical clustering of launches; the launch nearest to its centre represents a cluster.

    This is TBPoint's inter-launch sampling; for sampling within a launch, see `simt.control.TBPointRegions`.
    The estimated total is the sum over clusters of instructions / IPC of the representative, so the weight of
    a representative is its cluster's instructions / its own. The linkage is Ward's. Of several distance
    thresholds, the largest (fewest clusters) whose error of the total is below `error` is used, otherwise the
    one with the smallest error. This is PKA's rule (section 5.1), which replaces tuning by hand.

    thresholds: distances up to which clusters are merged, in the scaled units of `fidelity`; None: the 20
        from 0.01 to 0.20 that PKA sweeps.
    features: columns of the profile; None: those of `fidelity`.
    error: error of the profiled total below which a threshold is acceptable.
    weight: `instructions`; or `launches`, the number of launches in the cluster, for profiles without
        instruction counts.
    quantise: step, in scaled units, to which features are rounded first, so that launches with almost equal
        counters are treated as equal. 0: no rounding.
    fidelity: `pka`: PKA's 12 features, standardised; `tbpoint`: those of the original, each divided by its
        mean: thread instructions, warp instructions, memory requests, and the CoV of CTA sizes if there is a
        column `cta_instructions_cov`.

    Learned: `n_clusters_`; `labels_`, cluster of each launch, numbered in order of first launches;
    `threshold_`; `errors_`, of the thresholds tried, in descending order.
    """

    method: ClassVar[str] = "tbpoint"
    n_clusters_: int
    labels_: Ints
    threshold_: float
    errors_: list[float]

    def __init__(
        self,
        thresholds: list[float] | None = None,
        features: list[str] | None = None,
        error: float = 0.05,
        weight: Literal["instructions", "launches"] = "instructions",
        quantise: float = 0.0,
        fidelity: Literal["pka", "tbpoint"] = "pka",
    ) -> None:
        self.thresholds = thresholds
        self.features = features
        self.error = error
        self.weight = weight
        self.quantise = quantise
        self.fidelity = fidelity

    def validate(self) -> None:
        _rising(_THRESHOLDS if self.thresholds is None else self.thresholds)
        if self.features is not None:
            check_features(self.features, known=())
        real("error", self.error, 0)
        one_of("weight", self.weight, ("instructions", "launches"))
        real("quantise", self.quantise, 0)
        one_of("fidelity", self.fidelity, ("pka", "tbpoint"))

    def choose(self, profile: Profile) -> Choice:
        thresholds = _rising(_THRESHOLDS if self.thresholds is None else self.thresholds)
        chosen = _features(profile, self.features, self.fidelity)
        time_column, time = times(profile, "TBPoint")
        if self.weight == "instructions":
            source, amounts = instructions(profile, "warp", "TBPoint")
        else:
            source, amounts = "launches", np.ones(len(profile))

        groups, points = _points(profile, chosen, self.fidelity, float(self.quantise))
        tree = Ward(points, groups.size.astype(np.float64), thresholds[-1])
        total, errors = float(time.sum()), []
        best: tuple[float, float, Ints, Ints, Floats] | None = None
        for threshold in reversed(thresholds):
            labels = _in_order(tree.labels(threshold))
            rows = groups.first[_nearest(labels, points, groups.size)]
            weights = _weights(labels[groups.code], rows, amounts)
            errors.append(abs(float(weights @ time[rows]) - total) / total if total else 0.0)
            if best is None or errors[-1] < best[0]:
                best = errors[-1], threshold, labels, rows, weights
            if errors[-1] < self.error:
                break
        assert best is not None
        _, self.threshold_, labels, rows, weights = best
        self.labels_, self.n_clusters_, self.errors_ = labels[groups.code], len(rows), errors
        order = np.argsort(rows)
        ids = profile.launches["launch"].to_numpy()[rows]
        return Choice(
            strata=self.labels_,
            rows=rows[order],
            draws=np.ones(len(rows), np.int64),
            weights=weights[order],
            names=stratum_names(profile, self.labels_, len(rows)),
            why=[
                f"closer than {self.threshold_:g}; launch {i} is nearest to the centre" for i in ids.tolist()
            ],
            fitted={
                "clusters": len(rows),
                "threshold": self.threshold_,
                "thresholds": thresholds[::-1][: len(errors)],
                "errors": errors,
                "features": chosen.names,
                "unique_vectors": len(groups),
                "time": time_column,
                "instruction_counter": source,
            },
            warnings=chosen.warnings,
        )


def _rising(thresholds: Any) -> list[float]:
    """Distinct thresholds in ascending order."""
    if not isinstance(thresholds, (list, tuple)) or not thresholds:
        raise refuse("thresholds", thresholds, "a list of distances")
    return sorted({real("thresholds", value, 0, open_low=True) for value in thresholds})


def _features(profile: Profile, features: list[str] | None, fidelity: str) -> Features:
    if features is not None:
        return select(profile, features, "TBPoint")
    if fidelity == "pka":
        return select(profile, PAPER, "TBPoint")
    requests = next((names for names in (_REQUESTS, _SECTORS) if all(profile.has(x) for x in names)), ())
    if not requests or available(profile, WARP_INSTRUCTIONS) is None:
        raise PlanError(
            f"{profile.source}: TBPoint's own features are thread instructions, warp instructions and memory "
            f"requests: {THREAD_INSTRUCTIONS[0]} (or {LANES[0]}), {WARP_INSTRUCTIONS[0]}, "
            f"{', '.join(_REQUESTS)}; the profile's counters are {listed(profile.counters)}"
        )
    found = {
        "thread instructions": instructions(profile, "thread", "TBPoint")[1],
        "warp instructions": instructions(profile, "warp", "TBPoint")[1],
        "memory requests": sum(
            (complete(profile, name, read(profile, name), "TBPoint") for name in requests),
            start=np.zeros(len(profile)),
        ),
    }
    dropped = [] if profile.has(VARIATION) else [f"CoV of CTA sizes ({VARIATION}: not in the profile)"]
    if profile.has(VARIATION):
        found[VARIATION] = complete(profile, VARIATION, profile.column(VARIATION), "TBPoint")
    constant = [name for name, values in found.items() if values.min() == values.max()]
    dropped += [f"{name} (the same for all launches)" for name in constant]
    kept = [name for name in found if name not in constant]
    return Features(kept, [found[name] for name in kept], dropped)


def _points(profile: Profile, chosen: Features, fidelity: str, step: float) -> tuple[Groups, Floats]:
    """Launches with the same features, and the scaled features of each group."""
    n = len(profile)
    if not chosen.columns:
        return Groups(np.zeros(n, np.int64), np.zeros(1, np.int64), np.array([n])), np.zeros((1, 1))
    if fidelity == "pka":
        standard = Standard.of(chosen.columns, "zscore")
    else:
        means = np.array([column.mean() for column in chosen.columns])
        standard = Standard("zscore", np.zeros(len(means)), means)
    columns = chosen.columns
    if step:
        scaled = zip(columns, standard.mean, standard.deviation, strict=True)
        columns = [np.round((values - mean) / (deviation * step)) for values, mean, deviation in scaled]
    groups = identical(columns, MOST_UNIQUE)
    if groups is None:
        raise PlanError(
            f"{profile.source}: more than {MOST_UNIQUE} different feature vectors, the most whose pairs "
            f"TBPoint compares. Round them with quantise (0.01 to 0.05), name fewer features, or choose "
            f"another method"
        )
    if step:
        return groups, np.stack([column[groups.first] * step for column in columns], axis=1)
    return groups, standard.apply(columns, groups.first)


def _in_order(labels: Ints) -> Ints:
    """Clusters renumbered in the order of their first points."""
    _, first, code = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[code]


def _nearest(labels: Ints, points: Floats, sizes: Ints) -> Ints:
    """The point nearest to each cluster's centre; the first one in a tie."""
    mass = np.bincount(labels, weights=sizes)
    columns = range(points.shape[1])
    centres = np.stack([np.bincount(labels, weights=points[:, c] * sizes) / mass for c in columns], axis=1)
    squares = ((points - centres[labels]) ** 2).sum(axis=1)
    order = np.lexsort((np.arange(len(labels)), squares, labels))
    return order[np.unique(labels[order], return_index=True)[1]]


def _weights(labels: Ints, rows: Ints, amounts: Floats) -> Floats:
    """Amount of each cluster / that of its representative; the number of launches if that is zero."""
    totals = np.bincount(labels, weights=amounts)
    launches = np.bincount(labels).astype(np.float64)
    result: Floats = np.divide(totals, amounts[rows], out=launches, where=amounts[rows] > 0)
    return result
