"""Matches the registers written by two modules."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .instrument import InstrumentedProgram, WritePoint, width


@dataclass(frozen=True)
class Matching:
    """Write points of two modules that correspond: number k of ours to number k of the reference's.

    replaced: of points where instructions were replaced by others, these and those.
    """

    ours: list[WritePoint]
    reference: list[WritePoint]
    replaced: Mapping[int, tuple[tuple[str, ...], tuple[str, ...]]]


def match(ours: InstrumentedProgram, reference: InstrumentedProgram, exclude: Iterable[str] = ()) -> Matching:
    """Matches functions by name, and instructions by opcode and kinds of operands. Where instructions were
    replaced by others, the last results of both correspond.
    """
    first, second = ours.points(exclude), reference.points(exclude)
    if [(p.text, p.part) for p in first] == [(p.text, p.part) for p in second]:
        return Matching(first, second, {})
    pairs: list[tuple[WritePoint, WritePoint]] = []
    replaced: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for function in ours.function_names:
        if function not in reference.function_names:
            continue
        a: dict[int, list[WritePoint]] = {}
        b: dict[int, list[WritePoint]] = {}
        for points, where in ((first, a), (second, b)):
            for p in points:
                if p.function == function:
                    where.setdefault(p.instruction, []).append(p)
        matcher = difflib.SequenceMatcher(
            None, ours.instructions(function), reference.instructions(function), autojunk=False
        )
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                    pairs += zip(a.get(i, []), b.get(j, []), strict=False)
            elif tag == "replace":
                last_a = next((a[i] for i in reversed(range(i1, i2)) if i in a), [])
                last_b = next((b[j] for j in reversed(range(j1, j2)) if j in b), [])
                if [width(p.type) for p in last_a] == [width(p.type) for p in last_b]:
                    texts = (
                        tuple(ours.text_of(function, i) for i in range(i1, i2)),
                        tuple(reference.text_of(function, j) for j in range(j1, j2)),
                    )
                    replaced.update((len(pairs) + k, texts) for k in range(len(last_a)))
                    pairs += zip(last_a, last_b, strict=True)
    return Matching([p for p, _ in pairs], [q for _, q in pairs], replaced)
