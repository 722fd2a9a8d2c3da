"""STEM, ROOT and Neyman on real profiles: error, speedup and coverage, also judged by another GPU or run.

usage: python samplers_stratified.py [PROFILES...] [--seeds N] [--intervals N]
       python samplers_stratified.py --only-intervals [--first-seed N] [--intervals N] [--error X]

By default, it uses the profiles in ../shared/data/profiles, which are not part of the repository. Each method
designs its strata once; its draws are made for all seeds at once (simple random samples in each stratum), so
that hundreds of seeds take seconds. There are four tables:

1. every method at a bound of 5 %: means over the profiles, as in the STEM paper's tables;
2. ROOT against Neyman, profile by profile: at ROOT's realised error, how long is each one's sample;
3. plans made from one profile and judged by another of the same program (pairs that align);
4. on the same pairs, Neyman and the adaptive sampler: whether the half width of the estimate holds; the
   latter also on parts of 442 launches of the pairs of GPUs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from simt.errors import SimtError
from simt.profile import Profile, read_profile
from simt.sampling import Adaptive, Neyman, Root, Sampler
from simt.sampling.align import align
from simt.sampling.allocation import Strata, kkt_sizes, quantile, rounded_up
from simt.sampling.neyman import _pooled
from simt.sampling.pruning import SplitTree
from simt.sampling.splits import TimeOrder
from simt.sampling.stem import Stem

Z, ERROR = quantile(0.95), 0.05
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass
class Design:
    strata: Strata
    m: Ints
    claim: float
    replacement: bool = False
    midpoint: bool = False

    @property
    def speedup(self) -> float:
        return self.strata.total / self.strata.cost(self.m)

    def errors(self, order: TimeOrder, seeds: int, values: Floats | None = None) -> Floats:
        """Relative errors of the total of times, or of other values of the launches."""
        random = np.random.default_rng(7)
        y = np.repeat(order.values, order.counts) if values is None else values[order.order]
        estimate = np.zeros(seeds)
        for (lo, hi), k in zip(self.strata.ranges, self.m.tolist(), strict=True):
            inside = y[order.first[lo] : order.first[hi]]
            n = len(inside)
            if k >= n and not self.replacement:
                estimate += inside.sum()
            elif self.midpoint:
                estimate += inside[((np.arange(k) + 0.5) * (n / k)).astype(int)].mean() * n
            elif k == 1 or self.replacement:
                estimate += inside[(random.random((seeds, k)) * n).astype(int)].mean(axis=1) * n
            else:
                picks = np.stack([random.permutation(n)[:k] for _ in range(seeds)])
                estimate += inside[picks].mean(axis=1) * n
        return np.abs(estimate / y.sum() - 1)


def at_random(share: float) -> Callable[[TimeOrder], Design]:
    """So many launches in all, without strata: one range of all entries."""

    def design(order: TimeOrder) -> Design:
        whole = TimeOrder(np.zeros(len(order), int), np.repeat(order.values, order.counts))
        strata = Strata.of(whole, [(0, len(whole.values))])
        everything = Strata([(0, len(order.values))], strata.sizes, strata.means, strata.deviations)
        return Design(everything, np.array([max(1, round(share * len(order)))]), math.nan)

    return design


def stem(fidelity: str) -> Callable[[TimeOrder], Design]:
    def design(order: TimeOrder) -> Design:
        sampler, artifact = Stem(), fidelity == "artifact"
        ranges = [part for lo, hi in order.groups for part in sampler._clusters(order, lo, hi, Z)]
        strata = Strata.of(order, ranges)
        rows = zip(strata.sizes, strata.means, strata.deviations, strict=True)
        m = np.array([sampler._size(n, mu, s, Z, 30, artifact) for n, mu, s in rows])
        return Design(strata, m, ERROR, replacement=artifact)

    return design


def root(allocation: str, error: float = ERROR) -> Callable[[TimeOrder], Design]:
    def design(order: TimeOrder) -> Design:
        strata, m, _ = Root(allocation=allocation, error=error).design(order, Z)  # type: ignore[arg-type]
        return Design(strata, m, ERROR)

    return design


def names_only(printed: bool) -> Callable[[TimeOrder], Design]:
    def design(order: TimeOrder) -> Design:
        strata = Strata.of(order, list(order.groups))
        spreads = [order.spread(*group) for group in order.groups]
        sizes = kkt_sizes(spreads, ERROR, Z)
        if printed:
            roots = [math.sqrt(x.mean) * x.count * x.deviation for x in spreads]
            sizes = [m * math.sqrt(sum(r * r for r in roots)) / sum(roots) for m in sizes]
        return Design(strata, np.minimum(np.array(rounded_up(sizes)), strata.sizes.astype(int)), ERROR)

    return design


def neyman(midpoint: bool = False, **parameters: object) -> Callable[[TimeOrder], Design]:
    def design(order: TimeOrder) -> Design:
        found, claim = Neyman(**parameters).design(order, Z)  # type: ignore[arg-type]
        return Design(found.strata, found.m, claim, midpoint=midpoint)

    return design


METHODS: dict[str, Callable[[TimeOrder], Design]] = {
    "random 0.1 %": at_random(0.001),
    "random 1 %": at_random(0.01),
    "STEM, artifact (30 draws even if N < 30)": stem("artifact"),
    "STEM, whole clusters": stem("paper"),
    "ROOT, per leaf": root("leaf"),
    "ROOT, per name": root("name"),
    "ROOT, global": root("global"),
    "names, KKT": names_only(False),
    "names, KKT as printed": names_only(True),
    "Neyman, time": neyman(aim="time"),
    "Neyman, time, 2 a stratum": neyman(aim="time", min_samples=2),
    "Neyman, time, midpoints": neyman(midpoint=True, aim="time"),
    "Neyman, time, pool 5 %": neyman(aim="time"),
    "Neyman, balanced (default)": neyman(),
    "Neyman, error": neyman(aim="error"),
}


def order_of(profile: Profile, pool: float = 0.0) -> TimeOrder:
    times = profile.column("duration_ns")
    codes, _ = _pooled(profile.name_codes, list(profile.names), times, pool)
    return TimeOrder(codes, times)


def covered(errors: Floats, design: Design) -> float:
    """Share of the seeds within the claim; NaN where there is none."""
    return float(np.mean(errors <= design.claim * (1 + 1e-9))) if design.claim > 0 else math.nan


def all_methods(profiles: dict[str, Profile], seeds: int) -> None:
    print(f"1. Bound 5 % at 95 %, {len(profiles)} profiles, {seeds} seeds; coverage of the claim")
    print(f"{'':42}{'error %':>9}{'worst':>8}{'x hmean':>9}{'gmean':>8}{'cover %':>9}{'least':>7}")
    for label, method in METHODS.items():
        errors, speedups, covers = [], [], []
        for profile in profiles.values():
            order = order_of(profile, 0.05 if "pool" in label else 0.0)
            design = method(order)
            found = design.errors(order, seeds)
            errors.append(found)
            speedups.append(design.speedup)
            covers.append(
                float(np.mean(found <= design.claim * (1 + 1e-9))) if design.claim > 0 else math.nan
            )
        mean = 100 * float(np.mean([x.mean() for x in errors]))
        worst = 100 * max(float(x.max()) for x in errors)
        hmean = len(speedups) / sum(1 / x for x in speedups)
        gmean = math.exp(float(np.mean(np.log(speedups))))
        cover = "" if math.isnan(covers[0]) else f"{100 * np.mean(covers):9.1f}{100 * min(covers):7.1f}"
        print(f"{label:42}{mean:9.2f}{worst:8.1f}{hmean:9.2f}{gmean:8.2f}{cover}")


def against_root(profiles: dict[str, Profile], seeds: int) -> None:
    print(
        "\n2. Neyman at ROOT's error (KKT global, 5 %): speedup and realised error %, with claims' coverage"
    )
    print(f"{'':34}{'ROOT':>16}{'equal error':>20}{'default':>16}{'claim':>8}{'cover':>7}")
    for label, profile in profiles.items():
        order = order_of(profile)
        base = root("global")(order)
        variance = base.strata.variance(base.m)
        same = SplitTree(order, 0.0, 1, 1e-6 * variance).within_variance(variance)
        equal = Design(same.strata, same.m, math.nan)
        default = neyman()(order)
        figures = [(x.speedup, 100 * float(x.errors(order, seeds).mean())) for x in (base, equal, default)]
        cover = 100 * covered(default.errors(order, seeds), default)
        text = "".join(f"{speedup:{width}.2f}x{error:6.3f}" for (speedup, error), width in
                       zip(figures, (10, 14, 10), strict=True))  # fmt: skip
        print(f"{label:34}{text}{100 * default.claim:8.2f}{cover:7.1f}")


def pairs_of(profiles: dict[str, Profile]) -> dict[str, tuple[Profile, Floats]]:
    """Launches that two profiles, or the halves of one, share: as profiled, and times in the other."""
    candidates = {f"{a} > {b}": (profiles[a], profiles[b]) for a, b in permutations(profiles, 2)}
    for label, profile in profiles.items():
        half = np.arange(len(profile)) < len(profile) // 2
        candidates[f"{label}, first half > second"] = (profile.take(half), profile.take(~half))
    pairs = {}
    for label, (profile, truth) in candidates.items():
        try:
            pairing = align(profile, truth)
        except SimtError:
            continue
        mask = np.zeros(len(profile), bool)
        mask[pairing.rows] = True
        pairs[label] = (profile.take(mask), truth.column("duration_ns")[pairing.truth_rows])
    return pairs


def across(pairs: dict[str, tuple[Profile, Floats]], seeds: int) -> None:
    print("\n3. Plans from one profile, judged by another: speedup, mean and 95th percentile of the error %")
    for label, (profile, values) in pairs.items():
        order = order_of(profile)
        print(f"{label} ({len(profile)} launches)")
        for name in METHODS:
            if not name.startswith(("ROOT, per name", "ROOT, global", "Neyman")) or "time, " in name:
                continue
            design = METHODS[name](order)
            errors = 100 * design.errors(order, seeds, values)
            print(f"    {name:30}{design.speedup:8.1f}x{errors.mean():8.2f}{np.quantile(errors, 0.95):8.2f}")


def parts_of(pairs: dict[str, tuple[Profile, Floats]], size: int = 442) -> dict[str, tuple[Profile, Floats]]:
    """Eight stretches of each pair of GPUs, at equal distances."""
    parts = {}
    for label, (profile, values) in pairs.items():
        if "first half" in label:
            continue
        for i, begin in enumerate(np.linspace(0, len(profile) - size, 8).astype(int)):
            mask = np.zeros(len(profile), bool)
            mask[begin : begin + size] = True
            parts[f"{label}, part {i + 1}"] = (profile.take(mask), values[mask])
    return parts


def intervals(
    pairs: dict[str, tuple[Profile, Floats]], seeds: range, error: float, names: Sequence[str]
) -> None:
    print(f"\n4. Estimates of the other's total, {100 * error:g} % asked for, seeds from {seeds.start}:")
    print("error % (mean, 95th percentile), half width %, % within it, speedup")
    for label, (profile, values) in pairs.items():
        total, times = values.sum(), dict(zip(profile.launches["launch"].to_list(), values, strict=True))
        for name in names:
            sampler: Sampler = Adaptive(metrics=("v",), error=error)
            if name.startswith("Neyman"):
                sampler = Neyman(error=error, min_samples=2 if "2" in name else 1)
            errors, halves, inverse, launches = [], [], [], []
            for seed in seeds:
                sampler.set_params(seed=seed)
                if isinstance(sampler, Adaptive):
                    found = sampler.run(profile, lambda ids, times=times: {i: {"v": times[i]} for i in ids})
                    plan = sampler.plan_
                else:
                    plan = sampler.fit_plan(profile)
                    found = plan.estimate({i: {"v": times[i]} for i in plan.launches["launch"]})
                errors.append(abs(found["v"]["total"] / total - 1))
                halves.append(found["v"]["half_width"] / total)
                inverse.append(1 / plan.speedup)
                launches.append(len(plan))
            within = np.mean([e <= h for e, h in zip(errors, halves, strict=True)])
            print(
                f"{label:55}{name:25}{100 * np.mean(errors):7.2f}{100 * np.quantile(errors, 0.95):7.2f}"
                f"{100 * np.median(halves):8.2f}{100 * within:5.0f}{1 / np.mean(inverse):8.1f}x"
                f"{np.mean(launches):6.0f} launches",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--intervals", type=int, default=40, help="seeds of the last table")
    parser.add_argument("--first-seed", type=int, default=0, help="of the last table")
    parser.add_argument("--error", type=float, default=ERROR, help="asked for in the last table")
    parser.add_argument("--only-intervals", action="store_true", help="the last table, without Neyman's rows")
    options = parser.parse_args()
    shared = Path(__file__).parents[4] / "shared" / "data" / "profiles"
    paths = options.profiles or sorted(p for p in shared.glob("*.gz"))
    if not paths:
        sys.exit(f"no profiles in {shared}: name some on the command line")
    profiles = {path.name.split(".")[0]: read_profile(path).kernels() for path in paths}
    pairs = pairs_of(profiles)
    names = ["Adaptive"]
    if not options.only_intervals:
        names = ["Neyman", "Neyman, 2 a stratum", *names]
        all_methods(profiles, options.seeds)
        against_root(profiles, options.seeds)
        across(pairs, options.seeds)
    seeds = range(options.first_seed, options.first_seed + options.intervals)
    intervals(pairs, seeds, options.error, names)
    intervals(parts_of(pairs), seeds[:10], options.error, ["Adaptive"])


if __name__ == "__main__":
    main()
