"""Devices reach each other over their link, if they have one, and over the link to the host otherwise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simt.result import Result
from simt.spec import load_spec

Compiled = Callable[[str], Path]
COPIED = 64 << 20  # bytes of each copy of peer_copies.cpp
ACCESSED = 8 << 20  # bytes that its times of peer_accesses.cpp are of
OUT = ("out", "out_at_once")
IN = ("in", "in_at_once", "in_default", "in_between_devices", "in_rows", "in_peer_rows")


def times(program: Path, gpu: str, *options: str | Path) -> dict[str, float]:
    """What a program says of two such GPUs."""
    command = [str(Path(sys.executable).with_name("simt")), "exec", "-q", "--gpu", f"{gpu},{gpu}"]
    done = subprocess.run(
        [*command, *map(str, options), "--", str(program)], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0 and done.stdout.endswith("passed\n"), done.stdout + done.stderr
    return {name: float(time) for name, time in map(str.split, done.stdout.splitlines()[:-1])}


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["qv100", "a100", "h100"])
def test_copies_take_the_link(gpu: str, compiled: Compiled) -> None:
    found = times(compiled("peer_copies"), gpu)
    spec = load_spec(gpu)
    link, host = spec.peer_link, spec.host_link
    alone = link.latency / 1e3 + COPIED / link.bandwidth  # microseconds
    from_host = host.latency / 1e3 + COPIED / host.bandwidth
    expected = dict.fromkeys([*OUT, *IN, "both"], alone)  # the two directions do not wait for each other
    expected |= dict.fromkeys(["twice_out", "twice_in"], 2 * alone)
    expected |= {"short_in": link.latency / 1e3 + 4 / link.bandwidth}
    expected |= dict.fromkeys(["host", "host_to_other", "other_to_host", "host_and_in"], from_host)
    assert found == pytest.approx(expected, abs=0.01)


@pytest.mark.slow
def test_cards_without_a_link_copy_over_the_hosts(compiled: Compiled) -> None:
    spec = load_spec("rtx3070")
    assert spec.peer_link.bandwidth == 0
    found = times(compiled("peer_copies"), "rtx3070")
    alone = spec.peer_link.latency / 1e3 + COPIED / spec.host_link.bandwidth
    for name in (*OUT, *IN, "both"):
        assert found[name] == pytest.approx(alone, abs=0.01)
    assert found["host_and_in"] == pytest.approx(alone + found["host"], abs=0.01)  # one after the other


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peer_accesses") / "result"


@pytest.fixture(scope="module")
def accesses(compiled: Compiled, output: Path) -> dict[str, float]:
    return times(compiled("peer_accesses"), "h100", "-o", output)


@pytest.mark.slow
def test_loads_from_another_device_take_as_long_as_published(accesses: dict[str, float]) -> None:
    assert accesses["chase_other"] == pytest.approx(826, abs=4)  # nvbandwidth: 822 to 830 ns


@pytest.mark.slow
@pytest.mark.parametrize("what", ["load", "store"])
def test_accesses_of_all_sms_reach_the_bandwidth_of_the_link(accesses: dict[str, float], what: str) -> None:
    bound = ACCESSED / load_spec("h100").peer_link.bandwidth * 1e3  # nanoseconds
    assert bound <= accesses[f"{what}_other"] < 1.05 * bound
    assert accesses[f"{what}_own"] < 0.5 * bound


@pytest.mark.slow
def test_the_hosts_memory_is_not_reached_over_the_link(accesses: dict[str, float]) -> None:
    """Managed memory that the other device holds; more or fewer of its addresses are in the L2's far part."""
    assert accesses["chase_managed"] == pytest.approx(accesses["chase_own"], rel=0.05)


@pytest.mark.slow
def test_the_result_names_the_link(accesses: dict[str, float], output: Path) -> None:
    assert accesses
    found = [(t.link, t.nbytes) for t in Result.load(output).transfers if "peer" in t.link]
    assert found == [("device_to_peer", 2 * ACCESSED), ("peer_to_device", 2 * ACCESSED)]
