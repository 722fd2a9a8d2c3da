"""The memory system as a whole: latencies, bandwidth, windows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from simt._engine import testing
from simt.spec import load_spec

BASE = 0x7F0000000000


def memory(gpu: str = "qv100-accelsim", **overrides: Any) -> Any:
    return testing.Memory(load_spec(gpu, {k.replace("__", "."): v for k, v in overrides.items()}).native())


def traffic(seed: int, sms: int, count: int) -> list[tuple[int, int, int, bool]]:
    rng = random.Random(seed)
    requests = [
        (rng.randrange(3000), rng.randrange(sms), BASE + 32 * rng.randrange(1 << 14), rng.random() < 0.3)
        for _ in range(count)
    ]
    # One packet per SM and cycle.
    return sorted({(cycle, sm): (cycle, sm, a, w) for cycle, sm, a, w in requests}.values())


def test_an_l2_hit_takes_166_cycles_on_qv100() -> None:
    """1 to the crossbar, 1 to the slice, 160 of ROP delay, lookup, and the way back (section 9)."""
    m = memory()
    m.insert(BASE, 32)
    assert m.run([(1000, 3, BASE, False)], 2000, 8) == [(1166, 3, BASE, False)]


@pytest.mark.parametrize(("rop", "expected"), [(160, 166), (161, 167)])
def test_a_cycle_more_in_the_slice_is_a_cycle_more(rop: int, expected: int) -> None:
    m = memory(l2__latency=rop)
    m.insert(BASE, 32)
    assert m.run([(100, 0, BASE, False)], 1000, 8)[0][0] == 100 + expected


def test_a_slice_s_first_line_is_in_the_set_of_its_local_address() -> None:
    spec = load_spec("qv100-accelsim", {"address_map.hash": "linear", "l2.slice.set_index": "linear"})
    native, cache = spec.native(), spec.l2.slice
    first = 256 * 5  # local address 0 of a slice of channel 5
    places = ((a, testing.locate(native, a)) for a in range(first, 1 << 30, 256 * 32))
    slice_ = testing.locate(native, first)["slice"]
    apart = cache.sets * cache.line_bytes
    lines = (a for a, w in places if w["slice"] == slice_ and w["local"] % apart == 0)
    m = testing.Memory(native)
    free = m.free_l2_lines
    for _ in range(cache.ways + 1):
        m.insert(next(lines), 32)
    assert free - m.free_l2_lines == cache.ways


@pytest.mark.parametrize("gpu", ["qv100-accelsim", "a100", "h100"])
def test_what_is_set_evicts_what_was_there_and_its_end_stays(gpu: str) -> None:
    """Three times the L2, as benchmarks empty it: no set keeps an older line."""
    spec = load_spec(gpu)
    size, before = spec.l2_lines * 128, BASE + (1 << 36)
    m = testing.Memory(spec.native())
    m.insert(before, size // 4)
    m.insert(BASE, 3 * size, True)
    assert m.free_l2_lines == 0
    old = [(100 + 4 * i, 0, before + 4096 * i, False) for i in range(64)]
    m.run(old, 60_000, 8)
    assert m.counter("dram_reads") == len(old)
    new = [(70_000 + 4 * i, 0, BASE + 3 * size - 4096 * (i + 1), False) for i in range(64)]
    m.run(new, 130_000, 8)
    assert m.counter("dram_reads") == len(old)


def test_an_insertion_of_any_size_takes_what_one_of_the_l2_takes() -> None:
    """A terabyte would take hours, line by line."""
    m = memory("a100")
    m.insert(BASE, 1 << 40, True)
    assert m.free_l2_lines == 0


def test_writes_are_acknowledged_without_dram() -> None:
    m = memory()
    assert m.run([(100, 0, BASE, True)], 1000, 8) == [(266, 0, BASE, True)]
    assert m.counter("dram_reads") == 0


def test_a_miss_reads_dram_once_for_all_who_wait() -> None:
    m = memory()
    replies = m.run([(100 + i, i, BASE, False) for i in range(5)], 2000, 8)
    assert sorted(sm for _, sm, _, _ in replies) == [0, 1, 2, 3, 4]
    assert m.counter("dram_reads") == 1
    assert min(cycle for cycle, *_ in replies) > 100 + 166 + 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "gpu", ["qv100-accelsim", "titanx-accelsim", "rtx3070-accelsim", "a100", "h100-accelsim"]
)
def test_windows_and_groups_of_channels_change_nothing(gpu: str) -> None:
    sms = load_spec(gpu).sm.count
    requests = traffic(1, sms, 4000)
    m = memory(gpu)
    longest = m.look_ahead()
    assert longest > 20
    reference = sorted(m.run(requests, 12000, longest))
    assert len(reference) == len(requests)
    assert m.idle()
    for window, parts in ((1, 1), (7, 3), (longest, 2), (33, 5)):
        assert sorted(memory(gpu).run(requests, 12000, window, parts)) == reference, window


@pytest.mark.parametrize("look_ahead", [1, 8])
def test_more_sms_and_slices_than_gpus_have_today(look_ahead: int) -> None:
    m = memory(sm__count=300, address_map__channels=256, interconnect__look_ahead=look_ahead)
    requests = traffic(2, 300, 6000)
    replies = m.run(requests, 12_000, 50)
    assert sorted((sm, a) for _, sm, a, _ in replies) == sorted((sm, a) for _, sm, a, _ in requests)


def test_peak_dram_bandwidth_of_qv100() -> None:
    """32 channels of 32 B per command clock at 850 MHz: 870 GB/s (section 11); streams come close to it."""
    m = memory()
    per_sm = 1500
    requests = sorted(
        (cycle, sm, BASE + 32 * (cycle * 80 + sm), False) for sm in range(80) for cycle in range(per_sm)
    )
    replies = m.run(requests, 40000, 100)
    assert len(replies) == per_sm * 80
    seconds = max(cycle for cycle, *_ in replies) / 1132e6
    bandwidth = len(replies) * 32 / seconds / 1e9
    assert 0.85 * 870 < bandwidth <= 870


def test_row_hits_need_the_first_ready_scheduler() -> None:
    """Two streams through the same banks: FCFS reopens rows again and again."""

    def activates(scheduler: str) -> int:
        m = memory(dram__scheduler=scheduler, address_map__hash="linear")
        requests = [(i // 8, i % 8, BASE + 32 * (i // 2) + (i % 2) * (1 << 24), False) for i in range(6000)]
        m.run(requests, 60000, 100)
        return m.counter("dram_activates")

    assert activates("fcfs") > 1.5 * activates("fr_fcfs")


def test_far_sectors_cost_once_then_a_copy_is_near() -> None:
    """A100: SM 0 belongs to the first partition; of consecutive lines, some are in the other."""
    m = memory("a100")
    m.insert(BASE, 1 << 16)
    lines = [BASE + 512 * i for i in range(64)]
    first = m.run([(100 + 500 * i, 0, a, False) for i, a in enumerate(lines)], 40000, 50)
    again = m.run([(40100 + 500 * i, 0, a, False) for i, a in enumerate(lines)], 80000, 50)
    far_first = {cycle % 500 for cycle, *_ in first}
    far_again = {cycle % 500 for cycle, *_ in again}
    assert len(far_first) == 2 and max(far_first) - min(far_first) == load_spec("a100").l2.far_latency
    assert far_again == {min(far_first)}


@pytest.mark.parametrize(("share", "again"), [(0.4, 0.0), (0.75, 0.5)])
def test_an_sm_has_one_partition_of_the_l2(share: float, again: float) -> None:
    """SM 0 walks twice over an array that is a share of the L2. If it is larger than half of it, it misses
    near; data of the other partition, half of it, is found there, and the rest is read from memory again.
    """
    m = memory("a100", l2__slice__sets=16)
    lines = int(share * load_spec("a100", {"l2.slice.sets": 16}).l2_lines)
    addresses = [BASE + 128 * i for i in range(lines)]
    m.run([(100 + 2 * i, 0, a, False) for i, a in enumerate(addresses)], 100_000, 50)
    first = m.counter("dram_reads")
    assert first == lines
    m.run([(100_000 + 2 * i, 0, a, False) for i, a in enumerate(addresses)], 200_000, 50)
    assert (m.counter("dram_reads") - first) / lines == pytest.approx(again, abs=0.03)


@pytest.mark.parametrize("other", [1, 107])
def test_each_partition_keeps_a_copy(other: int) -> None:
    """SMs of both partitions read the same lines: memory is read once, then each finds them near, as does the
    next SM of the first one's partition.
    """
    m = memory("a100")
    lines = [BASE + 128 * i for i in range(512)]
    near = load_spec("a100").l2.latency + 50

    def latency(turn: int, sm: int) -> int:
        """Of the last line that is read."""
        start = 100 + 10_000 * turn
        found = m.run([(start + 4 * i, sm, a, False) for i, a in enumerate(lines)], start + 9_900, 50)
        return max(cycle for cycle, *_ in found) - (start + 4 * 511)

    assert min(latency(0, 0), latency(1, other)) > near
    assert m.counter("dram_reads") == len(lines)
    assert max(latency(turn, sm) for turn, sm in enumerate((0, other, 2), 2)) < near
    assert m.counter("dram_reads") == len(lines)


@pytest.mark.parametrize("writer", [0, 107])
def test_a_write_makes_copies_elsewhere_outdated(writer: int) -> None:
    """SM 0 has copies of far data; after a write by any SM, it rereads them from the far partition, once."""
    m = memory("a100")
    m.insert(BASE, 1 << 16)
    lines = [BASE + 512 * i for i in range(64)]

    def latencies(start: int) -> list[int]:
        reads = [(start + 500 * i, 0, a, False) for i, a in enumerate(lines)]
        return [cycle % 500 for cycle, *_ in sorted(m.run(reads, start + 39_900, 50))]

    first, near = latencies(100), latencies(40_100)
    assert len(set(near)) == 1 and max(first) > near[0]
    m.run([(80_100 + 10 * i, writer, a, True) for i, a in enumerate(lines)], 120_000, 50)
    assert latencies(120_100) == first
    assert latencies(160_100) == near
    m.insert(BASE, 1 << 14)  # a copy from the host over the first half of them
    assert latencies(200_100) == first[:32] + near[32:]


@pytest.mark.slow
def test_sets_that_wait_for_each_other_leave_a_way() -> None:
    """SMs of both partitions repeatedly miss in the only set of each slice."""
    m = memory("a100", l2__slice__sets=1, l2__slice__ways=2)
    requests = [(10 + i // 108, i % 108, BASE + 32 * (i * 37 % 65_536), False) for i in range(20_000)]
    assert len(m.run(requests, 400_000, 50)) == len(requests)


def test_full_queues_delay_and_lose_nothing() -> None:
    small = {
        "l2__request_queue": 8,
        "l2__reply_queue": 2,
        "l2__dram_queue": 2,
        "interconnect__output_buffer": 4,
    }
    requests = [(10 + i, i % 80, BASE + 32 * (i % 512), False) for i in range(4000)]
    reference = sorted(memory(**small).run(requests, 60000, 100))
    assert len(reference) == 4000
    assert sorted(memory(**small).run(requests, 60000, 3)) == reference


def test_copies_larger_than_the_l2_leave_their_end() -> None:
    m = memory()
    m.insert(BASE, 64 << 20)
    hits = m.run([(100, 0, BASE + (64 << 20) - 32, False)], 2000, 8)
    assert hits[0][0] == 266
    assert m.run([(3000, 0, BASE, False)], 6000, 8)[0][0] > 3166


# --- other devices ------------------------------------------------------------------------------------------

# A cycle is a nanosecond, and each of the 64 slices has a sector in 8 cycles of the link.
PEERS = {f"clock__{part}_mhz": 1000 for part in ("core", "interconnect", "l2")}
PEERS |= {"peer_link__bandwidth": 256_000, "peer_link__access_latency": 500}


def with_peer(gpu: str = "qv100-accelsim", **overrides: Any) -> Any:
    m = memory(gpu, **overrides)
    m.set_peer(BASE)
    return m


@pytest.mark.parametrize("write", [False, True])
def test_another_device_takes_the_link_s_latency_beyond_a_hit(write: bool) -> None:
    m = with_peer(**PEERS)
    assert m.run([(100, 0, BASE, write)], 2000, 8) == [(100 + 166 + 8 + 500, 0, BASE, write)]
    assert m.run([(2100, 0, BASE, write)], 4000, 8)[0][0] == 2100 + 166 + 8 + 500  # not cached
    assert m.counter("dram_reads") == m.counter("dram_writes") == 0
    assert m.run([(4100, 0, BASE - 256, write)], 6000, 8)[0][0] < 4100 + 166 + 8 + 500  # the last of its own


def test_what_another_device_has_is_not_in_the_l2() -> None:
    m = with_peer(**PEERS)
    free = m.free_l2_lines
    m.insert(BASE, 1 << 20)
    assert m.free_l2_lines == free
    m.insert(BASE - 128, 256)
    assert m.free_l2_lines == free - 1


@pytest.mark.parametrize(
    ("bandwidth", "interval"), [(256_000, 8), (128_000, 16), (2_048_000, 1), (170_667, 12)]
)
def test_a_slice_has_its_share_of_the_link_in_each_direction(bandwidth: int, interval: int) -> None:
    native = load_spec("qv100-accelsim").native()
    there = testing.locate(native, BASE)["slice"]
    same = [a for a in range(BASE, BASE + (1 << 18), 32) if testing.locate(native, a)["slice"] == there][:40]
    m = with_peer(**{**PEERS, "peer_link__bandwidth": bandwidth})
    sent = [(100, sm, a, sm % 2 == 0) for sm, a in enumerate(same)]  # reads and writes, from 40 SMs at once
    replies = m.run(sent, 4000, 8)
    for write in (False, True):
        at = sorted(cycle for cycle, _, _, is_write in replies if is_write == write)
        assert len(at) == 20
        assert at[-1] - at[0] == pytest.approx(19 * max(2, interval), abs=2)  # a look-up a cycle, for both


def test_without_a_link_it_has_the_bandwidth_of_the_host_s() -> None:
    m = with_peer(**{**PEERS, "peer_link__bandwidth": 0, "host_link__bandwidth": 128_000})
    assert m.run([(100, 0, BASE, False)], 2000, 8) == [(100 + 166 + 16 + 500, 0, BASE, False)]


@pytest.mark.parametrize("gpu", ["qv100-accelsim", "a100"])
def test_windows_and_groups_of_channels_do_not_change_the_link(gpu: str) -> None:
    sms = load_spec(gpu).sm.count
    requests = [
        (cycle, sm, a - (BASE - BASE // 2 if a & 64 else 0), write)
        for cycle, sm, a, write in traffic(2, sms, 1500)
    ]
    longest = memory(gpu).look_ahead()
    found = []
    for window, parts in ((longest, 1), (1, 1), (7, 3)):
        m = with_peer(gpu)
        found.append(sorted(m.run(requests, 12000, window, parts)))
        assert m.idle()
    assert len(found[0]) == len(requests)
    assert found[0] == found[1] == found[2]
