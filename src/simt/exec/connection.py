"""A connection to one device of one process of a program."""

from __future__ import annotations

import array
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from simt.errors import SimtError

from .device import ProgramDevice
from .gpus import AddressSpaces
from .requests import (
    REQUESTS,
    CalledRequest,
    DeviceFacts,
    HelloRequest,
    LeaveRequest,
    OpenRequest,
    Request,
    decoder_of,
    methods_for,
)

_SIZE = struct.Struct("<Q")
_MOST_BYTES = 1 << 32
_PIECE = 1 << 16
"""Bytes received at once. Larger pieces gain nothing: large data passes through the shared memory."""
_TAKEN_WITHIN = 10.0
"""Seconds in which a program must take an answer that it waits for."""
_ENCODER = msgspec.msgpack.Encoder()

Maker = Callable[[int, str, Callable[[int], None]], ProgramDevice]
"""Makes a device from its ordinal, the program's name, and a function that calls the program's functions."""


class ClientGone(SimtError):
    """A process of the program was killed while its work was running."""


class Connection:
    """Handles the requests that arrive on a socket, in order."""

    def __init__(self, channel: socket.socket, make: Maker, spaces: AddressSpaces) -> None:
        self.channel = channel
        self.device: ProgramDevice | None = None
        self.process = _process_of(channel)
        """A descriptor of the process at the other end (pidfd_open); None if the system has none."""
        self._make, self._spaces = make, spaces
        self._place: tuple[int, int] | None = None
        """Process and device in an address space."""
        self._decode = _FIRST
        self._methods: dict[type[Request], Callable[[Any], Any]] = {HelloRequest: self.hello}
        self._received = bytearray()
        self._read = 0
        self._has_left = False
        self._watched = select.poll()
        self._watched.register(channel, getattr(select, "POLLRDHUP", 0))  # POLLHUP is always reported
        if self.process is not None:
            self._watched.register(self.process, select.POLLIN)

    def serve(self) -> bool:
        """Handles the received requests. False if the process has ended.

        Raises ClientGone, what its device raises, and msgspec.DecodeError or others for invalid requests.
        """
        if not self._receive():
            return False
        while (message := self._next()) is not None:
            request = self._decode(message)
            answer = self._methods[type(request)](request)
            if answer is not None:
                opened = self.device if isinstance(request, OpenRequest) else None
                self._reply(answer, opened.file if opened is not None else None)
        return True

    @property
    def was_killed(self) -> bool:
        """Whether the process has ended without having said that it would."""
        return not self._has_left and bool(self._watched.poll(0))

    def close(self) -> None:
        if self._place is not None:
            self._spaces.leave(*self._place)
            self._place = None
        self.channel.close()
        if self.process is not None:
            os.close(self.process)
            self.process = None

    def signal(self, number: int) -> None:
        """Sends a signal to the process, unless it has ended."""
        if self.process is not None:
            with suppress(OSError):
                signal.pidfd_send_signal(self.process, number)

    # --- requests, besides those to the device ----------------------------------------------------------

    def hello(self, request: HelloRequest) -> DeviceFacts:
        self.device = self._make(request.ordinal, request.program, self._call)
        self.device.watch = self._require_client
        self.device.space = self._spaces.enter(request.process, request.ordinal)
        if self.device.space is not None:
            self._place = request.process, request.ordinal
        self._decode = _FURTHER
        self._methods = {
            kind: getattr(self if hasattr(self, name) else self.device, name)
            for kind, name in _METHODS.items()
        }
        return self.device.facts

    def leave(self, request: LeaveRequest) -> None:
        self._has_left = True

    def called(self, request: CalledRequest) -> None:
        """Only after a request to call it."""
        raise ValueError("no function of the program was to be called")

    # --- inside -----------------------------------------------------------------------------------------

    def _call(self, number: int) -> None:
        """Makes the program, which is waiting for a reply, call one of its functions first."""
        self._reply(number)
        while (message := self._next()) is None:
            if not self._receive():
                raise ClientGone("the program has ended in one of its functions")
        request = self._decode(message)
        if not isinstance(request, CalledRequest):
            raise ValueError(f"{type(request).__name__} while a function of the program is being called")

    def _require_client(self) -> None:
        """Raises ClientGone if the process was killed."""
        if not self._watched.poll(0) or self._has_left:
            return
        with suppress(BlockingIOError, ConnectionResetError):
            while piece := self.channel.recv(_PIECE, socket.MSG_DONTWAIT):
                self._received += piece
        begin = self._read
        while len(self._received) >= begin + _SIZE.size:
            (size,) = _SIZE.unpack_from(self._received, begin)
            begin += _SIZE.size + size
            if size <= _MOST_LEAVE and self._is_leave(self._received[begin - size : begin]):
                self._has_left = True
                return
        raise ClientGone("a process of the program has ended while its work was running")

    def _is_leave(self, message: bytearray) -> bool:
        with suppress(msgspec.DecodeError):
            return isinstance(self._decode(message), LeaveRequest)
        return False

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

    def _next(self) -> bytearray | None:
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
        return self._received[begin : self._read]

    def _reply(self, answer: Any, file: int | None = None) -> None:
        payload = _ENCODER.encode(answer)
        data = _SIZE.pack(len(payload)) + payload
        self.channel.settimeout(_TAKEN_WITHIN)
        try:
            if file is not None:
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))
                data = data[self.channel.sendmsg([data], [rights]) :]
            self.channel.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise ClientGone("a process of the program has ended while it waited for an answer") from None
        finally:
            self.channel.settimeout(None)


_METHODS = methods_for(REQUESTS, Connection, ProgramDevice)
_FIRST = decoder_of([HelloRequest])
_FURTHER = decoder_of(kind for kind in REQUESTS if kind is not HelloRequest)
_MOST_LEAVE = 16
"""Bytes of the request to leave, however it is encoded."""


def _process_of(channel: socket.socket) -> int | None:
    """A descriptor of the process that has connected."""
    if not (sys.platform == "linux" and hasattr(os, "pidfd_open")):
        return None
    credentials = struct.Struct("3i")  # of unix(7): process, user, group
    with suppress(OSError):
        found = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
        return os.pidfd_open(credentials.unpack(found)[0])
    return None
