"""Error and speedup of the interval-based controllers, by what-if on full runs of a few workloads.

    python pkp.py [GPU] [SMs]

A GPU of few SMs makes many waves of small inputs. Prints a table in Markdown: for each method the error of
all cycles, the largest error of a launch, and how many times fewer warp instructions are simulated.
"""

from __future__ import annotations

import sys

from simt.control import PKP, Controller, FirstInstructions, TBPointRegions, what_if
from simt.gpu import GPU
from simt.workloads import WORKLOADS

CASES = (("relu", 262144), ("relu", 1048576), ("fir", 262144), ("aes", 524288), ("convolution", 1024),
         ("matmul", 32768), ("pagerank", 2048), ("resnet18", 32))  # fmt: skip
METHODS: dict[str, Controller] = {
    "pkp": PKP(),
    "pkp below_wave=0.3": PKP(below_wave=0.3),
    "pkp instantaneous, 5 %": PKP(signal="instantaneous", threshold=5),
    "pkp:paper": PKP(**PKP.presets["paper"]),
    "pkp:artifact": PKP(**PKP.presets["artifact"]),
    "tbpoint": TBPointRegions(),
    "first-n:1e7": FirstInstructions(1e7),
}


def main() -> None:
    gpu, sms = (sys.argv[1:] + ["a100", "16"][len(sys.argv) - 1 :])[:2]
    print("| workload | launches |", " | ".join(METHODS), "|")
    print("|---|---|" + "---|" * len(METHODS))
    for name, size in CASES:
        device = GPU(gpu, set={"sm.count": int(sms)}, timeline=100)
        WORKLOADS[name].run(device, size)
        result = device.result()
        cells = []
        for controller in METHODS.values():
            found = what_if(result, controller)
            worst = f", worst {100 * found.worst_error:.0f} %" if len(found.outcomes) > 1 else ""
            cells.append(f"{100 * found.error:+.1f} %{worst}; {found.speedup:.2f} x")
        print(f"| {name} {size:,} | {len(result.launches)} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
