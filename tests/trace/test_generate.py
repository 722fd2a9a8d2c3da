"""The generator's traces are valid, reproducible, and what they claim to be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from simt.errors import TraceError
from simt.isa import Operation
from simt.trace import check_trace, open_trace
from simt.trace.generate import KINDS, generate

SIZES = {"gemm": 128, "gemm_tma": 128, "stencil": 70, "streaming": 5000, "gather": 300}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sm", [70, 80, 90])
def test_generated_traces_are_good(kind: str, sm: int, tmp_path: Path) -> None:
    if kind == "gemm_tma" and sm < 90:
        with pytest.raises(TraceError, match="needs sm 90"):
            generate(kind, tmp_path, sm=sm)
        return
    path = generate(kind, tmp_path, sm=sm, size=SIZES[kind])
    ((report,), warnings) = check_trace(path)
    assert (report.problem, report.notes, warnings) == (None, [], [])
    kernel = open_trace(path).kernels[0]
    assert (kernel.sm_version, kernel.id) == (sm, 1)
    source = kernel.source()
    static = source.instructions()
    for ordinal in range(source.cta_count):
        for records in source.read_cta(ordinal):
            assert static[records[-1][0]]["operation"] == Operation.Exit


@pytest.mark.slow
def test_operations_of_the_kinds(tmp_path: Path) -> None:
    def operations(kind: str, sm: int) -> Counter[Operation]:
        source = open_trace(generate(kind, tmp_path, sm=sm, size=SIZES[kind])).kernels[0].source()
        static = source.instructions()
        return Counter(static[i]["operation"] for w in source.read_cta(0) for i, _, _ in w)

    async_gemm = operations("gemm", 80)
    assert (
        async_gemm[Operation.AsyncCopy] == 8 * 4 * 6
    )  # warps x copies of a stage x (4 steps and 2 beyond the end)
    assert async_gemm[Operation.AsyncCommit] == async_gemm[Operation.AsyncWait] + 8 * 2
    assert operations("gemm", 70)[Operation.AsyncCopy] == 0
    assert operations("gather", 80)[Operation.Reduction] == 4
    assert operations("gemm_tma", 90)[Operation.BulkLoad] == 4


def test_streaming_touches_each_element_once(tmp_path: Path) -> None:
    source = open_trace(generate("streaming", tmp_path, size=5000)).kernels[0].source()
    static = source.instructions()
    stored = Counter(
        address
        for ordinal in range(source.cta_count)
        for records in source.read_cta(ordinal)
        for index, _, addresses in records
        if static[index]["operation"] == Operation.Store
        for address in addresses
    )
    assert len(stored) == 1250
    assert set(stored.values()) == {1}


def test_same_arguments_same_bytes(tmp_path: Path) -> None:
    kinds = ["streaming", "gather"]
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate(kinds, tmp_path / name, size=400, seed=seed)

    def contents(name: str) -> list[bytes]:
        return [p.read_bytes() for p in sorted((tmp_path / name).iterdir())]

    assert contents("a") == contents("b")
    assert contents("a") != contents("c")
    assert [k.id for k in open_trace(tmp_path / "a").kernels] == [1, 2]


@pytest.mark.parametrize("compression", ["none", "xz", "gz", "zst"])
def test_compressions_give_the_same_trace(compression: str, tmp_path: Path) -> None:
    plain = generate("streaming", tmp_path / "plain", size=3000, compression="none")
    other = generate("streaming", tmp_path / "other", size=3000, compression=compression)
    assert open_trace(plain).kernels[0].source().walk(True) == open_trace(other).kernels[0].source().walk(
        True
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"kind": "fft"}, "expected one of gemm"),
        ({"kind": "gemm", "sm": 61}, "sm 61"),
        ({"kind": "gemm", "size": 0}, "size 0"),
        ({"kind": "gemm", "compression": "bz2"}, "unknown compression"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=reason):
        generate(directory=tmp_path, **arguments)  # type: ignore[arg-type]


def test_the_demo_trace_in_the_repository_is_good() -> None:
    folder = Path(__file__).parents[2] / "examples" / "demo"
    reports, warnings = check_trace(folder)
    assert [r.problem for r in reports] == [None] * 4
    assert warnings == []
    assert sum(f.stat().st_size for f in folder.iterdir()) < 1 << 20
