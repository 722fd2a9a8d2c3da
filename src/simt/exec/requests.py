"""Requests of a program's CUDA library: their format, and their decoding."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, get_type_hints

import msgspec

Number = Annotated[int, msgspec.Meta(ge=0)]
"""An address, a size, or the number of an object: 0 to 2**64 - 1."""


class Requests:
    """The requests that a side of a connection accepts: a message [operation, arguments...] in MessagePack.

    The annotations of an operation's parameters are the format of its arguments.
    """

    def __init__(self, operations: Iterable[Callable[..., Any]]) -> None:
        # Decoding to known types does not recurse, whatever is sent.
        self._names = {_format_of(operation): operation.__name__ for operation in operations}
        self._decode = msgspec.msgpack.Decoder(type=_union(list(self._names))).decode

    def decode(self, message: bytes | bytearray) -> tuple[str, tuple[Any, ...]]:
        """The operation and its arguments. Raises msgspec.DecodeError."""
        request = self._decode(message)
        return self._names[type(request)], msgspec.structs.astuple(request)


def _format_of(operation: Callable[..., Any]) -> type[msgspec.Struct]:
    types = get_type_hints(operation, include_extras=True)
    parameters = dict(inspect.signature(operation).parameters)
    parameters.pop("self")
    return msgspec.defstruct(
        operation.__name__,
        [
            (name, types[name])
            if parameter.default is parameter.empty
            else (name, types[name], parameter.default)
            for name, parameter in parameters.items()
        ],
        array_like=True,
        tag_field="operation",
        tag=operation.__name__,
        forbid_unknown_fields=True,
    )


def _union(formats: list[type[msgspec.Struct]]) -> Any:
    found: Any = formats[0]
    for each in formats[1:]:
        found = found | each
    return found
