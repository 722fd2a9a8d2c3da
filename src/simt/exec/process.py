"""The process of a program."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

from simt.errors import LaunchError

_GRACE = 5.0
"""Seconds that a program has to end after SIGTERM."""


class Process:
    """A program, started with this environment.

    prepare: called in the new process first. signal_others: sends a signal to other processes that belong to
        the program.

    Raises LaunchError if it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        env: Mapping[str, str],
        prepare: Callable[[], None] | None,
        signal_others: Callable[[int], None],
    ) -> None:
        try:
            self._process = subprocess.Popen(
                [os.fspath(part) for part in command], env=env, preexec_fn=prepare
            )
        except OSError as error:
            raise LaunchError(f"{os.fspath(command[0])}: cannot be started: {error.strerror}") from None
        self._signal_others = signal_others
        self._is_to_end = False
        self.ended, self._tell = socket.socketpair()
        """Readable when the program has ended."""
        self._waiting = threading.Thread(target=self._wait, daemon=True)
        self._waiting.start()

    def status(self) -> int:
        """Waits until it has ended. Negative for a signal, as in `subprocess`."""
        self._waiting.join()
        return int(self._process.returncode)

    def terminate(self) -> None:
        """Asks it to end."""
        self._is_to_end = True
        self._process.terminate()
        self._signal_others(signal.SIGTERM)

    def end(self) -> None:
        """After `terminate`, waits until it has ended, and kills what does not end."""
        if not self._is_to_end:
            return
        try:
            self._waiting.join(_GRACE)
        finally:
            self._process.kill()
            self._signal_others(signal.SIGKILL)

    def close(self) -> None:
        self.ended.close()

    def _wait(self) -> None:
        self._process.wait()
        self._tell.close()
