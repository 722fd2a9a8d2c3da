"""A small transformer's launches against PyTorch, and its predicted time against that of all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton")
pytest.importorskip("torch")

import simt
from simt.network import Architecture, predict
from simt.run.l2 import MemoryRows
from simt.run.session import QueuedTransfer
from support.transformer import Transformer

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")

SMALL = Architecture("small", 64, 128, 2, 4, 2, 16, 128, 4096, False, "bfloat16")


@pytest.mark.slow
def test_values_are_those_of_pytorch() -> None:
    network, state = Transformer(SMALL, 2, 48), {}
    tokens = np.random.default_rng(0).integers(0, SMALL.vocabulary, (2, 33))
    gpu = simt.GPU("h100", functional=True)
    scores = network.run(gpu, "prefill", tokens[:, :32].reshape(-1), 32, state)
    expected = network.reference(tokens[:, :32]).numpy()
    assert np.abs(scores - expected).max() < 0.03 * np.abs(expected).max()
    chosen = scores.argmax(1)
    step = network.run(gpu, "decode", chosen, 33, state)
    expected = network.reference(np.concatenate([tokens[:, :32], chosen[:, None]], 1)).numpy()
    assert np.abs(step - expected).max() < 0.03 * np.abs(expected).max()


@pytest.mark.slow
def test_sum_of_launches_is_the_time_of_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path))
    found = predict(SMALL, "h100", batch=2, prefill=32, decode=2)
    network, state = Transformer(SMALL, 2, 48), {}
    gpu = simt.GPU("h100")
    tokens = np.arange(64) % SMALL.vocabulary
    network.run(gpu, "prefill", tokens, 32, state)  # copies the weights to the GPU, and so into the L2
    whole = _seconds(gpu, lambda: network.run(gpu, "prefill", tokens, 32, state))
    step = _seconds(gpu, lambda: network.run(gpu, "decode", tokens[:2], 33, state))
    assert found.time_per_token is not None
    for one, seconds in ((found.time_to_first_token, whole), (found.time_per_token, step)):
        print(f"{seconds * 1e6:.2f} us, predicted {one.value * 1e6:.2f} us, {one.value / seconds - 1:+.1%}")
        assert abs(one.value / seconds - 1) < 0.05


def _seconds(gpu: simt.GPU, run: Callable[[], object]) -> float:
    """The time of what is run, which finds nothing of its own in the L2 when it begins."""
    other = gpu.empty(gpu.spec.l2_lines * gpu.spec.l2.slice.line_bytes, "u1")
    gpu.transfer(QueuedTransfer(touched=[MemoryRows(other.address, other.nbytes, use="read")]))
    gpu.synchronize()
    before = gpu.result().totals.seconds
    run()
    return gpu.result().totals.seconds - before
