"""Two-level profiling: detailed for some launches, light for all (PKA, MICRO'21, section 3.1)."""

from __future__ import annotations

import json
import math
import re
import zlib
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from simt.errors import PlanError
from simt.methods import clone
from simt.names import listed, short_name
from simt.parameter_checks import integer, one_of, valid_method
from simt.profile import Profile
from simt.sampling.columns import Floats, available
from simt.sampling.draws import choose, uniform
from simt.sampling.features import Groups, Ints, identical, stratum_names
from simt.sampling.pks import PKS
from simt.sampling.sampler import Choice, Sampler

Classifier = Literal["vote", "sgd", "naive_bayes", "mlp", "lookup+vote"]
_CLASSIFIERS = ("vote", "sgd", "naive_bayes", "mlp", "lookup+vote")
_MODELS = ("sgd", "naive_bayes", "mlp")
_DIMENSIONS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_TENSORS = 3  # of an operator, the largest
_BUCKETS = 1 << 12  # positions of hashed kernel names
_HELD_OUT = 0.2
_MOST_TRAINED = 20_000  # distinct examples
_NAMES_TOLD = 50
_CHUNK = 4096


class TwoLevel(Sampler):
    """PKS on launches with counters; a classifier assigns all others to its groups by name and dimensions.

    For programs too long to profile in detail. Representatives come from the detailed part; each is weighted
    with the number of launches in its group, over the whole program. The paper trains stochastic gradient
    descent (SGD), Gaussian naive Bayes and a multilayer perceptron on the detailed launches, but specifies
    neither the features of a launch nor how the three predictions are combined. Here, the features are the
    base name, hashed to one of 4096 positions (one-hot), and the logarithms of the grid and block dimensions
    and of the elements of the operator's three largest tensors (which the paper has from PyProf), where the
    profile has them, standardised. The majority decides, and SGD if all three differ.

    detailed: number of launches, from the first, that form the detailed part; None: those with counters.
    classifier: one of the models; their `vote`; or `lookup+vote`: a launch whose name, grid, block and
        tensors occur in the detailed part is assigned to the most frequent group of these, others by the
        vote.
    pks: forms the groups; PKS() by default.
    seed: seed of the models, of the trial, and of PKS (instead of its own).

    Learned: `n_clusters_`; `labels_`, cluster of each launch; `accuracy_`, for each classifier, the share of
    launches assigned correctly in a trial that holds out 20 % of the detailed part, None if a trial is
    impossible; `unseen_`, names of kernels that do not occur in the detailed part, whose launches are
    assigned by guesswork.
    """

    method: ClassVar[str] = "two-level"
    n_clusters_: int
    labels_: Ints
    accuracy_: dict[str, float | None]
    unseen_: list[str]

    def __init__(
        self,
        detailed: int | None = 1000,
        classifier: Classifier = "lookup+vote",
        pks: PKS | None = None,
        seed: int = 0,
    ) -> None:
        self.detailed = detailed
        self.classifier = classifier
        self.pks = pks
        self.seed = seed

    def validate(self) -> None:
        one_of("classifier", self.classifier, _CLASSIFIERS)
        if self.detailed is not None:
            integer("detailed", self.detailed, 1)
        if self.pks is not None:
            valid_method("pks", self.pks, PKS)
        integer("seed", self.seed)

    def choose(self, profile: Profile) -> Choice:
        seed = self.seed
        pks = (PKS() if self.pks is None else clone(self.pks)).set_params(seed=seed)
        detailed = self._detailed(profile, pks)
        part = profile if len(detailed) == len(profile) else profile.take(_mask(detailed, len(profile)))
        principal = pks.principal(part)
        light = _Light.of(profile)
        k = len(principal.rows)
        self.accuracy_ = _trial(light, detailed, principal.labels, k, seed, part)
        labels = _classify(light, detailed, principal.labels, k, seed, self.classifier)
        labels = labels[light.groups.code]
        labels[detailed] = principal.labels
        self.labels_, self.n_clusters_ = labels, k

        seen = np.bincount(profile.name_codes[detailed], minlength=len(profile.names)) > 0
        unseen = ~seen[profile.name_codes]
        self.unseen_ = [name for name, is_seen in zip(profile.names, seen, strict=True) if not is_seen]
        told, warnings = _unseen(profile, unseen, self.unseen_)
        sizes = np.bincount(labels, minlength=k)
        order = np.argsort(principal.rows)
        return Choice(
            strata=labels,
            rows=detailed[principal.rows[order]],
            draws=np.ones(k, np.int64),
            weights=sizes[order].astype(np.float64),
            names=stratum_names(profile, labels, k),
            why=principal.reasons(part),
            fitted={
                **principal.fitted(),
                "detailed_launches": len(detailed),
                "accuracy": self.accuracy_,
                "unseen": told,
            },
            warnings=(*principal.features.warnings, *warnings),
        )

    def _detailed(self, profile: Profile, pks: PKS) -> Ints:
        """Launches of the detailed part."""
        if self.detailed is not None:
            return np.arange(min(self.detailed, len(profile)))
        measured = [name for name in pks.feature_columns(profile) if profile.has(name)]
        if not measured:
            raise PlanError(
                f"{profile.source}: no launch has counters for the detailed part; the profile's counters are "
                f"{listed(profile.counters)}"
            )
        rows = np.ones(len(profile), bool)
        for name in measured:
            rows &= np.isfinite(profile.column(name))
        if not rows.any():
            raise PlanError(f"{profile.source}: no launch has all of {', '.join(measured)}")
        return np.flatnonzero(rows)


def _mask(rows: Ints, n: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(n, bool)
    mask[rows] = True
    return mask


def _unseen(
    profile: Profile, unseen: npt.NDArray[np.bool_], names: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """Launches whose kernels are not in the detailed part: for `fitted`, and a warning."""
    told: dict[str, Any] = {
        "launches": int(unseen.sum()),
        "kernels": len(names),
        "names": names[:_NAMES_TOLD],
    }
    share = ""
    if profile.has("duration_ns") and profile.total_ns:
        told["share_of_time"] = float(profile.column("duration_ns")[unseen].sum()) / profile.total_ns
        share = f", {100 * told['share_of_time']:.1f} % of the time"
    if not names:
        return told, []
    return told, [
        f"{told['launches']} launches{share}, are of {len(names)} kernels that the detailed part lacks: "
        f"their groups are guesses: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
    ]


@dataclass(frozen=True)
class _Light:
    """Contents of a light profile. Launches with the same name, grid, block and tensors are one group.

    bucket: [groups] hash of the kernel's base name. logs: [groups, dimensions] of grid, block and tensors.
    """

    groups: Groups
    bucket: Ints
    logs: Floats

    @classmethod
    def of(cls, profile: Profile) -> _Light:
        known = [name for name in _DIMENSIONS if available(profile, [name])]
        columns = [np.nan_to_num(profile.column(name)) for name in known]
        columns += _elements(profile)
        groups = identical([profile.name_codes, *columns])
        buckets = np.array([zlib.crc32(_base(name).encode()) % _BUCKETS for name in profile.names])
        logs = [np.log2(np.maximum(column[groups.first], 1)) for column in columns]
        shape = np.stack(logs, axis=1) if logs else np.zeros((len(groups), 0))
        return cls(groups, buckets[profile.name_codes[groups.first]], shape)


def _elements(profile: Profile) -> list[Floats]:
    """Elements of the three largest tensors of each launch's operator, 0 for none; no columns if the profile
    has no tensors.

    Raises PlanError for shapes that are not those of `tensors`.
    """
    if not profile.has("tensors"):
        return []
    texts = profile.launches["tensors"].cast(pl.String)
    sizes: dict[str | None, list[float]] = {None: [0.0] * _TENSORS}
    for text in texts.unique().drop_nulls():
        try:
            elements = sorted(_products(json.loads(text)), reverse=True)
        except (ValueError, TypeError):
            raise PlanError(
                f"{profile.source}: `tensors` is {text!r}, expected lists of sizes as JSON, such as "
                f"[[32,64],[64,10]]"
            ) from None
        sizes[text] = (elements + sizes[None])[:_TENSORS]
    rows = np.array([sizes[text] for text in texts])
    return list(rows.T)


def _products(shapes: list[Any]) -> list[float]:
    """The elements of each tensor; of a list of tensors, of each in it."""
    found = []
    for shape in filter(None, shapes):
        found += _products(shape) if isinstance(shape[0], list) else [float(math.prod(shape))]
    return found


def _base(name: str) -> str:
    """A kernel's name without its template and call arguments and its return type."""
    name = short_name(name)
    while (shorter := re.sub(r"<[^<>]*>|\((?!anonymous)[^()]*\)", "", name)) != name:
        name = shorter
    return name.strip().rpartition(" ")[2] or name


@dataclass(frozen=True)
class _Examples:
    """Groups of light profiles with the clusters and the number of their detailed launches."""

    group: Ints
    label: Ints
    weight: Floats

    @classmethod
    def of(cls, group: Ints, label: Ints, k: int) -> _Examples:
        pairs, count = np.unique(group * k + label, return_counts=True)
        return cls(pairs // k, pairs % k, count.astype(np.float64))

    def some(self, most: int, seed: int) -> _Examples:
        rows = choose(seed, np.arange(len(self.group)), most, salt=4)
        return _Examples(self.group[rows], self.label[rows], self.weight[rows])


def _lookup(examples: _Examples, groups: int) -> Ints:
    """Most frequent cluster of each group, the earlier one in a tie; -1 if there is none."""
    result = np.full(groups, -1)
    order = np.lexsort((-examples.label, examples.weight))  # of several assignments, the last one remains
    result[examples.group[order]] = examples.label[order]
    return result


class _Encoder:
    """Groups as rows of numbers, standardised by the examples. Only names that occur in these are encoded."""

    def __init__(self, light: _Light, examples: _Examples) -> None:
        self._light = light
        self._buckets = np.unique(light.bucket[examples.group])
        raw = self._raw(examples.group)
        self._mean = np.average(raw, axis=0, weights=examples.weight)
        deviation = np.sqrt(np.average((raw - self._mean) ** 2, axis=0, weights=examples.weight))
        self._deviation = np.where(deviation > 0, deviation, 1.0)

    def _raw(self, groups: Ints) -> Floats:
        names = self._light.bucket[groups][:, None] == self._buckets
        return np.hstack([names.astype(np.float64), self._light.logs[groups]])

    def rows(self, groups: Ints) -> Floats:
        result: Floats = (self._raw(groups) - self._mean) / self._deviation
        return result


def _predictions(
    light: _Light, examples: _Examples, asked: Ints, seed: int, models: tuple[str, ...]
) -> dict[str, Ints]:
    """Cluster of each group of `asked` by each model."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import SGDClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier

    examples = examples.some(_MOST_TRAINED, seed)
    encoder = _Encoder(light, examples)
    state = seed % 2**32
    made = {
        "sgd": lambda: SGDClassifier(loss="log_loss", random_state=state),
        "naive_bayes": lambda: GaussianNB(),
        "mlp": lambda: MLPClassifier((100,), random_state=state),
    }
    rows, found = encoder.rows(examples.group), {}
    # Weights with mean 1, for which the models' step sizes are meant.
    weight = examples.weight / examples.weight.mean()
    for name in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)  # naive Bayes of examples that are all alike
            model = made[name]().fit(rows, examples.label, sample_weight=weight)
            parts = range(0, len(asked), _CHUNK)
            answers = [model.predict(encoder.rows(asked[start : start + _CHUNK])) for start in parts]
        found[name] = np.concatenate([np.empty(0, np.int64), *answers]).astype(np.int64)
    return found


def _vote(answers: dict[str, Ints]) -> Ints:
    """The majority of three; where all differ, SGD's."""
    sgd, bayes, mlp = (answers[name] for name in _MODELS)
    return np.where(bayes == mlp, bayes, sgd)


def _classify(light: _Light, detailed: Ints, labels: Ints, k: int, seed: int, classifier: str) -> Ints:
    """Cluster of each group of light profiles."""
    examples = _Examples.of(light.groups.code[detailed], labels, k)
    result = _lookup(examples, len(light.groups))
    if classifier != "lookup+vote":
        result[:] = -1
    asked = np.flatnonzero(result < 0)
    if k == 1 or not len(asked):
        result[asked] = 0
        return result
    voted = classifier in ("vote", "lookup+vote")
    answers = _predictions(light, examples, asked, seed, _MODELS if voted else (classifier,))
    result[asked] = _vote(answers) if voted else answers[classifier]
    return result


def _trial(
    light: _Light, detailed: Ints, labels: Ints, k: int, seed: int, part: Profile
) -> dict[str, float | None]:
    """Accuracy of each classifier on a fifth of the detailed launches, trained on the others."""
    held_out = uniform(seed, part.launches["launch"].to_numpy(), salt=3) < _HELD_OUT
    group = light.groups.code[detailed]
    if not held_out.any() or len(np.unique(labels[~held_out])) < 2:
        return dict.fromkeys((*_MODELS, "vote", "lookup+vote"))
    examples = _Examples.of(group[~held_out], labels[~held_out], k)
    asked, code = np.unique(group[held_out], return_inverse=True)
    answers = _predictions(light, examples, asked, seed, _MODELS)
    answers["vote"] = _vote(answers)
    known = _lookup(examples, len(light.groups))[asked]
    answers["lookup+vote"] = np.where(known >= 0, known, answers["vote"])
    return {way: float((answer[code] == labels[held_out]).mean()) for way, answer in answers.items()}
