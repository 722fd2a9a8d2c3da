"""Small hand-made files in the formats of profiling tools."""

import json
import sqlite3
from pathlib import Path
from typing import Any

PID = 1 << 48 | 123 << 24  # serialised ids: process 123 of machine 1, its thread 5, and another process
TID = PID | 5
OTHER_PID = 1 << 48 | 512 << 24


def nsys_database(path: Path, statements: list[str]) -> Path:
    """An SQLite file created by these statements."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return path


def nsys_statements() -> list[str]:
    """An export of 2024: two launches on two threads' streams out of order, NVTX ranges, a copy, a fill."""
    return [
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
        "INSERT INTO StringIds VALUES"
        " (1, 'void f<int>(int)'), (2, 'f'), (3, 'g(float*)'), (4, 'g'), (5, 'step')",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL"
        " (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
        " correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,"
        " registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,"
        " blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER,"
        " graphNodeId INTEGER)",
        # g starts first on the GPU, but f was launched first.
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
        f" (1000, 1500, 0, 13, 12, {PID}, 3, 4, 40, 2, 3, 4, 32, 1, 1, 16, 1024, NULL),"
        f" (1200, 2200, 0, 7, 11, {PID}, 1, 2, 32, 10, 1, 1, 256, 1, 1, 0, 0, NULL)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,"
        " correlationId INTEGER, nameId INTEGER)",
        f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 520, {TID}, 11, 2), (600, 620, {TID}, 12, 2)",
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER,"
        " text TEXT, globalTid INTEGER, textId INTEGER)",
        f"INSERT INTO NVTX_EVENTS VALUES (100, 900, 59, NULL, {TID}, 5),"
        f" (590, 650, 59, 'aten::mm, seq = 7, op_id = 9, sizes = [[2]]', {TID}, NULL),"
        f" (595, 640, 59, 'another thread', {TID + 1}, NULL),"
        f" (610, NULL, 34, 'a mark', {TID}, NULL)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, globalPid INTEGER)",
        f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 300, {PID})",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, globalPid INTEGER)",
        f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (0, 200, {PID})",
        "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT)",
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100')",
    ]


GPU_TRACE = """\
Processing [report.sqlite] with [/opt/nvidia/nsys/reports/cuda_gpu_trace.py]...
Start (ns),Duration (us),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),\
Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
1000,0.5,130,,,,,,,,,,0.004,,Pageable,Device,NVIDIA GeForce RTX 3060 (0),1,,7,[CUDA memcpy Host-to-Device]
2000,1.25,133,4,2,1,256,1,1,40,0.001,0.049152,,,,,NVIDIA GeForce RTX 3060 (0),1,,7,"void f<int, 2>(int,\
 int)"
1500,2,132,8,1,1,128,1,1,16,0.000,0.000,,,,,NVIDIA GeForce RTX 3060 (0),1,,14,g()
"""

EXEC_TRACE = """\
API Start (ns),API Dur (ns),Queue Start (ns),Queue Dur (ns),Kernel Start (ns),Kernel Dur (ns),\
Total Dur (ns),PID,TID,\
DevId,API Function,GridXYZ,BlockXYZ,Kernel Name
100,10,None,None,900,300,1100,42,42,0,cudaLaunchKernel,   2    1    1,  32   1   1,second_on_gpu
50,10,60,40,1200,400,1550,42,42,1,cudaLaunchKernel,4 3 2,64 2 1,"first_launched(int, float)"
"""

NCU_RAW = """\
==PROF== Connected to process 7 (/bin/app)
output of the program, with "quotes" and, commas
==PROF== Profiling "f" - 0: 0%....50%....100% - 3 passes
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",\
"Device","CC",\
"dram__bytes_read.sum","gpu__time_duration.sum","launch__registers_per_thread",\
"launch__shared_mem_per_block_dynamic","launch__shared_mem_per_block_static",\
"sm__cycles_elapsed.avg.per_second",\
"smsp__inst_executed.sum","derived__text"
"","","","","","","","","","","","Mbyte","usecond","register/thread","Kbyte/block","byte/block",\
"cycle/nsecond",\
"inst",""
"0","7","app","localhost","void f<int, 2>(int, int)","1","7","(256, 1, 1)","(1024, 2, 1)","0","8.0",\
"1.5","12.34",\
"40","48","16","1.41","1,234,567","x"
"1","7","app","localhost","g()","1","13","(32, 4, 2)","(7, 1, 1)","0","8.0","n/a","1,000.5","255","0",\
"0","1.4",\
"32 (16; 16)","y"
==PROF== Disconnected from process 7
"""

SEMICOLONS = """\
"ID";"Process ID";"Kernel Name";"Stream";"Block Size";"Grid Size";"Device";"CC";"gpu__time_duration.sum";\
"dram__bytes.sum";"smsp__inst_executed.sum"
"";"";"";"";"";"";"";"";"us";"Mbyte";"inst"
"0";"7";"f(float *, int)";"7";"(128, 1, 1)";"(8, 1, 1)";"0";"9.0";"1.234,56";"0,5";"1.234"
"1";"7";"g()";"7";"(128, 1, 1)";"(8, 1, 1)";"0";"9.0";"12";"1,25";"1.234.567"
"""

NCU_DETAILS = """\
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",\
"Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","app","h","f(int)","1","7","(256, 1, 1)","(16384, 1, 1)","0","12.1","Command line",\
"gpu__time_duration.sum","us","211.94"
"0","7","app","h","f(int)","1","7","(256, 1, 1)","(16384, 1, 1)","0","12.1","Command line",\
"dram__bytes.sum","Gbyte","2"
"1","7","app","h","g(int)","1","7","(256, 1, 1)","(1, 1, 1)","0","12.1","Command line",\
"gpu__time_duration.sum","ms","1.5"
"1","7","app","h","g(int)","1","7","(256, 1, 1)","(1, 1, 1)","0","12.1","Command line","dram__bytes.sum",\
"","n/a"
"""


def event(category: str, name: str, ts: float, dur: float, tid: Any = 1, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 10,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def kineto_events() -> list[dict[str, Any]]:
    """Launches f, g, h in this order; f and g start on the GPU in reverse; h's call is untraced."""

    def kernel(name: str, ts: float, dur: float, correlation: int, external: int) -> dict[str, Any]:
        return event(
            "kernel", name, ts, dur, 7,
            **{
                "External id": external, "device": 1, "stream": 7, "correlation": correlation,
                "registers per thread": 32, "shared memory": 48, "grid": [3, 2, 1], "block": [128, 1, 1],
            },
        )  # fmt: skip

    return [
        event("python_function", "train.py(3): step", 0, 1000),
        event("user_annotation", "ProfilerStep#1", 5, 500),
        event("cpu_op", "aten::linear", 10, 100, **{"External id": 1}),
        event("cpu_op", "aten::addmm", 20, 50, **{"External id": 2}),
        event("cuda_runtime", "cudaLaunchKernel", 30, 5, **{"correlation": 100}),
        event("cpu_op", "aten::relu", 40, 30, 2, **{"External id": 3}),
        event("cuda_driver", "cuLaunchKernel", 200.5, 5, **{"correlation": 101}),
        event("gpu_user_annotation", "ProfilerStep#1", 100, 500, 7),
        kernel("g()", 300.125, 1.5, 101, 9),
        kernel('void f<"\\\\">(int)', 310.0, 2.001, 100, 2),
        kernel("h()", 900, 4, 999, 3),
        event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 250, 3, 7),
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1, "s": "t"},
        {"name": "process_name", "ph": "M", "ts": 0, "pid": "Spans", "tid": 0, "args": {"name": "x",
         "labels": "{["}},
    ]  # fmt: skip


def kineto_text(events: list[dict[str, Any]] | None = None, **more: Any) -> str:
    data = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Tesla T4"}, {"id": 1, "name": "Tesla V100"}],
        "traceEvents": kineto_events() if events is None else events,
        "traceName": "x.json",
        **more,
    }
    return json.dumps(data, indent=1)


def rocprof_data() -> dict[str, Any]:
    def dispatch(number: int, kernel: int, start: int, end: int, agent: int = 77) -> dict[str, Any]:
        return {
            "size": 184, "kind": 11, "thread_id": 1, "correlation_id": {"internal": 1, "external": 0},
            "start_timestamp": start, "end_timestamp": end,
            "dispatch_info": {
                "agent_id": {"handle": agent}, "queue_id": {"handle": 5}, "kernel_id": kernel,
                "dispatch_id": number, "private_segment_size": 0, "group_segment_size": 512,
                "workgroup_size": {"x": 256, "y": 1, "z": 1}, "grid_size": {"x": 1000, "y": 3, "z": 1},
            },
            "stream_id": {"handle": 9},
        }  # fmt: skip

    start = 1 << 60  # so late that a float64 cannot resolve nanoseconds
    return {
        "rocprofiler-sdk-tool": [
            {
                "metadata": {"pid": 908},
                "agents": [
                    {"id": {"handle": 70}, "type": 1, "name": "EPYC"},
                    {"id": {"handle": 77}, "type": 2, "name": "gfx950", "product_name": "MI350X",
                     "logical_node_type_id": 3},
                ],
                "strings": {"buffer_records": [{"kind": "KERNEL_DISPATCH", "operations": []}],
                "marker_api": []},
                "kernel_symbols": [
                    {"kernel_id": 1, "kernel_name": "_Z1f.kd", "demangled_kernel_name": "f(int) [clone .kd]",
                     "arch_vgpr_count": 12, "accum_vgpr_count": 4},
                    {"kernel_id": 2, "kernel_name": "__amd_rocclr_copyBuffer.kd",
                     "demangled_kernel_name": "__amd_rocclr_copyBuffer.kd"},
                ],
                "buffer_records": {
                    "kernel_dispatch": [
                        dispatch(2, 2, start + 10, start + 20), dispatch(1, 1, start + 5, start + 105)
                    ],
                    "hip_api": [{"start_timestamp": 1}],
                    "memory_copy": [{"start_timestamp": 1, "end_timestamp": 31}],
                },
            }
        ]
    }  # fmt: skip


ROCPROF_CSV = """\
"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",\
"Correlation_Id",\
"Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count",\
"SGPR_Count",\
"Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 4",1,1,85,2,13,"g(float*, int)",2,1551874061259214,1551874061270254,64,0,8,4,16,\
64,2,1,100,6,1
"KERNEL_DISPATCH","Agent 4",1,1,85,1,10,"void f<float>(float*, int)",1,1551874061244694,1551874061255734,\
0,0,8,0,16,64,1,1,1024,1024,1
"""

ROCPROF_COUNTERS = """\
"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id",\
"Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count",\
"Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"
2,2,4,1,77,77,1000,13,"g(float*, int) [clone .kd]",64,512,0,8,4,16,"SQ_WAVES",16.000000,1551874061259214,\
1551874061270254
1,1,4,1,77,77,4096,10,"void f<float>(float*, int)",256,0,0,8,0,16,"SQ_WAVES",64.000000,1551874061244694,\
1551874061255734
1,1,4,1,77,77,4096,10,"void f<float>(float*, int)",256,0,0,8,0,16,"OccupancyPercent",4.34259040e-02,\
1551874061244694,1551874061255734
1,1,4,1,77,77,4096,10,"void f<float>(float*, int)",256,0,0,8,0,16,"SQ_WAVES",6,1551874061244694,\
1551874061255734
"""

ROCPROF_V2 = """\
Dispatch_ID,GPU_ID,Queue_ID,Queue_Index,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,\
Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,Start_Timestamp,End_Timestamp,\
Correlation_ID,SQ_WAVES,SQ_IDLE
1,2,3,0,77,77,4096,256,128,0,64,8,32,64,"void f<float>(float*, int)",1000,1300,1,64
2,2,3,0,77,77,100,64,0,0,16,0,32,64,"g.kd",2000,2500,2,
"""

ROCPROF_V1 = """\
"Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","lds","scr","arch_vgpr",\
"accum_vgpr","sgpr","wave_size","sig","obj","SQ_WAVES","DispatchNs","BeginNs","EndNs","CompleteNs","DurationNs"
0,"f(float*) [clone .kd]",1,0,0,9,9,512,128,0,0,8,4,16,64,"0x0","0x7f",8,10,20,120,130,100
"""


def rocpd_statements(schema: int = 3, run: str = "_0001") -> list[str]:
    """A rocpd database, by ROCprofiler-SDK's `rocpd_tables.sql`: two dispatches out of order on the second of
    two GPUs, a copy, a counter of two instances, and views without the run's id."""

    def table(name: str, columns: str, *rows: str) -> list[str]:
        made = [f"CREATE TABLE `{name}{run}` (id INTEGER PRIMARY KEY, guid TEXT, {columns})"]
        made += [f"INSERT INTO `{name}{run}` VALUES ({row})" for row in rows]
        return [*made, f"CREATE VIEW IF NOT EXISTS `{name}` AS SELECT * FROM `{name}{run}`"] if run else made

    start = 1 << 60  # so late that a float64 cannot resolve nanoseconds
    sizes = "workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z"
    statements = [
        *table("rocpd_metadata", "tag TEXT, value TEXT", f"1, 'g', 'schema_version', '{schema}'"),
        *table("rocpd_info_process", "nid, pid, command", "5, 'g', 1, 4242, './app'"),
        *table(
            "rocpd_info_agent", "type, absolute_index, logical_index, type_index, name, product_name",
            "1, 'g', 'CPU', 0, 0, 0, 'EPYC', 'AMD EPYC'",
            "2, 'g', 'GPU', 1, 1, 0, 'gfx90a', 'AMD Instinct MI210'",
            "3, 'g', 'GPU', 2, 2, 1, 'gfx942', 'AMD Instinct MI300X'",
        ),
        *table(
            "rocpd_info_kernel_symbol",
            "kernel_name, display_name, arch_vgpr_count, accum_vgpr_count, extdata",
            """1, 'g', '_Z1fi.kd', 'f', 12, 4, '{"demangled_kernel_name": "f(int) [clone .kd]"}'""",
            "2, 'g', '_Z1gv.kd', 'g()', 8, 0, '{}'",
        ),
        *table("rocpd_info_pmc", "name, symbol", "1, 'g', 'SQ_WAVES', 's'", "2, 'g', 'GRBM_COUNT', 's'"),
        *table("rocpd_pmc_event", "event_id, pmc_id, value",
               "1, 'g', 8, 1, 5.0", "2, 'g', 8, 1, 6.5", "3, 'g', 9, 2, 7"),
    ]  # fmt: skip
    if schema == 3:
        return [
            *statements,
            *table(
                "rocpd_kernel_dispatch",
                "pid, agent_id, kernel_id, dispatch_id, stream_id, start, end, group_segment_size, "
                f"{sizes}, event_id",
                f"1, 'g', 5, 3, 2, 2, 7, {start + 500}, {start + 700}, 64, 128, 2, 1, 1000, 6, 1, 9",
                f"2, 'g', 5, 3, 1, 1, 7, {start}, {start + 100}, 0, 256, 1, 1, 256, 1, 1, 8",
            ),
            *table("rocpd_memory_copy", "pid, start, end", f"1, 'g', 5, {start}, {start + 40}"),
        ]
    return [
        *statements,
        *table("rocpd_track", "nid, pid, agent_id, stream_id", "1, 'g', 1, 5, 3, 7"),
        *table("rocpd_timestamp", "value",
               *(f"{i}, 'g', {start + at}" for i, at in enumerate((500, 700, 0, 100, 40), 1))),
        *table(
            "rocpd_kernel_dispatch",
            f"track_id, kernel_id, dispatch_id, start_id, end_id, group_segment_size, {sizes}, event_id",
            "1, 'g', 1, 2, 2, 1, 2, 64, 128, 2, 1, 1000, 6, 1, 9",
            "2, 'g', 1, 1, 1, 3, 4, 0, 256, 1, 1, 256, 1, 1, 8",
        ),
        *table("rocpd_memory_copy", "track_id, start_id, end_id", "1, 'g', 1, 3, 5"),
    ]  # fmt: skip


TRACER_STATS = """\
kernel id, kernel mangled name, grid_dimX, grid_dimY, grid_dimZ, #blocks, block_dimX, block_dimY,\
 block_dimZ, #threads, \
total_insts, total_reported_insts
kernel-1.trace, _Z6vecAddPKfS0_Pfi, 4096, 2, 1, 8192, 256, 1, 1, 256, 524288,524288
kernel-2.trace, _Z1gv, 1, 1, 1, 1, 32, 4, 2, 256, 100,100
"""

GET_STATS = f"""\
{"-" * 100},
Accel-Sim-build,
APPS,QV100-SASS
vectoradd/4096--all_kernels,3ed08ed,

{"-" * 100},
gpu_tot_sim_cycle\\s*=\\s*(.*),
APPS,QV100-SASS,
vectoradd/4096--_Z6vecAddPKfS0_Pfi--0,5501.0,
vectoradd/4096--_Z6vecAddPKfS0_Pfi--1,5402,

{"-" * 100},
gpgpu_n_tot_w_icount\\s*=\\s*(.*),
APPS,QV100-SASS,
vectoradd/4096--_Z6vecAddPKfS0_Pfi--0,26601,
vectoradd/4096--_Z6vecAddPKfS0_Pfi--1,NA,

"""
NVPROF_TIMES = """==77== NVPROF is profiling process 77, command: ./a
==77== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X",\
"Block Y","Block Z","Registers Per Thread","Static SMem","Dynamic SMem",\
"Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Name","Correlation_ID"
ms,us,,,,,,,,KB,B,KB,GB/s,,,,,,,
200.5,1.5,,,,,,,,,,4.0,2.6,"Pageable","Device","Quadro GV100 (0)","1","7","[CUDA memcpy HtoD]",101
200.6,3.25,8,2,1,256,1,1,16,0.5,64,,,,,"Quadro GV100 (0)","1","7","void axpy<float>(float*) [105]",105
200.7,2.0,1,1,1,32,1,1,8,0,0,,,,,"Quadro GV100 (0)","1","7","dot(float*, float*) [109]",109
"""
NVPROF_METRICS = """==78== Profiling result:
"Device","Context","Stream","Kernel","Correlation_ID","elapsed_cycles_sm","inst_executed","achieved_occupancy","l2_tex_read_throughput","tex_cache_hit_rate","tex_utilization"
"Quadro GV100 (0)","1","7","void axpy<float>(float*) [105]",105,8000,120,0.5,64.000000GB/s,25.00%,"Low (2)"
"Quadro GV100 (0)","1","7","dot(float*, float*) [109]",109,1600,40,0.25,32.000000MB/s,0.00%,"Idle (0)"
"""
