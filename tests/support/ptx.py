"""Runs kernels of PTX text without timing, for the tests of instructions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from simt import _engine
from simt.cuda.ptx_module import PtxModule
from simt.gpu.programs import load_compiled

HEADER = ".version 8.7\n.target sm_{target}\n.address_size 64\n"


CODE = os.environ.get("SIMT_TEST_CODE", "ptx")
"""What the tests of instructions and kernels execute: "ptx", or "sass", the machine code made of it."""


def ptx_only(why: str) -> pytest.MarkDecorator:
    """Marks what machine code cannot show."""
    return pytest.mark.skipif(CODE == "sass", reason=why)


def load(text: str, name: str, memory: Any, code: str = CODE, options: Sequence[str] = ()) -> Any:
    """The engine's module of PTX text. What the PTX front end refuses is refused in machine code, too.
    options: of ptxas.
    """
    if code == "ptx":
        return _engine.functional.load(text, name, memory)
    _engine.functional.load(text, name, _engine.functional.DeviceMemory(1 << 28))
    module = PtxModule.from_text(text, name)
    return load_compiled(module, module.arch, memory, {}, options)


class Device:
    """A device's memory, with PTX loaded into it."""

    def __init__(
        self,
        ptx: str,
        target: str = "90a",
        capacity: int = 1 << 28,
        code: str = CODE,
        options: Sequence[str] = (),
    ) -> None:
        text = ptx if ".version" in ptx else HEADER.format(target=target) + ptx
        self.memory = _engine.functional.DeviceMemory(capacity, exact_bounds=True)
        self.module = load(text, "test.ptx", self.memory, code, options)
        self.printed = b""

    def upload(self, array: np.ndarray) -> int:
        address = self.memory.allocate(max(1, array.nbytes), "array")
        if array.nbytes:
            self.memory.write(address, np.ascontiguousarray(array).tobytes())
        return address

    def download(self, address: int, like: np.ndarray) -> np.ndarray:
        return np.frombuffer(self.memory.read(address, like.nbytes), like.dtype).reshape(like.shape).copy()

    def run(
        self,
        kernel: str,
        *arguments: Any,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (32, 1, 1),
        cluster: tuple[int, int, int] = (1, 1, 1),
        shared: int = 0,
        threads: int = 1,
        machine: dict[str, int] | None = None,
    ) -> None:
        """Arguments: arrays (uploaded before, written back afterwards), integers, floats, NumPy scalars.
        machine: facts as GPU.machine_facts; those of an H100 where they are missing.
        """
        facts = self.module.kernels[kernel]
        block_bytes = bytearray(facts["parameter_bytes"])
        arrays = []
        for (offset, size, type_), value in zip(facts["parameters"], arguments, strict=True):
            if isinstance(value, np.ndarray):
                address = self.upload(value)
                arrays.append((address, value))
                raw = address.to_bytes(8, "little")
            elif isinstance(value, np.generic):
                raw = value.tobytes()
            elif isinstance(value, float):
                raw = (np.float32 if type_ == "f32" else np.float64)(value).tobytes()
            else:
                raw = int(value).to_bytes(size, "little", signed=value < 0)
            block_bytes[offset : offset + size] = raw.ljust(size, b"\0")[:size]

        def take(text: bytes) -> None:
            self.printed += text

        launch = _engine.functional.Launch(
            self.module, facts["index"], grid, block, cluster, shared, machine or {}
        )
        launch.run(bytes(block_bytes), 1, threads, take)
        for address, array in arrays:
            array[...] = self.download(address, array)
            self.memory.free(address)


def per_lane_kernel(
    name: str, body: str, *inputs: np.ndarray, output: np.ndarray, registers: str = ""
) -> str:
    """The kernel that `per_lane` runs, whose arrays have these types and lengths."""
    sizes = [max(2, a.dtype.itemsize) for a in inputs]
    count, item = len(output), output.dtype.itemsize
    parameters = ", ".join([".param .b64 out"] + [f".param .b64 in{k}" for k in range(len(inputs))])
    lines = ["", f".visible .entry {name}({parameters})", "{"]
    lines += [f".reg .b{8 * s} %i{k};" for k, s in enumerate(sizes)]
    lines += [
        f".reg .b{8 * max(2, item)} %o;",
        ".reg .b64 %a<3>;",
        ".reg .b32 %lane<4>;",
        ".reg .pred %inside;",
    ]
    lines += [registers, "mov.u32 %lane1, %tid.x; mov.u32 %lane2, %ctaid.x;"]
    lines += ["mad.lo.u32 %lane0, %lane2, 128, %lane1;", f"setp.lt.u32 %inside, %lane0, {count};"]
    lines += ["@!%inside bra END;"]
    for k, array in enumerate(inputs):
        lines += [
            f"ld.param.b64 %a0, [in{k}];",
            f"mad.wide.u32 %a1, %lane0, {array.dtype.itemsize}, %a0;",
            f"ld.global.b{8 * array.dtype.itemsize} %i{k}, [%a1];",
        ]
    lines += [body, "ld.param.b64 %a0, [out];", f"mad.wide.u32 %a1, %lane0, {item}, %a0;"]
    lines += [f"st.global.b{8 * item} [%a1], %o;", "END: ret;", "}"]
    return "\n".join(lines)


def run_per_lane(device: Device, name: str, out: np.ndarray, *inputs: np.ndarray) -> None:
    """Runs such a kernel, which fills `out`."""
    grid = ((len(out) + 127) // 128, 1, 1)
    device.run(name, out, *[np.ascontiguousarray(a) for a in inputs], grid=grid, block=(128, 1, 1))


def per_lane(
    body: str,
    *inputs: np.ndarray,
    output: Any = np.uint32,
    registers: str = "",
    functions: str = "",
    target: str = "90a",
    code: str = CODE,
) -> np.ndarray:
    """The result of an instruction for each of some lanes, 32 or any other number. inputs: arrays with a
    value per lane, available to `body` as %i0, %i1, ... (b16, b32 or b64 registers by size; 8-bit values in
    b16). body: PTX that leaves the result in %o, a register of the output's size. The lane's number is in
    %lane0. functions: PTX before the kernel.
    """
    out = np.zeros(len(inputs[0]) if inputs else 32, output)
    text = functions + per_lane_kernel("k", body, *inputs, output=out, registers=registers)
    run_per_lane(Device(text, target, code=code), "k", out, *inputs)
    return out
