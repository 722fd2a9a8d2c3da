"""Launches of `simt model` of several waves: each whole, from its parts, and on a scale model.

    python docs/records/scripts/models_waves.py first|second|shapes|unseen|fresh [NUMBER ...] > FILE

first: launches whose errors may give intervals. second: launches that are looked at once, when the intervals
are there. shapes: products and attention of Llama-3-8B, for the times of the processor. unseen: layers of
other models, looked at once after `shapes`. fresh: other shapes again, that full detail simulates in about a
minute each, looked at once after what `unseen` showed. No shape of the first two is of a built-in model. All
were drawn, and committed, before any of them was run.
"""

import random
import sys

from simt.errors import SimtError
from simt.network import works
from simt.network.scaled import Way, estimate
from simt.network.works import Work
from simt.spec import Spec, load_spec

H100, A100, SMALL = load_spec("h100"), load_spec("a100"), load_spec("rtx3060")
KIND = "bfloat16"
Launch = tuple[Spec, Work]


def drawn(seed: int) -> list[Launch]:
    """Of each GPU and kernel as many as full detail has time for, of about 5 to 11 waves."""
    random_ = random.Random(seed)
    found: list[Launch] = []

    def one_of(*values: int) -> int:
        return random_.choice(values)

    def rows(gpu: Spec, threads: int) -> int:
        """Of a kernel with so many threads for each CTA: between 6 and 11 waves if threads limit them."""
        return one_of(6, 7, 9, 11) * gpu.sm.count * (32 * gpu.sm.max_warps // threads) - one_of(0, 64, 160)

    def product(gpu: Spec, tall: int, wide: int) -> Launch:
        """With at least so many tiles along both sides, and a few more."""
        bm, bn, bk = (128, 256, 64) if gpu is H100 else (128, 128, 32)
        m, n = (tall + one_of(0, 2, 3)) * bm, (wide + one_of(0, 1, 3, 6)) * bn
        return gpu, works.product(m, n, bk * one_of(20, 28, 36), gpu, KIND)

    def attention(gpu: Spec, tiles: int, dim: int) -> Launch:
        """Of at least so many tiles of 128 tokens."""
        length, heads = one_of(1024, 1280, 1536), one_of(4, 6, 8)
        batch = -(-tiles * 128 // (length * heads)) + one_of(0, 1)
        return gpu, works.prefill_attention(batch, length, heads, 2, dim, KIND, gpu)

    for gpu, tall, wide in ((SMALL, 8, 38), (A100, 16, 72), (H100, 16, 44)):
        found += [product(gpu, tall, wide), attention(gpu, 11 * gpu.sm.count, 64)]
    found += [product(SMALL, 12, 26), attention(SMALL, 11 * SMALL.sm.count, 128)]
    for gpu in (SMALL, A100, H100):
        hidden = one_of(1536, 1792, 2560)
        threads = 256 if hidden <= 2048 else 512
        found.append((gpu, works.norm(rows(gpu, threads), hidden, KIND, True, False)))
        columns = one_of(2048, 3072, 4608)
        found.append((gpu, works.activate(rows(gpu, 128) * 1024 // columns, columns, KIND, True)))
    for gpu in (SMALL, A100):
        found.append((gpu, works.rotate(rows(gpu, 256), 0, one_of(12, 16, 20), 4, 64, KIND, True, 512)))
        found.append((gpu, works.embed(rows(gpu, 256), one_of(1536, 1792), 32768, 512, KIND, 0)))
    found.append((SMALL, works.gather(512, rows(SMALL, 256), one_of(1536, 1792), KIND)))
    found.append((SMALL, works.mix(rows(SMALL, 256), 2048, one_of(1536, 1792), 8, 2, KIND)))
    return found


SHAPES: list[Launch] = [
    (H100, works.prefill_attention(2, 2048, 32, 8, 128, KIND, H100)),
    (A100, works.prefill_attention(3, 2048, 32, 8, 128, KIND, A100)),
    (A100, works.product(3072, 6144, 4096, A100, KIND)),
    (H100, works.product(4096, 6144, 4096, H100, KIND)),
    (A100, works.product(1024, 28672, 4096, A100, KIND)),
    (H100, works.product(2048, 28672, 4096, H100, KIND)),
]
"""Attention, queries-keys-values, and gate-up of Llama-3-8B."""


def unseen(seed: int) -> list[Launch]:
    """Attention and products of other models' layers, of 5 to 10 waves."""
    random_ = random.Random(seed)
    heads, kv_heads = random_.choice(((28, 4), (64, 8), (40, 8)))  # Qwen2.5-7B, Llama-3-70B, Qwen2.5-14B
    length = random_.choice((1536, 2048, 3072))
    found: list[Launch] = []
    for gpu, wide, deep in ((H100, *random_.choice(((4608, 3584), (7168, 5120)))), (A100, 37888, 3584)):
        bm, bn, slots = (128, 256, 132) if gpu is H100 else (128, 128, 216)
        waves = random_.uniform(8, 10)
        rows = round(waves * slots / (wide // bn)) * bm
        found.append((gpu, works.product(rows, wide, deep, gpu, KIND)))
    tiles = random_.uniform(8, 10) * 132
    batch = round(tiles / (heads * length // 128))
    found.append((H100, works.prefill_attention(max(1, batch), length, heads, kv_heads, 128, KIND, H100)))
    return found


def fresh(seed: int) -> list[Launch]:
    """Attention and a product on each GPU, of 5 to 10 waves: some long enough for few passes, some not."""
    random_ = random.Random(seed)
    found: list[Launch] = []
    for gpu in (SMALL, A100, H100):
        heads, kv_heads = random_.choice(((12, 2), (14, 2), (24, 8), (40, 8), (48, 8)))
        dim = 64 if gpu is SMALL else 128
        length = random_.choice((1152, 1792, 2304))
        waves = random_.uniform(8, 10) if gpu is SMALL else random_.uniform(5.6, 7)
        tiles = waves * gpu.sm.count * (2 if dim == 64 else 1)
        batch = max(1, round(tiles * 128 / (heads * length)))
        found.append((gpu, works.prefill_attention(batch, length, heads, kv_heads, dim, KIND, gpu)))
    for gpu in (SMALL, A100, H100):
        bm, bn, bk = (128, 256, 64) if gpu is H100 else (128, 128, 32)
        tall = random_.choice((9, 11, 14, 18))
        wide = round(random_.uniform(5.3, 6.4) * gpu.sm.count * (1 if gpu is H100 else 2) / tall)
        found.append((gpu, works.product(tall * bm, wide * bn, bk * random_.choice((22, 33, 36)), gpu, KIND)))
    return found


WAYS: tuple[Way, ...] = ("scale model", "parts")
LISTS = {
    "first": drawn(5103),
    "second": drawn(5105),
    "shapes": SHAPES,
    "unseen": unseen(5107),
    "fresh": fresh(5109),
}


def name_of(work: Work) -> str:
    return " ".join(f"{key}={value}" for key, value in work.shape)


def main() -> None:
    print("way,kind,launch,gpu,whole,estimate,stated,whole_processor,processor")
    for number, (spec, work) in enumerate(LISTS[sys.argv[1]]):
        if sys.argv[2:] and str(number) not in sys.argv[2:]:
            continue
        whole = estimate(work, spec, "whole")
        for way in WAYS:
            try:
                found = estimate(work, spec, way)
            except SimtError as error:
                print(f"{number} {work.kind} {name_of(work)} {spec.name}: no {way}: {error}", file=sys.stderr)
                continue
            stated = f"{found.stated:.4f}" if found.stated else ""
            print(
                f"{way},{work.kind},{name_of(work)},{spec.name},{whole.seconds:.6e},{found.seconds:.6e},"
                f"{stated},{whole.processor:.2f},{found.processor:.2f}",
                flush=True,
            )
            energy = "-"
            if found.joules is not None and whole.joules:
                energy = f"{found.joules / whole.joules - 1:+.1%}"
            print(
                f"{number} {work.kind} {name_of(work)} {spec.name}, {way}: "
                f"{found.seconds / whole.seconds - 1:+.1%} (stated {found.stated:.1%}), "
                f"energy {energy}, {found.limit} ({whole.limit}); "
                f"{found.processor:.1f} of {whole.processor:.1f} s",
                file=sys.stderr,
                flush=True,
            )


if __name__ == "__main__":
    main()
