"""Rates of the kernels of `simt model` on an A100, and those that the documentation of Triton prints.

    python docs/records/scripts/published_rates.py [product|attention ...]

Tutorial 03: product of two n x n matrices in float16, autotuned. Tutorial 06: causal attention in float16,
batch 4, 32 heads of 64. That the GPU is an A100 is not said there, but follows from the rates. Times are by
events, which add some microseconds to the shortest.
"""

import sys

from simt.network import works
from simt.network.scaled import fastest
from simt.spec import load_spec

A100 = load_spec("a100")
PRODUCTS = {1024: 99.86, 1536: 157.29, 2048: 190.65}
ATTENTION = {1024: 111.68, 2048: 136.48, 4096: 150.00, 16384: 164.26}
"""TFLOP/s, by n and by tokens; half of the operations of attention without a mask."""


def main() -> None:
    print("kernel,size,published,simulated,error,processor")
    for kind in sys.argv[1:] or ["product", "attention"]:
        for size, published in (PRODUCTS if kind == "product" else ATTENTION).items():
            if kind == "product":
                work, flops = works.product(size, size, size, A100, "float16"), 2.0 * size**3
            else:
                work = works.prefill_attention(4, size, 32, 32, 64, "float16", A100)
                flops = 4 * 4 * 32 * 64 * size**2 / 2
            _, one = fastest(work, A100)
            rate = flops / one.seconds / 1e12
            error = published / rate - 1  # of the time
            print(f"{kind},{size},{published},{rate:.1f},{error:+.1%},{one.processor:.0f} s", flush=True)


if __name__ == "__main__":
    main()
