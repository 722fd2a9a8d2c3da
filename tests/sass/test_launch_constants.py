"""What machine code finds in constant bank 0 before and behind the parameters, and in its constants."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from simt import _engine
from simt.cuda.ptxas import _assemblers
from simt.errors import SassError
from simt.gpu import GPU
from simt.sass.disassembler import is_installed
from support.ptx import Device, per_lane

pytestmark = pytest.mark.skipif(
    not is_installed() or not _assemblers(),
    reason="pyelftools or ptxas is not installed: pip install 'simt[cuda,sass]'",
)
TARGETS = ("70", "75", "80", "86", "89", "90a", "100", "120")
SPECIALS = """tid.x ntid.x ntid.y ntid.z nctaid.x nctaid.y nctaid.z nsmid total_smem_size
    dynamic_smem_size envreg0 envreg3 envreg9 envreg12 envreg31"""
CLUSTERS = """clusterid.x nclusterid.x cluster_ctaid.x cluster_ctaid.y cluster_nctaid.x cluster_nctaid.y
    cluster_ctarank cluster_nctarank"""


def read(target: str, names: list[str], cluster: tuple[int, int, int], code: str) -> np.ndarray:
    """What each thread of a launch reads of special registers."""
    reads = "".join(f"mov.u32 %r, %{name}; st.global.u32 [%a+{4 * k}], %r;" for k, name in enumerate(names))
    device = Device(
        f"""
.visible .entry k(.param .b64 out) {{
  .reg .b64 %a; .reg .b32 %r, %i, %x, %y;
  ld.param.b64 %a, [out];
  mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mad.lo.u32 %i, %y, 4, %x;
  mov.u32 %r, %tid.x; mad.lo.u32 %i, %i, 8, %r;
  mad.wide.u32 %a, %i, {4 * len(names)}, %a;
  {reads}
  ret;
}}""",
        target,
        code=code,
    )
    out = np.full((4 * 2 * 8, len(names)), 0xDEAD, np.uint32)
    machine = {"sm_count": 7}
    device.run("k", out, grid=(4, 2, 1), block=(8, 1, 1), cluster=cluster, shared=512, machine=machine)
    return out


@pytest.mark.parametrize("target", TARGETS)
def test_special_registers_in_constant_bank_0(target: str) -> None:
    names = SPECIALS.split()
    found = read(target, names, (1, 1, 1), "sass")
    assert (found == read(target, names, (1, 1, 1), "ptx")).all()
    row = dict(zip(names, found[0].tolist(), strict=True))
    assert (row["ntid.x"], row["ntid.y"], row["ntid.z"]) == (8, 1, 1)
    assert (row["nctaid.x"], row["nctaid.y"], row["nsmid"]) == (4, 2, 7)
    assert row["dynamic_smem_size"] == 512 == row["total_smem_size"]


def test_clusters_in_constant_bank_0() -> None:
    names = CLUSTERS.split()
    found = read("90a", names, (2, 2, 1), "sass")
    assert (found == read("90a", names, (2, 2, 1), "ptx")).all()
    assert dict(zip(names, found[0].tolist(), strict=True))["nclusterid.x"] == 2


SIZES = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "b32": 4, "b64": 8}


def with_last_parameter(type_: str, size: int) -> str:
    wide = "u64" if size == 8 else "u32"
    return f"""
.visible .entry {type_}(.param .b64 out, .param .{type_} last) {{
  .reg .b64 %a; .reg .{wide if size >= 4 else "b16"} %r; .reg .b16 %h; .reg .b32 %w;
  ld.param.b64 %a, [out]; ld.param.{type_} %r, [last];
  {"st.global." + type_ + " [%a], %r;"}
  {"ld.param.b16 %h, [last]; abs.f16 %h, %h; st.global.b16 [%a+8], %h;" if size == 2 else ""}
  ret;
}}"""


@lru_cache
def last_parameters(target: str) -> Device:
    return Device("".join(with_last_parameter(*each) for each in SIZES.items()), target, code="sass")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("type_", "size"), SIZES.items())
def test_last_parameter_that_does_not_fill_its_word(target: str, type_: str, size: int) -> None:
    """Code may read a whole word where the parameters end within it: f16 operands do so."""
    out = np.zeros(4, np.uint32)
    value = 0x8877665544338281 & ((1 << 8 * size) - 1)
    last_parameters(target).run(type_, out, value)
    assert int.from_bytes(out.tobytes()[:size], "little") == value
    if size == 2:
        assert out[2] == value & 0x7FFF


@pytest.mark.parametrize("target", TARGETS)
def test_generic_address_of_constants(target: str) -> None:
    """Also with constants before it, and with an index."""
    functions = """
.visible .const .align 4 .b32 first[4] = {1, 2, 3, 4};
.visible .const .align 4 .b32 table[4] = {7, 8, 9, 10};
"""
    body = """{ .reg .b64 g, h; .reg .b32 x, y; mov.u64 g, table; cvta.const.u64 g, g; mov.u64 h, first;
      cvta.const.u64 h, h; mad.wide.u32 g, %i0, 4, g; mad.wide.u32 h, %i0, 4, h; ld.u32 x, [g]; ld.u32 y, [h];
      mad.lo.u32 %o, x, 100, y; }"""
    index = np.array([0, 1, 2, 3], np.uint32)
    found = per_lane(body, index, functions=functions, target=target, code="sass")
    assert found.tolist() == [701, 802, 903, 1004]


SPACES = ("global", "const", "shared", "local", "param")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_state_space_of_generic_addresses(target: str, code: str) -> None:
    """isspacep of an address in each state space, chosen at run time."""
    tests = "".join(
        f"isspacep.{space} %p, %g; selp.b32 %r, {1 << k}, 0, %p; or.b32 %o, %o, %r;"
        for k, space in enumerate(SPACES)
    )
    device = Device(
        f"""
.visible .global .align 8 .b32 variable[4];
.visible .const .align 8 .b32 table[4] = {{1, 2, 3, 4}};
.visible .entry k(.param .b64 out, .param .b32 which) {{
  .reg .b64 %a, %g, %x; .reg .b32 %o, %r, %w; .reg .pred %p;
  .shared .align 8 .b32 memory[4]; .local .align 8 .b32 stack[4];
  ld.param.b64 %a, [out]; ld.param.b32 %w, [which];
  mov.u64 %g, variable; cvta.global.u64 %g, %g;
  mov.u64 %x, table; cvta.const.u64 %x, %x; setp.eq.u32 %p, %w, 1; selp.b64 %g, %x, %g, %p;
  mov.u64 %x, memory; cvta.shared.u64 %x, %x; setp.eq.u32 %p, %w, 2; selp.b64 %g, %x, %g, %p;
  mov.u64 %x, stack; cvta.local.u64 %x, %x; setp.eq.u32 %p, %w, 3; selp.b64 %g, %x, %g, %p;
  setp.eq.u32 %p, %w, 5; selp.b64 %g, %a, %g, %p;
  mov.b32 %o, 0;
  {tests}
  st.global.b32 [%a], %o;
  ret;
}}""",
        target,
        code=code,
    )
    for which, space in [(0, "global"), (1, "const"), (2, "shared"), (3, "local"), (5, "global")]:
        out = np.zeros(1, np.uint32)
        device.run("k", out, which)
        assert [s for k, s in enumerate(SPACES) if out[0] >> k & 1] == [space]


@pytest.mark.parametrize("gpu", ["rtx2060", "a100", "h100"])
def test_functions_in_sections_of_their_own(gpu: str) -> None:
    """They read constant banks of the kernel that calls them, whichever it is."""
    source = """
    __constant__ int table[4] = {5, 6, 7, 8};
    __device__ __noinline__ int sizes(int x) { return blockDim.x * 1000 + gridDim.x * 100 + table[x]; }
    __device__ __noinline__ int other(int x) { return blockDim.y * 10 + table[x & 1]; }
    typedef int (*F)(int);
    __device__ F functions[2] = {sizes, other};
    extern "C" __global__ void first(int* o, int a, int b, int c) { o[0] = functions[a](b) + c; }
    extern "C" __global__ void second(int c, int* o, int a, int b) { o[0] = functions[a](b) - c; }
    """
    device = GPU(gpu, code="sass", functional=True)
    module = device.compile(source)
    out = np.zeros(1, np.int32)
    module["first"][3, (8, 2)](out, 0, 2, 1)
    assert out[0] == 8000 + 300 + 7 + 1
    module["second"][5, (4, 3)](9, out, 1, 3)
    assert out[0] == 30 + 6 - 9


def test_unknown_words_are_refused_by_name() -> None:
    body = "{ .reg .b32 x; mov.u32 x, %reserved_smem_offset_1; mov.b32 %o, x; }"
    with pytest.raises(SassError, match=r"what sm_80 holds in c\[0x0\]\[0x124\] is not known"):
        per_lane(body, target="80", code="sass")


INDEXED = """
.visible .entry k_FIRST(.param .align 8 .b8 table[256], .param .b64 out) {
  .reg .b64 %a, %t; .reg .b32 %i, %r; .reg .b64 %p;
  ld.param.b64 %a, [out];
  mov.u32 %i, %laneid; mad.wide.u32 %a, %i, 4, %a;
  mov.b64 %t, table; mul.wide.s32 %p, %i, 4; add.s64 %t, %t, %p;
  ld.param.b32 %r, [%t+-OFFSET];
  st.global.b32 [%a], %r;
  ret;
}"""
BEGIN = {
    "70": 0x160,
    "75": 0x160,
    "80": 0x160,
    "86": 0x160,
    "89": 0x160,
    "90a": 0x210,
    "100": 0x380,
    "120": 0x380,
}
UNKNOWN = {"70": 0x128, "75": 0x84, "80": 0x124, "86": 0x15C, "89": 0x70, "90a": 0x13C, "100": 0x2BC}
"""The offset of a word that has no known meaning."""
KNOWN = (0, 0x10C, 0x2D0, 0x360)


@lru_cache
def indexing(target: str) -> Device:
    """Its kernels k_OFFSET read from that offset on."""
    begin = BEGIN[target]
    offsets = sorted({offset for offset in (*KNOWN, UNKNOWN.get(target, 0)) if offset < begin} | {begin})
    kernels = [INDEXED.replace("OFFSET", str(begin - x)).replace("FIRST", str(x)) for x in offsets]
    return Device("".join(kernels), target, code="sass")


def indexed(target: str, first: int, lanes: int) -> list[int]:
    """What lanes read of bank 0 with an index of their own, from the word at an offset on."""
    out = np.full(32, 0xDEAD, np.uint32)
    table = int.from_bytes(np.arange(64, dtype=np.uint32).tobytes(), "little")
    shape = {"grid": (3, 2, 1), "block": (lanes, 1, 1)}
    indexing(target).run(f"k_{first}", table, out, **shape, machine={"sm_count": 7})
    return out[:lanes].tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_indexed_words_before_the_parameters(target: str) -> None:
    """An index may lead out of the parameters: the words before them are those that code names directly."""
    assert indexed(target, BEGIN[target], 5) == [0, 1, 2, 3, 4]
    if BEGIN[target] == 0x380:
        assert indexed(target, 0x360, 7) == [7, 1, 1, 0, 3, 2, 1]
        assert indexed(target, 0x2D0, 1) == [7]
        return
    assert indexed(target, 0, 6) == [6, 1, 1, 3, 2, 1]
    assert indexed(target, 0x10C, 1) == [7]


@pytest.mark.parametrize(("target", "offset"), UNKNOWN.items())
def test_unknown_words_by_an_index_are_faults(target: str, offset: int) -> None:
    message = rf"what sm_{target.rstrip('a')} holds in c\[0x0\]\[{offset:#x}\] is not known"
    with pytest.raises(_engine.functional.ProgramFault, match=message):
        indexed(target, offset, 1)
