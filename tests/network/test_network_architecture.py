"""Configurations: sizes against published figures, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simt.errors import SimtError
from simt.network import KNOWN, architecture
from simt.network.operators import operators
from simt.spec import load_spec


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama-3-8b", 8.030),
        ("llama-3-70b", 70.554),
        ("llama-3.1-405b", 405.854),
        ("mistral-7b", 7.242),
        ("mixtral-8x7b", 46.703),
        ("qwen2.5-7b", 7.616),
        ("gpt2", 0.12444),
    ],
)
def test_parameters_are_those_on_the_model_cards(name: str, billions: float) -> None:
    assert architecture(name).parameters / 1e9 == pytest.approx(billions, rel=2e-4)


def test_memory_of_weights_and_cache() -> None:
    model = architecture("llama-3-8b")
    assert model.weight_bytes() == 2 * model.parameters
    assert model.cache_bytes(1, 8192) == 1 << 30  # 128 KiB for each token, as is published
    assert 0.45 < model.weight_bytes("fp8") / model.weight_bytes() < 0.6
    assert model.weight_bytes("int4") < model.weight_bytes("fp8")


def test_a_file_is_read(tmp_path: Path) -> None:
    config = {**KNOWN["llama-3-8b"], "rope_theta": 500000.0, "architectures": ["LlamaForCausalLM"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = architecture(tmp_path)
    assert (found.layers, found.qkv_width, found.tied) == (32, 6144, False)
    assert found == architecture(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model_type": "mamba"}, "model_type is 'mamba'"),
        ({"hidden_act": "relu"}, "the activation is 'relu'"),
        ({"q_lora_rank": 512}, "q_lora_rank"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"torch_dtype": "float32"}, "torch_dtype is 'float32'"),
        ({"num_key_value_heads": 5}, "32 heads of 128"),
        ({"hidden_size": None}, "hidden_size is None"),
        ({"attention_bias": True}, "attention_bias"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(changed: dict[str, object], words: str) -> None:
    with pytest.raises(SimtError, match=words):
        architecture({**KNOWN["llama-3-8b"], **changed})


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(SimtError, match="did you mean llama-3-8b"):
        architecture("llama-3-8")


def test_operations_of_the_prefill() -> None:
    """Twice the matrices' elements for each token; of attention's products the lower half."""
    spec, model = load_spec("h100"), architecture("llama-3-8b")
    made = operators(model, "prefill", 4, 1024, spec)
    products = sum(each.count * each.work.flops for each in made if each.work.kind == "product")
    head = 2 * 4 * model.vocabulary * model.hidden
    assert products == pytest.approx(2 * 4096 * model.layers * model.layer_matrices + head)
    (attention,) = [each.work for each in made if each.name == "attention"]
    assert attention.flops == pytest.approx(4 * 4 * 32 * 128 * 1024 * 1025 / 2)
    assert sum(ctas for ctas, _ in attention.steps) == attention.grid


def test_experts_share_the_tokens() -> None:
    spec, model = load_spec("h100"), architecture("mixtral-8x7b")
    made = {each.name: each for each in operators(model, "prefill", 8, 2048, spec)}
    assert dict(made["experts: down"].work.shape)["m"] == 8 * 2048 * 2 // 8
    step = {each.name: each for each in operators(model, "decode", 8, 2048, spec)}
    read = step["experts: gate, up"].work.tensors["w"].nbytes
    assert read == 2 * 8 * 2 * model.inner * model.hidden  # all experts' weights


def test_a_share_is_what_one_gpu_has() -> None:
    model = architecture("llama-3-70b")
    share = model.share(4)
    assert (share.heads, share.kv_heads, share.inner, share.hidden) == (16, 2, 7168, 8192)
    assert 4 * share.layer_matrices == model.layer_matrices
    # The table of embeddings and the norms are whole on each; of the head, each has a quarter.
    assert model.other_elements - share.other_elements == 128256 * 8192 * 3 // 4
    assert 4 * share.cache_bytes(8, 100) == model.cache_bytes(8, 100)
    assert model.share(1) is model
    # 8 heads of keys and values on 16 GPUs: each is on two.
    assert model.share(16).kv_heads == 1 and architecture("llama-3.1-405b").share(16).heads == 8


@pytest.mark.parametrize(
    ("name", "ranks", "words"),
    [
        ("qwen2.5-7b", 8, "28 heads, 4 of keys and values and MLPs of 18,944 cannot be shared by 8 GPUs"),
        ("llama-3-8b", 3, "cannot be shared by 3 GPUs"),
        ("llama-3-8b", 17, "tensor_parallel is 17, expected 1 to 16"),
    ],
)
def test_shares_that_are_refused(name: str, ranks: int, words: str) -> None:
    with pytest.raises(SimtError, match=words):
        architecture(name).share(ranks)


def test_layers_are_added_up_twice_and_scores_gathered() -> None:
    model, spec = architecture("llama-3-8b"), load_spec("h100")
    alone, shared = (operators(model.share(n), "decode", 8, 100, spec) for n in (1, 4))
    assert [one.name for one in shared if one.name not in ("all-reduce", "scores of all")] == [
        one.name for one in alone
    ]
    reduced = [one for one in shared if one.name == "all-reduce"]
    assert [one.count for one in reduced] == [32, 32]
    assert dict(reduced[0].work.shape)["elements"] == 8 * 4096
    names = [one.name for one in shared]
    assert names[names.index("all-reduce") - 1] == "attention output" and names[-1] == "scores of all"
    assert names[len(names) - names[::-1].index("all-reduce") - 2] == "down"
    whole, part = ({one.name: one.work for one in each} for each in (alone, shared))
    for name in ("qkv", "attention output", "gate, up", "down", "head"):
        assert part[name].flops == whole[name].flops / 4
    mixture = operators(architecture("mixtral-8x7b").share(2), "decode", 4, 64, spec)
    names = [one.name for one in mixture]
    assert names[names.index("sum of experts") + 1] == "all-reduce"
