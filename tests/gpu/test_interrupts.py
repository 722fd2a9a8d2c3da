"""Ctrl-C ends a running kernel soon, and host memory use stays close to what a program allocates."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import simt

PTX = """.version 8.0
.target sm_70
.address_size 64
.visible .entry endless(.param .b64 flag)
{
  .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %a;
  ld.param.b64 %a, [flag]; mov.u32 %r1, 0;
AGAIN:
  add.u32 %r1, %r1, 3; ld.volatile.global.u32 %r2, [%a];
  setp.eq.u32 %p, %r2, 0; @%p bra AGAIN;
  ret;
}
.visible .entry spin(.param .b64 flag)
{
  .reg .pred %p; .reg .b32 %r;
  mov.u32 %r, 0;
AGAIN:
  add.u32 %r, %r, 2; setp.ne.u32 %p, %r, 7; @%p bra AGAIN;
  ret;
}
.visible .entry fill(.param .b64 out)
{
  .reg .b32 %r<4>; .reg .b64 %a, %o;
  ld.param.b64 %a, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3; mul.wide.u32 %o, %r1, 4; add.u64 %a, %a, %o; st.global.u32 [%a], %r1;
  ret;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["endless", "spin"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("functional", [True, False])
def test_ctrl_c_ends_a_kernel(functional: bool, threads: int, kernel: str) -> None:
    gpu = simt.GPU("qv100", functional=functional, threads=threads, set={"sm.count": 4})
    module = gpu.load(PTX)
    flag, out = gpu.zeros(1, np.uint32), gpu.zeros(256, np.uint32)
    used, handler = gpu.memory.used, signal.getsignal(signal.SIGINT)
    pressed = [0.0]

    def press() -> None:
        pressed[0] = time.process_time()
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.3, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        module[kernel][8, 64](flag)
    took = time.process_time() - pressed[0]
    timer.join()
    assert took < 5, "processor time of this process; other programs do not count"
    assert signal.getsignal(signal.SIGINT) is handler
    assert gpu.memory.used == used
    module.fill[4, 64](out)
    assert (out.numpy() == np.arange(256)).all()


LOUD = """.version 8.0
.target sm_70
.address_size 64
.global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.visible .entry loud()
{
  .reg .b64 %a;
  mov.u64 %a, text; cvta.global.u64 %a, %a;
AGAIN:
  {
  .param .b64 f; .param .b64 v; .param .b32 r;
  st.param.b64 [f], %a; st.param.b64 [v], 0;
  call.uni (r), vprintf, (f, v);
  }
  bra AGAIN;
}
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("functional", [True, False])
def test_ctrl_c_ends_what_prints_without_end(
    functional: bool, threads: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A turn of this many instructions takes long if each of them prints."""
    gpu = simt.GPU("qv100", functional=functional, threads=threads, set={"sm.count": 1})
    kernel = gpu.load(LOUD).loud
    pressed = [0.0]

    def press() -> None:
        pressed[0] = time.process_time()
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.2, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernel[2, 32]()
    took = time.process_time() - pressed[0]
    timer.join()
    assert took < 5, "processor time of this process; printing to the end takes half a minute"
    out = gpu.zeros(256, np.uint32)
    gpu.load(PTX).fill[4, 64](out)  # the request was for the launch before
    assert (out.numpy() == np.arange(256)).all()
    assert capsys.readouterr().out.startswith("hellohello")


PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np
import simt

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

functional, bytes_ = sys.argv[1] == "True", int(sys.argv[2])
gpu = simt.GPU("qv100", functional=functional)
module = gpu.load(Path(sys.argv[3]))
module.fill[4, 256](gpu.empty(1024, np.uint32))
before = resident()
out = gpu.empty(bytes_ // 4, np.uint32)
for _ in range(2):
    module.fill[bytes_ // 4 // 256, 256](out)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(resident() - before, int(peak.split()[1]) * 1024 - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(("functional", "megabytes", "more"), [(True, 128, 8), (False, 12, 64)])
def test_memory_is_what_the_program_allocates(
    tmp_path: Path, functional: bool, megabytes: int, more: int
) -> None:
    """Plus 10 %, and memory independent of the program: with timing, the machine's state."""
    file = tmp_path / "kernels.ptx"
    file.write_text(PTX)
    allocated = megabytes << 20
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(functional), str(allocated), str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    at_end, peak = map(int, done.stdout.split())
    assert allocated * 0.9 < at_end, "all of it was written"
    assert max(at_end, peak) < 1.1 * allocated + (more << 20)
