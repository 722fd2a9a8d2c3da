"""Programs that come as machine code, and where their kernels are."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt
from simt.cuda import CubinModule, PtxModule, compile_cuda, machine_code
from simt.cuda.cubin_module import code_needed, code_runs_on
from simt.cuda.ptxas import _assemblers
from simt.errors import CheckpointError, ImageError, LaunchError, PtxError, SassError, SimtError
from simt.program import run_program
from simt.sass.disassembler import is_installed

pytestmark = pytest.mark.skipif(
    not is_installed() or not _assemblers(),
    reason="pyelftools or ptxas is not installed: pip install 'simt[cuda,sass]'",
)

SOURCE = """
extern "C" __global__ void adds(int* x, int n) {
  x[threadIdx.x] += n;
}
extern "C" __global__ void multiplies(int* x, int n) {
  x[threadIdx.x] *= n;
}
"""

PROGRAM = """
struct Pair { float a; int b; };
__device__ int counter = 40;
__managed__ int shared_with_host = 5;
__constant__ int table[64] = {3, 1, 4, 1, 5, 9, 2, 6};
extern "C" __global__ void counts() { if (threadIdx.x == 0) counter += shared_with_host; }
extern "C" __global__ void looks_up(int* x, int first) {
  x[threadIdx.x] = table[first + blockIdx.x] + 100 * table[threadIdx.x & 7];
}
namespace space {
__global__ void many(char* y, char c, short s, float f, double d, Pair p, long long big) {
  if (threadIdx.x != 0) return;
  double* to = (double*)y;
  to[0] = c; to[1] = s; to[2] = f; to[3] = d; to[4] = p.a; to[5] = p.b; to[6] = big;
}
}
extern "C" __global__ void __launch_bounds__(64) sums(const float* x, float* y, int n) {
  __shared__ float part[64];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 64) sum += x[i] * x[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int k = 32; k > 0; k /= 2) {
    if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] = sqrtf(part[0]) / n;
}
"""
GPUS = {
    "sm_75": "rtx2060",
    "sm_80": "a100",
    "sm_86": "rtx3070",
    "sm_90": "h100",
    "sm_90a": "h100",
}


def cubin(arch: str = "sm_80", source: str = PROGRAM) -> bytes:
    return machine_code(compile_cuda(source, name="k.cu", arch=arch), arch)


def test_kernels_of_one_module_have_addresses_and_lines_of_their_own() -> None:
    gpu = simt.GPU("a100", code="sass", set={"sm.count": 1})
    module = gpu.compile(SOURCE, name="k.cu")
    x = np.arange(32, dtype=np.int32)
    module["adds"][1, 32](x, 2)
    module["multiplies"][1, 32](x, 3)
    assert x.tolist() == [3 * (i + 2) for i in range(32)]
    adds, multiplies = (launch.pc for launch in gpu.launches)
    assert not set(adds["pc"]) & set(multiplies["pc"])
    assert all("+= n" in text for text in adds["source_text"][2:-1])
    assert all("*= n" in text for text in multiplies["source_text"][2:-1])
    # Each begins in a line of the instruction cache that the other has not fetched.
    missed = [launch.counters["simt__instruction_cache_misses.sum"] for launch in gpu.launches]
    assert missed[0] >= 1 and missed[1] >= 1


@pytest.mark.parametrize("arch", GPUS)
def test_a_cubin_gives_the_values_of_its_ptx(arch: str) -> None:
    values = {}
    for program in (compile_cuda(PROGRAM, arch=arch), cubin(arch)):
        gpu = simt.GPU(GPUS[arch], functional=True)
        module = gpu.load(program)
        module.counts[1, 32]()
        x, y = np.zeros(32, np.int32), np.zeros(7)
        module.looks_up[1, 32](x, 3)
        pair = np.array([(1.5, -7)], dtype=[("a", np.float32), ("b", np.int32)])[0]
        module["space::many"][1, 32](y, -3, -300, np.float32(0.1), 0.2, pair, -(2**40))
        total = np.zeros(1, np.float32)
        module.sums[1, 64](np.linspace(0, 1, 1000, dtype=np.float32), total, 1000)
        counter = module.variable("counter", np.int32).tolist()
        values[type(module.image)] = [counter, x.tolist(), y.tolist(), total.tolist()]
        assert list(module.native.managed) == ["shared_with_host"]
    assert values[PtxModule] == values[CubinModule]
    counter, x, y, _ = values[CubinModule]
    assert counter == [45] and x[:3] == [301, 101, 401]
    assert y == [-3, -300, float(np.float32(0.1)), 0.2, 1.5, -7, -(2**40)]


def test_what_a_cubin_says_of_its_kernels() -> None:
    module = simt.GPU("a100").load(cubin())
    kernel = module.sums
    assert [(p.offset, p.bytes) for p in kernel.parameters] == [(0, 8), (8, 8), (16, 4)]
    assert kernel.facts.shared_bytes == 256 and kernel.facts.max_threads == 64
    assert kernel.facts.registers > 0 and kernel.facts.registers_from == "ptxas"
    assert sorted(module.kernels) == ["_ZN5space4manyEPccsfd4Pairx", "counts", "looks_up", "sums"]
    assert module.counts.parameters == ()


def test_a_cubin_is_timed_by_its_control_bits() -> None:
    x = np.arange(64, dtype=np.float32)
    cycles = []
    for code in ("ptx", "sass"):
        gpu = simt.GPU("a100", code=code, set={"sm.count": 1})
        launch = gpu.load(cubin()).sums[1, 64](x, np.zeros(1, np.float32), 64)
        assert launch is not None
        cycles.append(launch.cycles)
        assert "LDG.E" in " ".join(launch.pc["text"])
    assert cycles[0] == cycles[1]


def test_the_command_runs_a_cubin_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.cubin").write_bytes(cubin(source=SOURCE))
    (tmp_path / "k.py").write_text(
        "import numpy as np\n"
        "def main(gpu, module):\n"
        "    x = np.arange(32, dtype=np.int32)\n"
        "    module.adds[1, 32](x, 2)\n"
        "    print(x.sum())\n"
    )
    gpu = simt.GPU("a100")
    run_program(tmp_path / "k.cubin", gpu)
    assert capsys.readouterr().out == f"{sum(range(32)) + 64}\n"
    assert len(gpu.launches) == 1 and gpu.launches[0].cycles > 0


@pytest.mark.parametrize(
    ("code", "device", "runs"),
    [
        ("sm_80", "sm_80", True),
        ("sm_80", "sm_86", True),
        ("sm_86", "sm_80", False),
        ("sm_80", "sm_90a", False),
        ("sm_90a", "sm_90a", True),
        ("sm_90", "sm_90a", True),
        ("sm_75", "sm_70", True),
        ("sm_75", "sm_80", False),
        ("sm_100a", "sm_103", False),
        ("sm_100", "sm_103", True),
    ],
)
def test_where_machine_code_runs(code: str, device: str, runs: bool) -> None:
    assert code_runs_on(code, device) is runs


def test_machine_code_that_is_needed() -> None:
    assert [code_needed(device) for device in ("sm_70", "sm_75", "sm_80", "sm_89", "sm_90a")] == [
        "sm_70",
        "sm_70 to sm_75",
        "sm_80",
        "sm_80 to sm_89",
        "sm_90",
    ]


def test_code_of_another_architecture_is_refused_by_what_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin("sm_90", SOURCE))
    with pytest.raises(SassError) as refused:
        simt.GPU("rtx3070").load(path)
    assert str(refused.value) == (
        f"{path}: machine code for sm_90 does not run on rtx3070, which needs sm_80 to sm_86"
    )


def test_volta_runs_code_of_turing_and_says_so() -> None:
    gpu = simt.GPU("qv100", functional=True)
    with pytest.warns(UserWarning, match="qv100 is sm_70: it executes sm_75 code"):
        module = gpu.load(cubin("sm_75", SOURCE))
    x = np.arange(32, dtype=np.int32)
    module.adds[1, 32](x, 2)
    assert x.tolist() == [i + 2 for i in range(32)]


@pytest.mark.parametrize(("arch", "gpu"), [("sm_90a", "h100"), ("sm_100a", "b200"), ("sm_120a", "rtx5090")])
@pytest.mark.filterwarnings("error")
def test_code_with_features_of_one_version_is_the_gpus_own(arch: str, gpu: str) -> None:
    module = simt.GPU(gpu, functional=True).load(cubin(arch, SOURCE))
    x = np.arange(32, dtype=np.int32)
    module.adds[1, 32](x, 2)
    assert x.tolist() == [i + 2 for i in range(32)]


def test_what_a_cubin_lacks_is_named() -> None:
    gpu = simt.GPU("a100", functional=True)
    module = gpu.load(cubin(source=SOURCE), name="k.cubin")
    with pytest.raises(SassError, match=r"k\.cubin: no kernel 'none'; there are: (adds, )?multiplies"):
        module["none"]
    with pytest.raises(AttributeError, match="no kernel 'none'"):
        _ = module.none
    with pytest.raises(PtxError, match=r"k\.cubin: it is machine code, without PTX"):
        _ = module.ptx
    with pytest.raises(LaunchError, match="argument 2: expected a 32-bit integer"):
        module.adds[1, 32](np.zeros(32, np.int32), "two")
    with pytest.raises(LaunchError, match="takes 2 arguments, 1 were given"):
        module.adds[1, 32](np.zeros(32, np.int32))
    with pytest.raises(SassError, match="fmad=False does not apply to machine code"):
        simt.GPU("a100", fmad=False).load(cubin(source=SOURCE))


CALLS = """
__device__ int scale[4] = {2, 3, 5, 7};
__device__ __noinline__ int scaled(int x) { return x * scale[x & 3]; }
__device__ __noinline__ int plus(int x) { return x + scale[x & 1]; }
__device__ int (*functions[2])(int) = {scaled, plus};
extern "C" __global__ void k(int* x, int n) {
  x[threadIdx.x] = functions[(x[threadIdx.x] + n) & 1](x[threadIdx.x]);
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_addresses_in_instructions_are_bound(arch: str) -> None:
    # Code for debuggers has addresses of functions and variables as immediates: 32@lo(...), 32@hi(...).
    module = compile_cuda(CALLS, arch=arch, options=["--device-debug"])
    data = machine_code(module, arch, "--device-debug")
    kernels = CubinModule.parse(data, "k").cubin.kernels
    assert {held.part for kernel in kernels for held in kernel.code_addresses} == {"low", "high"}
    x = np.arange(32, dtype=np.int32)
    simt.GPU(GPUS[arch], functional=True).load(data).k[1, 32](x, 0)
    scale = [2, 3, 5, 7]
    assert x.tolist() == [i + scale[i & 1] if i & 1 else i * scale[i & 3] for i in range(32)]


STEPS = """
#include <cooperative_groups.h>
extern "C" __global__ void steps(int* x, int* y) {
  auto grid = cooperative_groups::this_grid();
  unsigned i = grid.thread_rank(), n = grid.num_threads();
  x[i] = i;
  grid.sync();
  y[i] = x[n - 1 - i];
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_a_grid_waits_for_all_its_blocks(arch: str) -> None:
    gpu = simt.GPU(GPUS[arch], functional=True)
    x, y = np.zeros(256, np.int32), np.zeros(256, np.int32)
    gpu.load(cubin(arch, STEPS)).steps[4, 64](x, y, cooperative=True)
    assert y.tolist() == list(range(256))[::-1]


def test_an_unlinked_cubin_is_refused() -> None:
    module = compile_cuda(SOURCE, arch="sm_80", options=["--relocatable-device-code=true"])
    with pytest.raises(SassError, match="not linked yet"):
        simt.GPU("a100").load(machine_code(module, "sm_80", "--compile-only"))


PRINTS = """
#include <cstdio>
__constant__ int table[4] = {2, 3, 5, 7};
__device__ int calls;
extern "C" __global__ void k(int* x) {
  x[threadIdx.x] += table[threadIdx.x & 3];
  if (threadIdx.x == 0) printf("call %d\\n", ++calls);
}
"""


def test_a_cubin_in_a_checkpoint(tmp_path: Path) -> None:
    gpu = simt.GPU("a100", functional=True)
    module, x = gpu.load(cubin(source=PRINTS)), gpu.array(np.zeros(32, np.int32))
    module.k[1, 32](x)
    gpu.checkpoint(tmp_path / "one", {"module": module, "x": x})
    with pytest.raises(CheckpointError, match=r"its memory needs [\d,]+ bytes, and rtx3070 has"):
        simt.GPU.from_checkpoint(tmp_path / "one", "rtx3070", functional=True)  # constants are at the end
    again = simt.GPU.from_checkpoint(tmp_path / "one", "a100", functional=True)
    module, x = again.objects["module"], again.objects["x"]
    module.k[1, 32](x)
    assert x.tolist() == 8 * [4, 6, 10, 14]
    assert again.printed == "call 2\n"
    assert isinstance(module.image, CubinModule)
    with pytest.raises(CheckpointError, match=r"is machine code for sm_80, which does not run on h100"):
        simt.GPU.from_checkpoint(tmp_path / "one", "h100")


def _load(data: bytes) -> None:
    """Loads it; an error must be simt's."""
    try:
        simt.GPU("a100", functional=True).load(data, name="damaged")
    except SimtError as error:
        assert "damaged" in str(error) or "nvdisasm" in str(error)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.7, 0.99])
def test_a_truncated_cubin_is_refused(share: float) -> None:
    data = cubin(source=SOURCE)
    with pytest.raises(ImageError, match="damaged"):
        simt.GPU("a100", functional=True).load(data[: int(share * len(data))], name="damaged")


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=8))
def test_damage_never_crashes(changes: list[tuple[int, int]]) -> None:
    data = bytearray(cubin(source=SOURCE))
    # Outside the code: any instruction is possible there, and nvdisasm decodes it.
    begin = struct.unpack_from("<Q", data, 40)[0]
    for place, value in changes:
        data[place % 64 if place & 1 else begin + place % (len(data) - begin)] = value
    _load(bytes(data))
