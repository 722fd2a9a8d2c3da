"""The templates for CI: their steps run the example of the documentation."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

yaml = pytest.importorskip("yaml")
SCRIPT = Path(__file__).parents[2] / "ci" / "try_templates.py"


def templates() -> ModuleType:
    spec = importlib.util.spec_from_file_location("try_templates", SCRIPT)
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_what_the_action_installs() -> None:
    found = templates()
    commands, variables = found.github()
    assert commands[0].endswith('ci/install.sh"') and commands[1].endswith('ci/test.sh"')
    assert variables["SIMT"] == str(SCRIPT.parents[1]) and variables["GPU"] == "h100"
    assert found.github(simt="simt==0.2")[1]["SIMT"] == "simt==0.2"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_steps_run_the_example(name: str, tmp_path: Path) -> None:
    """All but those that install; ci/try_templates.py runs these, too."""
    found = templates()
    commands, variables = found.github(tests="tests") if name == "github" else found.gitlab(TESTS="tests")
    rest = [x for x in commands if "pip install" not in x and "install.sh" not in x]
    assert len(rest) < len(commands)
    found.example(tmp_path)
    found.run(rest, variables, tmp_path, f"{Path(sys.executable).parent}:/usr/bin:/bin")
    cases = ElementTree.parse(tmp_path / "simt-junit.xml").iter("testcase")
    assert sorted(case.get("name", "") for case in cases) == ["test_saxpy[a100]", "test_saxpy[h100]"]
    assert json.loads((tmp_path / "findings.sarif").read_text())["runs"][0]["results"] == []
