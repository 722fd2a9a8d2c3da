"""Values of each kernel against PyTorch on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")
torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")

import simt  # noqa: E402
from simt.network import architecture, works  # noqa: E402
from simt.network.linked import LinkedGpu  # noqa: E402
from simt.network.operators import operators  # noqa: E402

BF16 = "bfloat16"
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")]


@pytest.fixture(scope="module", params=["h100", "a100"])
def gpu(request: pytest.FixtureRequest) -> simt.GPU:
    """With tensor descriptors and with pointers."""
    return simt.GPU(request.param, functional=True)


class Launched:
    """A launch with random floating-point tensors, and these as PyTorch's."""

    def __init__(self, gpu: simt.GPU, work: works.Work, **given: Any) -> None:
        random = np.random.default_rng(0)
        self.arrays = work.allocate(gpu)
        for name, tensor in work.tensors.items():
            if name in given:
                self.arrays[name] = given[name]
            elif tensor.values is None and tensor.role != "output" and tensor.dtype != "uint8":
                values = random.standard_normal(tensor.shape).astype(np.float32)
                self.arrays[name].set(values.astype(self.arrays[name].dtype))
        self.before = {name: self[name] for name in self.arrays}
        work.launch(gpu, self.arrays)

    def __getitem__(self, name: str) -> Any:
        return torch.from_numpy(self.arrays[name].get().astype(np.float32))


def near(got: Any, expected: Any) -> bool:
    """Within roundings to bfloat16."""
    return float((got - expected).abs().max()) < 0.01 * float(expected.abs().max())


@pytest.mark.parametrize(
    ("m", "n", "k", "weights", "bias", "experts"),
    [
        (100, 160, 192, "same", True, 1),
        (8, 96, 256, "same", False, 2),
        (70, 96, 128, "same", False, 3),
        (8, 96, 256, "fp8", False, 1),
        (100, 160, 192, "fp8", False, 1),
    ],
)
def test_product(gpu: simt.GPU, m: int, n: int, k: int, weights: Any, bias: bool, experts: int) -> None:
    if weights == "fp8" and gpu.spec.sm_version < 89:
        pytest.skip("Triton converts from FP8 from compute capability 8.9 on")
    work = works.product(m, n, k, gpu.spec, BF16, weights, bias, experts)
    one = Launched(gpu, work)
    x, w, y = (one[name].reshape(experts, -1, one[name].shape[1]) for name in ("x", "w", "y"))
    expected = x @ w.transpose(1, 2)
    if weights == "fp8":
        expected = expected * one["scales"].reshape(1, 1, -1)
    if bias:
        expected = expected + one["bias"]
    assert near(y, expected)


@pytest.mark.parametrize("m", [8, 100])
def test_product_with_weights_of_4_bits(gpu: simt.GPU, m: int) -> None:
    work = works.product(m, 96, 256, gpu.spec, BF16, "int4")
    packed = np.random.default_rng(1).integers(0, 256, work.tensors["w"].shape, np.uint8)
    one = Launched(gpu, work, w=gpu.array(packed))
    halves = packed.reshape(96, 2, 64)
    full = np.concatenate([halves & 15, halves >> 4], 2).astype(np.float32) - 8
    w = torch.from_numpy(full) * one["scales"][:, :, None]
    assert near(one["y"], one["x"] @ w.reshape(96, 256).T)


@pytest.mark.parametrize(
    ("batch", "length", "heads", "kv_heads", "dim"),
    [(2, 128, 4, 2, 64), (1, 256, 2, 1, 128), (2, 48, 4, 4, 32)],
)
def test_prefill_attention(
    gpu: simt.GPU, batch: int, length: int, heads: int, kv_heads: int, dim: int
) -> None:
    one = Launched(gpu, works.prefill_attention(batch, length, heads, kv_heads, dim, BF16, gpu.spec))
    x = one["qkv"].reshape(batch, length, heads + 2 * kv_heads, dim).transpose(1, 2)
    q, k, v = x.split([heads, kv_heads, kv_heads], 1)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    assert near(one["y"], expected.transpose(1, 2).reshape(batch * length, -1))


@pytest.mark.parametrize(
    ("batch", "length", "heads", "kv_heads", "dim"), [(2, 200, 4, 2, 64), (3, 17, 4, 4, 32)]
)
def test_decode_attention(
    gpu: simt.GPU, batch: int, length: int, heads: int, kv_heads: int, dim: int
) -> None:
    parts, join = works.decode_attention(batch, length, heads, kv_heads, dim, BF16, gpu.spec)
    one = Launched(gpu, parts)
    joined = Launched(gpu, join, parts=one.arrays["parts"], peaks=one.arrays["peaks"])
    token = np.arange(length)
    places = one.arrays["pages"].get()[:, token // works.PAGE] * works.PAGE + token % works.PAGE
    k, v = (one[x][places].reshape(batch, length, kv_heads, dim).transpose(1, 2) for x in ("keys", "values"))
    q = one["qkv"].reshape(batch, -1, dim)[:, :heads, None]
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert near(joined["y"], expected.reshape(batch, -1))


def test_product_without_tensor_maps() -> None:
    older = simt.GPU("a100", functional=True)
    one = Launched(older, works.product(100, 160, 192, older.spec, BF16))
    assert near(one["y"], one["x"] @ one["w"].T)


@pytest.mark.parametrize("layer", [False, True])
def test_norm(gpu: simt.GPU, layer: bool) -> None:
    one = Launched(gpu, works.norm(5, 96, BF16, True, layer, stride=3))
    total = (one.before["x"] + one["delta"])[2::3]
    assert near(one["x"][2::3], total)
    if layer:
        expected = torch.nn.functional.layer_norm(total, [96], one["weight"], one["bias"])
    else:
        expected = torch.nn.functional.rms_norm(total, [96], one["weight"], 1e-5)
    assert near(one["y"], expected)


def test_element_wise_kernels(gpu: simt.GPU) -> None:
    gated = Launched(gpu, works.activate(3, 1600, BF16, True))
    gate, up = gated["x"].chunk(2, 1)
    assert near(gated["y"], torch.nn.functional.silu(gate) * up)
    plain = Launched(gpu, works.activate(3, 1600, BF16, False))
    assert near(plain["y"], torch.nn.functional.gelu(plain["x"], approximate="tanh"))
    found = Launched(gpu, works.embed(6, 96, 50, 3, BF16, 4))
    tokens, places = found.arrays["tokens"].get(), np.arange(6) % 3
    assert near(found["y"], found["table"][tokens] + found["positions"][places])
    rows = Launched(gpu, works.gather(5, 12, 96, BF16))
    assert torch.equal(rows["y"], rows["x"][rows.arrays["indices"].get()])


def test_sum_of_experts(gpu: simt.GPU) -> None:
    one = Launched(gpu, works.mix(6, 12, 96, 8, 2, BF16))
    best = one["logits"].topk(2, 1).values.softmax(1)
    rows = one["x"][one.arrays["places"].get()]
    assert near(one["y"], (rows * best[:, :, None]).sum(1))


@pytest.mark.parametrize("rotated", [False, True])
def test_rotation_and_cache(gpu: simt.GPU, rotated: bool) -> None:
    heads, kv_heads, dim, tokens = 3, 2, 32, 5
    one = Launched(gpu, works.rotate(tokens, 4, heads, kv_heads, dim, BF16, rotated, 16))
    before = one.before["qkv"].reshape(tokens, -1, dim)
    angles = one["table"][one.arrays["positions"].get()][:, None]
    cosine, sine = angles[..., : dim // 2], angles[..., dim // 2 :]
    low, high = before[..., : dim // 2], before[..., dim // 2 :]
    turned = torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1) if rotated else before
    last = heads + kv_heads
    assert near(one["qkv"].reshape(tokens, -1, dim)[:, :last], turned[:, :last])
    assert near(one["keys"][:tokens].reshape(tokens, -1, dim), turned[:, heads:last])
    assert torch.equal(one["values"][:tokens].reshape(tokens, -1, dim), before[:, last:])


@pytest.mark.parametrize(("phase", "weights"), [("prefill", "int4"), ("decode", "same")])
@pytest.mark.parametrize("kind", ["mixtral", "gpt2"])
def test_every_launch_of_a_network_runs(gpu: simt.GPU, kind: str, phase: Any, weights: Any) -> None:
    """Addresses that follow from tokens, pages, slots and experts are those of the tensors."""
    sizes = {"vocab_size": 100, "model_type": kind}
    if kind == "gpt2":
        sizes |= {"n_embd": 64, "n_head": 2, "n_layer": 1, "n_positions": 64}
    else:
        sizes |= {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1}
        sizes |= {"num_attention_heads": 2, "num_local_experts": 4}
    launched = set()
    for each in operators(architecture(sizes), phase, 2, 32, gpu.spec, weights):
        each.work.launch(gpu, each.work.allocate(gpu))  # raises for an access outside the tensors
        launched.add(each.work.kind)
    attention = {"prefill": {"prefill_attention"}, "decode": {"decode_attention", "join"}}[phase]
    experts = {"gather", "mix"} if kind == "mixtral" else set()
    assert launched == {"embed", "norm", "product", "rotate", "activate"} | attention | experts


def others_get(gpu: LinkedGpu, array: Any, values: Any) -> None:
    gpu.others.write(array.address, np.ascontiguousarray(values.astype(array.dtype)).tobytes())


@pytest.mark.parametrize(
    ("elements", "ranks", "one_shot"),
    [
        (5000, 2, True),
        (5000, 3, True),
        (262144 - 8, 4, True),
        (262144, 4, False),  # 512 KiB: each sums a part
        (150008, 8, False),  # parts that are not full
    ],
)
def test_all_reduce(elements: int, ranks: int, one_shot: bool) -> None:
    gpu = LinkedGpu("h100", memory=1 << 30, functional=True)
    work = works.all_reduce(elements, ranks, "float16")
    assert (work.tensors["sums"].shape[0] * 2 < elements) == (ranks > 2)
    random = np.random.default_rng(1)
    given = random.integers(-9, 9, (ranks, elements)).astype(np.float32)
    total, arrays = given.sum(0), work.allocate(gpu)
    arrays["x"].set(given[0].astype(np.float16))
    others_get(gpu, arrays["others"], given[1:])
    part = work.tensors["sums"].shape[0]
    parts = np.pad(total, (0, ranks * part - elements)).reshape(ranks, part)
    others_get(gpu, arrays["other_sums"], parts[1:] if not one_shot else np.full((ranks - 1, part), 99.0))
    work.launch(gpu, arrays)
    assert (arrays["y"].get().astype(np.float32) == total).all()
    if not one_shot:
        assert (arrays["sums"].get().astype(np.float32) == parts[0]).all()


def test_other_gpus_without_room() -> None:
    gpu = LinkedGpu("h100", memory=1 << 20, functional=True)
    with pytest.raises(simt.SimtError, match=r"others: 2,097,152 bytes, but other GPUs have 1,048,576 left"):
        gpu.empty_on_others((1 << 20,), np.float16, "others")


def test_all_gather() -> None:
    gpu = LinkedGpu("h100", memory=1 << 30, functional=True)
    work = works.all_gather(5000, 4, "float16")
    given, arrays = np.arange(20000).reshape(4, 5000) % 2048, work.allocate(gpu)
    arrays["x"].set(given[0].astype(np.float16))
    others_get(gpu, arrays["others"], given[1:])
    work.launch(gpu, arrays)
    assert (arrays["y"].get() == given.astype(np.float16)).all()
