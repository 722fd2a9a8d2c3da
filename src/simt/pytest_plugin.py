"""simt's plug-in for pytest: the fixture `gpu`, budgets, baselines, findings (docs/testing.md).

pytest loads it wherever simt is installed. It imports nothing of simt until a test uses it.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from simt.gpu import GPU

_MARK = "simt"
_KEYS = ("gpu", "functional", "budget", "baseline", "options")
_reports = pytest.StashKey[dict[str, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simt", "simulated GPUs")
    group.addoption("--simt-gpu", metavar="NAME", help="The GPU of tests that name none. [default: h100]")
    group.addoption("--simt-update", action="store_true", help="Write what kernels take to the baseline.")
    group.addoption(
        "--simt-baseline", metavar="FILE", help="The baseline. [default: simt-baseline.json of the root]"
    )
    group.addoption(
        "--simt-tolerance",
        metavar="PERCENT",
        type=float,
        help="How much longer than in the baseline is kept silent. [default: 1]",
    )
    group.addoption("--simt-sarif", metavar="FILE", help="Write what is found as SARIF.")
    for name, text in (
        ("gpu", "The GPU of tests that name none."),
        ("baseline", "The file of the baseline."),
        ("tolerance", "Percent more cycles than in the baseline that are kept silent."),
    ):
        parser.addini(f"simt_{name}", text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "simt(gpu=NAME or list, functional=False, budget=TEXT or list, baseline=True, options={}): on which "
        "simulated "
        "GPUs a test runs, and what its kernels may take",
    )


def _setting(config: pytest.Config, name: str) -> Any:
    given = config.getoption(f"--simt-{name}")
    return given if given is not None else config.getini(f"simt_{name}") or None


def _marked(node: Any) -> dict[str, Any]:
    """The marks' values, the closest one's first. Raises a usage error for an unknown one."""
    found: dict[str, Any] = {}
    for mark in node.iter_markers(_MARK):
        if mark.args or any(key not in _KEYS for key in mark.kwargs):
            raise pytest.UsageError(
                f"{node.nodeid}: @pytest.mark.simt takes {', '.join(f'{key}=' for key in _KEYS)}; found "
                f"{', '.join([*map(repr, mark.args), *mark.kwargs])}"
            )
        for key, value in mark.kwargs.items():
            found.setdefault(key, value)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that names several GPUs runs on each."""
    names = [name for name in ("gpu", "simt_check") if name in metafunc.fixturenames]
    if not names or metafunc.definition.get_closest_marker(_MARK) is None:
        return
    wanted = _marked(metafunc.definition).get("gpu")
    if wanted is not None and not isinstance(wanted, str):
        for name in names:
            metafunc.parametrize(name, list(wanted), indirect=True)


def _gpu(request: pytest.FixtureRequest, **more: Any) -> GPU:
    import simt

    marked = _marked(request.node)
    name = getattr(request, "param", None) or marked.get("gpu") or _setting(request.config, "gpu") or "h100"
    options = {"functional": marked.get("functional", False), **dict(marked.get("options", {})), **more}
    return simt.GPU(name, **options)


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> GPU:
    """A simulated GPU: that of the test's mark, or of --simt-gpu. What its launches take is compared with the
    test's budgets and with the baseline when the test has passed."""
    return _gpu(request)


@pytest.fixture
def simt_check(request: pytest.FixtureRequest) -> GPU:
    """A simulated GPU that checks its launches for data races and other undefined behaviour: findings fail
    the test."""
    return _gpu(request, check=True)


@pytest.fixture
def assert_kernel() -> Any:
    """`simt.testing.assert_kernel`."""
    from simt.testing import assert_kernel

    return assert_kernel


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """After a test that has passed: its launches against budgets and baseline."""
    outcome = yield
    for device in _devices(item):
        _judge(item, device)
    return outcome


def _devices(item: pytest.Item) -> list[Any]:
    """The GPUs that our fixtures have made for the test."""
    given = getattr(item, "funcargs", {})
    ours = [given[name] for name in ("gpu", "simt_check") if name in given]
    return [device for device in ours if type(device).__module__ == "simt.gpu.gpu"]


def _judge(item: pytest.Item, device: GPU) -> None:
    from simt.testing import judging

    problems = judging.judge(
        device,
        item.nodeid,
        _marked(item),
        baseline=baseline_of(item.config),
        tolerance=float(_setting(item.config, "tolerance") or 1.0) / 100,
        update=bool(item.config.getoption("--simt-update")),
        place=item.location,
    )
    item.user_properties += problems.properties
    item.stash[_reports] = {"kept": problems.kept, "findings": [x.to_json() for x in problems.findings]}
    if problems.findings:
        pytest.fail("\n".join(x.message for x in problems.findings), pytrace=False)


def baseline_of(config: pytest.Config) -> Path:
    """The file of the baseline."""
    return config.rootpath / (_setting(config, "baseline") or "simt-baseline.json")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    if call.when == "call" and _reports in item.stash:
        report.simt = item.stash[_reports]  # processes of pytest-xdist send it, too
    return report


class _Collected:
    """What the tests of all processes said; registered in the one that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.kept: dict[str, Any] = {}
        self.findings: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        found = getattr(report, "simt", None)
        if found is not None:
            self.findings += found["findings"]
            if report.outcome == "passed":
                self.kept |= found["kept"]

    def pytest_sessionfinish(self) -> None:
        sarif = self.config.getoption("--simt-sarif")
        if self.config.getoption("--simt-update") and self.kept:
            from simt.testing import baseline

            baseline.save(baseline_of(self.config), self.kept)
        if sarif is not None:
            from simt.testing.sarif import Annotation, write

            write(Path(sarif), [Annotation(**found) for found in self.findings])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.config.getoption("--simt-update") and self.kept:
            terminalreporter.write_line(f"simt: wrote {len(self.kept)} tests to {baseline_of(self.config)}")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Collected(session.config), "simt-collected")
