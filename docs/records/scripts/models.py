"""Held-out launches of `simt model`: each simulated whole and estimated from its parts.

    python docs/records/scripts/models.py [NUMBER ...] >> src/simt/network/held_out.csv

NUMBER: of launches in the list; without it, those of the first drawing and before, which take about ten
minutes on a free core. No shape is of a built-in model.
"""

import random
import sys

from simt.network import works
from simt.network.scaled import estimate
from simt.spec import load_spec

H100, A100, SMALL = load_spec("h100"), load_spec("a100"), load_spec("rtx3060")
KIND = "bfloat16"
LAUNCHES = [
    (H100, works.norm(3072, 2560, KIND, True, False)),
    (H100, works.activate(1536, 6912, KIND, True)),
    (H100, works.rotate(3072, 0, 20, 4, 128, KIND, True, 2048)),
    (H100, works.product(8, 5120, 3584, H100, KIND)),
    (H100, works.product(8, 2560, 6656, H100, KIND)),
    (H100, works.prefill_attention(2, 4096, 8, 4, 64, KIND, H100)),
    (H100, works.decode_attention(4, 16384, 10, 2, 128, KIND, H100)[0]),
    (H100, works.product(2304, 3072, 2560, H100, KIND)),
    (A100, works.product(8, 5120, 3584, A100, KIND)),
    (A100, works.prefill_attention(2, 4096, 6, 3, 64, KIND, A100)),
    (A100, works.product(1536, 2560, 2048, A100, KIND)),
    (SMALL, works.product(768, 1280, 1536, SMALL, KIND)),
    (SMALL, works.product(1024, 640, 2560, SMALL, KIND)),
    (SMALL, works.prefill_attention(1, 4096, 2, 1, 64, KIND, SMALL)),
    (SMALL, works.prefill_attention(1, 3072, 2, 1, 128, KIND, SMALL)),
    (SMALL, works.activate(384, 4096, KIND, True)),
    (SMALL, works.product(8, 2560, 2560, SMALL, KIND)),
    (SMALL, works.decode_attention(2, 12288, 8, 2, 64, KIND, SMALL)[0]),
]
_DRAWN = random.Random(51)  # drawn, and committed, before any of them was run


def _any(*values: int) -> int:
    return _DRAWN.choice(values)


LAUNCHES += [
    (gpu, work)
    for gpu in (SMALL, A100)
    for work in (
        works.rotate(
            _any(768, 1024, 1536) * (gpu.sm.count // 28), 0, _any(12, 16, 20), 4, 64, KIND, True, 512
        ),
        works.embed(
            _any(768, 1024, 1536) * (gpu.sm.count // 28), _any(1536, 2048, 3072), 32768, 512, KIND, 0
        ),
        works.norm(_any(768, 1024, 1536) * (gpu.sm.count // 28), _any(1536, 2048, 3072), KIND, True, False),
        works.activate(_any(384, 512, 640) * (gpu.sm.count // 28), _any(2816, 3584, 4608), KIND, True),
        works.gather(512, _any(768, 1024, 1536) * (gpu.sm.count // 28), _any(1536, 2048, 3072), KIND),
        works.mix(_any(512, 768, 1024) * (gpu.sm.count // 28), 2048, _any(1536, 2048, 3072), 8, 2, KIND),
        works.decode_attention(
            _any(1, 2), _any(9216, 12288, 15360), _any(8, 12), 2, _any(64, 128), KIND, gpu
        )[0],
        works.product(8, _any(1792, 2560, 3328), _any(3072, 3584, 4608), gpu, KIND, "int4"),
        works.product(_any(24, 40), _any(512, 768), _any(1536, 2048), gpu, KIND, experts=8),
        works.product(8, _any(1792, 2560, 3328), _any(3072, 3584, 4608), gpu, KIND),
    )
]

FIRST = len(LAUNCHES)
_AGAIN = random.Random(5102)  # a second drawing: no row of it gives an interval, all are looked at once


def _one_of(*values: int) -> int:
    return _AGAIN.choice(values)


LAUNCHES += [
    *(
        (SMALL, works.decode_attention(_one_of(3, 4, 6), _one_of(12288, 16384), 8, 2, dim, KIND, SMALL)[0])
        for dim in (64, 128)
    ),
    *(
        (
            H100,
            works.product(
                _one_of(4, 8, 16), _one_of(1536, 2048, 2816), _one_of(4608, 5632), H100, KIND, kind
            ),
        )
        for kind in ("fp8", "fp8", "same")
    ),
    (H100, works.product(_one_of(384, 512), _one_of(768, 1024), _one_of(2048, 2560), H100, KIND, "fp8")),
    *((SMALL, works.product(_one_of(384, 640, 896), _one_of(768, 1152), _one_of(1280, 2304), SMALL, KIND)),)
    * 2,
    (SMALL, works.prefill_attention(1, _one_of(2560, 3584), _one_of(2, 3), 1, 64, KIND, SMALL)),
    (SMALL, works.norm(_one_of(640, 896, 1152), _one_of(1792, 2560), KIND, True, False)),
    (SMALL, works.activate(_one_of(448, 576), _one_of(2304, 3072), KIND, True)),
    (SMALL, works.rotate(_one_of(896, 1280), 0, _one_of(8, 24), 8, 64, KIND, True, 512)),
    (SMALL, works.embed(_one_of(896, 1280), _one_of(1792, 2560), 32768, 512, KIND, 0)),
    (SMALL, works.mix(_one_of(640, 896), 2048, _one_of(1792, 2560), 8, 2, KIND)),
]


def main() -> None:
    for spec, work in [LAUNCHES[int(n)] for n in sys.argv[1:]] or LAUNCHES[:FIRST]:
        parts, whole = estimate(work, spec), estimate(work, spec, whole=True)
        if parts.whole:
            print(f"{work.kind} {work.shape} has no parts", file=sys.stderr)
            continue
        name = " ".join(f"{k}={v}" for k, v in work.shape)
        print(f"{work.kind},{name},{spec.name},{whole.seconds:.6e},{parts.seconds:.6e}", flush=True)
        error = parts.seconds / whole.seconds - 1
        energy = (
            "-" if parts.joules is None or not whole.joules else f"{parts.joules / whole.joules - 1:+.1%}"
        )
        print(
            f"{work.kind} {name} {spec.name}: {error:+.1%}, energy {energy}, {parts.limit}; "
            f"{parts.processor:.1f} of {whole.processor:.1f} s",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    main()
