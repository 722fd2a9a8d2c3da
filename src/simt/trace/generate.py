"""Makes instruction traces of typical kernels, for demonstrations, tests and benchmarks.

The instructions are like those that nvcc emits for these kernels; addresses, masks and loop counts are those
of the real kernel.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from simt.errors import TraceError
from simt.trace.writer import FULL, KernelWriter, LaunchShape, Warp

LANES = 32
_HEAP = 0x7F4000000000
_SUFFIX = {"none": "", "xz": ".xz", "gz": ".gz", "zst": ".zst"}


@dataclass
class _Heap:
    """Allocates device addresses as cudaMalloc does: 512-byte aligned, large ones on 2 MiB."""

    next: int = _HEAP
    copies: list[tuple[int, int]] = field(default_factory=list)

    def allocate(self, size: int, copied: bool = True) -> int:
        alignment = 2 << 20 if size >= 1 << 20 else 512
        address = -(-self.next // alignment) * alignment
        self.next = address + size
        if copied:
            self.copies.append((address, size))
        return address


@dataclass(frozen=True)
class _Job:
    """One kernel to write."""

    sm: int
    size: int
    rng: random.Random
    heap: _Heap
    open: Callable[[LaunchShape], KernelWriter]


def _prologue(w: Warp, exits: int = 0) -> None:
    """Thread index, bounds check, pointer arithmetic. `exits`: lanes that leave at the bounds check."""
    w.op("IMAD.MOV.U32", 1, [255, 255])
    w.op("S2R", 0)
    w.op("S2R", 3)
    w.op("IMAD", 0, [0, 3])
    w.op("ISETP.GE.AND", None, [0])
    w.op("EXIT", mask=exits)


def _streaming(job: _Job) -> None:
    """y = a*x + y, `size` elements, four per thread and iteration, in a grid-stride loop of two passes."""
    threads, vector, iterations = 256, 4, 2
    x = job.heap.allocate(job.size * 4)
    y = job.heap.allocate(job.size * 4)
    per_pass = -(-job.size // iterations)
    ctas = -(-per_pass // (threads * vector))
    stride = ctas * threads * vector
    shape = LaunchShape("_Z5saxpyiffPKfPf", (ctas, 1, 1), (threads, 1, 1), job.sm, registers=24)
    load = "LDG.E.128.SYS" if job.sm < 80 else "LDG.E.128"
    store = "STG.E.128.SYS" if job.sm < 80 else "STG.E.128"
    with job.open(shape) as out:
        for cta in range(ctas):
            warps = []
            for warp in range(threads // LANES):
                w = Warp()
                first = (cta * threads + warp * LANES) * vector
                active = [lane for lane in range(LANES) if first + lane * vector < job.size]
                mask = sum(1 << lane for lane in active)
                _prologue(w, FULL & ~mask)
                if active:
                    top = w.pc
                    for i in range(iterations):
                        w.pc = top
                        start = first + i * stride
                        now = [lane for lane in active if start + lane * vector < job.size]
                        mask = sum(1 << lane for lane in now)
                        if not now:
                            break

                        def at(base: int, start: int = start, now: list[int] = now) -> list[int | None]:
                            return [
                                base + (start + lane * vector) * 4 if lane in now else None
                                for lane in range(LANES)
                            ]

                        w.op("IMAD.WIDE", 2, [0, 7], mask=mask)
                        w.op("IMAD.WIDE", 4, [0, 7], mask=mask)
                        w.memory(load, at(x), 16, 8, [2])
                        w.memory(load, at(y), 16, 12, [4])
                        for k in range(vector):
                            w.op("FFMA", 12 + k, [8 + k, 6, 12 + k], mask=mask)
                        w.memory(store, at(y), 16, None, [4, 12])
                        w.op("IADD3", 0, [0, 16, 255], mask=mask)
                        w.op("ISETP.GE.AND", None, [0], mask=mask)
                        w.op("BRA", mask=mask)
                    w.op("EXIT", mask=sum(1 << lane for lane in active))
                warps.append(w)
            out.cta((cta, 0, 0), warps)


def _stencil(job: _Job) -> None:
    """Five-point stencil on a plane of `size` x `size` floats; 32 x 8 threads share a tile and its border."""
    n = job.size
    width, height = LANES, 8
    source = job.heap.allocate(n * n * 4)
    target = job.heap.allocate(n * n * 4, copied=False)
    tiles_x, tiles_y = -(-n // width), -(-n // height)
    pitch = (width + 2) * 4
    shape = LaunchShape(
        "_Z7stencilPKfPfi", (tiles_x, tiles_y, 1), (width, height, 1), job.sm, pitch * (height + 2), 20
    )

    def cell(base: int, row: int, column: int) -> int | None:
        return base + (row * n + column) * 4 if 0 <= row < n and 0 <= column < n else None

    def shared(row: int, column: int) -> int:
        return (row + 1) * pitch + (column + 1) * 4

    with job.open(shape) as out:
        for tile_y in range(tiles_y):
            for tile_x in range(tiles_x):
                x0, y0 = tile_x * width, tile_y * height
                warps = []
                for row in range(height):
                    w = Warp()
                    y = y0 + row
                    lanes = [x0 + lane if x0 + lane < n and y < n else None for lane in range(LANES)]
                    inside = sum(1 << lane for lane, c in enumerate(lanes) if c is not None)
                    _prologue(w)
                    w.op("IMAD.WIDE", 2, [0, 7])

                    def stage(dy: int, dx: int, who: list[int], w: Warp = w, y: int = y, row: int = row,
                              x0: int = x0) -> None:  # fmt: skip
                        here = [
                            cell(source, y + dy, x0 + lane + dx) if lane in who else None
                            for lane in range(LANES)
                        ]
                        w.memory("LDG.E.CONSTANT" if job.sm >= 80 else "LDG.E.CONSTANT.SYS", here, 4, 8, [2])
                        places = [
                            shared(row + dy, lane + dx) if a is not None else None
                            for lane, a in enumerate(here)
                        ]
                        w.memory("STS", places, 4, None, [5, 8])

                    everyone = list(range(LANES))
                    stage(0, 0, everyone)
                    if row == 0:
                        stage(-1, 0, everyone)
                    if row == height - 1:
                        stage(1, 0, everyone)
                    w.op("ISETP.NE.AND", None, [3])
                    stage(0, -1, [0])
                    stage(0, 1, [LANES - 1])
                    w.op("BAR.SYNC" if job.sm < 80 else "BAR.SYNC.DEFER_BLOCKING")
                    for k, (dy, dx) in enumerate(((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))):
                        w.memory(
                            "LDS",
                            [
                                shared(row + dy, lane + dx) if inside >> lane & 1 else None
                                for lane in range(LANES)
                            ],
                            4,
                            10 + k,
                            [5],
                        )
                    for k in range(4):
                        w.op("FADD", 10, [10, 11 + k], mask=inside)
                    w.op("FMUL", 10, [10], mask=inside)
                    w.memory(
                        "STG.E" if job.sm >= 80 else "STG.E.SYS",
                        [cell(target, y, c) if c is not None else None for c in lanes],
                        4,
                        None,
                        [2, 10],
                    )
                    w.op("EXIT")
                    warps.append(w)
                out.cta((tile_x, tile_y, 0), warps)


def _gather(job: _Job) -> None:
    """Sparse matrix times vector, a row per thread, `size` rows of random length; a histogram of lengths."""
    rng, rows, threads = job.rng, job.size, 128
    lengths = [min(int(rng.paretovariate(1.3)) + 1, 64) for _ in range(rows)]
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    row_starts = job.heap.allocate((rows + 1) * 4)
    columns = job.heap.allocate(starts[-1] * 4)
    values = job.heap.allocate(starts[-1] * 4)
    x = job.heap.allocate(rows * 4)
    y = job.heap.allocate(rows * 4, copied=False)
    histogram = job.heap.allocate(64 * 4, copied=False)
    ctas = -(-rows // threads)
    system = ".SYS" if job.sm < 80 else ""
    shape = LaunchShape("_Z4spmviPKiS0_PKfS2_PfPi", (ctas, 1, 1), (threads, 1, 1), job.sm, registers=28)
    with job.open(shape) as out:
        for cta in range(ctas):
            warps = []
            for warp in range(threads // LANES):
                w = Warp()
                first = cta * threads + warp * LANES
                here = [first + lane if first + lane < rows else None for lane in range(LANES)]
                mask = sum(1 << lane for lane, r in enumerate(here) if r is not None)
                _prologue(w, FULL & ~mask)
                if mask:
                    w.op("IMAD.WIDE", 2, [0, 7], mask=mask)
                    w.memory(f"LDG.E{system}", _at(row_starts, here), 4, 8, [2])
                    w.memory(f"LDG.E{system}", _at(row_starts + 4, here), 4, 9, [2])
                    w.op("ISETP.GE.AND", None, [8, 9], mask=mask)
                    w.op("BSSY", mask=mask)
                    top = w.pc
                    step = 0
                    while True:
                        entries = [
                            starts[r] + step if r is not None and step < lengths[r] else None for r in here
                        ]
                        active = sum(1 << lane for lane, e in enumerate(entries) if e is not None)
                        if not active:
                            break
                        w.pc = top
                        w.op("IMAD.WIDE", 4, [8, 7], mask=active)
                        w.memory(f"LDG.E.CONSTANT{system}", _at(columns, entries), 4, 10, [4])
                        w.memory(f"LDG.E.CONSTANT{system}", _at(values, entries), 4, 11, [4])
                        w.op("IMAD.WIDE", 6, [10, 7], mask=active)
                        # Most entries lie near the diagonal, the others anywhere.
                        chosen = [
                            None
                            if r is None or e is None
                            else (r + rng.randrange(-16, 17)) % rows
                            if rng.random() < 0.6
                            else rng.randrange(rows)
                            for r, e in zip(here, entries, strict=True)
                        ]
                        w.memory(f"LDG.E.CONSTANT{system}", _at(x, chosen), 4, 12, [6])
                        w.op("FFMA", 13, [11, 12, 13], mask=active)
                        w.op("IADD3", 8, [8, 255, 255], mask=active)
                        w.op("ISETP.GE.AND", None, [8, 9], mask=active)
                        w.op("BRA", mask=active)
                        step += 1
                    w.op("BSYNC", mask=mask)
                    w.memory(f"STG.E{system}", _at(y, here), 4, None, [2, 13])
                    bins = [None if r is None else lengths[r] % 64 for r in here]
                    w.memory("RED.E.ADD.STRONG.GPU", _at(histogram, bins), 4, None, [14, 15])
                    w.op("EXIT", mask=mask)
                warps.append(w)
            out.cta((cta, 0, 0), warps)


def _at(base: int, indices: Iterable[int | None]) -> list[int | None]:
    return [None if i is None else base + i * 4 for i in indices]


_TILE, _TILE_K = 128, 32
_HALF = 2


def _gemm(job: _Job) -> None:
    """C = A*B in FP16 with FP32 sums on the tensor cores, `size` cubed, tiles of 128 x 128 x 32, eight warps.

    Up to sm_75: tiles go through registers into shared memory. From sm_80: asynchronous copies, three stages.
    """
    n = -(-job.size // _TILE) * _TILE
    a = job.heap.allocate(n * n * _HALF)
    b = job.heap.allocate(n * n * _HALF)
    c = job.heap.allocate(n * n * 4, copied=False)
    tiles = n // _TILE
    stages = 3 if job.sm >= 80 else 2
    stage_bytes = 2 * _TILE * _TILE_K * _HALF
    shape = LaunchShape(
        "_Z4gemmPK6__halfS1_Pfi", (tiles, tiles, 1), (256, 1, 1), job.sm, stages * stage_bytes, 128
    )
    with job.open(shape) as out:
        for tile_y in range(tiles):
            for tile_x in range(tiles):
                warps = []
                for warp in range(8):
                    w = Warp()
                    _prologue(w)
                    tile_a = a + tile_y * _TILE * n * _HALF
                    tile_b = b + tile_x * _TILE * n * _HALF
                    if job.sm >= 80:
                        _gemm_async(w, warp, tile_a, tile_b, n, stages, stage_bytes)
                    else:
                        _gemm_registers(w, warp, tile_a, tile_b, n, stage_bytes, job.sm)
                    _store_tile(w, warp, c + (tile_y * _TILE * n + tile_x * _TILE) * 4, n, job.sm)
                    w.op("EXIT")
                    warps.append(w)
                out.cta((tile_x, tile_y, 0), warps)


def _global_rows(tile: int, warp: int, part: int, k: int, n: int) -> list[int]:
    """Each lane's 16 bytes of a 128 x 32 tile: four lanes to a row of 64 bytes; 64 rows make a part."""
    return [
        tile + (part * 64 + warp * 8 + lane // 4) * n * _HALF + k * _TILE_K * _HALF + lane % 4 * 16
        for lane in range(LANES)
    ]


def _swizzled(row: int, chunk: int) -> int:
    """Where 16-byte chunk `chunk` of a 64-byte row lies, so that eight rows of a column use all banks."""
    return row * _TILE_K * _HALF + (chunk ^ row >> 1 & 3) * 16


def _shared_rows(base: int, warp: int, part: int) -> list[int]:
    return [base + _swizzled(part * 64 + warp * 8 + lane // 4, lane % 4) for lane in range(LANES)]


def _matrix_rows(base: int, row: int, k: int) -> list[int]:
    """Row addresses of an LDSM.x4: four 8 x 8 matrices, 16 rows by two chunks."""
    return [base + _swizzled(row + lane % 16, k * 2 + lane // 16) for lane in range(LANES)]


def _gemm_async(w: Warp, warp: int, tile_a: int, tile_b: int, n: int, stages: int, stage_bytes: int) -> None:
    half_stage = stage_bytes // 2
    steps = n // _TILE_K
    row_a, row_b = warp % 2 * 64, warp // 2 * 32

    def copy(k: int) -> None:
        for tile in (tile_a, tile_b):
            for part in range(2):
                if k < steps:
                    w.memory("LDGSTS.E.BYPASS.128", _global_rows(tile, warp, part, k, n), 16, None, [20, 22])
                else:
                    w.memory("LDGSTS.E.BYPASS.128", [None] * LANES, 16, None, [20, 22])
        w.op("LDGDEPBAR")

    for k in range(stages - 1):
        copy(k)
    top = w.pc
    for k in range(steps):
        w.pc = top
        w.op("DEPBAR.LE", immediate=stages - 2)
        w.op("BAR.SYNC.DEFER_BLOCKING")
        copy(k + stages - 1)
        base = k % stages * stage_bytes
        for half in range(2):
            for i in range(4):
                rows = _matrix_rows(base, row_a + i * 16, half)
                w.memory("LDSM.16.M88.4", rows, 4, 32 + 4 * i, [24])
            for j in range(2):
                rows = _matrix_rows(base + half_stage, row_b + j * 16, half)
                w.memory("LDSM.16.M88.4", rows, 4, 48 + 4 * j, [25])
            for i in range(4):
                for j in range(4):
                    acc = 64 + 16 * i + 4 * j
                    w.op("HMMA.16816.F32", acc, [32 + 4 * i, 48 + 2 * j, acc])
        w.op("IADD3", 20, [20, 255, 255])
        w.op("ISETP.GE.AND", None, [26])
        w.op("BRA")


def _gemm_registers(w: Warp, warp: int, tile_a: int, tile_b: int, n: int, stage_bytes: int, sm: int) -> None:
    half_stage = stage_bytes // 2
    row_a, row_b = warp % 2 * 64, warp // 2 * 32
    top = w.pc
    for k in range(n // _TILE_K):
        w.pc = top
        base = k % 2 * stage_bytes
        for matrix, tile in enumerate((tile_a, tile_b)):
            for part in range(2):
                rows = _global_rows(tile, warp, part, k, n)
                w.memory("LDG.E.128.SYS", rows, 16, 8 + 8 * matrix + 4 * part, [2 + 2 * matrix])
        for matrix in range(2):
            for part in range(2):
                places = _shared_rows(base + matrix * half_stage, warp, part)
                w.memory("STS.128", places, 16, None, [24, 8 + 8 * matrix + 4 * part])
        w.op("BAR.SYNC")
        for half in range(2):
            for i in range(4):
                w.memory("LDS.U.128", _fragment_rows(base, row_a + i * 16, half), 16, 32 + 4 * i, [25])
            for j in range(2):
                rows = _fragment_rows(base + half_stage, row_b + j * 16, half)
                w.memory("LDS.U.128", rows, 16, 48 + 4 * j, [26])
            for i in range(4):
                for j in range(4):
                    acc = 64 + 8 * (i % 2) + 2 * j
                    if sm >= 75:
                        for part in range(2):
                            w.op("HMMA.1688.F32", acc, [32 + 4 * i + 2 * part, 48 + 2 * j + part, acc])
                    else:
                        for step in range(4):
                            operands = [32 + 4 * i, 48 + 2 * j, acc]
                            w.op(f"HMMA.884.F32.F32.STEP{step}", acc, operands)
        w.op("IADD3", 2, [2, 255, 255])
        w.op("ISETP.GE.AND", None, [3])
        w.op("BRA")


def _fragment_rows(base: int, row: int, k: int) -> list[int]:
    return [base + _swizzled(row + lane % 16, k * 2 + lane // 16) for lane in range(LANES)]


def _store_tile(w: Warp, warp: int, tile: int, n: int, sm: int) -> None:
    """Each warp's 64 x 32 part of C: two neighbouring floats a lane, eight rows an instruction."""
    row0, column0 = warp % 2 * 64, warp // 2 * 32
    for i in range(8):
        for j in range(4):
            rows = [
                tile + ((row0 + i * 8 + lane // 4) * n + column0 + j * 8 + lane % 4 * 2) * 4
                for lane in range(LANES)
            ]
            opcode = "STG.E.64" if sm >= 80 else "STG.E.64.SYS"
            w.memory(opcode, rows, 8, None, [28, 64 + 16 * (i // 2) + 4 * j + 2 * (i % 2)])


def _gemm_tma(job: _Job) -> None:
    """C = A*B in FP16 on sm_90 with TMA, mbarriers and warp-group instructions: tiles of 128 x 128 x 64.

    Warps 0 to 3 are the producer's group, of which one thread issues the copies; warps 4 to 11 multiply.
    """
    n = -(-job.size // _TILE) * _TILE
    tile_k, stages, warps_in_cta = 64, 4, 12
    a = job.heap.allocate(n * n * _HALF)
    b = job.heap.allocate(n * n * _HALF)
    c = job.heap.allocate(n * n * 4, copied=False)
    tiles = n // _TILE
    stage_bytes = 2 * _TILE * tile_k * _HALF
    barriers = stages * stage_bytes
    shape = LaunchShape(
        "_Z8gemm_tma11CUtensorMapS_Pfi",
        (tiles, tiles, 1),
        (warps_in_cta * LANES, 1, 1),
        job.sm,
        barriers + stages * 16,
        168,
    )
    with job.open(shape) as out:
        for tile_y in range(tiles):
            for tile_x in range(tiles):
                warps = []
                for warp in range(warps_in_cta):
                    w = Warp()
                    _prologue(w)
                    if warp == 0:
                        for stage in range(stages):
                            w.memory("SYNCS.EXCH.64", _one_lane(barriers + stage * 16), 8, None, [20])
                    w.op("BAR.SYNC.DEFER_BLOCKING")
                    if warp < 4:
                        w.pc = 0x200
                        w.op("USETMAXREG.DEALLOC.CTAPOOL", immediate=40)
                        if warp == 0:
                            _tma_producer(
                                w,
                                a + tile_y * _TILE * n * _HALF,
                                b + tile_x * _TILE * n * _HALF,
                                n,
                                tile_k,
                                stages,
                                barriers,
                            )
                    else:
                        w.pc = 0x400
                        w.op("USETMAXREG.TRY_ALLOC.CTAPOOL", immediate=232)
                        top = w.pc
                        for k in range(n // tile_k):
                            w.pc = top
                            full = barriers + k % stages * 16
                            w.memory("SYNCS.PHASECHK.TRANS64.TRYWAIT", [full] * LANES, 8, None, [20, 21])
                            w.op("WARPGROUP.ARRIVE")
                            for _ in range(tile_k // 16):
                                w.op("HGMMA.64x128x16.F32", 24, [24])
                            w.op("WARPGROUP.DEPBAR.LE")
                            w.memory("SYNCS.ARRIVE.TRANS64.A1T0", _one_lane(full + 8), 8, None, [22])
                            w.op("ISETP.GE.AND", None, [23])
                            w.op("BRA")
                        _store_tile(w, warp - 4, c + (tile_y * _TILE * n + tile_x * _TILE) * 4, n, job.sm)
                    w.op("EXIT")
                    warps.append(w)
                out.cta((tile_x, tile_y, 0), warps)


def _one_lane(address: int) -> list[int | None]:
    return [address, *[None] * (LANES - 1)]


def _tma_producer(w: Warp, tile_a: int, tile_b: int, n: int, tile_k: int, stages: int, barriers: int) -> None:
    w.op("ELECT")
    top = w.pc
    for k in range(n // tile_k):
        w.pc = top
        full = barriers + k % stages * 16
        w.memory("SYNCS.ARRIVE.TRANS64.A1T0", _one_lane(full), 8, None, [20])
        for tile in (tile_a, tile_b):
            rows = [tile + row * n * _HALF + k * tile_k * _HALF for row in range(_TILE)]
            w.bulk("UTMALDG.2D", rows)
        w.op("UIADD3", mask=1)
        w.op("BRA", mask=1)


KINDS: dict[str, tuple[Callable[[_Job], None], int, str]] = {
    "gemm": (_gemm, 256, "matrix size"),
    "gemm_tma": (_gemm_tma, 256, "matrix size"),
    "stencil": (_stencil, 256, "width of the plane"),
    "streaming": (_streaming, 65536, "elements"),
    "gather": (_gather, 8192, "rows"),
}
"""What can be generated: function, default size, what the size means."""


def generate(
    kind: str | Sequence[str],
    directory: str | os.PathLike[str],
    *,
    sm: int = 80,
    size: int | None = None,
    seed: int = 0,
    compression: str = "xz",
) -> Path:
    """Writes a trace of one kernel, or of several in a row, and returns the path of its launch list.

    kind: of `KINDS`. sm: 70, 75, 80, 86, 89 or 90 (gemm_tma: 90). size: see `KINDS`.
    compression: none, xz, gz or zst.
    The same arguments always give the same bytes. Raises TraceError.
    """
    kinds = [kind] if isinstance(kind, str) else list(kind)
    folder = Path(directory)
    for name in kinds:
        if name not in KINDS:
            raise TraceError(f"cannot generate {name!r}, expected one of {', '.join(KINDS)}")
        if name == "gemm_tma" and sm < 90:
            raise TraceError(f"gemm_tma needs sm 90, not {sm}")
    if sm not in (70, 72, 75, 80, 86, 87, 89, 90):
        raise TraceError(f"cannot generate for sm {sm}, expected 70, 75, 80, 86, 89 or 90")
    if compression not in _SUFFIX:
        raise TraceError(f"unknown compression {compression!r}, expected one of {', '.join(_SUFFIX)}")
    if size is not None and not 1 <= size <= 1 << 28:
        raise TraceError(f"size {size} is not between 1 and {1 << 28}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        heap = _Heap()
        commands: list[str] = []
        for number, name in enumerate(kinds, start=1):
            function, default, _ = KINDS[name]
            file = f"kernel-{number}.traceg{_SUFFIX[compression]}"

            def opened(shape: LaunchShape, number: int = number, file: str = file) -> KernelWriter:
                return KernelWriter(folder / file, replace(shape, id=number))

            heap.copies.clear()
            function(_Job(sm, size or default, random.Random(seed), heap, opened))
            commands += [f"MemcpyHtoD,0x{address:016x},{bytes_}" for address, bytes_ in heap.copies]
            commands.append(file)
        path = folder / "kernelslist.g"
        path.write_text("\n".join([*commands, ""]))
    except OSError as error:
        raise TraceError(f"{folder}: cannot write the trace there: {error.strerror}") from error
    return path
