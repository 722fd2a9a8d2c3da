"""Mutated traces: an error or a result, never a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_reader import cta, header

from simt import _engine
from simt.errors import TraceError
from simt.isa import table_for

SEEDS = [
    header(5)
    + cta("0,0,0", ["00a0 ffffffff 1 R4 LDG.E 1 R4 4 1 0x7fb0fc430e00 4 0 ", "00b0 00000000 0 EXIT 0 0 0 "])
    + cta("1,0,0", [], ["00f0 0000000f 0 STS.128 2 R10 R24 16 2 0x40 16 -16 4096 0 "]),
    header(6)
    + cta(
        "0,0,0",
        [
            "0030 00000001 0 UTMALDG.2D 1 UR8 0 0x3f0 1 0xff 16384 0 4 0x7f0000001000 3 64 64 0 0 NoVal",
            "0010 ffffffff 1 R24 HGMMA.64x128x16.F32 2 R24 UR8 1 0 0 0 Val 1 0xff 1 0x7 1 0x123456",
        ],
        extra="cluster id = 0,0,0\ncluster cta = 1,0,0\ncluster rank = 1\n",
    ),
    header(2) + cta("0,0,0", ["0 0 0 0 0008 ffffffff 1 R1 MOV 0 0"]),
    header(5) + "0 0 0 0 0008 ffffffff 1 R1 MOV 0 0 0\n0 0 0 1 0008 ffffffff 0 LDGSTS.E 1 R1 4 1 0x0 4 0\n",
]
WORDS = ["-1", "0", "4294967296", "99999999999999999999", "0x", "ffffffffffffffffff", "#END_TB", "#BEGIN_TB",
         "warp = 0", "insts = 3", "\n", " ", "\0", "R255", "UR4", "4 0x0 65537 1", "3 1 0x0"]  # fmt: skip

mutation = st.tuples(
    st.floats(0, 1), st.integers(0, 30), st.one_of(st.sampled_from(WORDS), st.text(max_size=4))
)


def run(text: bytes) -> None:
    if _engine.trace_layout(text) == _engine.TraceLayout.Ungrouped:
        regrouper = _engine.Regrouper()
        regrouper.feed(text)
        regrouper.finish()
        assert len(regrouper.take_pieces()) < len(text)
    converter = _engine.TraceConverter()
    converter.feed(text)
    converter.finish()
    blocks = converter.take_blocks()
    source = _engine.TraceSource(
        converter.launch,
        converter.opcodes,
        converter.instructions,
        [summary for summary, _ in blocks],
        converter.counts.ctas,
        table_for(80)[0].native,
        lambda i: blocks[i][1],
    )
    assert source.walk(True)[0] == converter.counts.instructions


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(SEEDS), st.lists(mutation, min_size=1, max_size=4))
def test_mutated_text(seed: str, mutations: list[tuple[float, int, str]]) -> None:
    text = seed
    for where, removed, inserted in mutations:
        at = int(where * len(text))
        text = text[:at] + inserted + text[at + removed :]
    try:
        run(text.encode(errors="surrogatepass"))
    except TraceError as error:
        assert str(error).startswith("line ")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_rubbish(data: bytes) -> None:
    with pytest.raises(TraceError):
        run(data + b"\nend")


def test_the_seeds_themselves_are_good(tmp_path: Path) -> None:
    for seed in SEEDS[:3]:
        run(seed.encode())
