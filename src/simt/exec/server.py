"""Serves the CUDA libraries of a program's processes, until the program ends."""

from __future__ import annotations

import array
import os
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from simt.errors import CheckpointError, SimtError, SimulationError
from simt.result import Result
from simt.run.interruption import Limits, deferred_stop, raise_requested

from .device import Device

_SIZE = struct.Struct("<Q")
_MOST_BYTES = 1 << 32
_PIECE = 1 << 16
"""Bytes received at once. Larger pieces gain nothing: large data passes through the shared memory."""
_PATIENCE = 50e-6
"""Seconds for which requests are polled before the process sleeps until one arrives."""
_DECODER = msgspec.msgpack.Decoder(list)
_ENCODER = msgspec.msgpack.Encoder()


Maker = Callable[[int, str, Callable[[int], None]], Device]
"""Makes a device from its ordinal, the program's name, and a function that calls the program's functions."""


class _Connection:
    """The connection to one device of one process."""

    def __init__(self, channel: socket.socket, make: Maker) -> None:
        self.channel = channel
        self.device: Device | None = None
        self._make = make
        self._operations: dict[str, Callable[..., Any]] = {"hello": self._hello}
        self._received = bytearray()
        self._read = 0

    def serve(self) -> bool:
        """Handles the received requests. False if the process has ended."""
        if not self._receive():
            return False
        while (message := self._next()) is not None:
            self._handle(message)
        return True

    def call(self, number: int) -> None:
        """Makes the program, which is waiting for a reply, call one of its functions first."""
        self._reply(number)
        while (message := self._next()) is None:
            if not self._receive():
                raise BrokenPipeError
        if message != ["called"]:
            raise ValueError(f"{message[0]!r} while a function of the program is being called")

    def _receive(self) -> bool:
        try:
            piece = self.channel.recv(_PIECE)
        except (ConnectionResetError, InterruptedError):
            return False
        # First discard what has been read.
        del self._received[: self._read]
        self._read = 0
        self._received += piece
        return bool(piece)

    def _next(self) -> list[Any] | None:
        """The next complete message, if it has arrived."""
        begin = self._read + _SIZE.size
        if len(self._received) < begin:
            return None
        (size,) = _SIZE.unpack_from(self._received, self._read)
        if size > _MOST_BYTES:
            raise ValueError(f"a message of {size:,} bytes, expected {_MOST_BYTES:,} at most")
        if len(self._received) < begin + size:
            return None
        self._read = begin + size
        return _DECODER.decode(self._received[begin : self._read])

    def _handle(self, message: Sequence[Any]) -> None:
        operation, *arguments = message
        if operation not in self._operations:
            raise ValueError(f"unknown operation {operation!r}")
        answer = self._operations[operation](*arguments)
        if answer is not None:
            opened = self.device if operation == "open" else None
            self._reply(answer, opened.file if opened is not None else None)

    def _hello(self, process: int, ordinal: int, program: str) -> dict[str, Any]:
        self.device = self._make(ordinal, program, self.call)
        self._operations = {name: getattr(self.device, name) for name in Device.operations}
        return self.device.facts

    def _reply(self, answer: Any, file: int | None = None) -> None:
        payload = _ENCODER.encode(answer)
        data = _SIZE.pack(len(payload)) + payload
        if file is not None:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))
            data = data[self.channel.sendmsg([data], [rights]) :]
        self.channel.sendall(data)


class Server:
    """Listens at `path`."""

    def __init__(self, path: Path, make: Maker) -> None:
        self._make = make
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._open: dict[int, _Connection] = {}
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
            self._end(connection)
        return ""

    def give_up(self, status: str) -> None:
        """Saves what the devices in use have finished. status: why launches may be missing."""
        for connection in self._open.values():
            if connection.device is not None and (result := connection.device.saved(status)) is not None:
                self.results.append(result)

    def close(self) -> None:
        self._selector.close()
        self._listener.close()
        for connection in self._open.values():
            connection.channel.close()

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
        channel, _ = self._listener.accept()
        connection = _Connection(channel, self._make)
        self._open[channel.fileno()] = connection
        self._selector.register(channel, selectors.EVENT_READ)

    def _serve(self, connection: _Connection) -> None:
        try:
            alive = connection.serve()
        except (SimulationError, CheckpointError):
            raise
        except (OSError, SimtError, msgspec.DecodeError, TypeError, ValueError, LookupError) as error:
            print(f"simt: the program's CUDA library sent an invalid request: {error}", file=sys.stderr)
            alive = False
        if not alive:
            self._end(connection)

    def _end(self, connection: _Connection) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection.channel)
        # It stays among the open ones until it is saved: whatever stops its work, `give_up` finds it.
        result = None if connection.device is None else connection.device.end()
        with deferred_stop():
            if result is not None:
                self.results.append(result)
            del self._open[connection.channel.fileno()]
            connection.channel.close()
