"""Workers for a study, through Parsl: processes of this machine, other hosts, clusters."""

from __future__ import annotations

import inspect
import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import StudyError
from simt.extras import explained
from simt.hints import did_you_mean
from simt.host_threads import cores
from simt.study.description import Workers
from simt.study.simulation import PointOutcome, run_batch

if TYPE_CHECKING:
    from parsl.config import Config

PROVIDERS = {
    "slurm": "SlurmProvider",
    "condor": "CondorProvider",
    "pbs": "PBSProProvider",
    "torque": "TorqueProvider",
    "grid-engine": "GridEngineProvider",
    "lsf": "LSFProvider",
    "kubernetes": "KubernetesProvider",
}
KINDS = ("processes", "threads", "hosts", *PROVIDERS)
_HEARTBEAT = 1  # seconds after which a dead process is noticed
_ABANDONED = 60  # seconds after which processes end whose study has

# Processes of Parsl on this machine outlive a study that is killed. These end with it: a module run with the
# study's process, and whether to end alone or with the process group, as first arguments.
_TIED = """
import os, runpy, signal, sys, threading, time
study, alone, sys.argv = int(sys.argv[1]), sys.argv[2] == "alone", sys.argv[3:]
def watch():
    while True:
        try:
            os.kill(study, 0)
        except OSError:
            os._exit(1) if alone else os.killpg(os.getpgrp(), signal.SIGKILL)
        time.sleep(1)
if alone:  # in the group of the study, which decides what Ctrl-C means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
threading.Thread(target=watch, daemon=True).start()
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
_PARSL = "parsl.executors.high_throughput"

Submit = Callable[[Sequence[Any]], "Future[list[PointOutcome]]"]


class WorkerLost(Exception):
    """The process that ran a task has died: the task may have killed it."""


class NodeLost(Exception):
    """A job, a host or a node with all its workers has gone, which no task is blamed for."""


@contextmanager
def workers(
    description: Workers,
    threads: int,
    logs: Path,
    simulate: Callable[[Any], PointOutcome],
    installation: str,
) -> Iterator[tuple[Submit, int]]:
    """Starts workers. Yields a function that submits works as one task, and the number of workers.

    threads: of each point. logs: folder for Parsl's. simulate, installation: of `run_batch`.

    The futures raise WorkerLost, NodeLost, or what else went wrong, as StudyError. Raises StudyError for
    workers that there are not.
    """
    try:
        import parsl
        from parsl.dataflow.dflow import DataFlowKernel
    except ModuleNotFoundError as error:
        raise explained(error, "running a study") from error
    config, number = _config(description, threads, logs)
    logging.getLogger("parsl").setLevel(logging.CRITICAL)  # what goes wrong is in the rows, or raised
    with _path_of_this_python():
        try:
            kernel = DataFlowKernel(config)
        except Exception as error:
            raise StudyError(f"workers: {description.kind}: cannot be started: {error}") from error
        task = parsl.python_app(run_batch, data_flow_kernel=kernel)
        try:
            yield (lambda works: _translated(task(simulate, list(works), installation))), number
        finally:
            kernel.cleanup()


def _translated(future: Future[list[PointOutcome]]) -> Future[list[PointOutcome]]:
    """A future with this module's exceptions in place of Parsl's."""
    from parsl.executors.errors import ExecutorError
    from parsl.executors.high_throughput.errors import ManagerLost
    from parsl.executors.high_throughput.errors import WorkerLost as ParslWorkerLost

    found: Future[list[PointOutcome]] = Future()

    def finish(done: Future[list[PointOutcome]]) -> None:
        error = done.exception()
        if error is None:
            found.set_result(done.result())
        elif isinstance(error, ParslWorkerLost):
            found.set_exception(WorkerLost(str(error)))
        elif isinstance(error, ManagerLost):
            found.set_exception(NodeLost(str(error)))
        elif isinstance(error, (ExecutorError, StudyError)):
            found.set_exception(StudyError(f"workers: {error}"))
        else:
            found.set_exception(StudyError(f"workers: {type(error).__name__}: {error}"))

    future.add_done_callback(finish)
    return found


def _config(description: Workers, threads: int, logs: Path) -> tuple[Config, int]:
    """The configuration of Parsl, and the number of workers at most."""
    from parsl.config import Config
    from parsl.executors import ThreadPoolExecutor

    kind = description.kind
    if ":" in kind:
        return _own_config(kind)
    if kind not in KINDS:
        raise StudyError(
            f"workers.kind: found {kind!r}, expected {', '.join(KINDS)}, or package.module:function"
            f"{did_you_mean(kind, KINDS)}"
        )
    if kind in ("processes", "threads", "hosts") and (description.options or description.launcher):
        raise StudyError(f"workers: options and launcher are for clusters, found kind = {kind!r}")
    each = description.count or max(1, cores() // threads)
    executors: list[Any]
    if kind == "threads":
        executors, number = [ThreadPoolExecutor(label="threads", max_threads=each)], each
    elif kind == "processes":
        executors, number = [_executor("processes", each, None, description, loopback=True)], each
    elif kind == "hosts":
        hosts = description.hosts or []
        executors = [_executor(host, each, _reached_by_ssh(host), description) for host in hosts]
        number = each * len(hosts)
    else:
        provider = _provider(description)
        executors = [_executor(kind, each, provider, description)]
        number = each * provider.max_blocks * provider.nodes_per_block
    return Config(
        executors=executors,
        run_dir=str(logs),
        strategy="simple" if kind in PROVIDERS else "none",
        strategy_period=2 if kind in PROVIDERS else 0.2,  # seconds to the start of workers, too
        initialize_logging=False,
        usage_tracking=0,
    ), number


def _executor(label: str, each: int, provider: Any, description: Workers, loopback: bool = False) -> Any:
    from parsl.executors import HighThroughputExecutor
    from parsl.executors.high_throughput.executor import DEFAULT_LAUNCH_CMD
    from parsl.launchers import SimpleLauncher
    from parsl.providers import LocalProvider

    python = description.python or shlex.quote(sys.executable)
    start = f"-c {shlex.quote(_TIED)} {os.getpid()} group" if provider is None else "-m"
    command = DEFAULT_LAUNCH_CMD.replace(
        "process_worker_pool.py", f"{python} {start} {_PARSL}.process_worker_pool", 1
    )
    return HighThroughputExecutor(
        label=label,
        provider=provider or LocalProvider(launcher=SimpleLauncher()),
        max_workers_per_node=each,
        cores_per_worker=1e-6,  # `max_workers_per_node` decides
        address="127.0.0.1" if loopback else None,
        launch_cmd=command,
        interchange_launch_cmd=[
            sys.executable,
            "-c",
            _TIED,
            str(os.getpid()),
            "alone",
            f"{_PARSL}.interchange",
        ],
        heartbeat_period=_HEARTBEAT,
        heartbeat_threshold=_ABANDONED,
    )


def _reached_by_ssh(host: str) -> Any:
    from parsl.launchers import WrappedLauncher
    from parsl.providers import LocalProvider

    variables = [f"{name}={os.environ[name]}" for name in ("PYTHONPATH", "SIMT_CACHE") if name in os.environ]
    there = shlex.join(["cd", os.getcwd()]) + " && " + shlex.join(["env", *variables])
    return LocalProvider(
        launcher=WrappedLauncher(f"ssh -o BatchMode=yes {shlex.quote(host)} {shlex.quote(there)}")
    )


def _provider(description: Workers) -> Any:
    import parsl.launchers
    import parsl.providers

    kind = getattr(parsl.providers, PROVIDERS[description.kind])
    options = dict(description.options)
    if description.launcher is not None:
        made = getattr(parsl.launchers, description.launcher, None)
        if made is None:
            names = [name for name in dir(parsl.launchers) if name.endswith("Launcher")]
            raise StudyError(
                f"workers.launcher: found {description.launcher!r}, expected one of {', '.join(names)}"
            )
        options["launcher"] = _made(made, description.launcher_options, "workers.launcher_options")
    return _made(kind, options, "workers.options")


def _made(kind: Callable[..., Any], options: dict[str, Any], place: str) -> Any:
    """An object of Parsl. Raises StudyError for arguments that it does not take."""
    known = [name for name in inspect.signature(kind).parameters if name != "self"]
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise StudyError(f"{place}.{name}: unknown key{hint}")
    try:
        return kind(**options)
    except ModuleNotFoundError as error:
        raise StudyError(f"{place}: needs {error.name}, which is not installed") from error
    except Exception as error:
        raise StudyError(f"{place}: {error}") from error


def _own_config(place: str) -> tuple[Config, int]:
    """A configuration that a function of the user makes."""
    from parsl.config import Config

    module, _, name = place.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        config = getattr(import_module(module), name)()
    except (ImportError, AttributeError, TypeError) as error:
        raise StudyError(f"workers.kind: {place}: no such function: {error}") from error
    finally:
        sys.path.remove(os.getcwd())
    if not isinstance(config, Config):
        raise StudyError(f"workers.kind: {place} returned {type(config).__name__}, expected a parsl.Config")
    number = 0
    for executor in config.executors:
        provider = getattr(executor, "provider", None)
        nodes = provider.max_blocks * provider.nodes_per_block if provider is not None else 1
        number += nodes * max(1, getattr(executor, "workers_per_node", getattr(executor, "max_threads", 1)))
    return config, max(1, number)


@contextmanager
def _path_of_this_python() -> Iterator[None]:
    """Workers find the scripts of Parsl beside this Python, whether or not its environment is activated."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before
