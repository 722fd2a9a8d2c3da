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
