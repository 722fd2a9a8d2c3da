"""Commands and Python of all pages run as they stand.

Those of README and the tutorial are run by `make documents` in `.ci/run`, where only `make demo` has
installed anything.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from simt.cuda import toolkit
from support import documents

PAGES = sorted(
    str(page.relative_to(documents.ROOT))
    for page in [documents.ROOT / "README.md", *(documents.ROOT / "docs").rglob("*.md")]
)
IN_MAKEFILE = {"README.md", "docs/tutorial.md"}
WITH_COMMANDS = [page for page in PAGES if page not in IN_MAKEFILE and documents.read(page).commands]
# The Python in these is tested separately, in test_python_blocks.py.
OWN_TESTS = {
    "README.md",
    "docs/checkpoints.md",
    "docs/control/writing-a-controller.md",
    "docs/functional/debugging.md",
    "docs/gpu.md",
    "docs/tutorial.md",
    "docs/workloads.md",
}
WITH_PYTHON = [page for page in PAGES if documents.python_of(page).strip() and page not in OWN_TESTS]

pytestmark = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands(page: str, tmp_path: Path) -> None:
    assert list(documents.problems(page, tmp_path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python(page: str, tmp_path: Path) -> None:
    documents.make_stage(tmp_path, page)
    documents.run_python(page, tmp_path)


def test_python_of_every_page_is_found() -> None:
    assert {"docs/policies.md", "docs/control/photon.md", "docs/sampling/README.md"} <= set(WITH_PYTHON)
    assert set(PAGES) >= OWN_TESTS
    assert f"documents.py {' '.join(sorted(IN_MAKEFILE))}\n" in (documents.ROOT / "Makefile").read_text()
    for page in PAGES:
        ast.parse(documents.python_of(page))


@pytest.mark.slow
def test_a_page_that_is_wrong_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker itself: a wrong option, a wrong figure and a failing command are reported as three
    problems.
    """
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    (tmp_path / "examples" / "demo").mkdir(parents=True)
    (tmp_path / "page.md").write_text(
        "# Page\n\n    simt gpus --no-such-option\n\n    simt bench run --gpux 3\n\n"
        "    simt --version\n\n    simt 0.0.0\n"
    )
    stage = tmp_path / "stage"
    stage.mkdir()
    found = list(documents.problems("page.md", stage))
    assert len(found) == 3
    assert "no-such-option" in found[0] and "gpux" in found[1] and "0.0.0" in found[2]
