"""Basic blocks and post-dominators, on hand-drawn graphs and against sets."""

from __future__ import annotations

import random

import pytest

from simt import _engine
from support.ptx_dump import HEADER

END = object()  # the virtual block behind every return


def blocks_of(body: str):
    text = f"{HEADER}.func f {{ .reg .pred p; .reg .b32 r; {body} }}"
    return _engine.PtxModule(text.encode()).blocks(0)


def drawn(body: str) -> list[tuple[int, int, list[int], int | None]]:
    return [(first, last, successors, after) for first, last, successors, after in blocks_of(body)]


def test_no_instructions():
    assert drawn("") == []
    assert drawn("L:") == []


def test_straight_line():
    assert drawn("add.s32 r, r, 1; call f; ret;") == [(0, 3, [], None)]


def test_labels_that_nobody_names_end_no_block():
    assert drawn("add.s32 r, r, 1; L: add.s32 r, r, 1; ret;") == [(0, 3, [], None)]


def test_diamond():
    assert drawn("@p bra A; mov.u32 r, 1; bra.uni B; A: mov.u32 r, 2; B: ret;") == [
        (0, 1, [2, 1], 3), (1, 3, [3], 3), (3, 4, [3], 3), (4, 5, [], None)
    ]  # fmt: skip


def test_loop_with_break_and_continue():
    body = """
      H: @p bra X;
         @p bra C;
         @!p bra X;
      C: add.s32 r, r, 1;
         bra H;
      X: ret;"""
    assert drawn(body) == [
        (0, 1, [4, 1], 4), (1, 2, [3, 2], 4), (2, 3, [4, 3], 4), (3, 5, [0], 0), (5, 6, [], None)
    ]  # fmt: skip
    without_break = body.replace("@!p bra X;", "")
    assert drawn(without_break)[1] == (1, 2, [2], 2)


def test_guarded_returns_fall_through():
    assert drawn("@p ret; @!p exit; ret;") == [(0, 1, [1], 1), (1, 2, [2], 2), (2, 3, [], None)]


def test_the_end_without_a_return():
    assert drawn("@p bra E; mov.u32 r, 1; E:") == [(0, 1, [1], None), (1, 2, [], None)]


def test_returns_on_both_sides_do_not_meet():
    assert drawn("@p bra A; ret; A: ret;") == [(0, 1, [2, 1], None), (1, 2, [], None), (2, 3, [], None)]


def test_a_path_into_a_trap_is_not_waited_for():
    assert drawn("@p bra A; call f; trap; A: mov.u32 r, 1; ret;") == [
        (0, 1, [2, 1], 2), (1, 3, [], None), (3, 5, [], None)
    ]  # fmt: skip
    assert drawn("@p bra A; trap; A: trap;") == [(0, 1, [2, 1], None), (1, 2, [], None), (2, 3, [], None)]


def test_a_loop_without_exit():
    body = "L: @p bra A; mov.u32 r, 1; bra B; A: mov.u32 r, 2; B: bra L;"
    assert drawn(body) == [(0, 1, [2, 1], 3), (1, 3, [3], 3), (3, 4, [3], 3), (4, 5, [0], None)]
    # Beside a way out, those who enter it are not waited for.
    assert drawn("@p bra A; L: bra L; A: ret;") == [(0, 1, [2, 1], 2), (1, 2, [1], None), (2, 3, [], None)]


def test_indirect_branch():
    body = "T: .branchtargets A, B, A; brx.idx r, T; A: ret; B: mov.u32 r, 1; bra A;"
    assert drawn(body) == [(0, 1, [1, 2], 1), (1, 2, [], None), (2, 4, [1], 1)]


def test_unreachable_code_is_kept():
    assert drawn("bra X; mov.u32 r, 1; X: ret;") == [(0, 1, [2], 2), (1, 2, [2], 2), (2, 3, [], None)]


def slow_post_dominators(successors: list[list[int]], ends: list[set[int]]) -> dict[int, int | None]:
    """Sets of post-dominators by fixed-point iteration: among the blocks that reach the first of the ends,
    then among the remaining ones that reach the second.
    """
    nearest: dict[int, int | None] = {}
    for level in ends:
        reaching = {
            b
            for b in range(len(successors))
            if b not in nearest and (b in level or level & reached(successors, b))
        }
        sets = {b: {*reaching, END} for b in reaching}
        changed = True
        while changed:
            changed = False
            for b in reaching:
                after = [sets[s] for s in successors[b] if s in reaching] + [{END}] * (b in level)
                new = {b} | set.intersection(*after)
                changed |= new != sets[b]
                sets[b] = new
        for b in reaching:
            strict = sets[b] - {b}
            # The immediate one is post-dominated by all the others.
            nearest[b] = next((c for c in strict if c is not END and strict == sets[c]), None)
    return nearest


def reached(successors: list[list[int]], start: int) -> set[int]:
    found: set[int] = set()
    waiting = list(successors[start])
    while waiting:
        b = waiting.pop()
        if b not in found:
            found.add(b)
            waiting += successors[b]
    return found


@pytest.mark.parametrize("seed", range(150))
def test_against_sets(seed):
    rng = random.Random(seed)
    count = rng.randrange(1, 12)
    lines: list[str] = []
    ends: list[set[int]] = [set(), set()]
    for b in range(count):
        a, c = rng.randrange(count), rng.randrange(count)
        kind = rng.choice(["bra", "cond", "cond", "cond", "ret", "trap", "fall", "brx"])
        if b == count - 1 and kind in ("cond", "fall"):
            kind = "ret"
        if kind in ("ret", "trap"):
            ends[kind == "trap"].add(b)
        code = {
            "bra": f"bra L{a};", "cond": f"@p bra L{a};", "ret": "ret;", "trap": "trap;",
            "fall": f"@!p bra L{b + 1};", "brx": f"T{b}: .branchtargets L{a}, L{c}; brx.idx r, T{b};",
        }[kind]  # fmt: skip
        lines.append(f"L{b}: {code}")
    blocks = blocks_of("\n".join(lines))
    assert [(first, last) for first, last, _, _ in blocks] == [(b, b + 1) for b in range(count)]
    successors = [list(s) for _, _, s, _ in blocks]
    expected = slow_post_dominators(successors, ends)
    for b in range(count):
        after = blocks[b][3]
        if b in expected:
            assert after == expected[b], (b, lines)
        else:  # in a loop without exit
            assert after is None or after in reached(successors, b)
