"""Tiny traces and engine runs for tests of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simt import _engine
from simt.spec import load_spec
from simt.trace import Copy, open_trace
from simt.trace.writer import KernelWriter, LaunchShape, Warp

FULL = 0xFFFFFFFF
GLOBAL = 0x7F0000000000
MOST_CYCLES = 20_000_000  # of a run: a run that does not end fails


def write_kernel(folder: Path, ctas: Sequence[Sequence[Warp]], number: int = 1, **shape: Any) -> Path:
    """Writes a kernel trace and appends it to the folder's launch list. Each warp gets a final EXIT; a Warp
    may occur several times.
    """
    folder.mkdir(parents=True, exist_ok=True)
    threads = shape.pop("threads", 32 * max((len(warps) for warps in ctas), default=1))
    known = {"name": "tiny", "grid": (len(ctas), 1, 1), "block": (threads, 1, 1), "sm": 70, "id": number}
    file = folder / f"kernel-{number}.traceg"
    for warp in {id(warp): warp for warps in ctas for warp in warps}.values():
        if warp.lines:
            warp.op("EXIT")
    with KernelWriter(file, LaunchShape(**{**known, **shape})) as out:
        for index, warps in enumerate(ctas):
            out.cta((index, 0, 0), warps)
    with (folder / "kernelslist.g").open("a") as listing:
        listing.write(file.name + "\n")
    return folder


def warp_of(build: Callable[[Warp], None]) -> Warp:
    """A warp filled by a function."""
    warp = Warp()
    build(warp)
    return warp


def dependent(count: int) -> Warp:
    """A warp of `count` FFMA, each of which needs the result of the one before."""
    warp = Warp()
    for _ in range(count):
        warp.op("FFMA", 8, (8, 2, 8))
    return warp


def run(
    folder: Path,
    gpu: str = "qv100-accelsim",
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    threads: int = 1,
    window: int = 0,
    timeline: int = 0,
    slices: Callable[[int], int] | None = None,
) -> list[dict[str, Any]]:
    """The engine's records of a trace; `slices(i)` returns the cycles of the i-th call of Gpu.run()."""
    chosen = dict(overrides) if isinstance(overrides, Mapping) else list(overrides)
    engine = _engine.Gpu(load_spec(gpu, chosen).native(), threads, window, timeline)
    for command in open_trace(folder).commands:
        if isinstance(command, Copy):
            engine.copy_from_host(command.address, command.bytes)
        else:
            engine.launch(command.source(), command.id)
    if slices is None:
        assert engine.run(MOST_CYCLES)
    else:
        for i in range(1 << 20):
            if engine.run(slices(i)):
                break
    return finished(engine)


def finished(engine: _engine.Gpu) -> list[dict[str, Any]]:
    """The engine's records with all their parts; its counters are `counters`."""
    found = []
    for raw in engine.finished():
        parts = raw["code"].parts(raw["numbers"])
        kept = {name: value for name, value in raw.items() if name not in ("code", "numbers")}
        found.append({**kept, **parts, "counters": parts["engine"]})
    return found


def cycles(
    folder: Path, gpu: str = "qv100-accelsim", overrides: Mapping[str, Any] | Iterable[str] = ()
) -> int:
    """Cycles of all launches, without launch latency."""
    records = run(folder, gpu, overrides)
    return sum(r["end_cycle"] - r["start_cycle"] - r["launch_latency"] for r in records)


CODE_AT_ONCE = {"sm.front_end.instruction_cache.prefetch_latency": 0}
"""Prefetched lines of code take no time."""


def distance(
    tmp_path: Path,
    append: Callable[[Warp, int], None],
    gpu: str,
    overrides: Mapping[str, Any] | None = None,
    counts: tuple[int, int] = (40, 120),
) -> float:
    """Cycles by which one additional instruction in a chain lengthens a kernel of one warp, without the time
    that prefetched code takes.
    """
    totals = []
    for count in counts:
        warp = Warp()
        for i in range(count):
            append(warp, i)
        folder = write_kernel(
            tmp_path / f"{gpu}-{count}-{len(list(tmp_path.iterdir()))}", [[warp]], shared_bytes=4096
        )
        totals.append(cycles(folder, gpu, CODE_AT_ONCE | dict(overrides or {})))
    return (totals[1] - totals[0]) / (counts[1] - counts[0])
