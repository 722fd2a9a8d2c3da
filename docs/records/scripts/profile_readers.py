"""How fast profiles are read, and with how much memory.

Makes files of each format in a temporary folder, reads each in a process of its own, and prints megabytes and
launches per second and the process's peak memory (the Python libraries alone take about 0.2 GB).

    python profile_readers.py            # under a minute
    python profile_readers.py --big      # with a Kineto trace of 1 GB, too
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from simt.profile import Profile, read_profile

NAMES = [
    f"void at::native::vectorized_elementwise_kernel<4, at::native::Functor{i}<float>, "
    f"std::array<char*, 3ul> >(int, at::native::Functor{i}<float>, std::array<char*, 3ul>)"
    for i in range(200)
]
COUNTERS = [f"smsp__inst_executed_op_{i}.sum" for i in range(12)]


def durations(count: int) -> list[float]:
    return np.random.default_rng(0).lognormal(9, 1, count).round().tolist()


def kineto(path: Path, megabytes: int) -> None:
    """A launch is an operator in an operator, its call, the kernel, and two events that are read over."""
    args = {"External id": 0, "Concrete Inputs": ["[]", "4", "", "False"], "Ev Idx": 0}
    launch = {"queued": 0, "device": 0, "stream": 7, "registers per thread": 32, "shared memory": 0}
    launch |= {"blocks per SM": 0.5, "warps per SM": 4.5, "grid": [100, 1, 1], "block": [128, 1, 1]}
    size, i = 0, 0
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": [\n')
        while size < megabytes * 1_000_000:
            at, late, own = 100.125 * i, 100.125 * i + 1000, {"correlation": i}
            events = [
                ("cpu_op", "aten::linear", 1, at, 90.5, args),
                (
                    "cpu_op",
                    "aten::addmm",
                    1,
                    at + 1,
                    80.25,
                    {**args, "Input Dims": [[1024, 1024], [1024, 4096]]},
                ),
                ("cuda_runtime", "cudaLaunchKernel", 1, at + 2, 5, {"cbid": 211, **own}),
                ("kernel", NAMES[i % len(NAMES)], 7, late, 1 + i % 97, {**launch, **own}),
                ("ac2g", "ac2g", 1, at + 2, 0, {}),
                ("ac2g", "ac2g", 7, late, 0, {}),
            ]
            for category, name, thread, start, dur, more in events:
                event = {
                    "ph": "X",
                    "cat": category,
                    "name": name,
                    "pid": 10,
                    "tid": thread,
                    "ts": start,
                    "dur": dur,
                }
                size += file.write(json.dumps({**event, "args": more}) + ",\n")
            i += 1
        file.write('{"ph": "M", "name": "end", "ts": 0}\n], "traceName": "x"}\n')


def nsys_sqlite(path: Path, launches: int) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate([*NAMES, "range"]))
    columns = ["start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName"]
    columns += ["registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"]
    columns += ["staticSharedMemory", "dynamicSharedMemory"]
    database.execute(
        f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({', '.join(c + ' INTEGER' for c in columns)})"
    )
    rows = (
        (100 * i, 100 * i + int(d) % 100, 0, 7, i, 1 << 24, i % 200, 32, 100, 1, 1, 128, 1, 1, 0, 0)
        for i, d in enumerate(durations(launches))
    )
    database.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({', '.join('?' * 16)})", rows)
    database.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME"
        " (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER)"
    )
    calls = ((100 * i, 100 * i + 50, 1 << 24 | 1, i) for i in range(launches))
    database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?)", calls)
    database.execute(
        "CREATE TABLE NVTX_EVENTS"
        " (start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, textId INTEGER)"
    )
    ranges = ((100 * i, 100 * i + 90, 59, 1 << 24 | 1, 200) for i in range(launches))
    database.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?)", ranges)
    database.commit()
    database.close()


def gpu_trace(path: Path, launches: int) -> None:
    with path.open("w") as file:
        file.write(
            "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),"
        )
        file.write("Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n")
        for i, d in enumerate(durations(launches)):
            name = NAMES[i % 200]
            file.write(f'{100 * i},{d:.0f},{i},100,1,1,128,1,1,32,0.000,0.049,,,,,GPU (0),1,,7,"{name}"\n')


def ncu_raw(path: Path, launches: int) -> None:
    with path.open("w") as file:
        about = ["ID", "Process ID", "Kernel Name", "Stream", "Block Size", "Grid Size", "Device", "CC"]
        file.write(",".join(f'"{c}"' for c in [*about, "gpu__time_duration.sum", *COUNTERS]) + "\n")
        file.write('"","","","","","","","","usecond"' + ',"inst"' * len(COUNTERS) + "\n")
        for i, d in enumerate(durations(launches)):
            counters = ",".join(f'"{i * k % 1234567:,}"' for k in range(1, 13))
            file.write(
                f'"{i}","1","{NAMES[i % 200]}","7","(128, 1, 1)","(100, 1, 1)","0","8.0","{d:,}",{counters}\n'
            )


def rocprof(path: Path, launches: int) -> None:
    def record(i: int) -> str:
        return (
            f'{{"size":184,"kind":11,"operation":2,"thread_id":1,"correlation_id":{{"internal":{i},"external":0}},'
            f'"start_timestamp":{100 * i},"end_timestamp":{100 * i + 50 + i % 7},"dispatch_info":{{"size":72,'
            f'"agent_id":{{"handle":7}},"queue_id":{{"handle":1}},"kernel_id":{i % 200},"dispatch_id":{i},'
            f'"private_segment_size":0,"group_segment_size":0,"workgroup_size":{{"x":256,"y":1,"z":1}},'
            f'"grid_size":{{"x":25600,"y":1,"z":1}}}},"stream_id":{{"handle":0}}}}'
        )

    head = {
        "metadata": {"pid": 1},
        "agents": [{"id": {"handle": 7}, "type": 2, "product_name": "GPU"}],
        "kernel_symbols": [{"kernel_id": i, "demangled_kernel_name": name} for i, name in enumerate(NAMES)],
    }
    with path.open("w") as file:
        file.write(
            '{"rocprofiler-sdk-tool":[' + json.dumps(head)[:-1] + ',"buffer_records":{"kernel_dispatch":['
        )
        file.writelines(("," if i else "") + record(i) for i in range(launches))
        file.write("]}}]}")


def parquet(path: Path, launches: int) -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "launch": pl.Series(np.arange(launches), dtype=pl.UInt64),
            "name": pl.Series(NAMES).gather(rng.integers(0, len(NAMES), launches)),
            "grid_x": rng.integers(1, 1000, launches).astype(np.uint32),
            "block_x": np.full(launches, 256, np.uint32),
            "start_ns": np.arange(launches) * 1e4,
            "duration_ns": rng.lognormal(9, 1, launches).round(),
        }
    )
    Profile(frame).save(path)


Make = Callable[[Path, int], None]
CASES: list[tuple[str, Make, int]] = [
    ("Kineto JSON", kineto, 100),
    ("rocprofv3 JSON", rocprof, 100_000),
    ("Nsight Systems SQLite, NVTX", nsys_sqlite, 200_000),
    ("Nsight Systems CSV", gpu_trace, 300_000),
    ("Nsight Compute raw CSV, 13 counters", ncu_raw, 100_000),
    ("Parquet", parquet, 10_000_000),
]


def measure(path: str) -> None:
    """In the child process: reads one file."""
    began = time.perf_counter()
    profile = read_profile(path)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"seconds": seconds, "launches": len(profile), "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--big", action="store_true", help="also a Kineto trace of 1 GB")
    parser.add_argument("--measure", metavar="FILE", help="read this file, and print what it took as JSON")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    cases = [*CASES, ("Kineto JSON, 1 GB", kineto, 1000)] if options.big else CASES
    print(f"{'format':38}{'MB':>7}{'launches':>12}{'s':>8}{'MB/s':>8}{'launches/s':>13}{'peak GB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name, make, size in cases:
            path = Path(folder) / "profile"
            make(path, size)
            megabytes = path.stat().st_size / 1e6
            command = [sys.executable, __file__, "--measure", str(path)]
            took = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            path.unlink()
            seconds, launches = took["seconds"], took["launches"]
            print(
                f"{name:38}{megabytes:7.0f}{launches:12,}{seconds:8.2f}{megabytes / seconds:8.0f}"
                f"{launches / seconds:13,.0f}{took['peak']:9.2f}"
            )


if __name__ == "__main__":
    main()
