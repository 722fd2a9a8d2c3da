"""Speed with policies written in Python, relative to the built-in ones.

python benchmarks/policies.py        (needs simt[policies])
"""

from __future__ import annotations

from typing import Any

import simt
from kernels import KINDS, measure
from simt.policy import overrides
from simt.spec import load_spec


@simt.policy.scheduler
def round_robin(ready: Any, age: Any, last: int, cycle: int) -> int:
    for i in range(1, len(ready) + 1):
        w = (last + i) % len(ready)
        if ready[w]:
            return w
    return -1


@simt.policy.replacement
def least_recently_used(evictable: Any, last_access: Any, allocated: Any) -> int:
    best = -1
    for way in range(len(evictable)):
        if evictable[way] and (best < 0 or last_access[way] < last_access[best]):
            best = way
    return best


@simt.policy.slice_hash
def by_channel_bits(address: int, slices: int) -> int:
    return ((address >> 8) ^ (address >> 14) ^ (address >> 20)) % slices


def main() -> None:
    policies = {
        "scheduler": round_robin,
        "l2_replacement": least_recently_used,
        "slice_hash": by_channel_bits,
    }
    baselines = {"slice_hash": {"address_map.hash": "xor"}}
    for key, policy in policies.items():
        own = load_spec("qv100-accelsim", overrides({key: policy}))
        builtin = load_spec("qv100-accelsim", baselines.get(key, {}))
        for kind in KINDS:
            native, _, _ = measure(kind, builtin)
            python, _, _ = measure(kind, own)
            print(
                f"{key:15} {kind:10} {100 * native / python:4.0f} % of the speed of the built-in policy",
                flush=True,
            )


if __name__ == "__main__":
    main()
