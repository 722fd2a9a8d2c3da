"""Cubins: ELF files with machine code for one architecture.

NVIDIA does not document what is special to them. Section names are as nvdisasm prints them; the attributes of
`.nv.info` carry the names that nvdisasm gives them.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from simt.errors import SassError
from simt.names import listed

if TYPE_CHECKING:
    from simt.sass.disassembler import Instruction

TEXT_BEGIN = b".target"  # of assembled programs
MACHINE = 190  # EM_CUDA
INSTRUCTION_BYTES = 16
# Attributes of .nv.info: EIATTR_...
_MAX_THREADS, _CBANK_PARAM, _REQUIRED_THREADS, _FRAME_SIZE, _MIN_STACK_SIZE = 0x05, 0x0A, 0x10, 0x11, 0x12
_KPARAM_INFO, _REGCOUNT, _CTAS_PER_CLUSTER = 0x17, 0x2F, 0x3D
# Of samplers: address modes and filter, 0xff where the program does not say; coordinates are texels; the file
# has samplers apart from textures (CUDA 13; before, it is bit 9 of the flags).
_SAMPLER_INIT, _FORCE_UNNORMALIZED, _INDEPENDENT_SAMPLERS = 0x09, 0x13, 0x4D
_ADDRESS_MODES = ("wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border")
_FILTERS = ("nearest", "linear")
_INDEPENDENT_FLAG = 1 << 9
# Relocations R_CUDA_64 and R_CUDA_G64: the address of a symbol; R_CUDA_FUNC_DESC_64: the descriptor of a
# kernel, which only launches from the device take, so that its address stands for it; R_CUDA_TEX_HEADER_INDEX
# and R_CUDA_SURF_HEADER_INDEX, R_CUDA_SAMP_HEADER_INDEX: the handle of a reference. The bytes of each.
_BYTES = {2: 8, 4: 8, 35: 8, 6: 4, 52: 4, 7: 4}
_UNIFIED = 101  # on sm_90: a sampler's handle of 4 bytes; of functions, it is not supported
_REFERENCES = {"STT_LOOS": "texref", 11: "samplerref", "STT_HIOS": "surfref"}  # types of symbols, 10 to 12
# R_CUDA_ABS32_LO_32, R_CUDA_ABS32_HI_32, R_CUDA_ABS47_34, R_CUDA_ABS55_16_34
_IN_CODE = {56: "low", 57: "high", 58: "target", 75: "target"}
# What the system keeps of tensor memory in shared memory. CUDA 13 has one object; in it are, at these bytes,
# the mbarrier and its parity. CUDA 12 has several.
_TENSOR_MEMORY, _PAIR_MBARRIER, _PAIR_PARITY = "__nv_reservedSMEM_tcgen05_partition", 0x8, 0x10
_TENSOR_MEMORY_MBARRIER = "__nv_reservedSMEM_tmem_allocation_pipeline_mbarrier"
_CONSTANT_VARIABLES = 3  # the constant bank that they are in
_SIZED = 4  # format of an attribute: a size, then that many bytes; the others have two bytes of value
_PARAMETER = struct.Struct("<IHHI")  # unused, position, offset, size in the upper bits
_PER_FUNCTION = struct.Struct("<II")  # symbol, value
_BANK = struct.Struct("<IHH")  # symbol, offset of the parameters in bank 0, their bytes
_SIZE_SHIFT = 18
_FIRST_ARCH = 70
_IMMEDIATE = 4  # byte of an instruction at which its immediate of 32 bits begins
_FLAGS_AT = 48  # of e_flags in the header of a 64-bit ELF file
_OSABI_OF_CUDA_13 = 65
_ISA_CLASS, _ARCH_SPECIFIC = 0x09, 1  # attribute of .nv.compat, and its value for "a"
_SYMBOL = struct.Struct("<IBBHQQ")  # name, type, other, section, value, size
_ENTRY, _MANAGED = 0x10, 0x04  # in a symbol's "other"


@dataclass(frozen=True)
class CubinParameter:
    """offset: in the launch's parameters. bytes: its size."""

    offset: int
    bytes: int


@dataclass(frozen=True)
class Function:
    """A function in a kernel's code: a device function that was not inlined, or a routine of the compiler's.

    start: its first byte there.
    """

    name: str
    start: int
    bytes: int


@dataclass(frozen=True)
class AddressOf:
    """Where the address of a symbol is, or its lower half: the handle of a texture or a surface."""

    offset: int
    bytes: int
    symbol: str
    addend: int


@dataclass(frozen=True)
class AddressInCode:
    """An instruction, by number, that has the address of a symbol. part: its "low" or "high" 32 bits, as an
    immediate; "target", as that of a call; or the name of a relocation of another kind.
    """

    instruction: int
    part: str
    symbol: str
    addend: int


@dataclass(frozen=True)
class Variable:
    """A variable in global or constant memory. offset: in its section. addresses: that it holds."""

    name: str
    is_constant: bool
    is_managed: bool
    offset: int
    data: bytes
    addresses: tuple[AddressOf, ...]


@dataclass(frozen=True)
class CubinKernel:
    """Machine code of a kernel, or of functions that kernels call (then is_entry is False).

    code: 16 bytes an instruction. code_addresses: of symbols, which are not yet in it. registers: per thread.
    parameter_base: where parameters begin in constant
    bank 0. shared_bytes: static, per CTA. stack_bytes: local memory per thread, of the kernel and what it
    calls as far as ptxas knows. constants: initial contents of its constant banks; addresses: of symbols that
    they hold, by bank. max_threads, required_threads, cluster: 0 where the program does not say.
    """

    name: str
    code: bytes
    code_addresses: tuple[AddressInCode, ...]
    registers: int
    parameters: tuple[CubinParameter, ...]
    parameter_base: int
    shared_bytes: int
    stack_bytes: int
    constants: dict[int, bytes]
    addresses: dict[int, tuple[AddressOf, ...]]
    functions: tuple[Function, ...]
    is_entry: bool
    max_threads: tuple[int, int, int]
    required_threads: tuple[int, int, int]
    cluster: tuple[int, int, int]

    @property
    def words(self) -> list[tuple[int, int]]:
        """Low and high 64 bits of each instruction."""
        flat = struct.unpack(f"<{len(self.code) // 8}Q", self.code)
        return list(zip(flat[::2], flat[1::2], strict=True))


@dataclass(frozen=True)
class Cubin:
    """arch: such as "sm_90a". is_linked: False for objects (nvcc -dc). kernels: in the order of the file.
    constant_data: initial contents of constant variables. references: texture and surface references by name,
    with the type that PTX gives them. samplers: initial properties of sampler references, as PTX writes
    them. independent_samplers: fetches name them apart from textures (texmode_independent).
    undefined: functions that it calls and does not contain. data: the file. listing: of a program that
    `assemble` made, the instructions of each kernel; `data` is then its text. pair_allocation: bytes of
    shared memory where it expects the mbarrier, and the parity of its phase, with which two CTAs allocate
    tensor memory; 0 if it does not.
    """

    name: str
    arch: str
    is_linked: bool
    kernels: tuple[CubinKernel, ...]
    variables: tuple[Variable, ...]
    constant_data: bytes
    references: dict[str, str]
    samplers: dict[str, dict[str, str]]
    independent_samplers: bool
    undefined: tuple[str, ...]
    data: bytes
    listing: Mapping[str, Sequence[Instruction]] | None = None
    pair_allocation: tuple[int, int] = (0, 0)

    def __getitem__(self, kernel: str) -> CubinKernel:
        """A kernel by name. Raises KeyError."""
        for each in self.kernels:
            if each.name == kernel:
                return each
        names = listed([x.name for x in self.kernels])
        raise KeyError(f"{self.name} has no kernel {kernel!r}; it has {names}")

    def relabelled(self, number: int) -> bytes:
        """The file as one for another architecture, such as 75: for tools that know the encoding by that
        name. Only for files from before CUDA 13, whose e_flags begin with the architecture.
        """
        return self.data[:_FLAGS_AT] + bytes([number]) + self.data[_FLAGS_AT + 1 :]

    @classmethod
    def parse(cls, data: bytes, name: str) -> Cubin:
        """Reads a cubin, or the `data` of an assembled one. name: for messages. Raises SassError."""
        if data.lstrip().startswith(TEXT_BEGIN):
            from simt.sass.assembler import assemble

            return assemble(data.decode(errors="replace"), name)
        from elftools.elf.elffile import ELFFile  # only where there is machine code: it takes long

        try:
            file = ELFFile(io.BytesIO(data))
            if file["e_machine"] not in ("EM_CUDA", MACHINE):
                raise SassError(f"{name}: an ELF file of another machine, expected a cubin")
            return _Reader(file, name).cubin(data)
        except SassError:
            raise
        except Exception as error:  # pyelftools raises whatever it runs into in a damaged file
            raise SassError(f"{name}: not a cubin, or damaged: {error!r}") from None


class _Reader:
    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name
        self._sections: dict[str, Any] = {}
        self._by_number: list[Any] = []
        for section in file.iter_sections():
            self._sections.setdefault(section.name, section)
            self._by_number.append(section)

    def cubin(self, data: bytes) -> Cubin:
        flags = self._file["e_flags"]
        # Since CUDA 13 the architecture is in bits 8 to 15 and bit 3 marks "a"; before, in bits 0 to 7, and
        # 11.
        new = self._file["e_ident"]["EI_OSABI"] == _OSABI_OF_CUDA_13
        number = (flags >> 8) & 0xFF if new else flags & 0xFF
        special = bool(flags & (1 << 3 if new else 1 << 11)) or self._is_arch_specific()
        if number < _FIRST_ARCH:
            raise SassError(f"{self._name}: machine code of sm_{number}; expected sm_{_FIRST_ARCH} or later")
        table = self._sections.get(".symtab")
        self._symbols = list(table.iter_symbols()) if table is not None else []
        self._other = [row[2] for row in _SYMBOL.iter_unpack(table.data())] if table is not None else []
        self._names = _distinct([x.name for x in self._symbols])
        self._references = {
            symbol.name: _REFERENCES[symbol["st_info"]["type"]]
            for symbol in self._symbols
            if symbol["st_info"]["type"] in _REFERENCES
        }
        per_function = dict(self._per_function())
        kernels = [
            self._kernel(section.name[len(".text.") :], section, per_function)
            for section in self._by_number
            if section.name.startswith(".text.") and f".nv.info.{section.name[6:]}" in self._sections
        ]
        constants = self._sections.get(f".nv.constant{_CONSTANT_VARIABLES}")
        undefined = tuple(
            symbol.name
            for symbol in self._symbols
            if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["type"] == "STT_FUNC" and symbol.name
        )
        return Cubin(
            self._name,
            f"sm_{number}{'a' * special}",
            self._file["e_type"] != "ET_REL",
            tuple(kernels),
            tuple(self._variables()),
            constants.data() if constants is not None else b"",
            self._references,
            dict(self._samplers()),
            self._has_independent_samplers(flags, new),
            undefined,
            data,
            pair_allocation=self._pair_allocation(),
        )

    def _pair_allocation(self) -> tuple[int, int]:
        places = {symbol.name: int(symbol["st_value"]) for symbol in self._symbols}
        partition = places.get(_TENSOR_MEMORY)
        if partition is not None:
            return partition + _PAIR_MBARRIER, partition + _PAIR_PARITY
        mbarrier = places.get(_TENSOR_MEMORY_MBARRIER, 0)
        return mbarrier, places[_TENSOR_MEMORY_MBARRIER + "_parity"] if mbarrier else 0

    def _kernel(self, name: str, section: Any, per_function: dict[tuple[int, str], int]) -> CubinKernel:
        code = section.data()
        if not code or len(code) % INSTRUCTION_BYTES:
            raise SassError(f"{self._name}: {name}: {len(code)} bytes of code, expected a multiple of 16")
        parameters, base = [], 0
        sizes = dict.fromkeys((_MAX_THREADS, _REQUIRED_THREADS, _CTAS_PER_CLUSTER), (0, 0, 0))
        for attribute, payload in _attributes(self._sections[f".nv.info.{name}"].data()):
            if attribute == _KPARAM_INFO:
                _, position, offset, packed = _PARAMETER.unpack(payload)
                parameters.append((position, CubinParameter(offset, packed >> _SIZE_SHIFT)))
            elif attribute == _CBANK_PARAM:
                _, base, _ = _BANK.unpack(payload)
            elif attribute in sizes:
                sizes[attribute] = struct.unpack("<III", payload)
        constants, addresses = {}, {}
        for bank in range(8):
            for title in (f".nv.constant{bank}.{name}", f".nv.constant{bank}"):
                if title in self._sections:
                    constants[bank] = self._sections[title].data()
                    addresses[bank] = tuple(self._addresses(title))
                    break
        if not base and not parameters:
            base = len(constants.get(0, b""))  # where parameters would follow
        shared = self._sections.get(f".nv.shared.{name}")
        # Variables lie at the beginning of local memory; the stack grows down from its end.
        local = self._sections.get(f".nv.local.{name}")
        stack = max(per_function.get((kind, name), 0) for kind in (_MIN_STACK_SIZE, _FRAME_SIZE))
        number = self._by_number.index(section)
        functions = [
            Function(name_, x["st_value"], x["st_size"])
            for x, name_ in zip(self._symbols, self._names, strict=True)
            if x["st_info"]["type"] == "STT_FUNC" and x["st_shndx"] == number and x.name != name
        ]
        return CubinKernel(
            name,
            code,
            tuple(self._code_addresses(name)),
            per_function.get((_REGCOUNT, name), 0),
            tuple(parameter for _, parameter in sorted(parameters, key=lambda row: row[0])),
            base,
            shared["sh_size"] if shared is not None else 0,
            stack + (local["sh_size"] if local is not None else 0),
            constants,
            addresses,
            tuple(sorted(functions, key=lambda x: x.start)),
            any(
                x.name == name and other & _ENTRY for x, other in zip(self._symbols, self._other, strict=True)
            ),
            sizes[_MAX_THREADS],
            sizes[_REQUIRED_THREADS],
            sizes[_CTAS_PER_CLUSTER],
        )

    def _variables(self) -> Iterator[Variable]:
        for symbol, name, other in zip(self._symbols, self._names, self._other, strict=True):
            number = symbol["st_shndx"]
            if symbol["st_info"]["type"] != "STT_OBJECT" or not isinstance(number, int):
                continue
            section = self._by_number[number]
            start, size = symbol["st_value"], symbol["st_size"]
            is_constant = section.name == f".nv.constant{_CONSTANT_VARIABLES}"
            if not is_constant and not section.name.startswith(".nv.global"):
                continue
            held = section["sh_type"] != "SHT_NOBITS"
            data = section.data()[start : start + size] if held else bytes(size)
            addresses = tuple(
                replace(x, offset=x.offset - start)
                for x in (self._addresses(section.name) if held else ())
                if start <= x.offset < start + size
            )
            yield Variable(name, is_constant, bool(other & _MANAGED), start, data, addresses)

    def _addresses(self, section: str) -> Iterator[AddressOf]:
        """What is to be put into a section once symbols have addresses."""
        data = self._sections[section].data()
        for at, kind, symbol, addend in self._relocations(section):
            if kind == _UNIFIED and symbol in self._references:
                kind = 7
            if kind not in _BYTES:
                raise SassError(f"{self._name}: {section}: relocation {kind} of {symbol} is not supported")
            size = _BYTES[kind]
            held = int.from_bytes(data[at : at + size], "little")
            yield AddressOf(at, size, symbol, held if addend is None else addend)

    def _code_addresses(self, kernel: str) -> Iterator[AddressInCode]:
        code = self._sections[f".text.{kernel}"].data()
        for at, kind, symbol, addend in self._relocations(f".text.{kernel}"):
            (held,) = struct.unpack_from("<I", code, at + _IMMEDIATE)
            part = _IN_CODE.get(kind, f"relocation {kind}")
            yield AddressInCode(at // INSTRUCTION_BYTES, part, symbol, held if addend is None else addend)

    def _relocations(self, section: str) -> Iterator[tuple[int, int, str, int | None]]:
        """Relocations of a section: offset, kind, symbol, and addend; None where the section holds it."""
        for prefix in (".rel", ".rela"):
            table = self._sections.get(prefix + section)
            for row in table.iter_relocations() if table is not None else ():
                addend = row["r_addend"] if prefix == ".rela" else None
                yield row["r_offset"], row["r_info_type"], self._names[row["r_info_sym"]], addend

    def _is_arch_specific(self) -> bool:
        section = self._sections.get(".nv.compat")
        return section is not None and any(
            attribute == _ISA_CLASS and payload[0] == _ARCH_SPECIFIC
            for attribute, payload in _attributes(section.data())
        )

    def _samplers(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Sampler references with what the program says of them."""
        found: dict[str, dict[str, str]] = {}
        for attribute, payload in self._global_attributes():
            if attribute not in (_SAMPLER_INIT, _FORCE_UNNORMALIZED):
                continue
            symbol, value = _PER_FUNCTION.unpack(payload)
            properties = found.setdefault(self._symbols[symbol].name, {})
            if attribute == _FORCE_UNNORMALIZED:
                properties["force_unnormalized_coords"] = str(value)
                continue
            *modes, filter_ = value.to_bytes(4, "little")
            if filter_ < len(_FILTERS):
                properties["filter_mode"] = _FILTERS[filter_]
            for dimension, mode in enumerate(modes):
                if mode < len(_ADDRESS_MODES):
                    properties[f"addr_mode_{dimension}"] = _ADDRESS_MODES[mode]
        yield from found.items()

    def _has_independent_samplers(self, flags: int, new: bool) -> bool:
        if not new:
            return bool(flags & _INDEPENDENT_FLAG)
        return any(attribute == _INDEPENDENT_SAMPLERS for attribute, _ in self._global_attributes())

    def _global_attributes(self) -> Iterator[tuple[int, bytes]]:
        """Attributes of the whole file."""
        section = self._sections.get(".nv.info")
        return _attributes(section.data()) if section is not None else iter(())

    def _per_function(self) -> Iterator[tuple[tuple[int, str], int]]:
        """Attributes that give a number for each function."""
        for attribute, payload in self._global_attributes():
            if attribute in (_FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT):
                symbol, value = _PER_FUNCTION.unpack(payload)
                yield (attribute, self._symbols[symbol].name), value


def _distinct(names: list[str]) -> list[str]:
    """The same names, where one that came before has its number added: units of a program may have variables
    and functions of their own with the same name.
    """
    seen: set[str] = set()
    found = []
    for number, name in enumerate(names):
        found.append(f"{name}#{number}" if name and name in seen else name)
        seen.add(name)
    return found


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Attributes of a section .nv.info, with their contents."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        size = value if form == _SIZED else 0
        if at + size > len(data):
            raise ValueError(f"an attribute of {size} bytes at {at}, of {len(data)} bytes in all")
        yield attribute, data[at : at + size] if form == _SIZED else struct.pack("<H", value)
        at += size
