"""Addresses to slices, banks and rows."""

from __future__ import annotations

import collections
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt._engine import testing
from simt.spec import load_spec


def native(gpu: str = "qv100-accelsim", **changes: Any) -> dict[str, Any]:
    return load_spec(gpu, {f"address_map.{k}": v for k, v in changes.items()}).native()


@pytest.mark.parametrize("n", [8, 16, 32, 64, 128])
@given(high=st.integers(0, 2**40))
def test_ipoly_is_a_permutation(n: int, high: int) -> None:
    assert sorted(testing.ipoly_hash(high, i, n) for i in range(n)) == list(range(n))


@pytest.mark.parametrize("n", [16, 32, 64])
def test_ipoly_by_hand(n: int) -> None:
    """GPGPU-Sim's coefficients of address bit 0, and linearity."""
    bit0 = {16: 0b0011, 32: 0b00101, 64: 0b000011}[n]
    assert testing.ipoly_hash(1, 0, n) == bit0
    assert testing.ipoly_hash(0, 5, n) == 5
    assert testing.ipoly_hash(1, 5, n) == bit0 ^ 5
    assert testing.ipoly_hash(6, 3, n) == testing.ipoly_hash(2, 3, n) ^ testing.ipoly_hash(4, 0, n)


@pytest.mark.parametrize(("n", "polynomial"), [(2, 0b11), (8, 0b1011), (128, 0b1000_0011), (4096, 0x1053)])
@given(high=st.integers(0, 2**64 - 1))
def test_ipoly_is_the_remainder(n: int, polynomial: int, high: int) -> None:
    """By long division."""
    remainder = high
    while remainder >= n:
        remainder ^= polynomial << remainder.bit_length() - n.bit_length()
    assert testing.ipoly_hash(high, 1, n) == remainder ^ 1


@pytest.mark.parametrize("power", range(8, 26))
def test_ipoly_spreads_every_power_of_two_stride(power: int) -> None:
    addresses = [i << power for i in range(64)]
    used = collections.Counter(testing.slices(native(), addresses))
    assert len(used) >= 32, "64 accesses reach at least half of 64 slices"
    linear = collections.Counter(testing.slices(native(hash="linear"), [i << 20 for i in range(64)]))
    assert len(linear) == 1, "without a hash they all meet in one"


@pytest.mark.parametrize(
    ("gpu", "changes"),
    [
        ("qv100-accelsim", {"hash": "linear"}),
        ("qv100-accelsim", {"hash": "xor"}),
        ("qv100-accelsim", {"hash": "ipoly"}),
        ("qv100-accelsim", {"hash": "random"}),
        ("qv100-accelsim", {"hash": "pae", "slices_per_channel": 1}),
        ("titanx-accelsim", {"hash": "random"}),
        ("titanx-accelsim", {"hash": "linear"}),
        ("a100-accelsim", {"hash": "ipoly_modulo"}),
        ("b200", {"hash": "ipoly_dies"}),
    ],
)
def test_consecutive_addresses_use_all_slices_evenly(gpu: str, changes: dict[str, Any]) -> None:
    spec = load_spec(gpu, {f"address_map.{k}": v for k, v in changes.items()})
    slices = spec.address_map.channels * spec.address_map.slices_per_channel
    used = collections.Counter(
        testing.slices(native(gpu, **changes), [32 * i for i in range(64 * 8 * slices)])
    )
    assert len(used) == slices
    assert max(used.values()) <= 3 * min(used.values())


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["rtx2060", "a100", "h200"])
@given(block=st.integers(0, 2**20))
def test_skewed_slices_have_even_shares(gpu: str, block: int) -> None:
    """24, 160 and 192 slices: every block of 256 bytes per channel uses each slice equally often."""
    address = load_spec(gpu).address_map
    size = 256 * address.channels
    used = collections.Counter(
        testing.slices(native(gpu), [block * size + 32 * i for i in range(size // 32)])
    )
    assert set(used.values()) == {8 // address.slices_per_channel}
    assert len(used) == address.slices


@pytest.mark.parametrize("stride", [256 * n for n in (3, 5, 12, 80, 160, 192, 256, 960)])
@pytest.mark.parametrize("gpu", ["rtx2060", "a100", "h200"])
def test_skewed_slices_spread_strides(gpu: str, stride: int) -> None:
    address = load_spec(gpu).address_map
    used = collections.Counter(testing.slices(native(gpu), [stride * i for i in range(16 * address.slices)]))
    assert len(used) >= address.slices // address.slices_per_channel
    assert max(used.values()) <= 6 * 16


@pytest.mark.parametrize("block", [0, 1, 77, 2**20 + 5])
def test_dies_of_a_b200_have_pages_of_4_kib(block: int) -> None:
    """A page lies on one die, in 16 of its slices; near or far as QuickRunCUDA publishes of 32 pages."""
    slices = load_spec("b200").address_map.slices
    pages = [
        set(testing.slices(native("b200"), [(512 * block + page) * 4096 + 256 * i for i in range(16)]))
        for page in range(32)
    ]
    assert all(len(page) == 16 for page in pages)
    assert all(len(set.union(*pages[at : at + 16])) == slices for at in (0, 16))
    dies = [{slice_ // (slices // 2) for slice_ in page} for page in pages]
    assert all(len(die) == 1 for die in dies)
    found = "".join("NF"[die != dies[0]] for die in dies)
    assert found == "NFFNFNNFFNNFNFFNNFFNFNNFFNNFNFFN"


def test_rows_of_a_matrix_are_on_both_dies_of_a_b200() -> None:
    """Rows of 256 KiB, as A and B of a K of 131,072 have in BF16."""
    half = load_spec("b200").address_map.slices // 2
    dies = [slice_ // half for slice_ in testing.slices(native("b200"), [row << 18 for row in range(64)])]
    assert sum(dies) == 32


@given(st.sets(st.integers(0, 2**30).map(lambda a: a * 32), min_size=2, max_size=20))
def test_slices_of_dies_and_local_addresses_tell_sectors_apart(addresses: set[int]) -> None:
    spec = native("b200")
    places = {(w["slice"], w["local"]) for w in (testing.locate(spec, a) for a in addresses)}
    assert len(places) == len(addresses)


def test_channels_interleave_at_256_bytes() -> None:
    spec = native(hash="linear")
    assert testing.locate(spec, 255)["channel"] == 0
    assert testing.locate(spec, 256)["channel"] == 1
    assert testing.locate(spec, 256 * 31)["channel"] == 31
    assert testing.locate(spec, 256 * 32)["channel"] == 0


@given(st.integers(0, 2**47 - 1))
def test_places_stay_in_range_with_twelve_channels(address: int) -> None:
    where = testing.locate(native("rtx2060-accelsim"), address)
    assert where["channel"] == (address >> 8) % 12
    assert where["slice"] // 2 == where["channel"]
    assert where["bank"] < 16


@pytest.mark.slow
@given(st.sets(st.integers(0, 2**30).map(lambda a: a * 32), min_size=2, max_size=20))
def test_slice_and_local_address_tell_sectors_apart(addresses: set[int]) -> None:
    spec = native()
    places = {(w["slice"], w["local"]) for w in (testing.locate(spec, a) for a in addresses)}
    assert len(places) == len(addresses)
