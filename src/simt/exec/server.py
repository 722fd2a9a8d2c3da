"""Serves the CUDA libraries of a program's processes, until the program ends."""

from __future__ import annotations

import array
import selectors
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from simt.errors import SimtError
from simt.result import Result

from .device import Device

_SIZE = struct.Struct("<Q")
_MOST_BYTES = 1 << 32
_PIECE = 1 << 20


class _Connection:
    """The way to one device of one process."""

    def __init__(self, channel: socket.socket, make: Callable[[int, str], Device]) -> None:
        self.channel = channel
        self.device: Device | None = None
        self._make = make
        self._received = bytearray()

    def serve(self) -> bool:
        """Does what has been asked for. False where the process has gone."""
        try:
            piece = self.channel.recv(_PIECE)
        except (ConnectionResetError, InterruptedError):
            piece = b""
        if not piece:
            return False
        self._received += piece
        begin = 0
        while len(self._received) - begin >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._received, begin)
            if size > _MOST_BYTES:
                raise SimtError(f"a message of {size:,} bytes from the program, expected {_MOST_BYTES:,} at most")
            end = begin + _SIZE.size + size
            if len(self._received) < end:
                break
            message = bytes(memoryview(self._received)[begin + _SIZE.size : end])
            begin = end
            self._handle(msgspec.msgpack.decode(message))
        del self._received[:begin]
        return True

    def _handle(self, message: Sequence[Any]) -> None:
        operation, *arguments = message
        if operation == "hello":
            _, ordinal, program = arguments
            self.device = self._make(ordinal, program)
            self._reply(self.device.facts)
            return
        if self.device is None or operation not in Device.operations:
            raise SimtError(f"the program's library asks for {operation!r}, which this simt does not know")
        answer = getattr(self.device, operation)(*arguments)
        if operation == "open":
            self._reply(answer, self.device.file)
        elif answer is not None:
            self._reply(answer)

    def _reply(self, answer: Any, file: int | None = None) -> None:
        payload = msgspec.msgpack.encode(answer)
        data = _SIZE.pack(len(payload)) + payload
        if file is not None:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))
            data = data[self.channel.sendmsg([data], [rights]) :]
        self.channel.sendall(data)


class Server:
    """Listens at `path`. make: makes a device of this number for the program of this name."""

    def __init__(self, path: Path, make: Callable[[int, str], Device]) -> None:
        self._make = make
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._open: dict[int, _Connection] = {}
        self.results: list[Result] = []
        """Of the devices whose processes have ended, in that order."""

    def run(self, ended: socket.socket) -> None:
        """Serves until `ended` can be read, and everything that was sent before is done."""
        self._selector.register(ended, selectors.EVENT_READ)
        over = False
        while True:
            ready = self._selector.select(0 if over else None)
            if not ready:
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

    def close(self) -> None:
        self._selector.close()
        self._listener.close()
        for connection in self._open.values():
            connection.channel.close()

    def _accept(self) -> None:
        channel, _ = self._listener.accept()
        connection = _Connection(channel, self._make)
        self._open[channel.fileno()] = connection
        self._selector.register(channel, selectors.EVENT_READ)

    def _serve(self, connection: _Connection) -> None:
        try:
            alive = connection.serve()
        except (BrokenPipeError, msgspec.DecodeError, TypeError, ValueError) as error:
            print(f"simt: the program's CUDA library sent what cannot be used: {error}", file=sys.stderr)
            alive = False
        if not alive:
            self._end(connection)

    def _end(self, connection: _Connection) -> None:
        del self._open[connection.channel.fileno()]
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection.channel)
        connection.channel.close()
        if connection.device is not None and (result := connection.device.end()) is not None:
            self.results.append(result)
