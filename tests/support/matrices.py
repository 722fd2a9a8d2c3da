"""Matrices in registers of a warp: the PTX ISA's fragment layouts, and slow products of their elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from support.floats import BF16, E4M3, E5M2, F16, F32, F64, Format
from support.ptx import CODE, Device

FORMATS: dict[str, Format] = {"f16": F16, "bf16": BF16, "e4m3": E4M3, "e5m2": E5M2, "f32": F32, "f64": F64}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "f32": 32, "s32": 32, "b1": 1} | {
    "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4
}  # fmt: skip
EXACT = {"exact_tensor_arithmetic": 1}
Position = Callable[[int, int], tuple[int, int]]


def shape_of(text: str) -> tuple[int, int, int]:
    m, n, k = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", text).groups()  # type: ignore[union-attr]
    return int(m), int(n), int(k)


def a_position(shape: tuple[int, int, int], type_: str, lane: int, i: int) -> tuple[int, int]:
    """(row, column) of element i of A's fragment in a lane, case by case as in the PTX ISA."""
    g, t = lane >> 2, lane % 4
    m, _, k = shape
    bits = BITS[type_]
    if m == 8:  # m8n8k4 f64, m8n8k16, m8n8k32, m8n8k128
        per_lane = k // 4
        return g, t * per_lane + i
    if bits == 64 and k == 16:
        return (g, i * 2 + t) if i % 2 == 0 else (g + 8, i * 2 - 2 + t)
    if bits >= 32:  # tf32 and f64: m16n8k4, m16n8k8
        return (g if i in (0, 2) else g + 8), (t if i in (0, 1) else t + 4)
    if bits == 16:
        row = g if i < 2 or 4 <= i < 6 else g + 8
        return row, t * 2 + (i & 1) + (0 if i < 4 else 8)
    if bits == 8:
        row = g if i < 4 or 8 <= i < 12 else g + 8
        return row, t * 4 + (i & 3) + (0 if i < 8 else 16)
    if bits == 4:
        row = g if i < 8 or 16 <= i < 24 else g + 8
        return row, t * 8 + (i & 7) + (0 if i < 16 else 32)
    row = g if i < 32 or 64 <= i < 96 else g + 8
    return row, t * 32 + (i & 31) + (0 if i < 64 else 128)


def b_position(shape: tuple[int, int, int], type_: str, lane: int, i: int) -> tuple[int, int]:
    """(row, column) of element i of B's fragment."""
    g, t = lane >> 2, lane % 4
    bits = BITS[type_]
    if bits >= 32:
        return t + 4 * i, g
    per_register = 32 // bits
    return t * per_register + i % per_register + i // per_register * 4 * per_register, g


def c_position(shape: tuple[int, int, int], lane: int, i: int) -> tuple[int, int]:
    """(row, column) of element i of an accumulator's fragment."""
    g, t = lane >> 2, lane % 4
    return (g if i < 2 else g + 8), t * 2 + (i & 1)


def pack(matrix: np.ndarray, type_: str, count: int, position: Position) -> np.ndarray:
    """Registers x lanes: element i of a lane is matrix[position(lane, i)], as codes. count: elements per
    lane.
    """
    bits = BITS[type_]
    if bits == 64:
        return np.array([[matrix[position(lane, i)] for lane in range(32)] for i in range(count)], np.uint64)
    per_register = 32 // bits
    registers = np.zeros((-(-count // per_register), 32), np.uint32)
    for lane in range(32):
        for i in range(count):
            code = int(matrix[position(lane, i)]) & ((1 << bits) - 1)
            registers[i // per_register, lane] |= np.uint32(code << (i % per_register * bits))
    return registers


def unpack(
    registers: np.ndarray, type_: str, count: int, position: Position, shape: tuple[int, int]
) -> np.ndarray:
    """The inverse of `pack`."""
    bits = BITS[type_]
    matrix = np.zeros(shape, registers.dtype)
    seen = np.zeros(shape, int)
    per_register = max(1, 32 // bits)
    for lane in range(32):
        for i in range(count):
            code = int(registers[i // per_register, lane]) >> (i % per_register * bits)
            matrix[position(lane, i)] = code & ((1 << bits) - 1)
            seen[position(lane, i)] += 1
    assert (seen == 1).all()
    return matrix


def target_of(instruction: str, machine: dict[str, int]) -> str:
    """What an instruction is compiled for: what has all of them, but of machine code a target that has an
    instruction for it. From sm_80 on, ptxas makes m8n8k4 of f16 of FFMAs; on sm_90, f8 of products of f16.
    """
    sm = machine.get("sm_version")
    if "kind::" in instruction:
        return "120a"
    if ".m8n16." in instruction or ".m16n16." in instruction or ".m16n8." in instruction:
        return "120a"
    if CODE == "sass" and "m8n8k4" in instruction and "f16" in instruction and (sm is None or sm <= 75):
        return "75"
    if CODE == "sass" and ("e4m3" in instruction or "e5m2" in instruction) and sm != 90:
        return "89"
    return "90a"


def run_registers(
    instruction: str,
    inputs: dict[str, np.ndarray],
    outputs: dict[str, tuple[int, Any]],
    setup: str = "",
    machine: dict[str, int] = EXACT,
    code: str = CODE,
    header: str = "",
) -> dict[str, np.ndarray]:
    """Runs an instruction on one warp. `{a}` in it stands for the vector of registers of input or output a.
    inputs: registers x lanes; outputs: number of registers and their dtype. An output with the name of an
    input uses the same registers. machine: by default, tensor cores add in double precision.
    """
    everything: dict[str, tuple[int, Any]] = {k: (len(v), v.dtype) for k, v in inputs.items()} | outputs
    lines = [".visible .entry k(" + ", ".join(f".param .b64 p_{k}" for k in [*everything]) + ") {"]
    lines += [".reg .b64 %base, %at; .reg .b32 %lane; .reg .pred %p; mov.u32 %lane, %tid.x;"]
    for name, (count, dtype) in everything.items():
        lines.append(f".reg .b{8 * np.dtype(dtype).itemsize} %{name}<{count}>;")
    lines.append(setup)

    def moves(name: str, count: int, dtype: Any, load: bool) -> list[str]:
        size = np.dtype(dtype).itemsize
        result = [f"ld.param.b64 %base, [p_{name}]; mad.wide.u32 %at, %lane, {size}, %base;"]
        for r in range(count):
            place, register = f"[%at+{r * 32 * size}]", f"%{name}{r}"
            result.append(
                f"ld.global.b{8 * size} {register}, {place};"
                if load
                else f"st.global.b{8 * size} {place}, {register};"
            )
        return result

    for name, array in inputs.items():
        lines += moves(name, len(array), array.dtype, True)
    names = {
        name: "{" + ", ".join(f"%{name}{r}" for r in range(count)) + "}"
        for name, (count, _) in everything.items()
    }
    lines.append(re.sub(r"\{(\w+)\}", lambda m: names[m[1]], instruction))
    for name, (count, dtype) in outputs.items():
        lines += moves(name, count, dtype, False)
    lines += ["ret;", "}"]
    arrays = {k: np.ascontiguousarray(v).copy() for k, v in inputs.items()}
    for name, (count, dtype) in outputs.items():
        arrays[name] = arrays.get(name, np.zeros((count, 32), dtype))
    Device(header + "\n".join(lines), target_of(instruction, machine), code=code).run(
        "k", *[arrays[k] for k in everything], machine=machine
    )
    return {k: arrays[k] for k in outputs}


def decode(codes: np.ndarray, type_: str) -> np.ndarray:
    """The numbers that codes represent, as float64 (exact for every type)."""
    if type_ == "tf32":
        return (codes.astype(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if type_ == "s32":
        return codes.astype(np.uint32).view(np.int32).astype(np.float64)
    if type_ in FORMATS:
        known = {int(c): FORMATS[type_].decode(int(c)) for c in np.unique(codes)}
        return np.vectorize(lambda c: known[int(c)], otypes=[np.float64])(codes)
    bits = BITS[type_]
    values = codes.astype(np.int64)
    if type_[0] == "s":
        values = np.where(values >> (bits - 1), values - (1 << bits), values)
    return values.astype(np.float64)


def encode(values: np.ndarray, type_: str, saturate: bool = False) -> np.ndarray:
    """Codes of float64 numbers, rounded once. s32 wraps, or saturates."""
    if type_ == "s32":
        whole = [int(v) for v in values.ravel()]
        if saturate:
            whole = [max(-(2**31), min(2**31 - 1, v)) for v in whole]
        return np.array([v & 0xFFFFFFFF for v in whole], np.uint32).reshape(values.shape)
    f = FORMATS[type_]
    codes = [f.encode(float(v)) for v in values.ravel()]
    return np.array(codes, np.uint64 if type_ == "f64" else np.uint32).reshape(values.shape)


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """c, then the products in ascending order of k, summed in float64: as the engine specifies."""
    total = c.copy()
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            total = total + a[:, k : k + 1] * b[k : k + 1, :]
    return total


def random_codes(rng: np.random.Generator, type_: str, shape: Sequence[int], scale: int = 6) -> np.ndarray:
    """Codes of moderate numbers, including zeros, subnormals and large ones."""
    if type_ in ("f64", "f32", "tf32"):
        values = rng.standard_normal(shape) * np.exp2(rng.integers(-scale, scale + 1, shape))
        if type_ == "f64":
            return values.view(np.uint64)
        return values.astype(np.float32).view(np.uint32)
    if type_ == "s32":
        return rng.integers(0, 1 << 32, shape, np.uint64).astype(np.uint32)
    if type_ in ("f16", "bf16"):
        f = FORMATS[type_]
        values = rng.standard_normal(shape) * np.exp2(rng.integers(-scale, scale + 1, shape))
        codes = np.array([f.encode(float(v)) for v in values.ravel()], np.uint32).reshape(shape)
        odd = rng.random(shape)
        codes = np.where(odd < 0.05, rng.integers(0, 1 << f.mantissa_bits, shape), codes)
        return np.where(odd > 0.97, codes & f.sign, codes).astype(np.uint32)
    if type_ in ("e4m3", "e5m2"):
        f = FORMATS[type_]
        codes = rng.integers(0, 256, shape).astype(np.uint32)
        special = (codes & 0x7F) >= f.infinity
        return np.where(special, codes & 0x83, codes)
    return rng.integers(0, 1 << BITS[type_], shape).astype(np.uint32)
