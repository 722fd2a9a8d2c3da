"""Machine code in a GPU's memory: variables placed, addresses bound, instructions given to the engine."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from simt import _engine
from simt.errors import SassError
from simt.isa import table_for
from simt.sass.cubin import INSTRUCTION_BYTES, AddressInCode, AddressOf, Cubin, CubinKernel
from simt.sass.disassembler import Instruction, disassemble
from simt.sass.system_calls import with_system_calls

if TYPE_CHECKING:
    from simt.engine_types import CodeSection, LoadableCode

_WORD_MASK, _HALF_MASK = (1 << 64) - 1, (1 << 32) - 1
_SIZES = (1, 2, 4, 8)  # of parameters that may be numbers
_CONSTANT_VARIABLES = 3  # the constant bank that they are in
_CONSTANT_SECTION = ".nv.constant3"
_HIDDEN = "$"  # begins the names of strings and the like
_SCRATCH_BYTES = 1 << 34  # of memory that only holds a cubin's variables
_RESERVED_SHARED = 1024  # bytes of shared memory before a CTA's own, from sm_90 on


def load_program(
    cubin: Cubin,
    memory: _engine.functional.DeviceMemory,
    places: Mapping[str, int],
    parameter_types: Callable[[str], list[str]] = lambda kernel: [],
) -> _engine.functional.Module:
    """The engine's module of a cubin whose variables are in `memory`, those in `places` at the addresses
    given there.

    parameter_types: names of PTX's types of a kernel's parameters, where they are known.

    Raises SassError, ToolkitError as `disassemble`.
    """
    cubin, code = _whole(cubin)
    placed = _Placed(cubin, memory, places)
    try:
        return placed.load(code, parameter_types)
    except BaseException:
        placed.free()
        raise


def refusals(cubin: Cubin) -> dict[str, dict[int, str]]:
    """The instructions of each kernel that simt does not execute, by address, with the reason.

    Raises SassError, ToolkitError as `disassemble`.
    """
    found: dict[str, dict[int, str]] = {kernel.name: {} for kernel in cubin.kernels}
    module = _without_memory(cubin)
    for section, instruction, why in _engine.functional.machine_code_refusals(module):
        found[module["sections"][section]["name"]][instruction * INSTRUCTION_BYTES] = why
    return found


Registers = list[tuple[int, int, int]]
"""Index, file (0: R, 1: UR, 2: P, 3: UP) and number of consecutive 32-bit registers."""


def registers(cubin: Cubin) -> dict[str, list[tuple[Registers, Registers]]]:
    """What each instruction of each kernel writes and reads; RZ, PT and the like are left out.

    Raises SassError if simt does not execute the code, ToolkitError as `disassemble`.
    """
    rows = iter(_engine.functional.machine_code_registers(_without_memory(cubin)))
    return {
        kernel.name: [next(rows) for _ in range(len(kernel.code) // INSTRUCTION_BYTES)]
        for kernel in cubin.kernels
    }


def _without_memory(cubin: Cubin) -> LoadableCode:
    """The code as the engine takes it, with its variables in memory that is thrown away."""
    cubin, code = _whole(cubin)
    placed = _Placed(cubin, _engine.functional.DeviceMemory(_SCRATCH_BYTES), {})
    return placed.module(code, lambda kernel: [])[0]


def _whole(cubin: Cubin) -> tuple[Cubin, dict[str, list[Instruction]]]:
    """A cubin with the system calls that it needs, and the instructions of both."""
    if not cubin.is_linked:
        raise SassError(
            f"{cubin.name}: machine code that is not linked yet (made by nvcc -dc or -rdc=true); expected "
            "what nvcc or nvlink links"
        )
    return with_system_calls(cubin, disassemble(cubin))


@dataclass
class _Placed:
    """A cubin's variables in memory."""

    cubin: Cubin
    memory: _engine.functional.DeviceMemory
    places: Mapping[str, int]
    allocations: list[int] = field(default_factory=list)
    variables: dict[str, tuple[int, int]] = field(default_factory=dict)
    references: dict[str, int] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)
    constant_address: int = 0

    def free(self) -> None:
        for address in self.allocations:
            self.memory.free(address)

    def load(
        self, code: dict[str, list[Instruction]], parameter_types: Callable[[str], list[str]]
    ) -> _engine.functional.Module:
        cubin = self.cubin
        module, addresses = self.module(code, parameter_types)
        managed = {x.name for x in cubin.variables if x.is_managed}
        variables = [
            (name, *place, name in managed, name.startswith(_HIDDEN))
            for name, place in self.variables.items()
        ]
        if cubin.constant_data:
            variables.append(
                (_CONSTANT_SECTION, self.constant_address, len(cubin.constant_data), False, True)
            )
        self._bind_data(addresses)
        references = [(name, place, cubin.references[name]) for name, place in self.references.items()]
        return _engine.functional.load_machine_code(
            module, self.memory, variables, references, self.allocations
        )

    def module(
        self, code: dict[str, list[Instruction]], parameter_types: Callable[[str], list[str]]
    ) -> tuple[LoadableCode, dict[str, int]]:
        """The code as the engine takes it, with its variables placed, and addresses by symbol."""
        cubin = self.cubin
        self._place_variables()
        files: dict[str, int] = {"": 0}
        first = {}
        count = 0
        for kernel in cubin.kernels:
            first[kernel.name] = count
            count += len(kernel.code) // INSTRUCTION_BYTES
        functions = list(cubin.undefined) if count else []
        sm = int(cubin.arch.removeprefix("sm_").rstrip("af"))
        reserved = _RESERVED_SHARED if sm >= 90 else 0
        mbarrier, parity = cubin.pair_allocation
        window = _engine.functional.machine_code_window
        addresses = {name: window + INSTRUCTION_BYTES * (count + i) for i, name in enumerate(functions)}
        for kernel in cubin.kernels:
            addresses[kernel.name] = window + INSTRUCTION_BYTES * first[kernel.name]
            for function in kernel.functions:
                addresses[function.name] = addresses[kernel.name] + function.start
        addresses |= {name: address for name, (address, _) in self.variables.items()}
        addresses |= self.references
        sections: list[CodeSection] = [
            {
                "name": kernel.name,
                "is_kernel": kernel.is_entry,
                "lines": [
                    (
                        x.predicate,
                        x.opcode,
                        list(x.operands),
                        x.low,
                        x.high,
                        files.setdefault(x.file, len(files)),
                        x.line,
                    )
                    for x in self._bound_code(kernel, code[kernel.name], addresses)
                ],
                "functions": [(x.name, x.start) for x in kernel.functions],
                "registers": kernel.registers,
                "shared_bytes": max(0, kernel.shared_bytes - reserved),
                "reserved_shared": reserved,
                "allocation_mbarrier": mbarrier,
                "allocation_parity": parity,
                "stack_bytes": kernel.stack_bytes,
                "calls": any(not x.name.startswith("$__internal") for x in kernel.functions),
                "parameters": _parameters(kernel, parameter_types(kernel.name)),
                "parameter_base": kernel.parameter_base,
                "max_threads": kernel.max_threads,
                "required_threads": kernel.required_threads,
                "cluster": kernel.cluster,
                "constants": self._banks(kernel, addresses),
            }
            for kernel in cubin.kernels
        ]
        module: LoadableCode = {
            "name": cubin.name,
            "sm": sm,
            "opcodes": table_for(sm)[0].native,
            "independent_samplers": cubin.independent_samplers,
            "files": list(files),
            "sections": sections,
            "system_functions": functions,
        }
        return module, addresses

    def _place_variables(self) -> None:
        cubin = self.cubin
        if cubin.constant_data:
            self.constant_address = self._allocate_constants()
        for variable in cubin.variables:
            if variable.is_constant:
                address = self.constant_address + variable.offset
            else:
                address = self._allocate(variable.name, variable.data)
            self.variables[variable.name] = address, len(variable.data)
        for name, kind in cubin.references.items():
            unbound = _engine.functional.unbound_reference(kind, cubin.samplers.get(name, {}))
            self.references[name] = self._allocate_descriptor(name, unbound)

    def _allocate_constants(self) -> int:
        """At the end of memory: code takes an address from that of its first constant on for one of a
        constant (`isspacep`).
        """
        name, data = _CONSTANT_SECTION, self.cubin.constant_data
        if name in self.places:
            return self._allocate(name, data)
        unit = self.memory.alignment
        taken = unit * (-(-len(data) // unit) + 1)  # with what is kept free behind each allocation
        end = self.memory.base + self.memory.capacity
        taken_from = [(address, size) for address, size, *_ in self.memory.allocations()]
        for address, size in [*reversed(taken_from), (self.memory.base, 0)]:
            begin = -(-(address + size) // unit) * unit + (unit if size else 0)
            # Parameters of launches under way may be at the end.
            for place in range(end // unit * unit - taken, begin - 1, -unit):
                if self.memory.allocate_at(place, len(data), name):
                    return self._owned(place, data)
            end = address
        raise self._no_room(name, len(data))

    def _allocate(self, name: str, data: bytes) -> int:
        place = self.places.get(name)
        size = max(1, len(data))
        if place is None:
            address = self.memory.allocate(size, name)
        else:
            address = place if self.memory.allocate_at(place, size, name) else 0
        if not address:
            raise self._no_room(name, size)
        return self._owned(address, data)

    def _owned(self, address: int, data: bytes) -> int:
        self.allocations.append(address)
        self.memory.write(address, data)
        return address

    def _no_room(self, name: str, size: int) -> SassError:
        return SassError(f"{self.cubin.name}: no room for the {size} bytes of {name}")

    def _allocate_descriptor(self, name: str, data: bytes) -> int:
        """Not at the beginning of memory: handles are lower halves of addresses, of which 0 is none."""
        address = self._allocate(name, data)
        return address if address & _HALF_MASK else self._allocate(name, data)

    def _bind_data(self, addresses: dict[str, int]) -> None:
        """Variables that hold addresses."""
        for variable in self.cubin.variables:
            for held in variable.addresses:
                place = self.variables[variable.name][0] + held.offset
                self.memory.write(place, self._bound(held, addresses)[: held.bytes])

    def _banks(self, kernel: CubinKernel, addresses: dict[str, int]) -> dict[int, tuple[bytes, int]]:
        banks = {}
        for bank, contents in kernel.constants.items():
            image = bytearray(contents)
            for held in kernel.addresses[bank]:
                image[held.offset : held.offset + held.bytes] = self._bound(held, addresses)[: held.bytes]
            for offset, texture, sampler in self._pairs(kernel.addresses[bank]):
                image[offset : offset + 4] = struct.pack("<Q", self._with_sampler(texture, sampler))[:4]
            address = self.constant_address if bank == _CONSTANT_VARIABLES else 0
            banks[bank] = bytes(image), address
        return banks

    def _pairs(self, held: Sequence[AddressOf]) -> Iterator[tuple[int, str, str]]:
        """The words of a bank that hold the handles of a texture and a sampler, by name."""
        kinds: dict[int, dict[str, str]] = {}
        for x in held:
            kinds.setdefault(x.offset, {})[self.cubin.references.get(x.symbol, "")] = x.symbol
        for offset, symbols in kinds.items():
            if {"texref", "samplerref"} <= symbols.keys():
                yield offset, symbols["texref"], symbols["samplerref"]

    def _with_sampler(self, texture: str, sampler: str) -> int:
        """The handle of both."""
        name = f"{texture} with {sampler}"
        if name not in self.pairs:
            both = _engine.functional.texture_with_sampler(self.references[texture], self.references[sampler])
            self.pairs[name] = self._allocate_descriptor(name, both)
        return self.pairs[name]

    def _bound_code(
        self, kernel: CubinKernel, code: list[Instruction], addresses: dict[str, int]
    ) -> list[Instruction]:
        """Instructions with the addresses that they have."""
        bound = list(code)
        for held in kernel.code_addresses:
            instruction = bound[held.instruction]
            if held.part == "target" and not held.addend:
                # nvdisasm does not name functions that only this file sees.
                operands = (*instruction.operands[:-1], held.symbol)
                bound[held.instruction] = replace(instruction, operands=operands)
            elif held.part in ("low", "high"):
                address = struct.unpack("<Q", self._bound(held, addresses))[0]
                half = address & _HALF_MASK if held.part == "low" else address >> 32
                bound[held.instruction] = replace(instruction, low=instruction.low & _HALF_MASK | half << 32)
            else:
                raise SassError(
                    f"{self.cubin.name}: {kernel.name}+{instruction.address:#06x}: {instruction.text}: "
                    f"{held.part} of {held.symbol} is not supported"
                )
        return bound

    def _bound(self, held: AddressOf | AddressInCode, addresses: dict[str, int]) -> bytes:
        if held.symbol not in addresses:
            raise SassError(f"{self.cubin.name}: it needs {held.symbol}, which is not defined")
        return struct.pack("<Q", (addresses[held.symbol] + held.addend) & _WORD_MASK)


def _parameters(kernel: CubinKernel, types: list[str]) -> list[tuple[int, int, str]]:
    # Without PTX, their sizes are known: numbers are packed as for types of bits, such as .b32.
    untyped = [f"b{8 * x.bytes}" if x.bytes in _SIZES else "" for x in kernel.parameters]
    known = types if len(types) == len(kernel.parameters) else untyped
    return [(x.offset, x.bytes, type_) for x, type_ in zip(kernel.parameters, known, strict=True)]
