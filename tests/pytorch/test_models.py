"""Models compiled for a simulated GPU, against PyTorch on the CPU."""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.errors import SimtError
from simt.result import perfetto

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'simt[torch]'")
pytest.importorskip("triton", reason="Triton is not installed")

from torch import nn  # noqa: E402

from simt.torch.backend import device_of  # noqa: E402
from simt.torch.device import HostOperatorWarning  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def gpu() -> simt.GPU:
    return simt.GPU("h100", functional=True)


def compiled(model: Any, gpu: simt.GPU) -> Any:
    return torch.compile(model, backend="simt", options={"gpu": gpu})


def test_training_a_perceptron(gpu: simt.GPU) -> None:
    ours = nn.Sequential(nn.Linear(20, 33), nn.GELU(), nn.LayerNorm(33), nn.Linear(33, 7))
    theirs = copy.deepcopy(ours)
    model, losses = compiled(ours, gpu), []
    optimisers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (ours, theirs)]
    step = compiled(optimisers[0].step, gpu)
    x, y = torch.randn(16, 20), torch.randint(0, 7, (16,))
    for _ in range(3):
        loss = nn.functional.cross_entropy(model(x), y)
        expected = nn.functional.cross_entropy(theirs(x), y)
        torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-5)
        losses.append(loss.item())
        for optimiser, value in zip(optimisers, (loss, expected), strict=True):
            optimiser.zero_grad()
            value.backward()
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-5)
        step()
        optimisers[1].step()
    assert losses[0] > losses[1] > losses[2]
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_several_calls_before_the_gradient(gpu: simt.GPU) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
    expected = copy.deepcopy(model)
    batches = torch.randn(3, 4, 16)
    on_gpu = compiled(model, gpu)
    sum(on_gpu(x).square().sum() for x in batches).backward()
    sum(expected(x).square().sum() for x in batches).backward()
    for found, right in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(found.grad, right.grad, rtol=1e-4, atol=1e-4)


def test_convolutions_and_batch_normalisation(gpu: simt.GPU) -> None:
    """Running statistics are inputs that the graph changes."""
    ours = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, stride=2, groups=8),
        nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.Conv2d(4, 4, 3, dilation=2, padding=2),
    )
    theirs = copy.deepcopy(ours)
    x = torch.randn(2, 3, 12, 12)
    found, expected = compiled(ours, gpu)(x), theirs(x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for a, b in zip(ours.buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    found.square().sum().backward()
    expected.square().sum().backward()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-2, atol=1e-2 * b.grad.abs().max().item())


class Block(nn.Module):
    """A transformer's block that makes a mask and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.more = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        positions = torch.arange(x.size(1))[:, None] * torch.tensor([0.5, 0.25]).repeat(16)
        x = x + self.out(a.transpose(1, 2).flatten(2)) + positions
        x = x.to(self.out.weight.dtype)
        return x + self.more(x, x, x, need_weights=False)[0]


def test_attention_constants_and_half_precision(gpu: simt.GPU) -> None:
    model, x = Block(), torch.randn(2, 17, 32)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model, gpu)(x), model(x), rtol=1e-4, atol=1e-5)
        assert not device_of({"gpu": gpu}).host_operators
        half = copy.deepcopy(model).bfloat16()
        found = compiled(half, gpu)(x.bfloat16())
    torch.testing.assert_close(found.float(), model(x), rtol=0.03, atol=0.06)


def test_operators_of_a_timed_model(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16)).eval()
    gpu, x = simt.GPU("h100", set={"sm.count": 4}), torch.randn(4, 64)
    with torch.no_grad():
        found = compiled(model, gpu)(x)
    torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)
    result = gpu.result()
    table = result.operators()
    assert [name.partition(":")[0] for name in table["operator"]] == ["0", "2"] or table["operator"][-1] == (
        "2: addmm"
    )
    assert all("addmm" in name for name in table["operator"])
    assert table["cycles"].sum() == sum(launch.cycles for launch in result.launches)
    assert table["share"].sum() == pytest.approx(1)
    shown = [e["name"] for e in perfetto.events(result)["traceEvents"] if e.get("cat") == "operator"]
    assert shown == table["operator"].to_list()
    result.save(tmp_path / "r.json")
    assert simt.Result.load(tmp_path / "r.json").operators().equals(table)


def test_an_operator_without_a_kernel_runs_on_the_host(gpu: simt.GPU) -> None:
    def f(x: Any) -> Any:
        return torch.linalg.inv(x + 3 * torch.eye(4)) * 2

    x = torch.rand(4, 4)
    with pytest.warns(HostOperatorWarning, match="linalg_inv"):
        found = compiled(f, gpu)(x)
    torch.testing.assert_close(found, f(x), rtol=1e-4, atol=1e-5)


def test_memory_is_freed(gpu: simt.GPU) -> None:
    model = compiled(lambda x: torch.softmax(x, 1) @ x, gpu)
    x = torch.randn(64, 64)
    del x
    y = model(torch.randn(64, 64))
    gc.collect()
    assert gpu.memory.used >= y.nbytes
    before = gpu.memory.used
    y2 = model(torch.randn(64, 64))
    gc.collect()
    assert gpu.memory.used == before + y2.nbytes
    del y, y2
    gc.collect()
    gpu.memory.free(gpu.memory.allocate(1))  # dropped memory is freed when the GPU is used next
    assert gpu.memory.used <= before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": 3}, "expected a simt.GPU or a name"),
        ({"gpu": simt.GPU("h100"), "functional": True}, "functional"),
        ({"gpu": "h1000"}, "h1000"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SimtError, match=message):
        device_of(options)
