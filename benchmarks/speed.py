"""Speed of the engine on a QV100 with Accel-Sim's detail: warp instructions a second, one thread and two.

python benchmarks/speed.py

Against Accel-Sim itself: against_accel_sim.py.
"""

from __future__ import annotations

import resource

from kernels import KINDS, measure
from simt.spec import load_spec


def main() -> None:
    for gpu in ("qv100-accelsim", "qv100"):
        spec = load_spec(gpu)
        print(f"{gpu}: thousand warp instructions a second")
        for kind in KINDS:
            one, instructions, cycles = measure(kind, spec)
            two, _, _ = measure(kind, spec, threads=2)
            rate, both = instructions / one, instructions / two
            print(
                f"  {kind:10} {instructions / 1e6:5.2f} M instructions, {cycles:6} cycles: "
                f"1 thread {rate / 1e3:6.0f}, "
                f"2 threads {both / 1e3:6.0f} ({one / two:.2f} x one thread)",
                flush=True,
            )
    short, _, _ = measure("ffma", load_spec("qv100-accelsim", {"launch.kernel_latency": 5000}))
    long, _, _ = measure("ffma", load_spec("qv100-accelsim", {"launch.kernel_latency": 50_000_000}))
    cost = f"{1e3 * (long - short):+.1f} ms of {1e3 * short:.0f}"
    print(f"50 million cycles of launch latency instead of 5,000 cost {cost}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
