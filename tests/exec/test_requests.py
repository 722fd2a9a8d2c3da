"""The messages between a program's CUDA library and simt: one definition for both sides."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from simt.exec.connection import Connection
from simt.exec.device import ProgramDevice
from simt.exec.generate import header
from simt.exec.requests import (
    REQUESTS,
    AllocateRequest,
    CopyRequest,
    CopySide,
    FreeRequest,
    KernelRecord,
    LoadedModule,
    ParameterPlace,
    Request,
    SynchronizeRequest,
    WaitResult,
    decoder_of,
    methods_for,
    operation_of,
)

# Of the checkout: an installed simt has no libcuda/ beside it.
FILE = Path(__file__).parents[2] / "libcuda" / "driver" / "requests.hpp"
COMPILER = shutil.which("g++") or shutil.which("c++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")


def test_the_header_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == header(), f"{FILE}: run `make generate`"


def test_each_request_has_its_method() -> None:
    methods = methods_for(REQUESTS, Connection, ProgramDevice)
    assert methods[AllocateRequest] == "allocate" and len(methods) == len(REQUESTS)
    assert len({operation_of(kind) for kind in REQUESTS}) == len(REQUESTS)


class Misspelt:
    def alocate(self, request: AllocateRequest) -> int:
        return 0


class OfAnother:
    def allocate(self, request: FreeRequest) -> int:
        return 0


class Unanswered:
    def allocate(self, request: AllocateRequest) -> None: ...


@pytest.mark.parametrize(
    ("owner", "problem"),
    [
        (Misspelt, "AllocateRequest: nothing has a method 'allocate'"),
        (OfAnother, "OfAnother.allocate: found the types"),
        (Unanswered, "Unanswered.allocate: found the types"),
    ],
)
def test_a_method_that_does_not_fit_fails_at_the_start(owner: type, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        methods_for([AllocateRequest], owner)


def checked(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "code.cpp"
    file.write_text(f'#include "requests.hpp"\nusing namespace simt::driver;\n{code}\n')
    command = [str(COMPILER), "-std=c++20", "-Wextra", "-Werror=missing-field-initializers"]
    return subprocess.run(
        [*command, f"-I{FILE.parent}", "-fsyntax-only", str(file)], capture_output=True, text=True
    )


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("given", "compiles"),
    [
        ('AllocateRequest{.size = 4, .label = "x", .everywhere = true}', True),
        ('AlocateRequest{.size = 4, .label = "x", .everywhere = true}', False),
        ('AllocateRequest{.size = 4, .label = "x"}', False),
        ('AllocateRequest{.size = 4, .everywhere = true, .label = "x"}', False),
        ('AllocateRequest{.size = 4, .label = "x", .everywhere = true, .device = 1}', False),
        ('AllocateRequest{.size = -1, .label = "x", .everywhere = true}', False),
    ],
)
def test_a_request_that_does_not_fit_does_not_compile(given: str, compiles: bool, tmp_path: Path) -> None:
    done = checked(f"Bytes made() {{ return encoded({given}); }}", tmp_path)
    assert (done.returncode == 0) == compiles, done.stderr


MAIN = """
#include <iostream>
void put(const Bytes& bytes) {
  const uint64_t size = bytes.size();
  std::cout.write(reinterpret_cast<const char*>(&size), sizeof size);
  std::cout.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(size));
}
template <class T> T get() {
  uint64_t size = 0;
  std::cin.read(reinterpret_cast<char*>(&size), sizeof size);
  Bytes bytes(size);
  std::cin.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  T found{};
  Reader(bytes).read(found);
  return found;
}
int main() {
  const WaitResult waited = get<WaitResult>();
  const LoadedModule loaded = get<LoadedModule>();
  const KernelRecord& kernel = loaded.kernels.at("k");
  put(encoded(AllocateRequest{.size = waited.left.at(1), .label = "label", .everywhere = true}));
  put(encoded(SynchronizeRequest{.what = Awaited::numbers, .which = loaded.module, .numbers = waited.left,
                                 .milliseconds = {}, .alone = loaded.refusal.has_value()}));
  put(encoded(CopyRequest{.stream = static_cast<uint64_t>(-loaded.ptx_version), .moved = true,
                          .staged = false, .link = Link::device_to_peer,
                          .to = {.address = 1, .pitch = 2, .slice = waited.printed.size()},
                          .source = {.address = 4, .pitch = 5, .slice = kernel.parameters.at(1).offset},
                          .width = kernel.cluster[2], .height = 127, .depth = 128}));
}
"""


@pytest.mark.slow
@needs_compiler
def test_both_sides_understand_each_other(tmp_path: Path) -> None:
    (tmp_path / "code.cpp").write_text(f'#include "requests.hpp"\nusing namespace simt::driver;\n{MAIN}')
    program = tmp_path / "program"
    command = [str(COMPILER), "-std=c++20", f"-I{FILE.parent}", str(tmp_path / "code.cpp")]
    subprocess.run([*command, "-o", str(program)], check=True)
    numbers = [0, 2**64 - 1, 127, 128, 2**31, *range(20)]
    place = ParameterPlace(0, 4), ParameterPlace(2**32 - 1, 8)
    kernel = KernelRecord(list(place), 1, 2, 3, (1, 2, 70_000))
    replies = WaitResult(700, b"\xff" * 300, numbers), LoadedModule(9, -129, {"k": kernel, "x" * 40: kernel})
    sent = b"".join(len(x).to_bytes(8, "little") + x for x in map(msgspec.msgpack.encode, replies))
    got = subprocess.run([str(program)], input=sent, capture_output=True, check=True).stdout
    to, source = CopySide(1, 2, 300), CopySide(4, 5, 2**32 - 1)
    expected: list[Request] = [
        AllocateRequest(2**64 - 1, "label", True),
        SynchronizeRequest("numbers", 9, numbers, None, False),
        CopyRequest(129, True, False, "device_to_peer", to, source, 70_000, 127, 128),
    ]
    decode, found = decoder_of(REQUESTS), []
    while got:
        size = int.from_bytes(got[:8], "little")
        found.append(decode(got[8 : 8 + size]))
        got = got[8 + size :]
    assert found == expected
