"""Errors of simulated programs are reported with their location, and the GPU remains usable."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt import _engine
from simt.cuda import PtxModule
from simt.errors import DeadlockError, LaunchError, PtxError
from simt.isa.ptx import ptx_table
from simt.sass.disassembler import is_installed
from support.ptx import HEADER, Device

SOURCE = """#include <cassert>
__device__ __noinline__ int endless(int n) {
    volatile int own[4];
    own[n & 3] = n;  // keeps the compiler from making a loop of it
    return n == -1 ? 0 : endless(n + 1) + own[n & 1];  // endless
}
__device__ __noinline__ void write_at(int* p, int v) {
    *p = v;  // in a function
}
extern "C" __global__ void fault(int what, int* a, char* b, unsigned n) {
    __shared__ int s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool me = i == 37;
    if (!me && what != 10) return;
    switch (what) {
        case 0: a[n] = 1; break;                        // out of bounds: write
        case 1: a[0] = a[n + 5]; break;                 // out of bounds: read
        case 2: ((float4*)a)[n / 4] = float4(); break;  // out of bounds: vector
        case 3: atomicAdd(a + n, 1); break;             // out of bounds: atomic
        case 4: *(int*)(b + 2) = 1; break;              // misaligned: write
        case 5: { float4 v = *(float4*)(b + 8); a[0] = v.x + v.y + v.z + v.w; break; }  // misaligned: vector
        case 6: atomicAdd((int*)(b + 1), 1); break;     // misaligned: atomic
        case 7: *(int*)(size_t)(n - 100) = 1; break;              // null
        case 8: a[0] = endless(i); break;               // stack
        case 9: __trap(); break;                        // trap
        case 10: asm volatile("bar.sync 1, %0;" :: "r"(i % 64 < 32 ? 64 : 96)); break;  // barrier
        case 11: assert(what == 0); break;              // assertion
        case 12: ((volatile int*)s)[n + 9] = 1; break;  // beyond shared memory
        case 13: write_at(a + n, 1); break;             // in a function
        case 14: atomicExch((unsigned long long*)(b + 4), 1ull); break;  // misaligned: wide atomic
        case 15: a[-1000000] = 0; break;                // before
        case 16: *(double*)((char*)s + 4) = n; break;   // misaligned: shared
    }
}
extern "C" __global__ void fine(int* a) { a[threadIdx.x] = threadIdx.x * 3; }
"""

FAULTS = [
    (0, "illegal address", "out of bounds: write", "0 bytes behind the end of `array"),
    (1, "illegal address", "out of bounds: read", "20 bytes behind the end of `array"),
    (2, "illegal address", "out of bounds: vector", "access of 16 bytes"),
    (3, "illegal address", "out of bounds: atomic", "0 bytes behind the end of `array"),
    (4, "misaligned address", "misaligned: write", "access of 4 bytes"),
    (5, "misaligned address", "misaligned: vector", "access of 16 bytes"),
    (6, "misaligned address", "misaligned: atomic", "access of 4 bytes"),
    (7, "illegal address", "null", "a null pointer"),
    (8, "stack overflow", "endless", "bytes of stack"),
    (9, "trap", "trap", "stopped itself"),
    (10, "divergent barrier", "barrier", "barrier 1 is waited at for 96 threads, and by others for 64"),
    (11, "assert", "assertion", "`what == 0` failed"),
    (12, "illegal address", "beyond shared memory", "of shared memory, which has 256 bytes"),
    (13, "illegal address", "in a function", "in function `"),
    (14, "misaligned address", "misaligned: wide atomic", "access of 8 bytes"),
    (15, "illegal address", "before", "access of 4 bytes"),
    (16, "misaligned address", "misaligned: shared", "access of 8 bytes"),
]


HOW = ["values", "values, 2 threads", "timing", "timing, 2 threads"]


@pytest.fixture(scope="module", params=[*HOW, "values of machine code", "timing of machine code"])
def module(request: pytest.FixtureRequest) -> Iterator[Any]:
    machine_code = "machine code" in request.param
    if machine_code and not is_installed():
        pytest.skip("nvdisasm is not installed: pip install 'simt[cuda]'")
    gpu = simt.GPU(
        "a100" if machine_code else "qv100",
        code="sass" if machine_code else "ptx",
        functional=request.param.startswith("values"),
        threads=2 if "2 threads" in request.param else 1,
        set={"sm.count": 4},
        exact_bounds=True,
    )
    yield gpu.compile(SOURCE)


@pytest.mark.slow
@pytest.mark.parametrize(("what", "kind", "source", "words"), FAULTS, ids=[f[2] for f in FAULTS])
def test_faults_name_their_place_and_the_gpu_lives_on(
    module: Any, what: int, kind: str, source: str, words: str
) -> None:
    gpu = module.gpu
    gc.collect()
    before = gpu.memory.used
    a, b = np.zeros(100, np.int32), np.zeros(64, np.uint8)
    with pytest.raises(simt.ProgramFault) as error:
        module.fault[4, 64](what, a, b, 100)
    fault = error.value
    assert gpu.memory.used == before, "copies and parameters of the launch are freed"
    assert fault.kind == kind and words in str(fault)
    assert fault.kernel == "fault"
    if what == 10:  # all blocks fault; with timing, the first by cycle is reported
        assert fault.thread == (32, 0, 0) and (fault.block == (0, 0, 0) or not gpu.functional)
    else:
        assert (fault.block, fault.thread) == ((0, 0, 0), (37, 0, 0))
    assert fault.source_file == "kernel.cu" and source in fault.source_text
    line = fault.instruction
    if fault.ptx_line:
        assert module.ptx.text.splitlines()[fault.ptx_line - 1].strip() == line
    for part in (
        "kernel `fault`",
        f"block ({fault.block[0]},0,0), thread ({fault.thread[0]},0,0)",
        f"kernel.cu:{fault.source_line}",
        fault.source_text,
        line,
    ):
        assert part in str(fault)
    assert (fault.address is not None) == ("address" in kind)

    result = np.zeros(32, np.int32)
    module.fine[1, 32](result)
    assert (result == 3 * np.arange(32)).all()
    assert gpu.memory.used == before


def test_a_fault_in_a_stream_comes_when_it_is_waited_for() -> None:
    gpu = simt.GPU("qv100", set={"sm.count": 4}, exact_bounds=True)
    module = gpu.compile(SOURCE)
    a, b, stream, other = gpu.zeros(100, np.int32), gpu.zeros(64, np.uint8), gpu.stream(), gpu.stream()
    before = gpu.memory.used
    module.fine[1, 32, 0, other](a)
    module.fault[4, 64, 0, stream](0, a, b, 100)
    module.fine[1, 32, 0, stream](a)
    event = stream.record()
    with pytest.raises(simt.ProgramFault, match="out of bounds: write") as error:
        gpu.synchronize()
    assert error.value.launch == 2
    assert gpu.memory.used == before, "what was queued is dropped"
    gpu.synchronize()
    module.fine[1, 32, 0, stream](a)
    other.wait(event)
    module.fine[1, 32, 0, other](a)
    assert (a.numpy()[:32] == 3 * np.arange(32)).all()
    assert stream.record().cycle > 0


def test_the_first_block_that_is_at_fault_is_reported() -> None:
    """For any number of host threads."""
    source = """extern "C" __global__ void k(int* a) {
        int x = 0;
        for (int i = 0; i < (64 - blockIdx.x) * 100; ++i) x += a[i & 31];
        if (blockIdx.x >= 17) printf("%d ", blockIdx.x), a[100 + blockIdx.x + x] = 1;
    }"""
    for functional in (True, False):
        found = []
        for threads in (1, 2, 2, 4, 4):
            options = {"functional": functional, "threads": threads, "set": {"sm.count": 4}}
            gpu = simt.GPU("qv100", exact_bounds=True, **options)
            with pytest.raises(simt.ProgramFault) as error:
                gpu.compile(source).k[64, 1](np.zeros(100, np.int32))
            found.append((str(error.value), gpu.printed))
        assert len(set(found)) == 1
        if functional:
            assert error.value.block == (17, 0, 0)
            assert gpu.printed == "17 "


def _resident() -> int:
    """Host memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("functional", [True, False])
def test_many_faults_leak_nothing(functional: bool) -> None:
    gpu = simt.GPU("qv100", functional=functional, set={"sm.count": 2})
    module = gpu.compile(SOURCE)
    a, b = np.zeros(1 << 18, np.int32), np.zeros(64, np.uint8)  # 1 MiB is copied for each launch

    def fault(times: int) -> None:
        for n in range(times):
            with pytest.raises(simt.ProgramFault):
                module.fault[4, 64]((0, 4, 8, 9)[n % 4], a, b, len(a))

    fault(20)
    gc.collect()
    used, resident = gpu.memory.used, _resident()
    fault(200)
    gc.collect()
    assert gpu.memory.used == used
    assert _resident() - resident < 16 << 20, "200 launches of 1 MiB"


@pytest.mark.slow
def test_simt_run_says_what_was_wrong(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(SOURCE)
    (tmp_path / "kernel.py").write_text(
        "import numpy as np\n"
        "def main(gpu, module):\n"
        "    module.fault[4, 64](0, np.zeros(128, np.int32), np.zeros(64, np.uint8), 128)\n"
    )
    for options in ([], ["--functional"]):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import simt.cli; simt.cli.main()",
                "run",
                tmp_path / "kernel.cu",
                *options,
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.count("error: ") == 1 and "Traceback" not in done.stderr
        assert "illegal address in kernel `fault`, block (0,0,0), thread (37,0,0)" in done.stderr
        assert "out of bounds: write" in done.stderr


@pytest.mark.parametrize("functional", [True, False])
def test_freed_memory_is_named(functional: bool) -> None:
    gpu = simt.GPU("qv100", functional=functional)
    module = gpu.compile(SOURCE)
    array = gpu.zeros((5, 7), np.float64)
    address = array.address
    array.free()
    with pytest.raises(
        simt.ProgramFault, match=r"0 bytes into freed `array \(5, 7\) of float64` \(280 bytes"
    ):
        module.fine[1, 1](address)


def test_threads_that_wait_at_different_barriers() -> None:
    source = """extern "C" __global__ void k() {
        if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); else asm volatile("bar.sync 2, 64;");
    }
    extern "C" __global__ void fine(int* a) { __syncthreads(); a[threadIdx.x] = 5; }"""
    for functional in (True, False):
        gpu = simt.GPU("qv100", code="ptx", functional=functional)
        module = gpu.compile(source)
        expected = simt.ProgramFault if functional else DeadlockError
        with pytest.raises(expected, match=r"bar\.sync 1, 64"):
            module.k[1, 64]()
        a = np.zeros(64, np.int32)
        module.fine[1, 64](a)
        assert (a == 5).all()


def test_launches_that_cannot_be_made() -> None:
    gpu = simt.GPU("qv100", code="ptx", functional=True)
    module = gpu.compile(SOURCE + "__global__ void __launch_bounds__(128) bounded() {}")
    a = np.zeros(32, np.int32)
    with pytest.raises(LaunchError, match="a block of 1025 threads; this GPU allows 1024") as error:
        module.fine[1, 1025](a)
    assert error.value.kind == "invalid launch"
    with pytest.raises(LaunchError, match=r"bytes of shared memory a block .*this GPU has") as error:
        module.fine[1, 32, 1 << 20](a)
    assert error.value.kind == "too much shared memory"
    with pytest.raises(LaunchError, match=r"at most 128 \(__launch_bounds__\)"):
        module.bounded[1, 256]()
    with pytest.raises(PtxError, match="no kernel 'absent'"):
        module["absent"]
    with pytest.raises(LaunchError, match="takes 1 arguments, 2 were given"):
        module.fine[1, 32](a, a)
    with pytest.raises(LaunchError, match="argument 1: expected a 64-bit integer or a pointer, found str"):
        module.fine[1, 32]("a")
    module.fine[1, 32](a)
    assert gpu.memory.used == sum(size for _, size in module.native.variables.values())


def test_a_block_with_more_registers_than_an_sm_has() -> None:
    gpu = simt.GPU("qv100", functional=True)
    lines = [f"ld.volatile.global.u32 %r{i}, [%a+{4 * i}];" for i in range(150)]
    lines += [f"st.volatile.global.u32 [%a+{4 * i}], %r{149 - i};" for i in range(150)]
    text = HEADER.format(target="70") + (
        ".visible .entry k(.param .b64 p) { .reg .b32 %r<150>; .reg .b64 %a; ld.param.b64 %a, [p];"
        + "\n".join(lines)
        + "}"
    )
    kernel = gpu.load(PtxModule.from_text(text, "k.ptx"))["k"]
    if kernel.facts.registers_from != "ptxas":
        pytest.skip("ptxas is not installed, so the number of registers is an estimate")
    with pytest.raises(LaunchError, match=r"1024 threads needs .* registers") as error:
        kernel[1, 1024](np.zeros(150, np.uint32))
    assert error.value.kind == "too many registers"
    kernel[1, 32](np.zeros(150, np.uint32))


def test_a_module_that_is_refused_leaves_no_memory_behind() -> None:
    gpu = simt.GPU("qv100", functional=True)
    text = HEADER.format(target="70") + ".global .b8 a[1000];\n.visible .entry k()\n{\n  made.up;\n}\n"
    with pytest.raises(PtxError, match=r"k\.ptx:7: made\.up;: this instruction is not supported"):
        gpu.load(PtxModule.from_text(text, "k.ptx"))
    assert gpu.memory.used == 0
    with pytest.raises(PtxError, match=r"k\.ptx:8:1: found"):
        gpu.load(PtxModule.from_text(text.replace("made.up;", "add"), "k.ptx"))


# --- arbitrary addresses ------------------------------------------------------------------------------------

ACCESSES = [
    "ld{space}.b32 %r1, [{a}];",
    "ld{space}.v4.b32 {{%r1, %r2, %r3, %r4}}, [{a}];",
    "ld{space}.b128 %q, [{a}];",
    "ld.volatile{space}.b64 %d1, [{a}];",
    "st{space}.b16 [{a}], %h;",
    "st{space}.v2.b64 [{a}], {{%d1, %d2}};",
    "st.volatile{space}.b32 [{a}], %r1;",
    "atom{space}.add.u32 %r1, [{a}], 1;",
    "atom{space}.cas.b64 %d1, [{a}], %d2, %d2;",
    "red{space}.add.u32 [{a}], 1;",
    "wmma.load.a.sync.aligned.row.m16n16k16{space}.f16 {{%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}}, [{a}], 16;",
]
SHARED_ACCESSES = [
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r1, %r2, %r3, %r4}}, [{a}];",
    "stmatrix.sync.aligned.m8n8.x2.shared.b16 [{a}], {{%r1, %r2}};",
    "cp.async.ca.shared.global [{a}], [%p], 16;",
    "mbarrier.init.shared.b64 [{a}], 1;",
    "mbarrier.arrive.shared.b64 %d1, [{a}];",
]
GLOBAL_ACCESSES = ["cp.async.ca.shared.global [buffer], [{a}], 16;"]
EDGES = [0, 1, 4, 8, 16, 240, 252, 256, 4096, 0xFF0000, 0xFFFFF0, 0x1000000, 0x1FFFFF0, 0x2000000]
EDGES += [2**31 - 16, 2**31, 2**32 - 16, 2**32 - 8, 2**32 - 4, 2**32 - 1]
WIDE = [
    (w << 32) + e for w in (5, 6, 7, 8, 15, 16, 17) for e in (0, 4, 252, 256, 2**24 - 16, 2**24, 2**32 - 16)
]
WIDE += [2**63, 2**64 - 128, 2**64 - 32, 2**64 - 16, 2**64 - 4, 2**64 - 1]


@pytest.mark.slow
@pytest.mark.parametrize("space", ["", ".global", ".shared", ".local"])
def test_no_address_harms_the_simulator(space: str) -> None:
    """Each access at the edges of every space either succeeds or faults, for one lane and for a warp."""
    forms = ACCESSES + (
        SHARED_ACCESSES if space == ".shared" else GLOBAL_ACCESSES if space == ".global" else []
    )
    known = {row.opcode for row in ptx_table().values() if row.executable}
    addresses = EDGES + (WIDE if space != ".local" else [])
    outcomes = {"performed": 0, "fault": 0}
    for form in forms:
        if form.split(".")[0].split("{")[0] not in known:
            continue
        if space == ".local" and form.startswith(("atom", "red", "wmma")):
            continue
        narrow = space in (".shared", ".local")
        text = form.format(space=space, a="%n" if narrow else "%a")
        for offset in ("", "+16", "-16"):
            body = text.replace("%n]", f"%n{offset}]").replace("%a]", f"%a{offset}]")
            device = Device(
                f"""
            .visible .entry k(.param .b64 p, .param .b64 address, .param .b32 stride)
            {{
              .reg .b16 %h; .reg .b32 %r<9>, %n, %s; .reg .b64 %d<4>, %a, %p; .reg .b128 %q;
              .shared .align 128 .b8 buffer[256]; .local .align 16 .b8 own[256];
              ld.param.b64 %p, [p]; ld.param.b64 %a, [address]; ld.param.b32 %s, [stride];
              mov.u32 %r1, %tid.x; mul.lo.u32 %s, %r1, %s; cvt.u64.u32 %d1, %s; add.u64 %a, %a, %d1;
              cvt.u32.u64 %n, %a; mov.b16 %h, 1; mov.b64 %d2, 0; st.local.b16 [own], %h;
              mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0;
              {body}
              ret;
            }}""",
                capacity=1 << 20,
            )
            target = device.memory.allocate(256, "target")
            for address in [*addresses, target, target + 240, target + 256]:
                for stride in (0, 4, 16):
                    try:
                        device.run("k", target, np.uint64(address), stride)
                        outcomes["performed"] += 1
                    except _engine.functional.ProgramFault as error:
                        assert error.kind in ("illegal address", "misaligned address", "mbarrier"), error
                        outcomes["fault"] += 1
    assert min(outcomes.values()) > 50


def test_strings_of_printf_that_are_nowhere() -> None:
    gpu = simt.GPU("qv100", functional=True)
    module = gpu.compile("""extern "C" __global__ void k(const char* format, const char* text) {
        printf(format, text);
    }""")
    with pytest.raises(simt.ProgramFault, match="illegal address"):
        module.k[1, 1](12345, 0)
    with pytest.raises(simt.ProgramFault, match="illegal address"):
        module.k[1, 1](np.frombuffer(b"%s\0", np.uint8), 2**40)
    with pytest.raises(simt.ProgramFault, match="behind the end of"):
        module.k[1, 1](np.full(512, ord("x"), np.uint8), 0)
