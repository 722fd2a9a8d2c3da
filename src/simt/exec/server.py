"""Serves the CUDA libraries of a program's processes, until the program ends."""

from __future__ import annotations

import os
import selectors
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from simt.errors import CompileError, ImageError, LaunchError, ProgramFault, SimtError, ToolkitError
from simt.result import Result
from simt.run.interruption import Limits, deferred_stop, raise_requested

from .checkpoints import CheckpointWritten
from .connection import ClientGone, Connection, Maker
from .gpus import AddressSpaces

if TYPE_CHECKING:
    from simt.check.findings import Finding

_PATIENCE = 50e-6
"""Seconds for which requests are polled before the process sleeps until one arrives."""
_END_OF_RUN = (SimtError, CheckpointWritten)
"""Errors that concern the whole run, except those of `_OF_CLIENT`."""
_OF_CLIENT = (LaunchError, ProgramFault, ImageError, CompileError, ToolkitError)


class Server:
    """Listens at `path`. devices: how many the program has."""

    def __init__(self, path: Path, make: Maker, devices: int = 1) -> None:
        self._make, self._spaces = make, AddressSpaces(devices)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._open: dict[int, Connection] = {}
        self._reserve = _any_file()
        """A descriptor to give up when there is no other left."""
        self.lacking = ""
        """What simt lacked to execute the program, if anything."""
        self.findings: list[Finding] = []
        """What was found on the devices whose processes have ended, if they were checked."""
        self.results: list[Result] = []
        """Results of the devices whose processes have ended, in that order."""

    def run(self, ended: socket.socket, limits: Limits | None = None) -> str:
        """Serves until `ended` is readable and everything sent before has been handled. Returns "timeout" if
        that limit is reached before, else "".

        Raises LimitReached, and Interrupted on Ctrl-C; `give_up` then saves what has finished.
        """
        limits = limits or Limits()
        self._selector.register(ended, selectors.EVENT_READ)
        over = False
        while True:
            ready = self._selector.select(0) if over else self._ready(limits.seconds_left)
            if not over and limits.late():
                return "timeout"
            if over and not ready:
                break
            for key, _ in ready:
                if key.fileobj is ended:
                    over = True
                    self._selector.unregister(ended)
                elif key.fileobj is self._listener:
                    self._accept()
                else:
                    self._serve(self._open[key.fd])
        for connection in list(self._open.values()):
            self._end(connection, connection.was_killed)
        return ""

    def give_up(self, status: str) -> None:
        """Saves what the devices in use have finished. status: why launches may be missing."""
        for connection in self._open.values():
            if connection.device is not None and (result := connection.device.saved(status)) is not None:
                self.results.append(result)
            if connection.device is not None:
                self.findings += connection.device.findings()

    def signal(self, number: int) -> None:
        """Sends a signal to the processes that are connected."""
        for connection in self._open.values():
            connection.signal(number)

    def hang_up(self) -> None:
        """Ends all connections: calls that wait for an answer fail."""
        for connection in self._open.values():
            connection.channel.close()

    def close(self) -> None:
        self._selector.close()
        self._listener.close()
        for connection in self._open.values():
            connection.close()
        if self._reserve is not None:
            os.close(self._reserve)

    def _ready(self, most: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits until something can be read, for at most so many seconds. Polls for a moment first: a core
        that sleeps wakes up slowly."""
        raise_requested()
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if ready := self._selector.select(0):
                return ready
            os.sched_yield()
        return self._selector.select(most)

    def _accept(self) -> None:
        try:
            channel, _ = self._listener.accept()
        except OSError as error:
            self._turn_away(error)
            return
        connection = Connection(channel, self._make, self._spaces)
        self._open[channel.fileno()] = connection
        self._selector.register(channel, selectors.EVENT_READ)

    def _turn_away(self, error: OSError) -> None:
        """Hangs up on a process for whose connection no descriptor is left."""
        print(f"simt: a process of the program cannot be connected: {error.strerror}", file=sys.stderr)
        if self._reserve is not None:
            os.close(self._reserve)
            with suppress(OSError):
                self._listener.accept()[0].close()
            self._reserve = _any_file()
        else:
            time.sleep(_PATIENCE)

    def _serve(self, connection: Connection) -> None:
        try:
            if not connection.serve():
                self._end(connection, connection.was_killed)
        except ClientGone:
            self._end(connection, True)
        except _OF_CLIENT as error:
            self._refuse(connection, error)
        except _END_OF_RUN:
            raise
        except Exception as error:  # whatever a client sends, the others are served
            self._refuse(connection, error)

    def _refuse(self, connection: Connection, error: Exception) -> None:
        what = str(error) if isinstance(error, SimtError) else f"{type(error).__name__}: {error}"
        print(f"simt: the program's CUDA library sent an invalid request: {what}", file=sys.stderr)
        self._end(connection, True)

    def _end(self, connection: Connection, is_lost: bool) -> None:
        """is_lost: work that the process has not waited for is dropped."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection.channel)
        # It stays among the open ones until it is saved: whatever stops its work, `give_up` finds it.
        device = connection.device
        result = None if device is None else device.end(is_lost)
        with deferred_stop():
            if device is not None:
                self.lacking = self.lacking or device.lacking
                self.findings += device.findings()
            if result is not None:
                self.results.append(result)
            del self._open[connection.channel.fileno()]
            connection.close()


def _any_file() -> int | None:
    with suppress(OSError):
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    return None
