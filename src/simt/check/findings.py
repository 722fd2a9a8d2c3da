"""What the checker finds: findings and their accesses, and how they are written."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from simt.errors import CheckError
from simt.names import short_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from simt.engine_types import RawAccess, RawFinding

Check = Literal["race", "init", "sync", "memory", "leak"]
CHECKS: tuple[Check, ...] = get_args(Check)
WEAK = "weak"
"""What races are, beside others, that are looked for only if asked: equal values stored, volatile flags."""

_PLACE = re.compile(r"(\d+) bytes into (?:freed )?`(.*)` \((\d+) bytes at 0x[0-9a-f]+\)\Z", re.DOTALL)
_MANGLED = re.compile(r"\d+")
_ABI_TAGS = re.compile(r"\[abi:\w+\]")  # in which Numba's names hold a function's closure
_OF_NUMBA = "_ZN6cudapy"
_QUOTED = re.compile(r"`(_ZZ\w+)`")

REMEDIES = {
    "race-shared": "Put __syncthreads() between the two accesses (__syncwarp() if both threads are "
    "of one warp), or use an atomic.",
    "race-global": "Order the accesses: __syncthreads() within a block; between blocks an atomic, a "
    "release and an acquire of gpu scope (__threadfence() before setting and after "
    "reading a flag), a grid barrier, or another launch.",
    "race-cluster": "Put a cluster barrier (arrive with release, wait with acquire) between the two "
    "accesses.",
    "race-local": "Pass the value, or a place in shared or global memory: each thread has local "
    "memory of its own, and the address means another place to another thread.",
    "race-async": "Wait for the asynchronous work before its memory is touched: cp.async.wait_group"
    " and a barrier, the mbarrier's phase, or wgmma.wait_group; and before it starts,"
    " let the earlier accesses be ordered (barrier, fence.proxy.async).",
    "race-launch": "Order the two: use one stream, let the second stream wait for an event "
    "recorded after the first, or synchronise.",
    "race-weak": "Use an atomic (or a relaxed store): the values agree, but the language promises "
    "nothing for plain stores that race.",
    "uninitialised-shared": "Store to all of the shared memory that is read, also for threads beyond the end "
    "of the data, and put a barrier after it.",
    "uninitialised-global": "Fill the allocation before (cudaMemset, a copy, a kernel), or read only what was"
    " written.",
    "uninitialised-local": "Initialise the variable on every path that leads to this use.",
    "uninitialised-cluster": "Let the block that owns the memory fill it; then put a cluster barrier.",
    "barrier-divergent": "Let all threads of the block reach the barrier: move it out of the branch or the"
    " loop, and let threads without work skip the work instead of returning.",
    "barrier-different": "Let all threads meet at one barrier: join the branches before it; give each group "
    "of warps that synchronise a barrier of its own, and let each arrive once in a round.",
    "barrier-count": "Give every use of the barrier the same count of threads, a multiple of 32 that "
    "is the number of threads which arrive.",
    "mask": "Name exactly the lanes that execute the instruction in its mask, and let all of them reach it.",
    "mbarrier": "Initialise the mbarrier for as many arrivals as each phase gets, expect as many "
    "bytes as its copies bring, and let other threads use it only after a barrier.",
    "async-unwaited": "Wait for the copies (wait_group 0 or the mbarrier) before the thread ends.",
    "cluster-exit": "Put a cluster barrier before the end, so that no block leaves while others use "
    "its shared memory.",
    "cooperative-residency": "Launch at most as many blocks as are resident at once (occupancy times SMs).",
    "deadlock": "Let the awaited threads reach the place where they are awaited.",
    "out-of-bounds": "Check the index against the size, or make the array larger.",
    "misaligned": "Align the address to the size of the access, or access smaller elements.",
    "use-after-free": "Free the memory only after its last use.",
    "double-free": "Free the memory once.",
    "wrong-gpu": "Copy the data to this GPU, or let it access the other one's memory (peer access).",
    "read-only-write": "Do not write constant memory, or data that is loaded as read-only, in a kernel.",
    "host-pointer": "Copy the array to the device and pass its device address.",
    "leak-device": "Free the allocation.",
    "leak-heap": "Let every path of the kernel free what malloc or new returned.",
}
"""By kind: the usual remedy, in one sentence."""

_SUMMARIES = {
    "race-shared": "two threads access the same shared memory, at least one writes, and nothing orders them",
    "race-global": "two threads access the same global memory, at least one writes, and nothing orders them",
    "race-cluster": "two blocks of a cluster access the same shared memory, and nothing orders them",
    "race-async": "asynchronous work and another access touch the same memory, and nothing orders them",
    "race-launch": "two launches, copies or fills that are not ordered access the same memory",
    "race-weak": "two threads store the same value to the same memory, and nothing orders them",
}


@dataclass(frozen=True)
class Access:
    """One of the accesses of a finding.

    what: "read", "write", "atomic", "asynchronous write", "barrier", ...
    file, line: of the source, or of the PTX where the source is not known; line: None if neither is.
    inner: file and line of the function that is inlined there, if it is of another file; else empty.
    instruction: as the PTX has it. thread, block: indices (x, y, z).
    address: in its space ("shared", "global", "local"); None without memory. variable: the name of the
        variable or allocation, empty if unknown; offset: bytes from its beginning. allocation: the same in
        words, with its size.
    """

    what: str
    file: str = ""
    line: int | None = None
    inner: str = ""
    instruction: str = ""
    thread: tuple[int, int, int] = (0, 0, 0)
    block: tuple[int, int, int] = (0, 0, 0)
    address: int | None = None
    space: str = ""
    variable: str = ""
    offset: int | None = None
    allocation: str = ""
    source: str = ""

    @classmethod
    def from_native(cls, raw: RawAccess, text_of: Callable[[str, int], str]) -> Access | None:
        """Of what the engine has found; None if that is nothing. text_of: a line of the source."""
        if not raw["what"]:
            return None
        file, line = raw["file"], raw["line"]
        source = text_of(file, line).strip() if line else ""
        if not line:
            file, _, number = raw["position"].rpartition(":")
            line = int(number) if number.isdigit() else 0
            file = file if line else raw["position"]
        variable, offset, allocation = _object_of(raw["object"], raw["space"])
        return cls(
            what=raw["what"],
            file=file,
            line=line or None,
            inner=raw["inner"],
            instruction=raw["instruction"],
            thread=raw["thread"],
            block=raw["block"],
            address=raw["address"] if raw["space"] else None,
            space=raw["space"],
            variable=variable,
            offset=offset,
            allocation=allocation,
            source=source,
        )

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def thread_text(self) -> str:
        """Thread and block."""
        thread, block = (f"({','.join(map(str, x))})" for x in (self.thread, self.block))
        return f"thread {thread} of block {block}"

    @property
    def memory(self) -> str:
        """What is accessed, in words; empty without memory."""
        if not self.space or self.address is None:
            return ""
        if self.allocation:
            return f"{self.space} memory, {self.allocation}"
        if self.variable:
            return f"{self.space} memory, `{self.variable}` + {self.offset} bytes"
        return f"{self.space} memory at {self.address:#x}"

    def __str__(self) -> str:
        by = f" by {self.thread_text}" if self.instruction else ""
        lines = [f"{self.what}{by}" + (f" at {self.place}" if self.place else "")]
        if self.source:
            lines[0] += f": {self.source}"
        if self.inner:
            lines.append(f"    in {self.inner}")
        if self.instruction:
            lines.append(f"    {self.instruction}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Finding:
    """Something wrong with a program.

    check: which of the checks found it. kind: what it is, such as "race-shared" (docs/check.md lists them).
    kernel: empty if no kernel is to blame. file, line: of the second, or faulting, access; line: None if it
    is not known. message: what is wrong, in one sentence. remedy: what usually helps.
    first, second: the accesses; None where there is none. count: how often the same was found.
    """

    check: Check
    kind: str
    kernel: str
    file: str
    line: int | None
    message: str
    remedy: str
    first: Access | None
    second: Access | None
    count: int = 1

    @classmethod
    def from_native(cls, raw: RawFinding, text_of: Callable[[str, int], str]) -> Finding:
        """Of what the engine has found. text_of: a line of the source, by file and number."""
        first, second = (Access.from_native(one, text_of) for one in (raw["first"], raw["second"]))
        at = second if second is not None and (second.file or first is None) else first
        return cls(
            check=msgspec.convert(raw["check"], Check),
            kind=raw["kind"],
            kernel=raw["kernel"],
            file=at.file if at else "",
            line=at.line if at else None,
            message=plain_names(raw["detail"]) or _SUMMARIES.get(raw["kind"], raw["kind"]),
            remedy=REMEDIES[raw["kind"]],
            first=first,
            second=second,
            count=raw["count"],
        )

    @property
    def identity(self) -> tuple[Any, ...]:
        """What equal findings have in common."""
        places = [(a.what, a.place) if a else None for a in (self.first, self.second)]
        return self.kind, self.kernel, self.message, self.file, self.line, *places

    def with_count(self, count: int) -> Finding:
        """The same, found so many times."""
        return replace(self, count=count)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    @property
    def kernel_name(self) -> str:
        """The kernel's name as its source has it, with namespaces."""
        return _ABI_TAGS.sub("", short_name(self.kernel))

    @property
    def without_lines(self) -> bool:
        """Whether Numba has not told the lines of its kernel."""
        return self.kernel.startswith(_OF_NUMBA) and not self.file.endswith(".py")

    def __str__(self) -> str:
        where = f" in kernel `{self.kernel_name}`" if self.kernel else ""
        lines = [f"{self.kind}{where}: {self.message}"]
        accesses = [a for a in (self.first, self.second) if a is not None]
        if accesses and (memory := accesses[-1].memory):
            lines.append(f"  {memory}")
        lines += ["  " + str(a).replace("\n", "\n  ") for a in accesses]
        if not accesses and self.file:
            lines.append(f"  at {self.file}" + (f":{self.line}" if self.line else ""))
        if self.count > 1:
            lines.append(f"  found {self.count:,} times")
        lines.append(f"  {self.remedy}")
        return "\n".join(lines)


def checks_of(wanted: bool | str | None) -> tuple[str, ...]:
    """The checks that an option names: True for all, or names separated by commas; `weak` is added to `race`
    only by its name, or by `all`.

    Raises CheckError for an unknown name.
    """
    if not wanted:
        return ()
    if wanted is True or wanted == "default":
        return CHECKS
    names = [name.strip() for name in wanted.split(",")]
    known = (*CHECKS, WEAK)
    if "all" in names:
        return known
    for name in names:
        if name not in known:
            raise CheckError(f"check {name!r}: expected {', '.join(known)}, or all")
    return tuple(name for name in known if name in names or (name == "race" and WEAK in names))


def _object_of(text: str, space: str) -> tuple[str, int | None, str]:
    """Variable, offset in it, and allocation in words, of what the engine says about an address."""
    if not text:
        return "", None, ""
    if space != "global":
        name, _, offset = text.rpartition("+")
        return _plain(name), int(offset), ""
    found = _PLACE.match(text)
    return (found[2], int(found[1]), text) if found else ("", None, text)


def plain_names(text: str) -> str:
    """A text with quoted names of variables as the source has them."""
    return _QUOTED.sub(lambda name: f"`{_plain(name[1])}`", text)


def _plain(name: str) -> str:
    """The last part of a mangled C++ name, such as `tile` of `_ZZ6kernelPfE4tile`; others as they are."""
    if not name.startswith("_ZZ"):
        return name
    for number in _MANGLED.finditer(name):
        end = number.end() + int(number[0])
        if end >= len(name) or name[end:].startswith("_"):
            return name[number.end() : end]
    return name
