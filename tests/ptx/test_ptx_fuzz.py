"""Damaged PTX: a result, or an error that names the location, never a crash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt import _engine
from simt.errors import PtxError

SEEDS = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.ptx"))]
WORDS = [b"", b"{", b"}", b"(", b")", b"[", b"]", b";", b",", b"|", b"@", b"!", b"-", b"\n", b"\0", b"\xff",
         b"//", b"/*", b'"', b".", b"::", b":", b"%", b"_", b"%r99999", b"<4000000000>", b"[99999999999]",
         b"0f", b"0x",
         b"1e999", b"18446744073709551616", b"ret;", b".reg", b".param", b".func", b"bra retry;", b"= {1, 2}",
         b".branchtargets", b"call", b"((((((((", b"{{{{{{{{"]  # fmt: skip

damage = st.tuples(
    st.floats(0, 1), st.integers(0, 40), st.one_of(st.sampled_from(WORDS), st.binary(max_size=4))
)


def read_all(text: bytes) -> None:
    module = _engine.PtxModule(text, "damaged.ptx")
    module.kernels()
    for index, function in enumerate(module.dump()["functions"]):
        blocks = module.blocks(index)
        assert sum(last - first for first, last, _, _ in blocks) == len(function["instructions"])
        allocation = module.allocation(index)
        assert allocation["max_live"] <= allocation["registers"]


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_are_sound(seed):
    read_all(seed)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.sampled_from(SEEDS), st.lists(damage, min_size=1, max_size=5))
def test_damage(seed, damages):
    text = seed
    for where, length, new in damages:
        at = int(where * len(text))
        text = text[:at] + new + text[at + length :]
    try:
        read_all(text)
    except PtxError as error:
        assert re.match(r"damaged\.ptx:\d+:\d+: found .*expected ", str(error), re.DOTALL)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SEEDS), st.floats(0, 1))
def test_truncation(seed, where):
    try:
        read_all(seed[: int(where * len(seed))])
    except PtxError as error:
        assert "damaged.ptx:" in str(error)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(text):
    with pytest.raises(PtxError):
        read_all(text)
