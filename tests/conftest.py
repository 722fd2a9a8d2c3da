"""What tests of several parts need."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from simt import host_threads

# How long an example takes says nothing: the machine may be busy.
settings.register_profile("simt", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("simt")

# A background shell or nohup ignores SIGINT for all its children; tests of Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

_ROOT = Path(__file__).parent.parent


def shared_folder() -> Path | None:
    """The folder of shared material beside the repository, None where there is none."""
    folder = _ROOT.parent / "shared"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces and profiles; a test that needs it is skipped where it is missing."""
    shared = shared_folder()
    if shared is None or not (shared / "data").is_dir():
        pytest.skip("the shared folder with real traces is not here")
    return shared / "data"


@pytest.fixture(autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache."""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def several_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are compared between more threads than this machine may have cores."""
    monkeypatch.setattr(host_threads, "cores", lambda: 8)
