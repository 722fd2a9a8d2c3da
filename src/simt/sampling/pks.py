"""PKS: principal kernel selection (Avalos Baddouh et al., "Principal Kernel Analysis", MICRO'21)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from simt.parameter_checks import integer, one_of, real
from simt.profile import Profile
from simt.sampling.cells import Cells
from simt.sampling.columns import Floats, available, times
from simt.sampling.draws import choose, keys
from simt.sampling.features import (
    ARTIFACT,
    CHUNK,
    PAPER,
    SCALES,
    Features,
    Groups,
    Ints,
    Scale,
    Standard,
    check_features,
    identical,
    principal_components,
    select,
    stratum_names,
)
from simt.sampling.sampler import Choice, Sampler

Representative = Literal["first", "centre", "random"]
Fidelity = Literal["paper", "artifact"]

_MOST_UNIQUE = 20_000  # distinct feature vectors up to which k-means uses every one of them
_CELLS = 4096
_SAMPLE = 1 << 15  # launches that determine the cuts between cells
_FEATURES: dict[str, dict[str, tuple[str, ...]]] = {"paper": PAPER, "artifact": ARTIFACT}
_INITIAL = 10  # k-means++ starts, the best of which is used


@dataclass(frozen=True)
class Principal:
    """The result of PKS.

    labels: cluster of each launch, clusters in the order of their first launches. rows: their
        representatives. errors: of the total, for K = 1, 2, ... as far as tried. unique: number of distinct
        feature vectors, None if there are too many to cluster each.
    """

    labels: Ints
    rows: Ints
    errors: list[float]
    features: Features
    components: int
    unique: int | None
    time: str

    def fitted(self) -> dict[str, object]:
        """The facts for a Plan's `fitted`."""
        return {
            "clusters": len(self.rows),
            "errors": self.errors,
            "features": self.features.names,
            "components": self.components,
            "unique_vectors": self.unique,
            "time": self.time,
        }

    def reasons(self, profile: Profile) -> list[str]:
        """The reasons for a Plan's strata."""
        ids = profile.launches["launch"].to_numpy()[self.rows]
        return [f"similar counters; launch {launch} stands for all" for launch in ids.tolist()]


class PKS(Sampler):
    """Groups launches with similar counters by k-means; the first launch of each group represents all of it.

    PKA, section 3.1: features are standardised and reduced to principal components; for K = 1, 2, ... the
    launches are clustered, and the total is estimated as the sum over clusters of size times the time of the
    representative. The smallest K whose error is below `error` is used, otherwise the K with the smallest
    error.

    features: `paper` (the 12 of its Table 2), `artifact` (the 11 that its public code clusters by), or a list
        of columns of the profile; None: according to `fidelity`. Missing and constant features are left out,
        with a warning.
    scale: `zscore`, or `log1p+zscore`, for counters that span many decades.
    max_clusters: the largest K.
    error: of the profiled total, below which a K is good enough.
    variance: share of the variance that the principal components explain; the paper gives none, 0.9995 is the
        artifact's.
    representative: of a cluster: its `first` launch, the one nearest to its `centre`, or a `random` one.
    seed: of k-means and of random representatives. The artifact uses 4.
    fidelity: `artifact` tries K up to max_clusters - 1, as its public code does.

    Learned: `n_clusters_`; `labels_`, cluster of each launch, clusters in the order of their first launches;
    `errors_`, relative error of the total for each K tried; `features_`, names.

    The error at the chosen K is no bound: the true total was used to choose it (docs/sampling/pks.md).
    """

    method: ClassVar[str] = "pks"
    n_clusters_: int
    labels_: Ints
    errors_: list[float]
    features_: list[str]

    def __init__(
        self,
        features: str | list[str] | None = None,
        scale: Scale = "zscore",
        max_clusters: int = 20,
        error: float = 0.05,
        variance: float = 0.9995,
        representative: Representative = "first",
        seed: int = 0,
        fidelity: Fidelity = "paper",
    ) -> None:
        self.features = features
        self.scale = scale
        self.max_clusters = max_clusters
        self.error = error
        self.variance = variance
        self.representative = representative
        self.seed = seed
        self.fidelity = fidelity

    def validate(self) -> None:
        one_of("fidelity", self.fidelity, ("paper", "artifact"))
        check_features(self._wanted)
        one_of("scale", self.scale, SCALES)
        integer("max_clusters", self.max_clusters, 1)
        one_of("representative", self.representative, ("first", "centre", "random"))
        real("error", self.error, 0)
        real("variance", self.variance, 0, 1, open_low=True)
        integer("seed", self.seed)

    @property
    def _wanted(self) -> str | list[str]:
        return self.fidelity if self.features is None else self.features

    def feature_columns(self, profile: Profile) -> list[str]:
        """Columns of the profile that it clusters by, if they exist."""
        if not isinstance(self._wanted, str):
            return [name for name in self._wanted if profile.has(name)]
        known = _FEATURES[self._wanted].values()
        return [name for aliases in known if (name := available(profile, aliases))]

    def choose(self, profile: Profile) -> Choice:
        principal = self.principal(profile)
        self.labels_, self.n_clusters_ = principal.labels, len(principal.rows)
        self.errors_, self.features_ = principal.errors, principal.features.names
        sizes = np.bincount(principal.labels)
        order = np.argsort(principal.rows)
        return Choice(
            strata=principal.labels,
            rows=principal.rows[order],
            draws=np.ones(len(order), np.int64),
            weights=sizes[order].astype(np.float64),
            names=stratum_names(profile, principal.labels, len(sizes)),
            why=principal.reasons(profile),
            fitted=principal.fitted(),
            warnings=principal.features.warnings,
        )

    def principal(self, profile: Profile) -> Principal:
        """Clusters and their representatives."""
        seed, centre = self.seed, self.representative == "centre"
        most = max(self.max_clusters - 1, 1) if self.fidelity == "artifact" else self.max_clusters
        time_column, time = times(profile, "PKS")
        wanted = self._wanted
        chosen = select(profile, _FEATURES[wanted] if isinstance(wanted, str) else wanted, "PKS")
        ids = profile.launches["launch"].to_numpy()
        by_rank: Ints = np.arange(len(profile))
        if self.representative == "random":
            by_rank = np.argsort(keys(seed, ids, salt=1))
        units = _units(chosen, self.scale, self.variance, seed, ids, by_rank)
        total, errors = float(time.sum()), []
        best: tuple[float, Ints, Ints] | None = None
        for k in range(1, min(most, units.most) + 1):
            labels, sizes, distances = units.cluster(k, centre)
            rows = by_rank[_representatives(labels, len(sizes), units.rank, distances)]
            missed = abs(float(sizes @ time[rows]) - total)
            errors.append(missed / total if total else 0.0)
            if best is None or errors[-1] < best[0]:
                best = errors[-1], labels, rows
            if errors[-1] < self.error:
                break
        assert best is not None
        _, labels, rows = best
        labels, rows = _chronological(units.launches(labels), rows)
        return Principal(labels, rows, errors, chosen, units.components, units.unique, time_column)


def _representatives(labels: Ints, k: int, rank: Ints, distances: Floats | None) -> Ints:
    """The lowest rank in each cluster, among those at the smallest distance if distances are given."""
    if distances is not None:
        least = np.full(k, np.inf)
        np.minimum.at(least, labels, distances)
        nearest = distances == least[labels]
        labels, rank = labels[nearest], rank[nearest]
    best = np.full(k, np.iinfo(np.int64).max)
    np.minimum.at(best, labels, rank)
    return best


def _chronological(labels: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Clusters renumbered in the order of their first launches."""
    first = _representatives(labels, len(rows), np.arange(len(labels)), None)
    order = np.argsort(first)
    number = np.empty(len(rows), np.int64)
    number[order] = np.arange(len(rows))
    return number[labels], rows[order]


class _Units(Protocol):
    """The units of clustering: groups of launches with the same features, or launches."""

    rank: Ints  # the lowest rank of its launches
    most: int  # largest possible number of clusters
    components: int
    unique: int | None

    def cluster(self, k: int, centre: bool) -> tuple[Ints, Floats, Floats | None]:
        """Cluster of each unit, every cluster used; launches in each cluster; with `centre` also squared
        distances of the units to their clusters' centres.
        """

    def launches(self, labels: Ints) -> Ints:
        """Cluster of each launch, given those of the units."""


def _units(
    chosen: Features, scale: Scale, variance: float, seed: int, ids: npt.NDArray[Any], by_rank: Ints
) -> _Units:
    n = len(ids)
    if not chosen.columns:  # all launches have the same features
        one = Groups(np.zeros(n, np.int64), np.zeros(1, np.int64), np.array([n]))
        return _Unique(one, np.zeros((1, 0)), by_rank, seed)
    groups = identical(chosen.columns, _MOST_UNIQUE)
    standard = Standard.of(chosen.columns, scale)
    axes = principal_components(standard, chosen.columns, variance)
    if groups is not None:
        return _Unique(groups, standard.apply(chosen.columns, groups.first) @ axes, by_rank, seed)
    points = np.empty((n, axes.shape[1]), np.float32)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        points[part] = standard.apply(chosen.columns, part) @ axes
    return _Many(Cells(points, choose(seed, ids, _SAMPLE, salt=2), _CELLS), by_rank, seed)


def _ranks(by_rank: Ints) -> Ints:
    rank = np.empty(len(by_rank), np.int64)
    rank[by_rank] = np.arange(len(by_rank))
    return rank


def _kmeans(points: Floats, weights: Floats, k: int, seed: int) -> tuple[Ints, Floats]:
    """Labels and centres of weighted k-means."""
    if k == 1:
        return np.zeros(len(points), np.int64), np.average(points, axis=0, weights=weights)[None]
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        # Fewer distinct points than clusters, once components with little variance are dropped.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(k, n_init=_INITIAL, random_state=seed % 2**32).fit(points, sample_weight=weights)
    return found.labels_.astype(np.int64), found.cluster_centers_


class _Unique:
    """Groups of identical launches, weighted by their sizes: the objective is that of all launches."""

    def __init__(self, groups: Groups, points: Floats, by_rank: Ints, seed: int) -> None:
        self._groups, self._points, self._seed = groups, points, seed
        self._size = groups.size.astype(np.float64)
        self.rank = np.full(len(groups), len(by_rank))
        np.minimum.at(self.rank, groups.code, _ranks(by_rank))
        self.most, self.components = len(groups), points.shape[1]
        self.unique: int | None = len(groups)

    def cluster(self, k: int, centre: bool) -> tuple[Ints, Floats, Floats | None]:
        found, centres = _kmeans(self._points, self._size, k, self._seed)
        distances = ((self._points - centres[found]) ** 2).sum(axis=1) if centre else None
        labels: Ints = np.unique(found, return_inverse=True)[1]
        sizes = np.bincount(labels, weights=self._size).astype(np.float64)
        return labels, sizes, distances

    def launches(self, labels: Ints) -> Ints:
        return labels[self._groups.code]


class _Many:
    """Single launches, if too many of them differ."""

    def __init__(self, cells: Cells, by_rank: Ints, seed: int) -> None:
        self._cells, self._seed = cells, seed
        self.rank = _ranks(by_rank)[cells.order]
        self.most, self.components = len(cells.counts), cells.points.shape[1]
        self.unique: int | None = None

    def cluster(self, k: int, centre: bool) -> tuple[Ints, Floats, Floats | None]:
        cells = self._cells
        _, centres = _kmeans(cells.means, cells.counts.astype(np.float64), k, self._seed)
        found, sizes, centres = cells.lloyd(centres)
        distances = cells.distances(found, centres) if centre else None
        used = sizes > 0
        labels = found.astype(np.int64) if used.all() else (np.cumsum(used) - 1)[found]
        return labels, sizes[used].astype(np.float64), distances

    def launches(self, labels: Ints) -> Ints:
        result = np.empty_like(labels)
        result[self._cells.order] = labels
        return result
