"""Fixtures shared by all tests."""

import fcntl
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from simt import host_threads

# Containers often set PYTHONDONTWRITEBYTECODE. Without bytecode, every worker rewrites all asserts (9 s), and
# every child process compiles simt.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The duration of an example means nothing: the machine may be busy.
settings.register_profile("simt", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("simt")

# A background shell or nohup ignores SIGINT for all its children; tests of Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)


_ROOT = Path(__file__).parent.parent
_COMPILED = ("ptx", "ptxas", "sass")  # kinds of cache entries that depend only on their inputs' contents


def shared_folder() -> Path | None:
    """The folder of shared material next to the repository, or None."""
    folder = _ROOT.parent / "shared"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces and profiles; tests that need it are skipped if it is missing."""
    shared = shared_folder()
    if shared is None or not (shared / "data").is_dir():
        pytest.skip("the shared folder with real traces is not here")
    return shared / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first: what is left at the end is then short, and all processes end together."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: the garbage collector needs not look at it again and again."""
    gc.freeze()


@pytest.fixture(scope="session")
def folder_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def made_once(folder_of_all: Path) -> Callable[[str, Callable[[Path], object]], Path]:
    """A function that makes a file, which one process does, and all others wait for.

    It is given the file's name and what writes it to a path.
    """

    def made(name: str, make: Callable[[Path], object]) -> Path:
        file = folder_of_all / "made" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file.with_name(f"{file.name}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                unfinished = file.with_name(f"{file.name}.unfinished")
                make(unfinished)
                unfinished.rename(file)
        return file

    return made


@pytest.fixture(scope="session")
def compiled_programs(folder_of_all: Path) -> Path:
    """The folder in which all processes of a run cache compiled programs, so that each is compiled once."""
    folder = folder_of_all / "compiled"
    for kind in _COMPILED:
        (folder / kind).mkdir(parents=True, exist_ok=True)
    return folder


def _new_cache(folder: Path, compiled: Path) -> str:
    os.mkdir(folder)
    for kind in _COMPILED:
        os.symlink(compiled / kind, folder / kind)
    return str(folder)


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(
    tmp_path_factory: pytest.TempPathFactory, compiled_programs: Path
) -> Iterator[Iterator[Path]]:
    """A cache for fixtures shared by several tests; returns folders for them."""
    with pytest.MonkeyPatch.context() as patch:
        caches = tmp_path_factory.mktemp("caches")
        patch.setenv("SIMT_CACHE", _new_cache(caches / "session", compiled_programs))
        yield (caches / str(i) for i in count())


@pytest.fixture(autouse=True)
def private_cache(
    cache_of_the_session: Iterator[Path], compiled_programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests neither read nor write the user's cache."""
    monkeypatch.setenv("SIMT_CACHE", _new_cache(next(cache_of_the_session), compiled_programs))


@pytest.fixture
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the cache: an empty one."""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path_factory.mktemp("empty_cache")))


@pytest.fixture(scope="session", autouse=True)
def several_cores() -> Iterator[None]:
    """Lets tests use more threads than this machine may have cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_threads, "cores", lambda: 8)
        yield
