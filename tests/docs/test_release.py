"""The parts of a release agree: version, changelog, what is stable, workflows, issue templates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import simt

yaml = pytest.importorskip("yaml", reason="PyYAML comes with MkDocs: pip install 'simt[docs]'")
ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASES = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", CHANGELOG, re.MULTILINE)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_version_is_the_latest_release() -> None:
    (unreleased, no_date), (version, date), *_ = RELEASES
    assert (unreleased, no_date) == ("Unreleased", "")
    assert version == simt.__version__
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == version and str(citation["date-released"]) == date


def test_releases_are_in_order_and_grouped_by_kind() -> None:
    versions = [tuple(map(int, version.split("."))) for version, _ in RELEASES[1:]]
    assert versions == sorted(versions, reverse=True)
    assert [date for _, date in RELEASES[1:]] == sorted((date for _, date in RELEASES[1:]), reverse=True)
    for part in CHANGELOG.split("\n## [")[1:-1]:  # the first release has a section on accuracy
        kinds = re.findall(r"^### (.+)$", part, re.MULTILINE)
        assert kinds == [k for k in ("Added", "Changed", "Fixed", "Removed", "Security") if k in kinds]


@pytest.mark.parametrize("page", ["CHANGELOG.md", "docs/stability.md"])
def test_files_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    base = (ROOT / page).parent
    links = [base / link for link in re.findall(r"\]\((?!https?:)([^)#]+)", text)]
    tests = [ROOT / test for test in re.findall(r"`(tests/[\w/]+(?:\.py)?)`", text)]
    assert [str(p) for p in links + tests if not p.exists()] == []


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").iterdir()), ids=lambda p: p.name)
def test_workflows(path: Path) -> None:
    """GitHub's schema of what these files use; `on` is a boolean in YAML 1.1."""
    workflow = read(path)
    assert workflow["name"] and workflow[True] and workflow["jobs"]
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert "@" in step.get("uses", "@")
            script = step.get("run", "").split()
            if script[:1] == ["make"]:
                makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
                assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in script[1:])
            elif script and script[0].startswith("."):
                assert (ROOT / script[0]).is_file()


def test_issue_templates() -> None:
    folder = ROOT / ".github/ISSUE_TEMPLATE"
    forms = [path for path in folder.iterdir() if path.name != "config.yml"]
    assert isinstance(read(folder / "config.yml")["blank_issues_enabled"], bool)
    assert len(forms) >= 2
    for form in map(read, forms):
        assert form["name"] and form["description"] and form["body"]
        for part in form["body"]:
            assert part["type"] in {"textarea", "input", "dropdown", "checkboxes", "markdown"}
            assert part["attributes"].get("label") or part["attributes"].get("value")
