"""Options of the GPU that a model is compiled for, changing shapes, and the gradients of BERT."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.control import Photon

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'simt[torch]'")
pytest.importorskip("triton", reason="Triton is not installed")

from torch import nn  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")]

SMALL = {"sm.count": 4}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(model: Any, gpu: simt.GPU, **options: Any) -> Any:
    return torch.compile(model, backend="simt", options={"gpu": gpu}, **options)


def perceptron() -> Any:
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16)).eval()


def outputs(model: Any, gpu: simt.GPU, *inputs: Any) -> list[Any]:
    ours = compiled(model, gpu)
    with torch.no_grad():
        return [ours(x) for x in inputs]


def test_the_result_is_saved_as_launches_finish(tmp_path: Path) -> None:
    gpu, model, x = simt.GPU("h100", set=SMALL, output=tmp_path / "out"), perceptron(), torch.randn(4, 64)
    outputs(model, gpu, x)
    gpu.save()
    saved, result = simt.Result.load(tmp_path / "out"), gpu.result()
    assert [launch.to_json() for launch in saved.launches] == [launch.to_json() for launch in result.launches]
    assert saved.launches and saved.operators().equals(result.operators())


def test_a_plan_times_its_launches_only() -> None:
    model, inputs = perceptron(), [torch.randn(4, 64) for _ in range(3)]
    every = simt.GPU("h100", set=SMALL)
    expected = outputs(model, every, *inputs)
    torch._dynamo.reset()
    planned = simt.GPU("h100", set=SMALL, plan={2, 5})
    for found, same in zip(outputs(model, planned, *inputs), expected, strict=True):
        assert torch.equal(found, same)
    assert [launch.id for launch in planned.launches] == [2, 5]
    assert [launch.name for launch in planned.launches] == [every.launches[i - 1].name for i in (2, 5)]


def test_results_do_not_depend_on_threads() -> None:
    model = nn.Sequential(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10))
    x = torch.randn(2, 8, 8, 8)
    for functional in (True, False):
        found = []
        for threads in (1, 2):
            torch._dynamo.reset()
            gpu = simt.GPU("h100", set=SMALL, functional=functional, threads=threads)
            found.append((outputs(model, gpu, x)[0], [launch.to_json(True) for launch in gpu.launches]))
        assert torch.equal(found[0][0], found[1][0]) and found[0][1] == found[1][1]
        assert bool(found[0][1]) != functional


def test_convolutions_without_timing_take_few_instructions() -> None:
    """Tiles are chosen for the host: large, although a GPU would then be nearly idle."""
    gpu, model = simt.GPU("h100", functional=True), nn.Conv2d(64, 64, 3, padding=1).eval()
    ours, x = compiled(model, gpu), torch.randn(1, 64, 14, 14)
    with torch.no_grad():
        ours(x)
        before = gpu.instructions
        torch.testing.assert_close(ours(x), model(x), rtol=1e-4, atol=1e-5)
    products = 64 * 64 * 9 * 14 * 14 / 32
    assert gpu.instructions - before < 2.2 * products


def test_batches_of_changing_size() -> None:
    """The first change makes PyTorch compile code for any size."""
    gpu, model = simt.GPU("h100", functional=True), perceptron()
    ours = compiled(model, gpu)
    for size in (4, 7, 12, 1, 33):
        x = torch.randn(size, 64, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        found, expected = ours(x), model(y)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        (found * torch.arange(16)).sum().backward()
        (expected * torch.arange(16)).sum().backward()
        torch.testing.assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("how", ["mark_dynamic", "dynamic=True"])
def test_dimensions_that_are_declared_dynamic(how: str) -> None:
    gpu = simt.GPU("h100", functional=True)
    model = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2)).eval()
    ours = compiled(model, gpu, **({"dynamic": True} if how == "dynamic=True" else {}))
    for batch, size in ((2, 8), (3, 12)):
        x = torch.randn(batch, 8, size, size)
        if how == "mark_dynamic":
            for dimension in (0, 2, 3):
                torch._dynamo.mark_dynamic(x, dimension)
        with torch.no_grad():
            torch.testing.assert_close(ours(x), model(x), rtol=1e-4, atol=1e-5)


def test_a_controller_predicts_without_changing_values() -> None:
    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(256, 256) for _ in range(2))

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = torch.tanh(layer(x)) + x
            return x

    model, inputs = Layers().eval(), [torch.randn(256, 256) for _ in range(2)]
    full = simt.GPU("h100", set=SMALL)
    expected = outputs(model, full, *inputs)
    torch._dynamo.reset()
    photon = simt.GPU("h100", set=SMALL, controller=Photon())
    for found, same in zip(outputs(model, photon, *inputs), expected, strict=True):
        assert torch.equal(found, same)
    launches = photon.result().launches
    assert len(launches) == len(full.launches)
    assert any(launch.sampled is not None and launch.sampled.decision != "full" for launch in launches)
    total, exact = (sum(launch.cycles for launch in gpu.launches) for gpu in (photon, full))
    assert total == pytest.approx(exact, rel=0.2)


class Encoder(nn.Module):
    """A layer of BERT between its embeddings and its pooler."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(100, 64), nn.Embedding(32, 64)
        self.norm = nn.LayerNorm(64)
        self.layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, activation="gelu", batch_first=True)
        self.pooler = nn.Linear(64, 64)

    def forward(self, ids: Any) -> Any:
        x = self.norm(self.words(ids) + self.positions(torch.arange(ids.size(1))))
        x = self.layer(x)
        return x, torch.tanh(self.pooler(x[:, 0]))


def bert() -> Any:
    try:
        from transformers import BertConfig, BertModel
    except (ImportError, RuntimeError) as error:  # also where torchvision is one for another PyTorch
        pytest.skip(f"transformers cannot be imported: {error}")
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "num_hidden_layers": 1}
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertModel(BertConfig(vocab_size=100, **sizes, **none))


@pytest.mark.parametrize("make", [Encoder, bert])
def test_gradients_of_bert(make: Any) -> None:
    """Of sums of all outputs with random weights: LayerNorm makes plain sums and squares constant."""
    ours = make().train()
    theirs, ids = copy.deepcopy(ours), torch.randint(0, 100, (2, 16))
    model = compiled(ours, simt.GPU("h100", functional=True))
    weights = torch.randn(2, 16, 64), torch.randn(2, 64)
    for run in (model, theirs):
        sequence, pooled = tuple(run(ids).values()) if make is bert else run(ids)
        ((sequence * weights[0]).sum() + (pooled * weights[1]).sum()).backward()
    worst = 0.0
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        # The gradient of the keys' bias is only rounding: softmax does not see what all scores share.
        scale = max(q.grad.abs().max().item(), 1e-3)
        error = (p.grad - q.grad).abs().max().item() / scale
        assert error < (0.1 if scale == 1e-3 else 1e-4), name
        worst = max(worst, error if scale > 1e-3 else 0)
    print(f"{make.__name__}: largest error of a gradient {worst:.1e} of its largest element")
    assert worst > 0
