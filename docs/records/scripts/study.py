"""Studies: continued after kills, throughput, overhead of short points, makespan of a spread launch list.

python study.py [kills] [throughput] [overhead] [spread]
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import simt
import simt.study.study
from simt.study.simulation import DONE, PointOutcome, simulate_work

PTX = """.version 8.0
.target sm_60
.address_size 64
.visible .entry work(.param .u64 out, .param .u32 n)
{
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.b64 %rd1, [out]; ld.param.b32 %r4, [n];
  mov.u32 %r3, %tid.x; mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ntid.x; mad.lo.u32 %r3, %r6, %r7, %r3;
  mul.wide.u32 %rd2, %r3, 4; add.u64 %rd3, %rd1, %rd2;
AGAIN:
  ld.global.cg.u32 %r5, [%rd3]; add.u32 %r5, %r5, 3; st.global.u32 [%rd3], %r5;
  sub.u32 %r4, %r4, 1; setp.ne.u32 %p, %r4, 0; @%p bra AGAIN;
  ret;
}
"""
PROGRAM = f'''
import numpy as np

def main(gpu):
    module, x = gpu.load("""{PTX}"""), gpu.zeros(128 * CTAS, np.uint32)
    for _ in range(LAUNCHES):
        module.work[CTAS, 128](x, STEPS)
'''
GPUS = ["qv100", "titanx", "rtx3070", "a100", "h100"]
POINTS, MILLISECOND = 10_000, 1e-3
KILLS, WORKERS = 10, 2


def program(folder: Path, name: str, ctas: int, steps: int, launches: int = 1) -> str:
    text = PROGRAM.replace("CTAS", str(ctas)).replace("STEPS", str(steps)).replace("LAUNCHES", str(launches))
    (folder / f"{name}.py").write_text(text)
    return f"{name}.py"


def two_hundred(folder: Path) -> str:
    """A study of 4 programs x 5 specifications x 10 values."""
    names = [
        program(folder, f"p{i}", ctas, steps)
        for i, (ctas, steps) in enumerate([(1, 400), (16, 200), (64, 100), (200, 60)])
    ]
    (folder / "study.toml").write_text(
        f"inputs = {names}\ngpus = {GPUS}\n[set]\nl1.latency = {list(range(20, 40, 2))}\n"
        f"[workers]\ncount = {WORKERS}\nbatch_seconds = 0.1\n"
    )
    return "study.toml"


def kills() -> None:
    """200 points, killed ten times at random, against an uninterrupted run."""
    tables, random_ = [], random.Random(0)
    for count in (0, KILLS):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            two_hundred(folder)
            environment = {**os.environ, "SIMT_CACHE": str(folder / "cache")}
            command = [sys.executable, "-c", "import simt.cli; simt.cli.main()", "study", "study.toml", "-q"]
            study, start = simt.Study.load(folder / "study.toml"), time.monotonic()
            for _ in range(count):
                wanted = len(study.table()) + random_.randint(0, 8)
                child = subprocess.Popen(command, cwd=folder, env=environment)
                while len(study.table()) < wanted and child.poll() is None:
                    time.sleep(0.02)
                time.sleep(random_.uniform(0, 0.05))
                child.send_signal(signal.SIGKILL)
                child.wait()
                print(f"  killed with {len(study.table())} points there", flush=True)
            subprocess.run(command, cwd=folder, env=environment, check=True)
            tables.append(study.table(how=False))
            print(f"kills: {count} kills, {len(tables[-1])} points, {time.monotonic() - start:.0f} s")
    print(f"kills: the tables are {'equal' if tables[0].equals(tables[1]) else 'DIFFERENT'}, bit for bit")


def throughput() -> None:
    """A study on two workers against the same points in two plain processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = simt.Study(
            inputs=[program(folder, "long", 320, 60, 2)],
            set={"l1.latency": list(range(20, 180))},
            workers={"count": WORKERS},
            results="out",
            folder=folder,
        )
        works = [point.work for point in study.points]
        os.environ["SIMT_CACHE"] = str(folder / "cache")
        context = get_context("spawn")
        start = time.monotonic()
        children = [context.Process(target=simulate_all, args=(works[i::WORKERS],)) for i in range(WORKERS)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        plain = time.monotonic() - start
        start = time.monotonic()
        study.run()
        took = time.monotonic() - start
        print(
            f"throughput: {len(works)} points in {plain:.1f} s in {WORKERS} plain processes, {took:.1f} s "
            f"as a study: {plain / took:.2f} of the cores' sum"
        )


def simulate_all(works: list[simt.study.space.PointWork]) -> None:
    for work in works:
        simulate_work(work)


def one_millisecond(work: object) -> PointOutcome:
    """In place of a simulation."""
    end = time.perf_counter() + MILLISECOND
    while time.perf_counter() < end:
        pass
    return PointOutcome(DONE, values={"cycles": 1.0})


def overhead() -> None:
    """10,000 points of 1 ms, from the description to the last row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["SIMT_CACHE"] = str(folder / "cache")
        simt.study.study.simulate_work = one_millisecond  # type: ignore[assignment]
        study = simt.Study(
            inputs=[program(folder, "short", 1, 1)],
            set={"l1.latency": list(range(20, 120)), "l2.latency": list(range(100, 200))},
            workers={"count": WORKERS},
            results="out",
            folder=folder,
        )
        start, spent = time.monotonic(), time.process_time()
        count = len(study.points)
        made = time.monotonic() - start
        study.run()
        took, spent = time.monotonic() - start, time.process_time() - spent
        assert len(study.table()) == count == POINTS
        each = 1e3 * (took - POINTS * MILLISECOND / WORKERS) / POINTS
        print(
            f"overhead: {POINTS:,} points of 1 ms on {WORKERS} workers in {took:.1f} s, of which {made:.1f} "
            f"s to make them: {each:.2f} ms a point beyond the points themselves; "
            f"{1e3 * spent / POINTS:.2f} ms of processor time in the study's process"
        )
        simt.study.study.simulate_work = simulate_work


def spread() -> None:
    """A launch list, whole and spread, on one and two workers."""
    from simt.trace import open_trace

    demo = Path(__file__).parents[3] / "examples" / "demo"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(demo, folder / "many")
        listing = folder / "many" / "kernelslist.g"
        listing.write_text(listing.read_text() * 100)
        os.environ["SIMT_CACHE"] = str(folder / "cache")
        for kernel in open_trace(folder / "many").kernels:
            kernel.stored()  # so that no run has to convert it
        for count, launches in ((1, None), (1, 10), (2, 10)):
            method = {"name": "spread", "spread": launches} if launches else "full"
            study = simt.Study(
                inputs=["many"],
                gpus=["qv100"],
                methods=[method],
                workers={"count": count},
                results=f"out-{count}-{launches}",
                folder=folder,
            )
            shutil.rmtree(folder / "cache" / "points", ignore_errors=True)
            start = time.monotonic()
            study.run()
            row = study.table().row(0, named=True)
            what = f"{launches} launches a piece" if launches else "whole"
            print(
                f"spread: {row['launches']} launches, {what}, {count} worker(s): "
                f"{time.monotonic() - start:.1f} s, {row['cycles']:,.0f} cycles, "
                f"{row['error'] or row['status']}"
            )


def main() -> None:
    tests = {"kills": kills, "throughput": throughput, "overhead": overhead, "spread": spread}
    print(f"load of the machine at the start: {os.getloadavg()[0]:.2f}")
    for name in sys.argv[1:] or tests:
        tests[name]()


if __name__ == "__main__":
    main()
