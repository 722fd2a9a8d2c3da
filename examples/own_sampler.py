"""A sampler of one's own in fifteen lines, checked, and compared with simt's.

python examples/own_sampler.py [PROFILE]
simt sample PROFILE --method own_sampler:Median     (in this directory)
"""

import sys

import numpy as np

from simt.profile import Profile, read_profile
from simt.sampling import Choice, Sampler, check_sampler, compare, registry
from simt.sampling.checks import example_profile


class Median(Sampler):
    """The launch of median time of each kernel stands for all launches of that kernel."""

    method = "median"

    def choose(self, profile: Profile) -> Choice:
        kernels, times = profile.name_codes, profile.column("duration_ns")
        order = np.lexsort((times, kernels))  # by kernel, then by time
        sizes = np.bincount(kernels)
        middle = np.cumsum(sizes) - sizes + sizes // 2
        rows, weights = order[middle], sizes.astype(float)
        in_order = np.argsort(rows)
        return Choice(
            strata=kernels.astype(np.int64),
            rows=rows[in_order],
            draws=np.ones(len(rows), np.int64),
            weights=weights[in_order],
            names=list(profile.names),
            why=[f"the median of {n}" for n in sizes],
        )


if __name__ == "__main__":
    check_sampler(Median())
    profile = read_profile(sys.argv[1]).kernels() if len(sys.argv) > 1 else example_profile(2000)
    plan = Median().fit_plan(profile)
    print(f"{len(plan)} launches, {plan.speedup:.1f} times less, {100 * plan.profile_error:.2f} % off")
    others = {"random": registry.make("random", ["p=0.01"])}
    print(compare(profile, {"median": Median(), **others}, seeds=30))
