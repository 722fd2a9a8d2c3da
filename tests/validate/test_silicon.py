"""A real GPU as a device for microbenchmarks, behind a simulating stand-in for the driver: the results must
be those of the simulated GPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import simt
from simt.cli import main
from simt.cuda import driver as cuda
from simt.cuda import toolkit
from simt.cuda.driver import Driver
from simt.errors import DriverError, LaunchError
from simt.validate import hardware
from simt.validate.device import SimulatedDevice
from simt.validate.hardware import HardwareGPU
from simt.validate.microbenchmark import Microbenchmark, run_microbenchmarks
from simt.validate.silicon import SiliconDevice
from simt.workloads import WORKLOADS
from support.fake_cuda import SimulatedCuda, no_driver

pytestmark = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")

SOURCE = """
extern "C" __global__ void scale(float* x, int n, float a) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  tile[threadIdx.x] = x[i];
  x[i] = a * tile[threadIdx.x];
}
__device__ int step = 3;
extern "C" __global__ void steps(int* out) { out[threadIdx.x] = step * threadIdx.x; }
extern "C" __global__ void wrong(int* out) { *out = 1; }
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every simulated cycle takes time, and a simulated GPU does not wait for the host."""
    monkeypatch.setattr(hardware, "_HOLD_NS", 4000.0)
    monkeypatch.setattr(hardware, "_LONGEST_HOLD_NS", 4000.0)
    monkeypatch.setattr(hardware, "_CLOCK_NS", 20_000)


@pytest.fixture
def library() -> SimulatedCuda:
    return SimulatedCuda("qv100")


@pytest.fixture
def gpu(library: SimulatedCuda) -> Iterator[HardwareGPU]:
    found = HardwareGPU(0, driver=Driver(library))
    yield found
    found.close()


@pytest.mark.slow
def test_records_are_those_of_the_simulated_gpu(
    library: SimulatedCuda, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """End to end: command line, driver, NVRTC, clocks, events, JSON."""
    names = ["fma_latency", "fma_throughput", "sm_count", "launch_latency", "l1_latency", "l1_sector"]
    names += ["l2_latency", "l2_bandwidth", "shared_conflict", "atomic_latency"]
    monkeypatch.setattr(cuda, "_import_bindings", lambda: library)
    command = ["simt", "bench", "run", *names, "--device", "0", "--repeats", "2", "--json", "-"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    shown = capsys.readouterr()
    record = json.loads(shown.out)
    assert record["schema"] == "simt.microbenchmarks/1"
    assert (record["device"], record["simulated"]) == (library.gpu.spec.name, False)
    assert record["core_mhz"] == pytest.approx(1380, rel=1e-4)
    assert record["version"] == simt.__version__
    assert record["provenance"]["driver_cuda"] == "12.8"
    assert record["provenance"]["memory_bus_bits"] == 4096
    assert "l2_bandwidth" in shown.err
    expected = {m.name: m.value for m in run_microbenchmarks(SimulatedDevice("qv100"), names)}
    found = {b["name"]: b for b in record["benchmarks"]}
    assert set(found) == set(names)
    for name, b in found.items():
        # The only differences: cache contents left by earlier runs, the placement of arrays, and events,
        # which miss the few cycles of an empty kernel.
        tolerance = {"l2_bandwidth": 0.15, "launch_latency": 0.01}.get(name, 1e-3)
        assert b["value"] == pytest.approx(expected[name], rel=tolerance), name
        assert b["runs"] == 2
        assert b["low"] <= b["value"] <= b["high"]


@pytest.mark.slow
def test_a_launch_takes_what_the_simulated_gpu_says(gpu: HardwareGPU, library: SimulatedCuda) -> None:
    n = 100_000
    kernel = gpu.compile(SOURCE).scale
    x = gpu.array(np.arange(n, dtype=np.float32))
    assert kernel[-(-n // 256), 256, 60_000](x, n, 3.0) is None
    np.testing.assert_array_equal(x.numpy(), 3 * np.arange(n, dtype=np.float32))
    (time,) = gpu.times
    done = next(x for x in library.gpu.launches if x.name == "scale")
    assert (time.name, time.grid, time.block) == ("scale", (391, 1, 1), (256, 1, 1))
    assert (time.registers, time.shared_bytes) == (done.registers, 60_000)
    empty = float(np.median([x.cycles for x in library.gpu.launches if x.name == "nothing"]))
    assert time.nanoseconds == pytest.approx((done.cycles - empty) / 1.38, rel=1e-3)
    assert time.cycles == pytest.approx(done.cycles - empty, rel=1e-3)
    assert time.core_mhz == pytest.approx(1380, rel=1e-3)
    assert gpu.launch_ns == pytest.approx(empty / 1.38, rel=0.1)


def test_a_clock_that_rises_is_waited_for(gpu: HardwareGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = iter([345.0, 600.0, 1200.0, 1900.0, 1975.0, 1980.0, 1981.0, 1979.0, 1980.0, 1.0])
    monkeypatch.setattr(gpu, "_spun_mhz", lambda: next(clocks))
    assert gpu.measure_clock() == 1980
    assert next(clocks) == 1.0


def test_a_host_that_is_slow_is_noticed(gpu: HardwareGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = gpu.compile(SOURCE).steps
    out = gpu.zeros(32, np.int32)
    ticks = iter(range(1000))
    monkeypatch.setattr(hardware, "perf_counter", lambda: next(ticks))
    kernel[1, 32](out)
    monkeypatch.setattr(hardware, "perf_counter", lambda: 0.0)
    kernel[1, 32](out)
    assert [t.late for t in gpu.times] == [True, False]


@pytest.mark.slow
def test_workloads_run_unchanged(gpu: HardwareGPU) -> None:
    for name, launches in (("matmul", 1), ("pagerank", 16)):
        workload = WORKLOADS[name]
        gpu.times.clear()
        outputs = workload.run(gpu, workload.small)
        assert workload.error(outputs, workload.reference(workload.small)) <= workload.tolerance
        assert len(gpu.times) == launches
        assert all(t.nanoseconds and t.nanoseconds > 0 for t in gpu.times)


def test_host_arrays_and_variables(gpu: HardwareGPU) -> None:
    module = gpu.compile(SOURCE)
    out = np.zeros(32, np.int32)
    module.variable("step", np.int32).set([5])
    module.steps[1, 32](out)
    np.testing.assert_array_equal(out, 5 * np.arange(32))


def test_under_a_profiler_only_the_program_launches(library: SimulatedCuda) -> None:
    gpu = HardwareGPU(0, timed=False, driver=Driver(library))
    gpu.compile(SOURCE).steps[1, 32](np.zeros(32, np.int32))
    assert [x.name for x in library.gpu.launches] == ["steps"]
    assert gpu.times[0].nanoseconds is None


def test_what_it_cannot_do_is_said(gpu: HardwareGPU) -> None:
    with pytest.raises(LaunchError, match="textures"):
        gpu.texture(np.zeros((4, 4), np.float32))
    with pytest.raises(LaunchError, match="no Result"):
        gpu.result()
    with pytest.raises(LaunchError, match=r"no room for array .*CUDA_ERROR_OUT_OF_MEMORY"):
        gpu.zeros(1 << 45)
    with pytest.raises(DriverError, match="ILLEGAL_ADDRESS"):
        gpu.compile(SOURCE).wrong[1, 1](None)


def test_without_a_gpu_it_says_what_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cuda.bindings.driver.cuInit", no_driver)
    monkeypatch.setattr(sys, "argv", ["simt", "bench", "run", "--device", "0"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code
    assert "no CUDA driver on this machine" in (said := capsys.readouterr().err)
    assert "--gpu NAME" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "either --gpu"),
        (["--gpu", "qv100", "--device", "0"], "either --gpu"),
        (["--device", "0", "--set", "l1.latency=3"], "has none"),
    ],
)
def test_one_place_to_run(
    options: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["simt", "bench", "run", "fma_latency", *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_the_median_of_several_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([99.0, 4.0, 9.0, 5.0])
    noisy = Microbenchmark("noisy", "core", "s", "d", "cycle", lambda device: next(values), None, 0.0, 0)
    monkeypatch.setattr("simt.validate.microbenchmark.choose", lambda names: [noisy])
    (found,) = run_microbenchmarks(SimulatedDevice("qv100"), repeats=3)
    assert (found.value, found.low, found.high, found.runs) == (5.0, 4.0, 9.0, 3)


def test_measurements_without_an_answer_are_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    none = Microbenchmark("none", "core", "s", "d", "cycle", lambda device: min([]), None, 0.0, 0)
    monkeypatch.setattr("simt.validate.microbenchmark.choose", lambda names: [none])
    (found,) = run_microbenchmarks(SimulatedDevice("qv100"))
    assert (found.value, found.runs) == (None, 0)
    assert found.note.startswith("the measurements give no answer")
    assert len(run_microbenchmarks(SimulatedDevice("qv100"), repeats=2)) == 1


def test_a_device_is_a_device() -> None:
    device = SiliconDevice(0, Driver(SimulatedCuda("a100")))
    assert (device.sm_version, device.sms) == (80, 108)
    assert device.shared_bytes_per_cta == 163 << 10
    array = device.zeros(100, np.int32)
    assert not device.numpy(array).any()
    device.free(array)
    device.close()
