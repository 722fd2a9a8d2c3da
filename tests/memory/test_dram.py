"""DRAM timing: the cycle in which a command is allowed, and the one before in which it is not."""

from __future__ import annotations

from typing import Any

import pytest

from simt._engine import testing
from simt.spec import load_spec

# Long, distinct intervals, so that the effect of each rule is visible on its own.
SLOW = {
    "ccd": 1,
    "ccdl": 1,
    "rrd": 1,
    "rcd": 10,
    "ras": 1,
    "rp": 1,
    "rc": 1,
    "cl": 5,
    "wl": 3,
    "cdlr": 1,
    "wr": 1,
    "rtpl": 0,
    "banks": 16,
    "bank_groups": 4,
    "bank_group_low_bits": True,
    "dual_bus": True,
    "scheduler": "fr_fcfs",
    "bus_bytes": 16,
    "burst_length": 2,
    "data_command_ratio": 2,
}


def dram(**changes: Any) -> Any:
    values = {f"dram.{k}": v for k, v in {**SLOW, **changes}.items()}
    return testing.Dram(load_spec("qv100-accelsim", values).native())


def at(log: list[tuple[int, str, int]], command: str) -> list[int]:
    return [cycle for cycle, name, _ in log if name == command]


@pytest.mark.parametrize("rcd", [10, 11])
def test_rcd_from_activate_to_read(rcd: int) -> None:
    d = dram(rcd=rcd)
    d.push(0, 5)
    log = d.run(60)
    assert at(log, "RD")[0] - at(log, "ACT")[0] == rcd


@pytest.mark.parametrize(("rcd", "wl"), [(10, 3), (12, 4)])
def test_rcd_for_writes_is_shorter_by_the_write_latency(rcd: int, wl: int) -> None:
    d = dram(rcd=rcd, wl=wl)
    d.push(0, 5, write=True)
    log = d.run(60)
    assert at(log, "WR")[0] - at(log, "ACT")[0] == rcd - (wl + 1)


@pytest.mark.parametrize("cl", [5, 6])
def test_cl_from_read_to_data(cl: int) -> None:
    d = dram(cl=cl)
    d.push(0, 5, name=7)
    log = d.run(60)
    assert (at(log, "RD")[0] + cl, "DATA", 7) in log


@pytest.mark.parametrize("ccd", [2, 3])
def test_ccd_between_columns_of_any_bank(ccd: int) -> None:
    d = dram(ccd=ccd)
    for bank in (0, 1):
        d.push(bank, 5)
    first, second = at(d.run(80), "RD")
    assert second - first == ccd


@pytest.mark.parametrize(("bank", "expected"), [(4, 6), (1, 1)])
def test_ccdl_only_within_a_bank_group(bank: int, expected: int) -> None:
    """The low bits select the group: banks 0 and 4 share one, 0 and 1 do not."""
    d = dram(ccdl=6)
    d.push(0, 5)
    d.push(bank, 5)
    first, second = at(d.run(80), "RD")
    assert second - first == expected


@pytest.mark.parametrize("rrd", [3, 4])
def test_rrd_between_activates(rrd: int) -> None:
    d = dram(rrd=rrd)
    for bank in (0, 1):
        d.push(bank, 5)
    first, second = at(d.run(80), "ACT")
    assert second - first == rrd


@pytest.mark.parametrize("ras", [30, 31])
def test_ras_from_activate_to_precharge(ras: int) -> None:
    d = dram(ras=ras, rc=ras)
    d.push(0, 5)
    d.push(0, 6)
    log = d.run(120)
    assert at(log, "PRE")[0] - at(log, "ACT")[0] == ras


@pytest.mark.parametrize("rp", [9, 10])
def test_rp_from_precharge_to_activate(rp: int) -> None:
    d = dram(rp=rp)
    d.push(0, 5)
    d.push(0, 6)
    log = d.run(120)
    assert at(log, "ACT")[1] - at(log, "PRE")[0] == rp


@pytest.mark.parametrize("rc", [50, 51])
def test_rc_between_activates_of_a_bank(rc: int) -> None:
    d = dram(rc=rc)
    d.push(0, 5)
    d.push(0, 6)
    first, second = at(d.run(160), "ACT")
    assert second - first == rc


@pytest.mark.parametrize("rtpl", [15, 16])
def test_rtpl_from_read_to_precharge_in_the_group(rtpl: int) -> None:
    d = dram(rtpl=rtpl)
    d.push(0, 5)
    d.push(0, 6)
    log = d.run(120)
    assert at(log, "PRE")[0] - at(log, "RD")[0] == rtpl


@pytest.mark.parametrize("cdlr", [4, 5])
def test_write_to_read(cdlr: int) -> None:
    """WTR = WL + burst + CDLR (GPGPU-Sim), here 3 + 1 + CDLR."""
    d = dram(cdlr=cdlr)
    d.push(0, 5, write=True)
    d.push(1, 5)
    log = d.run(80)
    assert at(log, "RD")[0] - at(log, "WR")[0] == 3 + 1 + cdlr


@pytest.mark.parametrize("cl", [8, 9])
def test_read_to_write(cl: int) -> None:
    """RTW = CL + burst + 2 - WL, here CL + 1 + 2 - 3."""
    d = dram(cl=cl)
    d.push(0, 5)
    d.push(0, 5, write=True)
    log = d.run(80)
    assert at(log, "WR")[0] - at(log, "RD")[0] == cl + 1 + 2 - 3


@pytest.mark.parametrize("wr", [12, 13])
def test_write_to_precharge(wr: int) -> None:
    """WTP = WL + burst + WR, here 3 + 1 + WR."""
    d = dram(wr=wr)
    d.push(0, 5, write=True)
    d.push(0, 6, write=True)
    log = d.run(120)
    assert at(log, "PRE")[0] - at(log, "WR")[0] == 3 + 1 + wr


def test_a_bus_for_rows_of_its_own_is_faster() -> None:
    """With a single bus, banks in turn after the one with the column command cannot open their row then."""

    def finished(dual: bool) -> int:
        d = dram(dual_bus=dual, rcd=4, rrd=1, ras=8, rc=10, rp=2, scheduler_queue=200)
        for i in range(128):
            d.push(i % 16, i // 32)
        return max(at(d.run(4000), "RD"))

    assert finished(True) < finished(False)


def test_frfcfs_serves_the_open_row_first_and_fcfs_does_not() -> None:
    def order(scheduler: str) -> list[int]:
        d = dram(scheduler=scheduler)
        got: list[int] = []
        for name, row in ((1, 5), (2, 6), (3, 5)):
            while d.full():
                got += [x for _, c, x in d.run(1) if c == "DATA"]
            d.push(0, row, name=name)
        return got + [x for _, c, x in d.run(300) if c == "DATA"]

    assert order("fr_fcfs") == [1, 3, 2]
    assert order("fcfs") == [1, 2, 3]


def test_the_queue_holds_what_it_says() -> None:
    d = dram(scheduler_queue=3)
    for row in range(3):
        assert not d.full()
        d.push(0, row)
    assert d.full()
    d.run(1)
    assert not d.full()


def test_writes_wait_in_their_queue_for_the_high_mark() -> None:
    d = dram(write_queue=True, write_queue_size=8, write_high=3, write_low=1)
    d.push(1, 9)
    d.run(40)
    for _ in range(2):
        d.push(0, 5, write=True)
    for row in range(4):
        d.push(2, row)
    log = d.run(40)
    assert at(log, "WR") == [], "reads go first below the mark"
    d.push(0, 5, write=True)
    assert len(at(d.run(60), "WR")) >= 2


def test_several_sectors_are_as_many_columns_of_one_request() -> None:
    d = dram()
    d.push(0, 5, write=True, sectors=4)
    log = d.run(60)
    assert len(at(log, "WR")) == 1 or at(log, "WR") == list(range(at(log, "WR")[0], at(log, "WR")[0] + 4))
    assert d.idle()


@pytest.mark.parametrize("faw", [20, 21])
def test_faw_from_the_first_activate_to_the_fifth(faw: int) -> None:
    d = dram(faw=faw)
    for bank in range(9):
        d.push(bank, 5)
    activates = at(d.run(120), "ACT")
    assert activates[3] - activates[0] == 3, "up to four, only tRRD counts"
    assert activates[4] - activates[0] == faw
    assert activates[8] - activates[4] == faw


REFRESH = {"refi": 320, "rfc": 40, "rc": 30, "ras": 20, "rp": 8, "rcd": 10, "cl": 5}


@pytest.mark.parametrize("rfc", [40, 41])
def test_a_refresh_closes_the_row_and_takes_rfc(rfc: int) -> None:
    """At 320 the row has long been open, so it can be closed immediately: tRP, tRFC, a new activate."""
    d = dram(**REFRESH | {"rfc": rfc})
    d.push(0, 5)
    d.run(319)
    for _ in range(2):  # one is still read in cycle 319, while the row is open
        d.push(0, 5)
    log = d.run(200)
    assert at(log, "RD") == [319, 320 + 8 + rfc + 10]
    assert at(log, "ACT") == [320 + 8 + rfc]


@pytest.mark.parametrize(("opened", "rc"), [(310, 28), (310, 30), (311, 30)])
def test_a_refresh_waits_until_the_row_may_be_closed(opened: int, rc: int) -> None:
    """With an activate just before: the row is closed unread, tRAS later, and refreshed tRC later."""
    d = dram(**REFRESH | {"rc": rc})
    d.run(opened)
    d.push(0, 5)
    log = d.run(200)
    assert at(log, "ACT") == [opened, opened + max(rc, 20 + 8) + 40]
    assert at(log, "RD") == [opened + max(rc, 20 + 8) + 40 + 10]


def test_the_last_read_before_a_refresh() -> None:
    """Opened in cycle 309, the row is read in cycle 319."""
    d = dram(**REFRESH)
    d.run(309)
    d.push(0, 5)
    assert at(d.run(200), "RD") == [319]


@pytest.mark.parametrize("rfc", [40, 41])
def test_a_refresh_of_a_bank_at_rest_starts_at_once(rfc: int) -> None:
    d = dram(**REFRESH | {"rfc": rfc})
    d.run(321)
    d.push(0, 5)
    assert at(d.run(100), "ACT") == [320 + rfc]


@pytest.mark.parametrize(("bank", "expected"), [(0, 20 + 40), (1, 21), (2, 21)])
def test_banks_are_refreshed_in_turn(bank: int, expected: int) -> None:
    """16 banks, 320 cycles: bank 0 from 20 on, bank 1 from 40 on."""
    d = dram(**REFRESH | {"per_bank_refresh": True})
    d.run(21)
    d.push(bank, 5)
    assert at(d.run(100), "ACT") == [expected]


def test_without_an_interval_nothing_is_refreshed() -> None:
    d = dram(**REFRESH | {"refi": 0})
    d.push(0, 5)
    d.run(5000)
    d.push(0, 5)
    assert at(d.run(5), "RD") == [5000]


@pytest.mark.parametrize("per_bank", [False, True])
@pytest.mark.parametrize("rest", [1, 300, 333, 1000, 1279, 5000, 100_003])
def test_a_rest_without_requests_changes_nothing(per_bank: bool, rest: int) -> None:
    """An idle channel does not run: the commands that follow are the same as if it had, cycle by cycle."""
    changes = REFRESH | {"per_bank_refresh": per_bank}

    def commands(run: bool) -> list[tuple[int, str, int]]:
        d = dram(**changes)
        for bank in range(16):
            d.push(bank, 5)
        d.run(400)
        assert d.idle()
        if run:
            d.run(rest)
        else:
            d.skip(rest)
        for bank in range(16):
            d.push(bank, 5)
        return list(d.run(400))

    assert commands(run=False) == commands(run=True)
