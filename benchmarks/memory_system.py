"""Cost of the memory system alone: nanoseconds of one thread per sector, from an SM and back, on QV100.

python benchmarks/memory_system.py
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from simt._engine import testing
from simt.spec import load_spec

BASE, SMS, PER_SM = 0x7F0000000000, 80, 2500
COPIED = 1 << 21
"""Bytes in the L2 before the hits."""
PATTERNS: dict[str, Callable[[int, random.Random], int]] = {
    "l2-hits": lambda i, rng: BASE + 32 * (i % (COPIED // 32)),
    "dram-streaming": lambda i, rng: BASE + 32 * i,
    "dram-random": lambda i, rng: BASE + 32 * rng.randrange(1 << 26),
}


class Sectors:
    """Each SM sends a sector a cycle, `per_sm` of them."""

    def __init__(self, pattern: str, per_sm: int = PER_SM) -> None:
        rng = random.Random(0)
        self.memory = testing.Memory(load_spec("qv100-accelsim").native())
        if pattern == "l2-hits":
            self.memory.insert(BASE, COPIED)
        address = PATTERNS[pattern]
        self._requests = [(i // SMS, i % SMS, address(i, rng), False) for i in range(SMS * per_sm)]

    def run(self) -> Any:
        """The replies: cycle first."""
        return self.memory.run(self._requests, 200_000, 100)


def main() -> None:
    for pattern in PATTERNS:
        sectors = Sectors(pattern)
        replies = sectors.run()
        cycles = max(cycle for cycle, *_ in replies)
        print(
            f"{pattern:16} {1e9 * sectors.memory.seconds() / len(replies):5.0f} ns a sector, "
            f"{len(replies) * 32 / (cycles / 1132e6) / 1e9:6.0f} GB/s simulated",
            flush=True,
        )


if __name__ == "__main__":
    main()
