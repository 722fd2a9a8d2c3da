"""rocprofv3's JSON, traces, saved Results, and reports that only Nsight can read."""

import copy
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import simt
from simt.errors import ProfileError, SimtError
from simt.profile import kind_of, read_profile
from support.fake_gpu import installed
from support.profiles import (
    NCU_RAW,
    NVPROF_METRICS,
    NVPROF_TIMES,
    nsys_database,
    nsys_statements,
    rocprof_data,
)


def test_rocprof_json(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(json.dumps(rocprof_data()))
    profile = read_profile(path)
    assert profile.gpu == "MI350X"
    size = {"grid_x": 4, "grid_y": 3, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1}
    assert profile.launches.to_dicts() == [
        {"launch": 0, "name": "f(int)", "start_ns": 0.0, "duration_ns": 100.0, **size, "registers": 16,
         "shared_bytes": 512, "stream": 9, "device": 3, "position": 0},
        {"launch": 1, "name": "__amd_rocclr_copyBuffer", "start_ns": 5.0, "duration_ns": 10.0, **size,
         "registers": 0, "shared_bytes": 512, "stream": 9, "device": 3, "position": 1},
    ]  # fmt: skip
    kernels = profile.kernels()
    assert len(kernels) == 1
    (copies,) = kernels.left_out  # one copy by a kernel, one by a copy engine
    assert (copies.launches, copies.duration_ns, copies.share) == (2, 40.0, 40 / 140)


def test_rocprof_processes(tmp_path: Path) -> None:
    data = rocprof_data()
    other = copy.deepcopy(data["rocprofiler-sdk-tool"][0])
    other["metadata"]["pid"] = 909
    other["kernel_symbols"][0]["demangled_kernel_name"] = "other"
    data["rocprofiler-sdk-tool"].append(other)
    path = tmp_path / "x"
    path.write_text(json.dumps(data))
    assert len(read_profile(path)) == 4
    assert read_profile(path, process=909).launches["name"].to_list() == ["other", "__amd_rocclr_copyBuffer"]


def test_rocprof_damage(tmp_path: Path) -> None:
    path = tmp_path / "x"
    text = json.dumps(rocprof_data())
    path.write_text(text.replace('"kernel_id": 1, "kernel_name"', '"kernel_id": 8, "kernel_name"'))
    with pytest.raises(ProfileError, match="dispatch 1: kernel 1 is not among the kernel_symbols"):
        read_profile(path)
    path.write_text(text.replace('"end_timestamp"', '"end"', 1))
    with pytest.raises(ProfileError, match=r"`kernel_dispatch` from byte \d+ on: .*`end_timestamp`"):
        read_profile(path)
    path.write_text(text[: text.index('"hip_api"')])
    with pytest.raises(ProfileError, match="the file is damaged, or was cut off"):
        read_profile(path)


@pytest.mark.slow
def test_real_rocprof(shared_data: Path) -> None:
    profile = read_profile(shared_data / "profiles" / "mi350_training_50steps.rocprofv3.json.gz")
    assert len(profile) == 43915
    assert profile.gpu == "AMD Instinct MI350X"
    kernels = profile.kernels()
    assert {part.kind: part.launches for part in kernels.left_out} == {"copy": 6366, "communication": 1310}
    assert len(kernels) == 43915 - 6366 - 1310


@pytest.mark.slow
def test_kinds_of_real_names(shared_data: Path) -> None:
    """No framework kernel that copies or fills tensors is mistaken for a copy by the runtime."""
    left_out = set()
    for path in (shared_data / "profiles").glob("*.gz"):
        profile = read_profile(path)
        left_out |= set(profile.names) - set(profile.kernels().names)
    assert left_out
    assert all(name.startswith(("nccl", "__amd_rocclr_")) for name in left_out)


def test_kinds() -> None:
    kinds = {
        "Memcpy HtoD (Pageable -> Device)": "copy",
        "Memset (Device)": "copy",
        "[CUDA memcpy Device-to-Device]": "copy",
        "__amd_rocclr_fillBufferAligned": "copy",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "communication",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": "communication",
        "void mscclKernel_Sum_half(ncclDevComm*)": "communication",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)": "communication",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>(float*)": "kernel",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >": "kernel",
        "fillBuffer(float*, int)": "kernel",
        "void block_all_reduce<float>(float*)": "kernel",
    }
    assert {name: kind_of(name) for name in kinds} == kinds


def test_traces(shared_data: Path) -> None:
    pytest.importorskip("simt._engine")
    folder = shared_data / "traces" / "bfs_graph4096_sm80"
    profile = read_profile(folder)
    assert len(profile) == 16
    assert profile.launches["grid_x"].to_list()[0] > 0
    assert read_profile(folder / "kernelslist.g").launches.equals(profile.launches)
    assert len(read_profile(folder / "kernel-3.traceg.xz")) == 1


@pytest.mark.parametrize("name", ["result", "result.json"])
def test_saved_results(tmp_path: Path, name: str) -> None:
    with installed():
        result = simt.simulate("input")
    path = result.save(tmp_path / name)
    profile = read_profile(path)
    assert len(profile) == len(result.launches)
    assert profile.gpu == result.machine.name
    first = result.launches[0]
    row = profile.launches.row(0, named=True)
    assert (row["launch"], row["name"], row["grid_x"]) == (first.index, first.name, first.grid[0])
    assert row["duration_ns"] == pytest.approx(first.seconds * 1e9)
    assert row["smsp__inst_executed.sum"] == first.warp_instructions
    with pytest.raises(ProfileError, match="a Result has no processes"):
        read_profile(path, process=1)


@pytest.mark.slow
def test_profiles_do_not_need_the_engine() -> None:
    code = "import sys, simt.profile, simt.sampling.sampler; print('simt._engine' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def fake_tool(folder: Path, name: str, text: str) -> None:
    tool = folder / name
    tool.write_text(f"#!{sys.executable}\nimport sys, shutil\n{text}\n")
    tool.chmod(0o755)


def test_report_of_nsight_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"\x01\0binary")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(
        ProfileError,
        match=r"`nsys` is not installed here. "
        r"On a machine that has it, run: nsys export --type sqlite --output",
    ):
        read_profile(report)
    (tmp_path / "bin").mkdir()
    export = nsys_database(tmp_path / "export.sqlite", nsys_statements())
    fake_tool(
        tmp_path / "bin", "nsys", f"shutil.copy({str(export)!r}, sys.argv[sys.argv.index('--output') + 1])"
    )
    profile = read_profile(report)
    assert len(profile) == 2
    assert profile.source == str(report)
    fake_tool(tmp_path / "bin", "nsys", "sys.exit('file is damaged')")
    with pytest.raises(ProfileError, match="nsys failed: file is damaged"):
        read_profile(report)


def test_report_of_nsight_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "run"
    report.write_bytes(b"NVR\0binary")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ProfileError, match=r"run: ncu --import .* --page raw --csv"):
        read_profile(report)
    (tmp_path / "bin").mkdir()
    (tmp_path / "raw.csv").write_text(NCU_RAW)
    fake_tool(tmp_path / "bin", "ncu", f"shutil.copyfileobj(open({str(tmp_path / 'raw.csv')!r}), sys.stdout)")
    assert len(read_profile(report)) == 2


@pytest.mark.slow
def test_a_bomb_does_not_fill_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"SQLite format 3\0")
        for _ in range(200):
            file.write(bytes(1 << 20))
    with pytest.raises(ProfileError, match=r"unpacks to more than 200 times its [\d,]+ bytes"):
        read_profile(path)


def test_what_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content, message in (
        (b"", "the file is empty"),
        (b"\x7fELF\0\0", "is not a profile of any known tool"),
        (b"just text\n", "no column `name`"),
    ):
        path.write_bytes(content)
        with pytest.raises(ProfileError, match=message):
            read_profile(path)
    with pytest.raises(ProfileError, match="cannot be read: No such file"):
        read_profile(tmp_path / "missing")
    with pytest.raises(SimtError):
        read_profile(tmp_path)


def test_nvprof_times(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(NVPROF_TIMES)
    profile = read_profile(path)
    assert profile.gpu == "Quadro GV100"
    axpy, dot = profile.launches.to_dicts()
    assert axpy == {
        "launch": 0, "name": "void axpy<float>(float*)", "start_ns": 0.0, "duration_ns": 3250.0,
        "grid_x": 8, "grid_y": 2, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1, "registers": 16,
        "stream": 7, "shared_bytes": 564,
    }  # fmt: skip
    assert dot["start_ns"] == pytest.approx(1e5)
    (copies,) = profile.left_out
    assert (copies.launches, copies.duration_ns) == (1, 1500.0)


def test_nvprof_metrics_get_the_names_of_counters(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(NVPROF_METRICS)
    axpy, dot = read_profile(path).launches.to_dicts()
    assert axpy["name"] == "void axpy<float>(float*)"
    assert axpy["elapsed_cycles_sm"] == 8000.0
    assert axpy["smsp__inst_executed.sum"] == 120.0
    assert axpy["sm__warps_active.avg.pct_of_peak_sustained_active"] == 50.0
    assert axpy["lts__t_sectors_srcunit_tex_op_read.sum.per_second"] == 64e9 / 32
    assert dot["lts__t_sectors_srcunit_tex_op_read.sum.per_second"] == 1e6
    assert axpy["l1tex__t_sector_hit_rate.pct"] == 25.0
    assert axpy["tex_utilization"] == 2.0


def test_what_is_recognised_and_not_read(tmp_path: Path) -> None:
    path = nsys_database(
        tmp_path / "nvprof.db",
        [
            "CREATE TABLE StringTable (_id_, value)",
            "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start)",
        ],
    )
    with pytest.raises(ProfileError, match=r"activities of CUPTI in a database of nvprof.*--print-gpu-trace"):
        read_profile(path)
    for line in (
        'CONC KERNEL "f" [ 123 - 456 ] device 0, context 1, stream 7, correlation 12',
        'CONCURRENT_KERNEL [ 1719, 1720 ] duration 1, "f", correlationId 12',
    ):
        path.write_text(f"DEVICE 0\n{line}\n")
        with pytest.raises(ProfileError, match="activity records as CUPTI's samples print them"):
            read_profile(path)
    path.write_text('{"Type": 79, "data": ["f"]}\n{"Type": 79, "CudaEvent": {}}\n')
    with pytest.raises(ProfileError, match="JSON lines, which is not read; nsys export --type sqlite"):
        read_profile(path)
