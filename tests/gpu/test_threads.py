"""GPUs in programs with several threads, and a GPU's cost on the host."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import simt
from simt import host_threads
from simt.errors import LaunchError, SimtError

PTX = """.version 8.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 x, .param .u32 n)
{
  .reg .pred %p; .reg .f32 %f; .reg .b32 %r<5>; .reg .b64 %a, %o;
  ld.param.u64 %a, [x]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1; @%p bra DONE;
  mul.wide.u32 %o, %r2, 4; add.u64 %a, %a, %o;
  ld.global.f32 %f, [%a]; add.f32 %f, %f, %f; st.global.f32 [%a], %f;
DONE:
  ret;
}
.visible .entry spin(.param .u32 n)
{
  .reg .pred %p; .reg .b32 %r<3>;
  ld.param.u32 %r1, [n]; mov.u32 %r2, 0;
AGAIN:
  add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, %r1; @%p bra AGAIN;
  ret;
}
"""
N = 1000


def in_threads(*work: Callable[[], None]) -> None:
    """Runs each in its own thread and raises the first exception raised by any."""
    errors: list[BaseException] = []

    def guarded(act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(act,)) for act in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def launches(gpu: simt.GPU, count: int, on_device: bool = False) -> Callable[[], None]:
    module = gpu.load(PTX)

    def act() -> None:
        for i in range(count):
            values = np.full(N, i, np.float32)
            if on_device:
                array = gpu.array(values)
                module.twice[4, 256](array, N)
                values = array.numpy()
            else:
                module.twice[4, 256](values, N)
            assert (values == 2 * i).all()

    return act


@pytest.mark.parametrize("functional", [False, True])
def test_threads_that_launch_share_a_gpu(functional: bool) -> None:
    gpu = simt.GPU("qv100", functional=functional, set={"sm.count": 8})
    in_threads(*[launches(gpu, 6, on_device=i % 2 == 0) for i in range(6)])
    assert gpu.memory.used == 0
    assert [launch.id for launch in gpu.launches] == ([] if functional else list(range(1, 37)))


def test_threads_that_allocate_drop_and_read_beside_launches() -> None:
    gpu = simt.GPU("qv100", set={"sm.count": 8})
    module = gpu.load(PTX)
    stop = threading.Event()

    def allocate() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            kept = [gpu.array(np.full(50, turn + k, np.float32)) for k in range(4)]
            del kept[::2]
            assert (kept[1].numpy() == turn + 3).all()
            address = gpu.memory.allocate(64)
            gpu.memory.write(address, bytes(range(64)))
            assert gpu.memory.read(address, 64) == bytes(range(64))
            gpu.memory.free(address)

    def stream() -> None:
        own = gpu.stream()
        for _ in range(6):
            array = gpu.ones(N)
            module.twice[4, 256](array, N, stream=own)
            assert (array.numpy() == 2).all()
            gpu.result()

    def launch() -> None:
        try:
            in_threads(launches(gpu, 10), launches(gpu, 10, on_device=True), stream)
        finally:
            stop.set()

    in_threads(allocate, allocate, launch)
    assert gpu.memory.used == 0


def test_arrays_may_be_dropped_inside_their_gpu() -> None:
    """The garbage collector may run anywhere, including while the same thread is about to launch."""
    gpu = simt.GPU("qv100", functional=True)
    module = gpu.load(PTX)
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for i in range(50):
            cycle: list[object] = [gpu.ones(N)]
            cycle.append(cycle)
            del cycle
            values = np.full(N, i, np.float32)
            module.twice[4, 256](values, N)
            assert (values == 2 * i).all()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert gpu.memory.used == 0


def test_two_gpus_run_side_by_side() -> None:
    """A launch releases the interpreter: two GPUs can be inside their launches at the same time."""
    gpus = [simt.GPU("qv100", code="ptx", set={"sm.count": 1}) for _ in range(2)]
    kernels = [gpu.load(PTX)["spin"] for gpu in gpus]
    spans: list[tuple[float, float]] = []

    def run(kernel: object) -> None:
        begin = time.monotonic()
        kernel[1, 32](30_000)  # type: ignore[index]
        spans.append((begin, time.monotonic()))

    in_threads(*[lambda kernel=kernel: run(kernel) for kernel in kernels])
    (a, b), (c, d) = spans
    assert max(a, c) < min(b, d)
    assert gpus[0].launches[0].cycles == gpus[1].launches[0].cycles


def test_what_a_launch_calls_cannot_use_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = simt.GPU("qv100", functional=True)
    module = gpu.compile('extern "C" __global__ void hello() { printf("hello"); }')

    class Output:
        def write(self, text: str) -> None:
            gpu.zeros(1)

    monkeypatch.setattr(sys, "stdout", Output())
    with pytest.raises(LaunchError, match="the GPU is running a launch and cannot be used"):
        module.hello[1, 1]()
    monkeypatch.undo()
    assert gpu.ones(3).tolist() == [1, 1, 1]


def test_another_gpus_things_are_refused_by_name() -> None:
    ours, theirs = simt.GPU("qv100", functional=True), simt.GPU("a100", functional=True)
    kernel = ours.load(PTX)["twice"]
    words = r"memory of another GPU \(a100\), not of this one \(qv100\)"
    with pytest.raises(LaunchError, match=f"`twice`, argument 1: DeviceArray.*{words}"):
        kernel[1, 32](theirs.zeros(4), 4)
    with pytest.raises(LaunchError, match=f"`twice`, argument 1: Texture.*{words}"):
        kernel[1, 32](theirs.texture(np.zeros(4, np.float32)), 4)
    for launch in (
        lambda: kernel[1, 32, 0, theirs.stream()],
        lambda: kernel[1, 32](ours.zeros(4), 4, stream=theirs.stream()),
    ):
        with pytest.raises(LaunchError, match=r"the stream is one of another GPU \(a100\)"):
            launch()
    with pytest.raises(LaunchError, match="not an event of its GPU"):
        ours.stream().wait(theirs.event())


def test_threads_are_no_more_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_threads, "cores", lambda: 3)
    with pytest.warns(UserWarning, match="threads is 100000, this process has 3 cores: using 3"):
        gpu = simt.GPU("qv100", threads=100_000, set={"sm.count": 2})
    launches(gpu, 1)()
    assert gpu.result().provenance.threads == 3
    for threads in (0, -1, 2.5, "2", None):
        with pytest.raises(SimtError, match=r"threads is .*, expected"):
            simt.GPU("qv100", threads=threads)  # type: ignore[arg-type]


def test_a_dropped_gpu_is_gone_at_once() -> None:
    gc.collect()
    gc.disable()
    try:
        for functional in (True, False):
            gpu = simt.GPU("qv100", functional=functional, set={"sm.count": 4})
            module = gpu.load(PTX)
            array, stream = gpu.ones(N), gpu.stream()
            module.twice[4, 256](array, N)
            module.twice[4, 256](array, N, stream=stream)
            with stream:
                module.twice[4, 256](array, N)
            event = stream.record()
            assert array[1:3].tolist() == [8, 8]
            with pytest.raises(simt.ProgramFault) as fault:
                module.twice[80, 256](array, 80 * 256)
            gone = weakref.ref(gpu)
            del fault, event, stream, array, module, gpu
            assert gone() is None
    finally:
        gc.enable()


PROGRAM = """
import gc, os, sys
from pathlib import Path
import simt

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

gc.disable()
first = simt.GPU("h100"), simt.GPU("h100", functional=True)
before = resident()
idle = [simt.GPU("h100", functional=True) for _ in range(20)]
each = (resident() - before) / 20
print(each)
assert each < 5e6, each
before = resident()
for _ in range(8):
    simt.GPU("h100")
print(resident() - before)
assert resident() - before < 250e6
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="measures memory as Linux tells it")
def test_what_gpus_cost_the_host() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
