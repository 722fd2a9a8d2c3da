"""The launches of a transformer: kernel, grid, tensors, and what of them may be left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .architecture import WEIGHT_BITS, Weights
from .linked import LinkedGpu

if TYPE_CHECKING:
    from simt.gpu import GPU
    from simt.gpu.array import DeviceArray
    from simt.result import LaunchResult
    from simt.spec import Spec

Tile = tuple[int, int, int, int, int]
"""Of a product: rows, columns, depth, warps, stages."""
PAGE = 16
"""Tokens of a page of the cache, as in vLLM."""
GROUP = 8
"""Tiles of a product along its rows whose neighbours share operands of the L2 (`GROUP` of the kernel)."""
_WGMMA = 90
"""From this compute capability on (to that of Blackwell's tensor memory), products of four warps and 64
rows."""
_ALIKE = 4096
"""Sizes of a product from which on its parts are those of this size: the waves have the same shape."""
_EDGE = 64
"""Elements along the side of a tile that takes twice the time of its multiply-adds: sets how much large tiles
gain."""
_NEAR = 1.1
"""Tiles whose estimated time is within this multiple of the least are compared by simulated time."""
_TILES = ((128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (64, 128, 64, 4, 3), (64, 64, 64, 4, 3))
_EARLIER_TILES = (
    (128, 128, 32, 4, 4),
    (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4),
    (64, 64, 32, 4, 4),
    (32, 64, 32, 2, 5),
)
_NARROW_TILES = tuple((16, n, 128, 4, 4) for n in (64, 32, 16))
"""Tiles of products: rows, columns, depth, warps, stages; before Hopper, and for at most 16 rows.
Of tiles before Hopper, 128 x 128 with 4 warps is the fastest on an A100 (docs/records/models.md)."""
_ONE_SHOT = ((2, math.inf), (4, 512 * 1024), (math.inf, 256 * 1024))
"""Most GPUs, and bytes below which they read the whole sum from each other: those of vLLM
(csrc/custom_all_reduce.cuh)."""
_LINK_WARPS, _VECTOR = 16, 8
"""Warps of a CTA that reads from other GPUs, as in vLLM, and elements that a thread reads at once."""
_LINK_BLOCK = 32 * _LINK_WARPS * _VECTOR
"""Elements of such a CTA, of each GPU."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of a launch.

    role: "weight" is not in the L2 when the launch begins, "input" is if it fits, "output" is written only,
    "other" is in the memory of other GPUs.
    values: makes what it must hold for the launch's addresses to be right; without it, zeros that take no
    memory.
    """

    shape: tuple[int, ...]
    dtype: str
    role: Literal["weight", "input", "output", "other"]
    values: Callable[[], npt.NDArray[Any]] | None = field(default=None, compare=False)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * _type(self.dtype).itemsize


@dataclass(frozen=True)
class Work:
    """One launch.

    kind: its kernel's name. shape: values that, with the kind, the GPU and the kernels' source, decide
    everything. grid: its CTAs. steps: passes of its loop that CTAs make, in the order of their dispatch, as
    (CTAs, passes); 0 without a loop. flops, nbytes: operations and bytes of memory that the operator needs at
    least. call: positional and keyword arguments of the kernel, from tensors and `cap`. few, more: passes of
    its parts; alone: of the longest where there are less than two waves. on_model: of those on a scale model;
    None for a launch that has all its passes there. like: a launch whose parts are simulated in its place, as
    they differ in distances in memory only. others: the same with other tiles, one of which may be faster.
    fetched: bytes that come from other GPUs.
    """

    kind: str
    shape: tuple[tuple[str, int | str], ...]
    grid: int
    steps: tuple[tuple[int, int], ...]
    tensors: Mapping[str, Tensor]
    flops: float
    nbytes: float
    call: Callable[[Mapping[str, Any], int], tuple[tuple[Any, ...], dict[str, Any]]] = field(compare=False)
    few: int = 5
    more: int = 12
    alone: int = 12
    on_model: tuple[int, int] | None = None
    like: Work | None = None
    others: tuple[Work, ...] = ()
    fetched: float = 0.0

    @property
    def has_loop(self) -> bool:
        """Whether its CTAs make passes that can be left out."""
        return self.steps[0][1] > 0

    @property
    def passes(self) -> int:
        """Passes of all its CTAs, one for a CTA without a loop."""
        return sum(ctas * max(1, passes) for ctas, passes in self.steps)

    def allocate(self, gpu: GPU, *, unbacked: bool = False) -> dict[str, DeviceArray]:
        """Its tensors on a GPU, a `LinkedGpu` if there are some on others. Those without values take host
        memory only where a launch writes to them, and none if unbacked."""
        found = {}
        for name, tensor in self.tensors.items():
            if tensor.role == "other":
                assert isinstance(gpu, LinkedGpu)
                found[name] = gpu.empty_on_others(tensor.shape, _type(tensor.dtype), name)
                continue
            without = unbacked and tensor.values is None
            found[name] = gpu.empty(tensor.shape, _type(tensor.dtype), unbacked=without, name=name)
            if tensor.values is not None:
                found[name].set(np.ascontiguousarray(tensor.values(), _type(tensor.dtype)))
        return found

    def launch(
        self, gpu: GPU, arrays: Mapping[str, Any], ctas: int | None = None, cap: int | None = None
    ) -> LaunchResult | None:
        """Launches it, or only the first `ctas` CTAs with at most `cap` passes of their loops."""
        from . import kernels

        most = max(steps for _, steps in self.steps)
        given, options = self.call(arrays, most if cap is None else cap)
        result: LaunchResult | None = gpu.triton(getattr(kernels, self.kind))[ctas or self.grid](
            *given, **options
        )
        return result


def product(
    m: int,
    n: int,
    k: int,
    spec: Spec,
    dtype: str,
    weights: Weights = "same",
    bias: bool = False,
    experts: int = 1,
    tile: Tile | None = None,
) -> Work:
    """m x k times k x n for each of `experts`; m: rows of one expert, which are padded to whole tiles. tile:
    by default the one with the least estimated time; before Hopper, `others` have those that come near."""
    if tile is None:
        first, *near = (
            product(m, n, k, spec, dtype, weights, bias, experts, each)
            for each in _tiles_for(m, n, experts, weights, spec)
        )
        return replace(first, others=tuple(near))
    bm, bn, bk, warps, stages = tile
    pointers = spec.sm_version < _WGMMA and k % bk == 0
    padded = -(-m // bm) * bm if experts > 1 else m
    blocks = -(-k // bk)
    tensors = {
        "x": Tensor((experts * padded, k), dtype, "input"),
        "w": Tensor(
            (experts * n, k // (2 if weights == "int4" else 1)), _weight_type(weights, dtype), "weight"
        ),
        "y": Tensor((experts * padded, n), dtype, "output"),
    }
    if weights != "same":
        tensors["scales"] = Tensor((experts * n, blocks if weights == "int4" else 1), "float32", "weight")
    if bias:
        tensors["bias"] = Tensor((experts * n,), dtype, "weight")
    grid = experts * -(-m // bm) * -(-n // bn)

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x, w, y = a["x"], a["w"], a["y"]
        if not pointers:
            half = bk // (2 if weights == "int4" else 1)
            x, w, y = _tiles(x, bm, half), _tiles(w, bn, half), _tiles(y, bm, bn)
        given = (x, w, a.get("scales"), a.get("bias"), y, padded, n, k, cap)
        tile = {"BM": bm, "BN": bn, "BK": bk, "GROUP": GROUP, "num_warps": warps, "num_stages": stages}
        return given, tile | {"WEIGHTS": weights, "BIAS": bias, "POINTERS": pointers}

    alike = min(m, _ALIKE), min(n, _ALIKE), min(k, _ALIKE)
    like = None
    if (m, n, k, experts) != (*alike, 1) and m >= GROUP * bm and n >= spec.sm.count // GROUP * bn:
        like = product(*alike, spec, dtype, weights, bias, tile=(bm, bn, bk, warps, stages))
    # Long enough that DRAM is at its pace.
    lengths = (2 * stages, 4 * stages, 6 * stages) if bm == 16 else (5, 12, 12)
    shape = _shape(
        m=m, n=n, k=k, experts=experts, weights=weights, bias=int(bias), dtype=dtype, tile=f"{bm}x{bn}x{bk}"
    )
    moved = sum(t.nbytes for t in tensors.values())
    return Work(
        "product",
        shape,
        grid,
        ((grid, blocks),),
        tensors,
        2.0 * experts * m * n * k,
        moved,
        call,
        *lengths,
        None if bm == 16 else (6, 18),
        like,
    )


def prefill_attention(
    batch: int, length: int, heads: int, kv_heads: int, dim: int, dtype: str, spec: Spec
) -> Work:
    """Causal attention of whole sequences."""
    pointers = spec.sm_version < _WGMMA
    bm = next(size for size in (128, 64, 32, 16) if length % size == 0)
    bn = min(64, bm)
    width = (heads + 2 * kv_heads) * dim
    tensors = {
        "qkv": Tensor((batch * length, width), dtype, "input"),
        "y": Tensor((batch * length, heads * dim), dtype, "output"),
    }
    tiles = length // bm
    steps = tuple((batch * heads, tile * bm // bn) for tile in reversed(range(tiles)))

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        q, kv, y = a["qkv"], a["qkv"], a["y"]
        if not pointers:
            q, kv, y = _tiles(q, bm, dim), _tiles(kv, bn, dim), _tiles(y, bm, dim)
        given = (q, kv, y, length, batch, dim**-0.5 * math.log2(math.e), cap)
        heads_ = {"HQ": heads, "HK": kv_heads, "D": dim, "POINTERS": pointers}
        return given, heads_ | {
            "BM": bm,
            "BN": bn,
            "num_warps": 8 if bm == 128 and not pointers else 4,
            "num_stages": 3,
        }

    flops = 4.0 * batch * heads * dim * length * (length + 1) / 2
    shape = _shape(batch=batch, length=length, heads=heads, kv_heads=kv_heads, dim=dim, dtype=dtype)
    moved = sum(t.nbytes for t in tensors.values())
    grid = batch * heads * tiles
    return Work("prefill_attention", shape, grid, steps, tensors, flops, moved, call)


def decode_attention(
    batch: int, length: int, heads: int, kv_heads: int, dim: int, dtype: str, spec: Spec
) -> tuple[Work, Work]:
    """One token's attention to `length` cached ones of each of `batch` sequences: the parts, and their
    sum."""
    block = 64 if dim <= 128 else 32
    wanted = max(1, 2 * spec.sm.count // (batch * kv_heads))
    per_split = -(-max(1, -(-length // wanted)) // block) * block
    splits = -(-length // per_split)
    pages = -(-length // PAGE)
    group = heads // kv_heads
    tensors = {
        "qkv": Tensor((batch, (heads + 2 * kv_heads) * dim), dtype, "input"),
        "keys": Tensor((batch * pages * PAGE, kv_heads * dim), dtype, "weight"),
        "values": Tensor((batch * pages * PAGE, kv_heads * dim), dtype, "weight"),
        "pages": Tensor(
            (batch, pages), "int32", "input", lambda: _mixed(batch * pages).reshape(batch, pages)
        ),
        "parts": Tensor((batch * heads * splits, dim), "float32", "output"),
        "peaks": Tensor((batch * heads * splits,), "float32", "output"),
    }

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = (*(a[name] for name in tensors), length, per_split, pages, dim**-0.5 * math.log2(math.e), cap)
        sizes = {"HQ": heads, "HK": kv_heads, "D": dim, "SPLITS": splits, "PAGE": PAGE}
        return given, sizes | {"BG": max(16, _power(group)), "BN": block, "num_warps": 4, "num_stages": 3}

    per_head = -(-min(per_split, length) // block)
    grid = batch * kv_heads * splits
    read = batch * length * kv_heads * dim * 4
    shape = _shape(batch=batch, length=length, heads=heads, kv_heads=kv_heads, dim=dim, dtype=dtype)
    attention = Work(
        "decode_attention",
        shape,
        grid,
        ((grid, per_head),),
        tensors,
        4.0 * batch * heads * dim * length,
        read,
        call,
    )
    joined = {
        "parts": Tensor((batch * heads * splits, dim), "float32", "input"),
        "peaks": Tensor((batch * heads * splits,), "float32", "input"),
        "y": Tensor((batch, heads * dim), dtype, "output"),
    }

    def join(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (a["parts"], a["peaks"], a["y"]), {
            "D": dim,
            "SPLITS": splits,
            "PS": _power(splits),
            "num_warps": 4,
        }

    rows = batch * heads
    sizes = _shape(rows=rows, splits=splits, dim=dim, dtype=dtype)
    return attention, Work(
        "join", sizes, rows, ((rows, 0),), joined, 2.0 * rows * splits * dim, 4.0 * rows * splits * dim, join
    )


def rotate(
    tokens: int, first: int, heads: int, kv_heads: int, dim: int, dtype: str, rotated: bool, capacity: int
) -> Work:
    """RoPE of queries and keys, and their place in the cache; `first`: position of a sequence's first
    token."""
    width = (heads + 2 * kv_heads) * dim
    tensors = {
        "qkv": Tensor((tokens, width), dtype, "input"),
        "table": Tensor((max(1, capacity), dim), "float32", "input"),
        "positions": Tensor(
            (tokens,), "int32", "input", lambda: first + np.arange(tokens) % max(1, capacity - first)
        ),
        "slots": Tensor((tokens,), "int32", "input", lambda: np.arange(tokens)),
        "keys": Tensor((-(-tokens // PAGE) * PAGE, kv_heads * dim), dtype, "output"),
        "values": Tensor((-(-tokens // PAGE) * PAGE, kv_heads * dim), dtype, "output"),
    }

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        sizes = {"HQ": heads, "HK": kv_heads, "D": dim, "PQ": _power(heads), "PK": _power(kv_heads)}
        return tuple(a[name] for name in tensors), sizes | {"ROTATE": rotated, "num_warps": 8}

    shape = _shape(tokens=tokens, heads=heads, kv_heads=kv_heads, dim=dim, dtype=dtype, rotated=rotated)
    moved = 2.0 * tokens * (2 * width if rotated else 4 * kv_heads * dim)
    return Work("rotate", shape, tokens, ((tokens, 0),), tensors, 6.0 * tokens * width, moved, call)


def norm(rows: int, hidden: int, dtype: str, add: bool, layer: bool, stride: int = 1) -> Work:
    """RMSNorm or LayerNorm of every `stride`-th row, with a sum before it where `add`."""
    tensors = {
        "x": Tensor((rows * stride, hidden), dtype, "input"),
        **({"delta": Tensor((rows * stride, hidden), dtype, "input")} if add else {}),
        "weight": Tensor((hidden,), dtype, "weight"),
        **({"bias": Tensor((hidden,), dtype, "weight")} if layer else {}),
        "y": Tensor((rows, hidden), dtype, "output"),
    }

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = (a["x"], a.get("delta"), a["weight"], a.get("bias"), a["y"], hidden, stride, 1e-5)
        return given, {"BLOCK": _power(hidden), "ADD": add, "LAYER": layer, "num_warps": _warps(hidden)}

    shape = _shape(rows=rows, hidden=hidden, dtype=dtype, add=add, layer=layer, stride=stride)
    return Work(
        "norm",
        shape,
        rows,
        ((rows, 0),),
        tensors,
        5.0 * rows * hidden,
        2.0 * rows * hidden * (4 if add else 2),
        call,
    )


def embed(tokens: int, hidden: int, vocabulary: int, length: int, dtype: str, positions: int) -> Work:
    """Rows of the table of embeddings; positions: rows of the table of learned positions, 0 for none."""
    tensors = {
        "tokens": Tensor((tokens,), "int32", "input", lambda: _mixed(tokens) * 7919 % vocabulary),
        "table": Tensor((vocabulary, hidden), dtype, "weight"),
        **({"positions": Tensor((positions, hidden), dtype, "weight")} if positions else {}),
        "y": Tensor((tokens, hidden), dtype, "output"),
    }

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = (a["tokens"], a["table"], a.get("positions"), a["y"], length, hidden)
        return given, {"BLOCK": _power(hidden), "POSITIONS": bool(positions), "num_warps": _warps(hidden)}

    shape = _shape(tokens=tokens, hidden=hidden, vocabulary=vocabulary, dtype=dtype, positions=positions)
    return Work("embed", shape, tokens, ((tokens, 0),), tensors, 0.0, 4.0 * tokens * hidden, call)


def activate(rows: int, columns: int, dtype: str, gated: bool) -> Work:
    """The activation between the products of an MLP."""
    block = min(1024, _power(columns))
    tensors = {
        "x": Tensor((rows, columns * (2 if gated else 1)), dtype, "input"),
        "y": Tensor((rows, columns), dtype, "output"),
    }

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (a["x"], a["y"], columns), {"BLOCK": block, "GATED": gated, "num_warps": 4}

    grid = rows * -(-columns // block)
    shape = _shape(rows=rows, columns=columns, dtype=dtype, gated=gated)
    moved = 2.0 * rows * columns * (3 if gated else 2)
    return Work("activate", shape, grid, ((grid, 0),), tensors, 6.0 * rows * columns, moved, call)


def gather(tokens: int, rows: int, hidden: int, dtype: str) -> Work:
    """Rows of tokens in the order of their experts; `rows` of them, with padding."""
    tensors = {
        "x": Tensor((tokens, hidden), dtype, "input"),
        "indices": Tensor((rows,), "int32", "input", lambda: _mixed(rows) % tokens),
        "y": Tensor((rows, hidden), dtype, "output"),
    }

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        options = {"BLOCK": _power(hidden), "num_warps": _warps(hidden)}
        return (a["x"], a["indices"], a["y"], hidden), options

    shape = _shape(tokens=tokens, rows=rows, hidden=hidden, dtype=dtype)
    return Work("gather", shape, rows, ((rows, 0),), tensors, 0.0, 4.0 * rows * hidden, call)


def mix(tokens: int, rows: int, hidden: int, experts: int, per_token: int, dtype: str) -> Work:
    """Weighted sums of the experts' rows."""
    tensors = {
        "x": Tensor((rows, hidden), dtype, "input"),
        "places": Tensor(
            (tokens, per_token),
            "int32",
            "input",
            lambda: _mixed(tokens * per_token).reshape(tokens, -1) % rows,
        ),
        "logits": Tensor((tokens, experts), dtype, "input"),
        "y": Tensor((tokens, hidden), dtype, "output"),
    }

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        sizes = {
            "TOP": per_token,
            "BLOCK": _power(hidden),
            "PE": _power(experts),
            "num_warps": _warps(hidden),
        }
        return (a["x"], a["places"], a["logits"], a["y"], hidden, experts), sizes

    shape = _shape(tokens=tokens, rows=rows, hidden=hidden, experts=experts, top=per_token, dtype=dtype)
    moved = 2.0 * tokens * hidden * (per_token + 1)
    return Work(
        "mix",
        shape,
        tokens,
        ((tokens, 0),),
        tensors,
        2.0 * tokens * hidden * per_token,
        moved,
        call,
    )


def all_reduce(elements: int, ranks: int, dtype: str) -> Work:
    """The sum of as many elements of each of `ranks` GPUs, on all of them: read from all others at once where
    they are few, otherwise a part of the sum on each GPU, and then the parts of the others."""
    size = elements * _type(dtype).itemsize
    one_shot = size < next(most for count, most in _ONE_SHOT if ranks <= count)
    part = -(-elements // (ranks * _VECTOR)) * _VECTOR
    grid = -(-(elements if one_shot else part) // _LINK_BLOCK)
    lanes = _power(ranks)
    tensors = {
        "x": Tensor((elements,), dtype, "input"),
        "others": Tensor((ranks - 1, elements), dtype, "other"),
        "sums": Tensor((part,), dtype, "output"),
        "other_sums": Tensor((ranks - 1, part), dtype, "other"),
        "flags": Tensor((grid, 2 * lanes), "int32", "other"),
        "y": Tensor((elements,), dtype, "output"),
    }

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        sizes = {"RANKS": ranks, "PR": lanes, "BLOCK": _LINK_BLOCK, "ONE_SHOT": one_shot}
        return (*(a[name] for name in tensors), elements, part), sizes | {"num_warps": _LINK_WARPS}

    fetched = size * (ranks - 1) * (1.0 if one_shot else 2.0 / ranks)
    shape = _shape(elements=elements, ranks=ranks, dtype=dtype)
    flops = (ranks - 1.0) * (elements if one_shot else part)
    return Work("all_reduce", shape, grid, ((grid, 0),), tensors, flops, 2.0 * size, call, fetched=fetched)


def all_gather(elements: int, ranks: int, dtype: str) -> Work:
    """As many elements of each of `ranks` GPUs, together on all of them."""
    grid, lanes = -(-elements // _LINK_BLOCK), _power(ranks)
    tensors = {
        "x": Tensor((elements,), dtype, "input"),
        "others": Tensor((ranks - 1, elements), dtype, "other"),
        "flags": Tensor((grid, lanes), "int32", "other"),
        "y": Tensor((ranks, elements), dtype, "output"),
    }

    def call(a: Mapping[str, Any], cap: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        sizes = {"RANKS": ranks, "PR": lanes, "BLOCK": _LINK_BLOCK, "num_warps": _LINK_WARPS}
        return (*(a[name] for name in tensors), elements), sizes

    size = elements * _type(dtype).itemsize
    shape = _shape(elements=elements, ranks=ranks, dtype=dtype)
    fetched = size * (ranks - 1.0)
    return Work(
        "all_gather", shape, grid, ((grid, 0),), tensors, 0.0, (ranks + 1.0) * size, call, fetched=fetched
    )


def _tiles_for(m: int, n: int, experts: int, weights: Weights, spec: Spec) -> list[Tile]:
    """The tile with the least estimated time: waves of CTAs, each as long as its multiply-adds and its
    edges. Before Hopper also those that come near."""
    if weights == "int4" and m > 16:
        return [(64, 128, 128, 4, 3)]
    if m <= 16:
        fitting = [t for t in _NARROW_TILES if experts * -(-n // t[1]) >= 2 * spec.sm.count] or [
            _NARROW_TILES[-1]
        ]
        return fitting[:1]

    def estimate(tile: Tile) -> float:
        bm, bn = tile[:2]
        return math.ceil(experts * -(-m // bm) * -(-n // bn) / spec.sm.count) * (bm * bn + _EDGE * (bm + bn))

    tiles = _TILES if spec.sm_version >= _WGMMA else _EARLIER_TILES
    fitting = [t for t in tiles if t[2] * (t[0] + t[1]) * 2 * t[4] <= spec.shared_memory.bytes - 2048]
    best = sorted(fitting, key=estimate)
    near = 1.0 if spec.sm_version >= _WGMMA else _NEAR
    return [tile for tile in best if estimate(tile) <= near * estimate(best[0])]


def _shape(**values: int | str) -> tuple[tuple[str, int | str], ...]:
    return tuple(values.items())


def _weight_type(weights: Weights, dtype: str) -> str:
    return {16: dtype, 8: "float8_e4m3fn", 4: "uint8"}[WEIGHT_BITS[weights]]


def _tiles(array: Any, rows: int, columns: int) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(array, list(array.shape), [array.shape[1], 1], [rows, columns])


def _type(name: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _warps(width: int) -> int:
    """Warps for a row: 8 elements of each thread, up to 16 warps."""
    return min(16, max(1, _power(width) // 256))


def _mixed(n: int) -> npt.NDArray[np.int32]:
    """0 to n - 1 in an order without pattern, always the same."""
    return np.random.default_rng(n).permutation(n).astype(np.int32)
