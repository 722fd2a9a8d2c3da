"""The messages between a program's CUDA library and simt: each operation once.

A request is a class here. The library's side of it (`libcuda/driver/requests.hpp`) is generated from these
classes by `make generate`; the method of `ProgramDevice` or `Connection` that takes it is found by its name,
and checked when the package is imported. On the wire, a request is the array [operation, values...] and a
reply an array of its values, in MessagePack, each after its size in 8 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, get_type_hints

import msgspec
from msgspec import Meta

Number = Annotated[int, Meta(ge=0)]
"""An address, a size, or the number of an object: 0 to 2**64 - 1."""
Word = Annotated[int, Meta(ge=0, lt=2**32)]
Int = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Three = tuple[Word, Word, Word]

Link = Literal["device", "host_to_device", "device_to_host", "peer_to_device", "device_to_peer", "none"]
"""What a copy occupies."""
Awaited = Literal["all", "stream", "event", "numbers"]
Queried = Literal["stream", "event"]


@dataclass(frozen=True)
class Encoded:
    """Annotates bytes that are a message of this kind."""

    kind: type[Message]


class Message(msgspec.Struct, array_like=True):
    """A part of a request, or a reply."""


def _operation(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Request")).lower()


class Request(Message, forbid_unknown_fields=True, tag_field="operation", tag=_operation):
    """reply: the type of the answer that the library waits for; None if it waits for none."""

    reply: ClassVar[type | None] = None


# --- the program's devices ------------------------------------------------------------------------------


class DeviceFacts(Message):
    """What the program is told about a device.

    attributes: by `CUdevice_attribute`. memory: bytes. functional: work is executed as it arrives,
    without timing, and its order is of no interest. synchronous: launches are answered. checked: simt must
    see copies and fills in their order. joined: kernels can access memory of the process's other devices.
    """

    name: str
    attributes: dict[Int, Int]
    uuid: bytes
    memory: Number
    functional: bool
    synchronous: bool
    checked: bool
    joined: bool


class HelloRequest(Request):
    """The first of a connection. process: its id. ordinal: of the device that the connection is for."""

    process: Number
    ordinal: Number
    program: str
    reply: ClassVar = DeviceFacts


class LeaveRequest(Request):
    """The process ends in order: work that it has not waited for is still done."""


class Arena(Message):
    """Address and bytes of a device's memory, whose file comes with the message."""

    address: Number
    size: Number


class OpenRequest(Request):
    """Creates the GPU."""

    reply: ClassVar = Arena


class ResetRequest(Request):
    """Frees all that the program has on the device. The reply is 0."""

    reply: ClassVar = int


class NoteRequest(Request):
    """The program has asked for something that has no effect on timing."""

    what: str


class RefuseTablesRequest(Request):
    """A file of the program requested one of NVIDIA's private tables and was refused."""

    file: str


# --- memory ---------------------------------------------------------------------------------------------


class AllocateRequest(Request):
    """everywhere: kernels of all devices may access it. The reply is an address; 0 if memory is exhausted."""

    size: Number
    label: str
    everywhere: bool
    reply: ClassVar = int


class FreeRequest(Request):
    address: Number


class ShareRequest(Request):
    """Which other devices' kernels may access an allocation: bit n for device n."""

    address: Number
    devices: Number


class ReachRequest(Request):
    """Whether kernels of this device may access all memory of device `number`."""

    number: Number
    all: bool


class StackRequest(Request):
    """Sets the stack size per thread in bytes, if larger than the engine's default."""

    size: Number


class SetAsideRequest(Request):
    """Sets aside a part of the L2 for persisting accesses, in order with what is queued."""

    size: Number


class ResetPersistingRequest(Request):
    """Ends the persistence of the lines that are in the L2, in order with what is queued."""


# --- modules and kernels --------------------------------------------------------------------------------


class Refusal(Message):
    """code: `CUresult`."""

    code: Word
    text: str


class ParameterPlace(Message):
    """In bytes."""

    offset: Word
    size: Word


class KernelRecord(Message):
    """max_threads: per CTA, 0 if not fixed. cluster: fixed when it was compiled; 0: none."""

    parameters: list[ParameterPlace]
    shared_bytes: Word
    stack_bytes: Word
    max_threads: Word
    cluster: Three


class VariableRecord(Message):
    address: Number
    size: Number
    managed: bool


class LoadedModule(Message):
    """ptx_version: 10 * major + minor. kernels, variables: by name."""

    module: Number = 0
    ptx_version: Int = 0
    kernels: dict[str, KernelRecord] = {}
    variables: dict[str, VariableRecord] = {}
    refusal: Refusal | None = None


class LoadRequest(Request):
    image: bytes
    reply: ClassVar = LoadedModule


class UnloadRequest(Request):
    module: Number


class RegistersRequest(Request):
    """The reply is the number of registers of a thread."""

    module: Number
    kernel: str
    reply: ClassVar = int


class OccupancyRequest(Request):
    """The reply is how many CTAs of a kernel fit on an SM; 0 if none fits."""

    module: Number
    kernel: str
    threads: Number
    shared_bytes: Number
    reply: ClassVar = int


class MadeBytes(Message):
    contents: bytes = b""
    refusal: Refusal | None = None


class LinkRequest(Request):
    """Links PTX, including that in fat binaries, objects and libraries. types: `CUjitInputType` of each. The
    reply is the linked PTX or machine code.
    """

    types: list[Word]
    data: list[bytes]
    names: list[str]
    reply: ClassVar = MadeBytes


# --- work in streams ------------------------------------------------------------------------------------


class StreamRequest(Request):
    """Creates a stream."""

    stream: Number
    blocking: bool


class WindowRecord(Message):
    """A range of memory with properties of its own in the L2; of 0 bytes: none. hit, miss:
    `CUaccessProperty`.
    """

    address: Number
    size: Number
    hit_ratio: float
    hit: Word
    miss: Word


class LaunchConfiguration(Message, forbid_unknown_fields=True):
    """A launch without its parameters. shared_bytes: dynamic. cluster: 0: as fixed when it was compiled."""

    stream: Number
    module: Number
    kernel: str
    grid: Three
    block: Three
    cluster: Three
    shared_bytes: Word
    cooperative: bool
    window: WindowRecord


class LaunchRequest(Request):
    """The configuration is encoded by itself: simt keeps what it has made of it for the next launches."""

    configuration: Annotated[bytes, Encoded(LaunchConfiguration)]
    parameters: bytes


class LaunchMode(Message):
    """As in `DeviceFacts`, for the next launch."""

    synchronous: bool
    functional: bool


class AnsweredLaunchRequest(LaunchRequest):
    """As `LaunchRequest`, before the point of a checkpoint: the program waits for the answer."""

    reply: ClassVar = LaunchMode


class CopySide(Message):
    """Bytes between rows and between slices."""

    address: Number
    pitch: Number
    slice: Number


class CopyRequest(Request):
    """Copies rows of `width` bytes.

    moved: the program has already copied them; only timing is simulated. staged: the source is memory
    that the program allocated for this copy; it is freed afterwards. link: what it occupies.
    """

    stream: Number
    moved: bool
    staged: bool
    link: Link
    to: CopySide
    source: CopySide
    width: Number
    height: Number
    depth: Number


class FillRequest(Request):
    """Fills rows of `width` elements of so many bytes.

    filled: the program has already filled them; only timing is simulated.
    """

    stream: Number
    filled: bool
    address: Number
    pitch: Number
    value: Number
    element: Number
    width: Number
    height: Number


class ReleaseRequest(Request):
    """Frees memory, in stream order."""

    stream: Number
    address: Number


class CallRequest(Request):
    """Calls a function of the program, in stream order, while the program waits for an answer: the answer is
    then preceded by the function's number, and the program's `CalledRequest`.
    """

    stream: Number
    number: Number


class CalledRequest(Request):
    """A function of the program has been called."""


class RecordRequest(Request):
    """Records an event. Every record has a new number."""

    stream: Number
    event: Number


class WaitRequest(Request):
    """Makes a stream wait for a recorded event."""

    stream: Number
    event: Number


class ForgetRequest(Request):
    """The program can no longer refer to this record of an event."""

    event: Number


class ElapsedRequest(Request):
    """The reply is the time between two events in ns; 0 without timing."""

    start: Number
    end: Number
    reply: ClassVar = float


class WaitResult(Message):
    """fault: `CUresult` of a fault that has occurred, or 0. printed: by kernels. left: numbers of the work
    that is not done and to be waited for.
    """

    fault: Word
    printed: bytes
    left: list[Number]


class SynchronizeRequest(Request):
    """Runs queued work: all of it, that of a stream, that before an event, or that of these numbers; for
    about so long at most. alone: no other thread of the program can change what kernels read.
    """

    what: Awaited
    which: Number
    numbers: list[Number] = []
    milliseconds: Number | None = None
    alone: bool = False
    reply: ClassVar = WaitResult


class QueryResult(Message):
    """ran: something was run."""

    done: bool
    ran: bool


class QueryRequest(Request):
    """Runs queued work for about as long as a program takes to ask for it: whether that of a stream, or
    before an event, is done.
    """

    what: Queried
    which: Number
    reply: ClassVar = QueryResult


class RunAheadRequest(Request):
    """Runs a part of the queued work, though the program has not asked for it. The reply is whether all is
    done.
    """

    reply: ClassVar = bool


class OpenRangeRequest(Request):
    """A range begins, for the launches that follow."""

    name: str


class CloseRangeRequest(Request):
    """The range of this name that was opened last ends."""

    name: str


# --- textures -------------------------------------------------------------------------------------------

TexelLevel = tuple[Number, Number, Number, Number, Number, Number]
"""Address, bytes between rows, bytes between layers, width, height and layers."""


class ImageRecord(Message, forbid_unknown_fields=True):
    """What a texture or surface reads."""

    geometry: str
    channel: str
    channels: Word
    channel_bytes: Word
    linear_memory: bool
    normalized_float: bool
    srgb: bool
    mipmapped: bool
    levels: list[TexelLevel]


class SamplingRecord(Message, forbid_unknown_fields=True):
    """How a texture is read. linear, between_levels: whether to filter within a level, and between two
    levels. modes: `CUaddress_mode` of each dimension.
    """

    normalized: bool
    linear: bool
    between_levels: bool
    modes: tuple[Word, Word, Word]
    border: tuple[float, float, float, float]
    level_bias: float
    least_level: float
    most_level: float


class PlacedTexture(Message):
    """address: 0 if memory is exhausted. problem: what simt does not support, if anything."""

    address: Number = 0
    problem: str = ""


class TextureRequest(Request):
    """Writes the descriptor of a texture to new memory, or to a reference's variable at `place`. Without
    sampling, it is a surface's.
    """

    place: Number
    image: ImageRecord
    sampling: SamplingRecord | None
    reply: ClassVar = PlacedTexture


class ReferenceRequest(Request):
    """The reply is the address of a `.texref` or `.surfref` variable of a module; 0 if it has none."""

    module: Number
    name: str
    type: str
    reply: ClassVar = int


class Corners(Message):
    """Of a tensor map for im2col. wide: 1 for the mode `::w`, 2 for `::w::128`, with corners along W."""

    lower: list[Int]
    upper: list[Int]
    wide: Word


class TensorMapRequest(Request):
    """The reply is the bytes of a tensor map (`_engine.functional.encode_tensor_map`)."""

    type: Word
    address: Number
    dims: list[Number]
    strides: list[Number]
    box: list[Word]
    element_strides: list[Word]
    interleave: Word
    swizzle: Word
    fill: Word
    corners: Corners | None
    reply: ClassVar = MadeBytes


# --- all of them ----------------------------------------------------------------------------------------


def _all_of(kind: type[Request]) -> list[type[Request]]:
    return [each for child in kind.__subclasses__() for each in (child, *_all_of(child))]


REQUESTS: tuple[type[Request], ...] = tuple(_all_of(Request))


def operation_of(kind: type[Request]) -> str:
    """The name of its operation on the wire."""
    return str(kind.__struct_config__.tag)


def decoder_of(kinds: Iterable[type[Request]]) -> Callable[[bytes | bytearray], Request]:
    """Decodes requests of these kinds. It raises msgspec.DecodeError."""
    found: Any = None
    for kind in kinds:
        found = kind if found is None else found | kind
    # Decoding to known types does not recurse, whatever is sent.
    decode: Callable[[bytes | bytearray], Request] = msgspec.msgpack.Decoder(type=found).decode
    return decode


def methods_for(kinds: Iterable[type[Request]], *owners: type) -> dict[type[Request], str]:
    """The name of the method that takes each kind of request: the operation's, of one of the owners.

    Raises TypeError where there is none, or it takes or returns something else.
    """
    found = {}
    for kind in kinds:
        name = operation_of(kind)
        owner = next((each for each in owners if hasattr(each, name)), None)
        if owner is None:
            raise TypeError(f"{kind.__name__}: nothing has a method {name!r}")
        types = get_type_hints(getattr(owner, name))
        expected = {"request": kind, "return": kind.reply or NoneType}
        if types != expected:
            raise TypeError(f"{owner.__name__}.{name}: found the types {types}, expected {expected}")
        found[kind] = name
    return found
