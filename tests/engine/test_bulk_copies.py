"""The rate of bulk copies: so many cycles for each line, however many of its bytes are copied."""

from __future__ import annotations

import numpy as np

import simt
from simt import _engine


def kernel(copies: int, bytes_: int, stride: int) -> str:
    """One thread copies `copies` pieces, which begin `stride` bytes apart, and waits for all."""
    body = "".join(
        f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room+{k * bytes_}], "
        f"[%a+{k * stride}], {bytes_}, [bar];\n"
        for k in range(copies)
    )
    return f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .b64 in) {{
  .reg .b64 %a; .reg .pred %p;
  .shared .align 128 .b8 room[{copies * bytes_}]; .shared .align 8 .b64 bar;
  ld.param.b64 %a, [in]; cvta.to.global.u64 %a, %a;
  mbarrier.init.shared.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {copies * bytes_};
  {body}
WAIT: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra WAIT;
  ret;
}}"""


def cycles(interval: int, copies: int, bytes_: int, stride: int) -> int:
    gpu = simt.GPU("h100", set={"sm.count": 2, "load_store.bulk_line_interval": interval})
    gpu.load(kernel(copies, bytes_, stride))["k"][1, 1](np.zeros(1 << 15, np.uint8))
    return gpu.launches[0].cycles


def test_a_copy_takes_its_lines() -> None:
    """10 and 30 cycles for each of 64 lines."""
    slower = cycles(60, 1, 8192, 0) - cycles(20, 1, 8192, 0)
    assert 20 * 60 <= slower <= 20 * 64


def test_parts_of_lines_take_as_long_as_lines() -> None:
    slower = cycles(60, 32, 32, 256) - cycles(20, 32, 32, 256)
    assert 20 * 28 <= slower <= 20 * 32


def test_half_cycles_add_up() -> None:
    """As on a B200: two lines in three cycles. Two sectors a cycle would take two cycles for a line."""
    wide = {"sm.count": 2, "interconnect.sm_port_sectors": 4, "l1.bypass_sectors_per_cycle": 4}
    found = []
    for interval in (8, 11):
        gpu = simt.GPU("h100", set={**wide, "load_store.bulk_line_interval": interval})
        gpu.load(kernel(1, 8192, 0))["k"][1, 1](np.zeros(8192, np.uint8))
        found.append(gpu.launches[0].cycles)
    assert 1.5 * 60 <= found[1] - found[0] <= 1.5 * 64


def test_copies_begin_so_far_apart() -> None:
    """32 copies of a line each; the second is prepared while the first is under way."""
    found = []
    for interval in (100, 300):
        gpu = simt.GPU("h100", set={"sm.count": 2, "load_store.bulk_copy_interval": interval})
        gpu.load(kernel(32, 128, 128))["k"][1, 1](np.zeros(1 << 15, np.uint8))
        found.append(gpu.launches[0].cycles)
    assert 200 * 29 <= found[1] - found[0] <= 200 * 32


def test_a_long_copy_hides_the_preparation_of_the_next() -> None:
    """Lines of 30 cycles, 16 of them: more than what a copy is prepared in."""
    found = []
    for interval in (0, 200):
        gpu = simt.GPU(
            "h100",
            set={
                "sm.count": 2,
                "load_store.bulk_line_interval": 60,
                "load_store.bulk_copy_interval": interval,
            },
        )
        gpu.load(kernel(8, 2048, 2048))["k"][1, 1](np.zeros(1 << 15, np.uint8))
        found.append(gpu.launches[0].cycles)
    assert abs(found[1] - found[0]) <= 30


def boxes(copies: int) -> str:
    """A thread copies boxes of 32 floats, each after the last has arrived, and notes how long each takes."""
    body = "".join(
        f"""mov.u64 %c0, %clock64;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [room], [%m, {{0}}], [bar];
WAIT{k}: mbarrier.try_wait.parity.shared.b64 %p, [bar], {k % 2}; @!%p bra WAIT{k};
mov.u64 %c1, %clock64; sub.u64 %c1, %c1, %c0; st.global.b64 [%o+{8 * k}], %c1;
"""
        for k in range(copies)
    )
    return f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .b64 out) {{
  .reg .b64 %m, %o, %c<2>; .reg .pred %p;
  .shared .align 128 .b8 room[128]; .shared .align 8 .b64 bar;
  mov.u64 %m, map; cvta.param.u64 %m, %m; ld.param.b64 %o, [out];
  mbarrier.init.shared.b64 [bar], 1;
  {body}
  ret;
}}"""


def box_cycles(latency: int, launches: int = 1) -> np.ndarray:
    gpu = simt.GPU("h100", set={"sm.count": 2, "load_store.tensor_map_latency": latency})
    held, out = gpu.zeros(32, np.float32), gpu.zeros(3, np.uint64)
    given = np.void(_engine.functional.encode_tensor_map(7, held.address, [32], [], [32], [1]))
    kernel_ = gpu.load(boxes(3))["k"]
    found = []
    for _ in range(launches):
        kernel_[1, 1](given, out)
        found.append(out.numpy().astype(np.int64))
    return np.array(found)


def test_the_first_box_of_a_launch_waits_for_its_tensor_map() -> None:
    """In launches whose code is in the caches."""
    late, at_once = box_cycles(400, 3), box_cycles(0, 3)
    assert (late - at_once)[1:].tolist() == [[400, 0, 0], [400, 0, 0]]


def test_copies_without_a_tensor_map_wait_for_none() -> None:
    found = []
    for latency in (0, 400):
        gpu = simt.GPU("h100", set={"sm.count": 2, "load_store.tensor_map_latency": latency})
        gpu.load(kernel(2, 1024, 1024))["k"][1, 1](np.zeros(1 << 15, np.uint8))
        found.append(gpu.launches[0].cycles)
    assert found[0] == found[1]


def test_other_accesses_do_not_wait_for_bulk_copies() -> None:
    """While a copy of 64 lines of 30 cycles is sent, a load from shared memory returns."""
    text = kernel(1, 8192, 0).replace(
        "WAIT:",
        """.reg .b32 %x<3>; .reg .b64 %o; mov.u32 %x0, %clock; ld.volatile.shared.b32 %x1, [bar];
  add.u32 %x1, %x1, %x0; mov.u32 %x2, %clock; sub.u32 %x2, %x2, %x0;
  ld.param.b64 %o, [out]; st.global.b32 [%o], %x2;
WAIT:""",
    )
    text = text.replace(".param .b64 in", ".param .b64 in, .param .b64 out")
    gpu = simt.GPU("h100", set={"sm.count": 2, "load_store.bulk_line_interval": 60})
    out = gpu.zeros(1, np.uint32)
    gpu.load(text)["k"][1, 1](np.zeros(8192, np.uint8), out)
    assert out.numpy()[0] < 300
    assert gpu.launches[0].cycles > 30 * 64
