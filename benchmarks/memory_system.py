"""Cost of the memory system alone: nanoseconds of one thread per sector, from an SM and back, on QV100.

python benchmarks/memory_system.py
"""

from __future__ import annotations

import random

from simt._engine import testing
from simt.spec import load_spec

BASE, SMS, PER_SM = 0x7F0000000000, 80, 2500


def cost(name: str, addresses: list[int], copied: bool) -> None:
    """Every SM sends a sector a cycle; prints the time per sector and the simulated bandwidth."""
    memory = testing.Memory(load_spec("qv100-accelsim").native())
    if copied:
        memory.insert(BASE, 1 << 21)
    requests = [(i // SMS, i % SMS, address, False) for i, address in enumerate(addresses)]
    replies = memory.run(requests, 200_000, 100)
    cycles = max(cycle for cycle, *_ in replies)
    print(
        f"{name:16} {1e9 * memory.seconds() / len(replies):5.0f} ns a sector, "
        f"{len(replies) * 32 / (cycles / 1132e6) / 1e9:6.0f} GB/s simulated",
        flush=True,
    )


def main() -> None:
    rng = random.Random(0)
    count = SMS * PER_SM
    cost("L2 hits", [BASE + 32 * (i % 65536) for i in range(count)], True)
    cost("DRAM, streaming", [BASE + 32 * i for i in range(count)], False)
    cost("DRAM, random", [BASE + 32 * rng.randrange(1 << 26) for _ in range(count)], False)


if __name__ == "__main__":
    main()
