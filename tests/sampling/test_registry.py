"""Methods by name, parameters from text."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import sklearn.base
from typer.testing import CliRunner

from simt.cli.sample import app
from simt.errors import PlanError
from simt.methods import clone
from simt.methods.from_text import summary
from simt.sampling import Adaptive, Plan, Random, Sampler, check_sampler, compare, registry
from simt.sampling.checks import example_profile


@pytest.mark.parametrize("name", registry.METHODS)
def test_every_method_is_a_documented_sampler_of_that_name(name: str) -> None:
    kind = registry.find(name)
    assert issubclass(kind, Sampler) and kind.method == name
    assert 20 < len(summary(kind)) < 400
    described = inspect.getdoc(kind) or ""
    for parameter in kind.parameters().values():
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
        ("simt.sampling:Plan", [], "not a subclass"),
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


PLAIN = """
import numpy as np
from simt.sampling import Choice, Sampler

class First(Sampler):
    "The first launch of each kernel. Neither a constructor nor a name."

    def choose(self, profile):
        kernels = profile.name_codes
        rows, sizes = np.unique(kernels, return_index=True)[1], np.bincount(kernels)
        order = np.argsort(rows)
        ones, weights = np.ones(len(rows), np.int64), sizes[order].astype(float)
        names = list(profile.names)
        return Choice(kernels.astype(np.int64), rows[order], ones, weights, names, ["the first"] * len(names))
"""


def test_a_sampler_without_a_constructor_works_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain_sampler.py").write_text(PLAIN)
    (tmp_path / "profile.csv").write_text("name,duration_ns\na,10\nb,20\na,11\n")
    monkeypatch.chdir(tmp_path)
    first = registry.make("plain_sampler:First")
    check_sampler(first)
    assert first.get_params() == {} and repr(first) == "First()" and first.parameters() == {}
    plan = first.fit_plan(example_profile())
    assert Plan.from_json(plan.to_json()).method == "First" and plan.parameters == {}
    for sampler in (Adaptive(first), Adaptive(first).set_params(sampler=first)):
        assert Plan.from_json(sampler.fit_plan(example_profile()).to_json()).parameters["sampler"] == {
            "method": "First"
        }
    study = compare(example_profile(), [first, Random(p=0.1)], seeds=2)
    assert set(study.runs["method"]) == {"First", "random"}
    runner = CliRunner()
    for command in (
        ["plan", "profile.csv", "--method", "plain_sampler:First", "--output", "plan.json"],
        ["compare", "profile.csv", "--methods", "plain_sampler:First, neyman", "--error", "0.1"],
    ):
        done = runner.invoke(app, command)
        assert done.exit_code == 0, done.output
    assert Plan.load(tmp_path / "plan.json").method == "First"
    for setting in ("args=1", "kwargs=1", "n=3"):
        with pytest.raises(PlanError, match=r"has no parameter .*, it has none"):
            registry.make("plain_sampler:First", [setting])


def test_parameters_of_a_parameter_that_is_a_method() -> None:
    made = registry.make("two-level", ["pks__error=0.01", "pks__scale=log1p+zscore", "detailed=10"])
    assert repr(made) == "TwoLevel(detailed=10, pks=PKS(scale='log1p+zscore', error=0.01))"
    assert made.get_params()["pks__error"] == 0.01
    assert made.set_params(pks__error=0.5).get_params()["pks"].error == 0.5
    copy = clone(made)
    assert repr(copy) == repr(made) and copy.pks is not made.pks  # type: ignore[attr-defined]
    assert repr(sklearn.base.clone(made)) == repr(made)
    with pytest.raises(PlanError, match="pks has no parameter 'errors', it has features, scale"):
        made.set_params(pks__errors=1).validate()
    for setting, words in (
        ("error=0.1", "no parameter 'error', it has detailed, classifier, pks, pks__features"),
        ("pks__error=much", "two-level pks: error is 'much'"),
        ("pks__errors=1", "two-level pks has no parameter 'errors'"),
        ("seed__inner=1", "no parameter 'seed__inner'"),
    ):
        with pytest.raises(PlanError, match=words):
            registry.make("two-level", [setting])
