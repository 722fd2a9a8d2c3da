"""Cubins: ELF files with machine code for one architecture.

NVIDIA does not document what is special to them. Section names are as nvdisasm prints them; the attributes of
`.nv.info` carry the names that nvdisasm gives them.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from simt.errors import SassError
from simt.extras import explained
from simt.names import listed

MACHINE = 190  # EM_CUDA
INSTRUCTION_BYTES = 16
# Attributes of .nv.info: EIATTR_...
_MAX_THREADS, _CBANK_PARAM, _REQUIRED_THREADS, _FRAME_SIZE, _MIN_STACK_SIZE = 0x05, 0x0A, 0x10, 0x11, 0x12
_KPARAM_INFO, _REGCOUNT, _CTAS_PER_CLUSTER = 0x17, 0x2F, 0x3D
_ADDRESSES = (2, 4)  # relocations R_CUDA_64 and R_CUDA_G64: the address of a symbol, in 64 bits
_CONSTANT_VARIABLES = 3  # the constant bank that they are in
_SIZED = 4  # format of an attribute: a size, then that many bytes; the others have two bytes of value
_PARAMETER = struct.Struct("<IHHI")  # unused, position, offset, size in the upper bits
_PER_FUNCTION = struct.Struct("<II")  # symbol, value
_BANK = struct.Struct("<IHH")  # symbol, offset of the parameters in bank 0, their bytes
_SIZE_SHIFT = 18
_FIRST_ARCH = 70
_OSABI_OF_CUDA_13 = 65


@dataclass(frozen=True)
class Parameter:
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
    """Eight bytes that hold the address of a symbol. offset: where they are."""

    offset: int
    symbol: str
    addend: int


@dataclass(frozen=True)
class Variable:
    """A variable in global or constant memory. offset: in its section. addresses: that it holds."""

    name: str
    is_constant: bool
    offset: int
    data: bytes
    addresses: tuple[AddressOf, ...]


@dataclass(frozen=True)
class Kernel:
    """Machine code of a kernel, or of functions that kernels call (then is_entry is False).

    code: 16 bytes an instruction. registers: per thread. parameter_base: where parameters begin in constant
    bank 0. shared_bytes: static, per CTA. stack_bytes: local memory per thread, of the kernel and what it
    calls as far as ptxas knows. constants: initial contents of its constant banks; addresses: of symbols that
    they hold, by bank. max_threads, required_threads, cluster: 0 where the program does not say.
    """

    name: str
    code: bytes
    registers: int
    parameters: tuple[Parameter, ...]
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
    """arch: such as "sm_90a". kernels: in the order of the file. constant_data: initial contents of constant
    variables. undefined: functions that it calls and does not contain.
    """

    name: str
    arch: str
    kernels: tuple[Kernel, ...]
    variables: tuple[Variable, ...]
    constant_data: bytes
    undefined: tuple[str, ...]
    data: bytes

    def __getitem__(self, kernel: str) -> Kernel:
        """A kernel by name. Raises KeyError."""
        for each in self.kernels:
            if each.name == kernel:
                return each
        names = listed([x.name for x in self.kernels])
        raise KeyError(f"{self.name} has no kernel {kernel!r}; it has {names}")

    @classmethod
    def parse(cls, data: bytes, name: str) -> Cubin:
        """Reads a cubin. name: for messages. Raises SassError, and ToolkitError without pyelftools."""
        try:
            from elftools.elf.elffile import ELFFile
        except ModuleNotFoundError as error:
            raise explained(error, "reading machine code") from None
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
        special = bool(flags & (1 << 3 if new else 1 << 11))
        if number < _FIRST_ARCH:
            raise SassError(f"{self._name}: machine code of sm_{number}; expected sm_{_FIRST_ARCH} or later")
        table = self._sections.get(".symtab")
        self._symbols = list(table.iter_symbols()) if table is not None else []
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
            tuple(kernels),
            tuple(self._variables()),
            constants.data() if constants is not None else b"",
            undefined,
            data,
        )

    def _kernel(self, name: str, section: Any, per_function: dict[tuple[int, str], int]) -> Kernel:
        code = section.data()
        if not code or len(code) % INSTRUCTION_BYTES:
            raise SassError(f"{self._name}: {name}: {len(code)} bytes of code, expected a multiple of 16")
        parameters, base = [], 0
        sizes = dict.fromkeys((_MAX_THREADS, _REQUIRED_THREADS, _CTAS_PER_CLUSTER), (0, 0, 0))
        for attribute, payload in _attributes(self._sections[f".nv.info.{name}"].data()):
            if attribute == _KPARAM_INFO:
                _, position, offset, packed = _PARAMETER.unpack(payload)
                parameters.append((position, Parameter(offset, packed >> _SIZE_SHIFT)))
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
        shared = self._sections.get(f".nv.shared.{name}")
        # Variables lie at the beginning of local memory; the stack grows down from its end.
        local = self._sections.get(f".nv.local.{name}")
        stack = max(per_function.get((kind, name), 0) for kind in (_MIN_STACK_SIZE, _FRAME_SIZE))
        number = self._by_number.index(section)
        functions = [
            Function(x.name, x["st_value"], x["st_size"])
            for x in self._symbols
            if x["st_info"]["type"] == "STT_FUNC" and x["st_shndx"] == number and x.name != name
        ]
        return Kernel(
            name,
            code,
            per_function.get((_REGCOUNT, name), 0),
            tuple(parameter for _, parameter in sorted(parameters, key=lambda row: row[0])),
            base,
            shared["sh_size"] if shared is not None else 0,
            stack + (local["sh_size"] if local is not None else 0),
            constants,
            addresses,
            tuple(sorted(functions, key=lambda x: x.start)),
            any(x.name == name and x["st_other"]["local"] != 0 for x in self._symbols) or base != 0,
            sizes[_MAX_THREADS],
            sizes[_REQUIRED_THREADS],
            sizes[_CTAS_PER_CLUSTER],
        )

    def _variables(self) -> Iterator[Variable]:
        for symbol in self._symbols:
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
                AddressOf(x.offset - start, x.symbol, x.addend)
                for x in (self._addresses(section.name) if held else ())
                if start <= x.offset < start + size
            )
            yield Variable(symbol.name, is_constant, start, data, addresses)

    def _addresses(self, section: str) -> Iterator[AddressOf]:
        """What is to be put into a section once symbols have addresses."""
        for prefix in (".rel", ".rela"):
            table = self._sections.get(prefix + section)
            for row in table.iter_relocations() if table is not None else ():
                symbol = self._symbols[row["r_info_sym"]].name
                if row["r_info_type"] not in _ADDRESSES:
                    raise SassError(
                        f"{self._name}: {section}: relocation {row['r_info_type']} of {symbol}, which is not "
                        "supported"
                    )
                at = row["r_offset"]
                data = self._sections[section].data()
                addend = row["r_addend"] if prefix == ".rela" else struct.unpack_from("<Q", data, at)[0]
                yield AddressOf(at, symbol, addend)

    def _per_function(self) -> Iterator[tuple[tuple[int, str], int]]:
        """Attributes of the whole file that give a number for each function."""
        section = self._sections.get(".nv.info")
        for attribute, payload in _attributes(section.data()) if section is not None else ():
            if attribute in (_FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT):
                symbol, value = _PER_FUNCTION.unpack(payload)
                yield (attribute, self._symbols[symbol].name), value


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Attributes of a section .nv.info, with their contents."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        size = value if form == _SIZED else 0
        if at + size > len(data):
            raise SassError(f"an attribute of {size} bytes at {at}, of {len(data)} bytes in all")
        yield attribute, data[at : at + size] if form == _SIZED else struct.pack("<H", value)
        at += size
