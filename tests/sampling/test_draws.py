"""Counter-based draws: uniform, independent of order, and the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.sampling.draws import choose, choose_with_replacement, keys, uniform

IDS = np.arange(100_000, dtype=np.uint64)


def splitmix_finaliser(z: int) -> int:
    """In plain integers, as a reference."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


@given(st.integers(-(2**70), 2**70), st.integers(0, 2**64 - 1), st.integers(0, 2**20))
def test_keys_agree_with_plain_integers(seed: int, launch: int, salt: int) -> None:
    stream = splitmix_finaliser((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64)
    stream = splitmix_finaliser((stream + salt * 0xD1342543DE82EF95 + 1) % 2**64)
    inner = splitmix_finaliser((launch * 0x9E3779B97F4A7C15 + stream) % 2**64)
    assert int(keys(seed, [launch], salt)[0]) == splitmix_finaliser((inner + stream) % 2**64)


@pytest.mark.parametrize("seed", [0, 1, 2, -1, 2**63])
def test_numbers_are_uniform_and_uncorrelated(seed: int) -> None:
    numbers = uniform(seed, IDS)
    assert numbers.min() >= 0 and numbers.max() < 1
    counts = np.bincount((numbers * 100).astype(int), minlength=100)
    chi_squared = float(((counts - 1000) ** 2 / 1000).sum())
    assert 45 < chi_squared < 180  # 99 degrees of freedom: mean 99, standard deviation 14
    for other in (uniform(seed + 1, IDS), uniform(seed, IDS, salt=1), np.roll(numbers, 1)):
        assert abs(np.corrcoef(numbers, other)[0, 1]) < 5 / np.sqrt(len(IDS))


def test_ids_are_left_alone() -> None:
    ids = IDS.copy()
    uniform(3, ids)
    assert (ids == IDS).all()


@given(st.permutations(range(30)), st.integers(0, 30), st.integers(0, 5))
def test_the_chosen_ids_do_not_depend_on_their_order_and_grow_with_m(
    order: list[int], m: int, seed: int
) -> None:
    ids = np.array(order)
    chosen = set(ids[choose(seed, ids, m)].tolist())
    assert len(chosen) == m
    assert chosen == set(choose(seed, np.arange(30), m).tolist())
    assert chosen <= set(choose(seed, np.arange(30), min(m + 3, 30)).tolist())
    rows, draws = choose_with_replacement(seed, ids, m)
    assert draws.sum() == m
    here = dict(zip(ids[rows].tolist(), draws.tolist(), strict=True))
    rows, draws = choose_with_replacement(seed, np.arange(30), m)
    assert here == dict(zip(rows.tolist(), draws.tolist(), strict=True))


def test_each_id_is_drawn_equally_often() -> None:
    once, again = np.zeros(20), np.zeros(20)
    for seed in range(2000):
        once[choose(seed, np.arange(20), 5)] += 1
        rows, draws = choose_with_replacement(seed, np.arange(20), 5)
        again[rows] += draws
    # Binomial(2000, 1/4): standard deviation 19.4; Poisson-like of mean 500: 22.
    assert np.abs(once - 500).max() < 4.5 * 19.4
    assert np.abs(again - 500).max() < 4.5 * 22
