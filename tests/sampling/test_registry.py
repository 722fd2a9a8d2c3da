"""Methods by name, parameters from text."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from simt import settings
from simt.errors import PlanError
from simt.sampling import Sampler, registry


@pytest.mark.parametrize("name", registry.METHODS)
def test_every_method_is_a_documented_sampler_of_that_name(name: str) -> None:
    kind = registry.find(name)
    assert issubclass(kind, Sampler) and kind.method == name
    assert 20 < len(settings.summary(kind)) < 400
    described = inspect.getdoc(kind) or ""
    for parameter in settings.parameters(kind).values():
        assert parameter.default is not parameter.empty, f"{name}: {parameter.name} has no default"
        known = parameter.name == "seed" or parameter.name in described
        assert known, f"{name}: {parameter.name} is not described"


def test_settings_are_literals_or_words() -> None:
    sampler = registry.make("random", ["p=0.5", "size=none", "weight=horvitz-thompson"], seed=7)
    assert sampler.get_params() == {"p": 0.5, "size": None, "weight": "horvitz-thompson", "seed": 7}


def test_given_parameters_do_not_override_a_line_nor_disturb_methods_without_them() -> None:
    assert registry.from_text("random seed=3", seed=5, error=0.1).get_params()["seed"] == 3


def test_lists_of_methods_may_hold_lists() -> None:
    text = 'root, pks features=["a","b"] seed=1 ,neyman, root children=(2,3)'
    assert registry.lines(text) == [
        "root",
        'pks features=["a","b"] seed=1',
        "neyman",
        "root children=(2,3)",
    ]
    sampler = registry.from_text(registry.lines(text)[1])
    assert sampler.get_params()["features"] == ["a", "b"]


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("randm", [], "did you mean random"),
        ("random", ["q=1"], r"no parameter 'q', it has p, size"),
        ("random", ["p"], "expected parameter=value"),
        ("random", ["size=many"], "random: size is 'many'"),
        ("random", ["weight=heavy"], "random: weight is 'heavy'"),
        ("no.such:Class", [], "no such class"),
        ("simt.sampling:Plan", [], "no subclass"),
        (":", [], "no such class"),
    ],
)
def test_nonsense_is_refused(method: str, settings: list[str], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        registry.make(method, settings)


def test_ones_own_class_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_sampler.py").write_text(
        "from simt.sampling import Random\nclass Mine(Random):\n    'Mine.'\n"
    )
    monkeypatch.chdir(tmp_path)
    assert registry.make("own_sampler:Mine", ["p=0.25"]).get_params()["p"] == 0.25
