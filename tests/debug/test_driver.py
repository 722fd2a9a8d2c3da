"""The CUDA driver's interface, against a stand-in for the library."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from simt.cuda.driver import Driver, DriverDevice
from simt.errors import CompileError, DriverError
from support.fake_cuda import FakeCuda, Status, no_driver

PTX = """.version 8.0
.target sm_70
.address_size 64
.global .u32 step = 3;
.visible .entry count(.param .u64 out, .param .u32 first)
{
  .reg .b32 %r<5>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [first];
  mov.u32 %r2, %tid.x; ld.global.u32 %r3, [step]; mad.lo.u32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
  ret;
}
"""


def device(**options: object) -> tuple[DriverDevice, FakeCuda]:
    library = FakeCuda(**options)  # type: ignore[arg-type]
    return DriverDevice(0, Driver(library)), library


def test_a_kernel_runs_and_its_results_come_back() -> None:
    with device()[0] as gpu:
        module = gpu.load(PTX, "count.ptx")
        out = gpu.allocate(32 * 4)
        address, size = module.variable("step")
        assert size == 4
        gpu.write(address, np.uint32(5).tobytes())
        kernel = module.kernel("count")
        kernel.launch((1, 1, 1), (32, 1, 1), out.to_bytes(8, "little") + np.uint32(7).tobytes())
        gpu.synchronize()
        assert np.frombuffer(gpu.read(out, 128), np.uint32).tolist() == [7 + 5 * k for k in range(32)]
        assert kernel.attribute("NUM_REGS") > 0
        gpu.free(out)
        module.unload()


def test_the_launch_is_what_was_asked_for() -> None:
    gpu, library = device()
    out = gpu.allocate(4096)
    parameters = out.to_bytes(8, "little") + bytes(4)
    kernel = gpu.load(PTX).kernel("count")
    kernel.launch((4, 2, 1), (8, 1, 2), parameters, shared=100_000, cluster=(2, 1, 1))
    assert library.launches[-1] == {
        "kernel": "count",
        "grid": (4, 2, 1),
        "block": (8, 1, 2),
        "shared": 100_000,
        "cluster": (2, 1, 1),
        "parameters": parameters,
    }
    with pytest.raises(DriverError, match=r"cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE: invalid argument"):
        kernel.launch((1, 1, 1), (1, 1, 1), parameters, shared=1 << 20)


def test_what_the_device_is() -> None:
    gpu, _ = device()
    assert (gpu.name, gpu.compute_capability, gpu.arch) == ("Fake GPU", (8, 0), "sm_80")
    assert gpu.attribute("WARP_SIZE") == 32
    assert gpu.memory_bytes == 1 << 36


def test_events_tell_the_time_between_them() -> None:
    gpu, _ = device()
    kernel = gpu.load(PTX).kernel("count")
    out = gpu.allocate(4096)
    start, end = gpu.event().record(), gpu.event()
    for _ in range(3):
        kernel.launch((1, 1, 1), (32, 1, 1), out.to_bytes(8, "little") + bytes(4))
    assert end.record().milliseconds_since(start) == 1.5
    start.destroy()


def test_memory_at_an_address_of_ones_choice() -> None:
    gpu, _ = device()
    memory = gpu.map((16 << 32) + 4096, 100)
    assert (memory.address, memory.size) == (16 << 32, 2 << 20)
    gpu.write((16 << 32) + 4096, b"here")
    assert gpu.read((16 << 32) + 4096, 4) == b"here"
    memory.release()
    with pytest.raises(DriverError):
        gpu.read((16 << 32) + 4096, 4)
    taken, _ = device(mapped_elsewhere=True)
    with pytest.raises(DriverError, match=r"no memory at 0x1000000000"):
        taken.map(16 << 32, 100)


def test_ptx_that_does_not_compile_shows_the_log() -> None:
    gpu, _ = device()
    with pytest.raises(
        CompileError, match=r"bad.ptx: the driver does not load the PTX.*INVALID_PTX(.|\n)*ptxas"
    ):
        gpu.load(PTX.replace("mad.lo.u32", "mad.low.u32"), "bad.ptx")
    assert "bytes gmem" in gpu.load(PTX).log


def test_a_fault_is_told_and_a_new_context_helps() -> None:
    gpu, library = device()
    gpu.load(PTX).kernel("count").launch((1, 1, 1), (32, 1, 1), (64).to_bytes(8, "little") + bytes(4))
    with pytest.raises(DriverError, match="CUDA_ERROR_ILLEGAL_ADDRESS") as error:
        gpu.synchronize()
    assert error.value.status == 700
    gpu.reset()
    assert library.resets == 1
    gpu.synchronize()


def test_what_is_not_there() -> None:
    gpu, library = device()
    with pytest.raises(DriverError, match="CUDA_ERROR_NOT_FOUND"):
        gpu.load(PTX).kernel("other")
    with pytest.raises(DriverError, match="no GPU 3: this machine has 1"):
        DriverDevice(3, Driver(library))
    with pytest.raises(DriverError, match="too old: it has no cuNew"):
        Driver(library).call("cuNew")


def test_a_machine_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda.bindings.driver.cuInit", no_driver)
    with pytest.raises(
        DriverError, match=r"no CUDA driver on this machine: libcuda\.so\.1 is missing, or older"
    ):
        DriverDevice()


def test_without_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(
        DriverError, match=r"needs cuda-bindings, which is not installed: pip install 'simt\[cuda"
    ):
        DriverDevice()


def test_a_status_that_the_bindings_do_not_know() -> None:
    gpu, library = device()
    library.cuCtxSynchronize = lambda: Status(7001)  # type: ignore[method-assign]
    with pytest.raises(DriverError, match="cuCtxSynchronize: 7001 is not a valid CUresult"):
        gpu.synchronize()


def test_memory_is_filled_and_the_version_is_said() -> None:
    gpu, _ = device()
    address = gpu.allocate(100)
    gpu.write(address, bytes(range(100)))
    gpu.fill(address + 10, 7, 80)
    assert gpu.read(address, 100) == bytes(range(10)) + b"\7" * 80 + bytes(range(90, 100))
    gpu.fill(address, 0, 0)
    assert gpu.driver.version == "12.8"


def test_ptx_newer_than_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, library = device()
    refused = Status.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    monkeypatch.setattr(library, "cuModuleLoadDataEx", lambda *arguments: (refused, None))
    with pytest.raises(CompileError, match=r"the driver runs CUDA 12\.8 and knows no newer PTX"):
        gpu.load(PTX)
