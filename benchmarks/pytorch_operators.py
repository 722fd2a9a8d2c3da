"""What a small eager operator costs on a simulated PyTorch device without timing.

python benchmarks/pytorch_operators.py [simt|cuda]
simt exec --gpu h100 --functional -- python benchmarks/pytorch_operators.py cuda

Processor time of this process, which others disturb less than the wall clock: of the first use, with what is
cached on disk, and of later uses (best of five series of 40). With "simt", one thread executes kernels.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
from torch.nn import functional as F


def seconds(call: Callable[[], object], times: int) -> float:
    """Per call."""
    begin = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begin) / times


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "simt"
    if device == "simt":
        import simt.torch

        simt.torch.use("h100", timed=False, threads=1)
    small = torch.ones(8, 8, device=device)
    a, b, weight = (torch.ones(size, device=device) for size in ((64, 64), (64, 64), 64))
    operators: dict[str, Callable[[], object]] = {
        "a + b, 8 x 8": lambda: small + small.T,
        "a + b": lambda: a + b,
        "a * 2": lambda: a * 2,
        "relu": lambda: F.relu(a),
        "sum": lambda: a.sum(),
        "softmax": lambda: a.softmax(-1),
        "layer_norm": lambda: F.layer_norm(a, (64,), weight, weight),
        "a @ b": lambda: a @ b,
        "cat": lambda: torch.cat([a, b]),
        "a.add_(b)": lambda: a.add_(b),
        "a.fill_(2.5)": lambda: a.fill_(2.5),
        "a.zero_()": lambda: a.zero_(),
        "a.clone()": lambda: a.clone(),
        "torch.empty": lambda: torch.empty(64, 64, device=device),
        "a.T": lambda: a.T,
        "a[:32]": lambda: a[:32],
        "a[0, 0].item()": lambda: a[0, 0].item(),
    }
    print("| operator on 64 x 64 numbers | first use, ms | later, µs |\n|---|---|---|")
    for name, call in operators.items():
        first = seconds(call, 1)
        later = min(seconds(call, 40) for _ in range(5))
        print(f"| `{name}` | {1e3 * first:.1f} | {1e6 * later:.0f} |", flush=True)


if __name__ == "__main__":
    main()
