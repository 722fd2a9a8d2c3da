"""One PTX translation unit, and the names of the kernels in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from simt.errors import ImageError, PtxError

from .image import Image

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)  # strings too, as they may hold "//"
_VERSION = re.compile(r"^\s*\.version\s+\d+\.\d+", re.MULTILINE)
_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+[af]?)", re.MULTILINE)
_ENTRY = re.compile(r"(?<![\w$.%])\.entry\s+([A-Za-z_$%][\w$]*)")
_FUNCTION = re.compile(
    r"(?<![\w$.%])(\.extern\s+)?(?:\.(?:visible|weak)\s+)?\.func\s*(?:\([^()]*\)\s*)?([A-Za-z_$%][\w$]*)"
)
_CODE = re.compile(r"(?<![\w$.%])\.(?:entry|func)\b")
_CONTRACTED = re.compile(r"(?<![\w$.%])(mul|add|sub)((?:\.ftz|\.sat)*\.(?:f32|f64|b?f16|b?f16x2))(?![\w.])")
_INLINE_ASSEMBLY = re.compile(
    r"^[ \t]*// begin inline asm.*?^[ \t]*// end inline asm", re.MULTILINE | re.DOTALL
)
_LOCATION = re.compile(r"^[ \t]*\.loc[ \t][^\n]*", re.MULTILINE)
_ARCH = re.compile(r"sm_(\d{2,3})([af]?)\Z")


@dataclass(frozen=True)
class PtxModule(Image):
    """One PTX translation unit.

    Units are never merged: each keeps its own names, so two files may have kernels of the same name.
    """

    error: ClassVar[type[ImageError]] = PtxError
    missing_hint: ClassVar[str] = (
        ". A template's instances exist only when the source or kernels=[...] names them"
    )

    text: str
    name: str
    """File or kernel, for messages."""
    arch: str
    """What the PTX is for, such as "sm_80"."""
    source: str | None = None
    """The CUDA C++ that it was compiled from, for messages."""
    log: str = ""
    """Warnings of the compiler."""
    names: Mapping[str, str] = field(default_factory=dict)
    """C++ name expressions that were asked for, such as "f<float>", to names in the PTX."""
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Further arguments of `compile_cuda` that it was compiled with: instances asked for later need them."""
    linked: bool = False
    """Made of several units: names may be declared and defined more than once, which ptxas does not take."""

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels in the PTX, in its order."""
        return tuple(dict.fromkeys(_ENTRY.findall(self._bare)))

    @cached_property
    def has_code(self) -> bool:
        """Whether it has a kernel or function: nvcc also keeps the PTX of host-only files."""
        return _CODE.search(self._bare) is not None

    @cached_property
    def functions(self) -> Mapping[str, bool]:
        """The functions that it names, and whether it has their code."""
        found: dict[str, bool] = {}
        for extern, name in _FUNCTION.findall(self._bare):
            found[name] = found.get(name, False) or not extern
        return found

    @property
    def contents(self) -> bytes:
        return self.text.encode()

    def runs_on(self, device: str) -> bool:
        return runs_on(self.arch, device)

    def parameters(self, kernel: str) -> str:
        """The text of a kernel's list of parameters, empty if it takes none. `kernel` is a name in the PTX.

        Raises:
            PtxError: there is no such kernel.
        """
        match = re.search(rf"\.entry\s+{re.escape(kernel)}(?![\w$])\s*(?:\(([^)]*)\))?", self._bare)
        if match is None:
            raise PtxError(f"{self.name}: no kernel {kernel!r} in the PTX")
        return match[1] or ""

    def source_text(self, file: str, line: int) -> str:
        """As `Image.source_text`. file, line: as `.file` and `.loc` have them: the source that was compiled,
        or a file on disk.
        """
        if self.source is not None and file == self.name:
            lines = self.source.splitlines()
            return lines[line - 1].rstrip() if 0 < line <= len(lines) else ""
        return super().source_text(file, line)

    @cached_property
    def _bare(self) -> str:
        """The text without comments and strings."""
        return _COMMENT.sub(" ", self.text)

    def without_contraction(self) -> PtxModule:
        """This module with every product and sum rounded separately: `mul.f32` becomes `mul.rn.f32`, which is
        never contracted to an fma.
        """
        return replace(self, text=_CONTRACTED.sub(r"\1.rn\2", self.text))

    def for_older(self, arch: str, version: str) -> PtxModule:
        """This module as if it had been made for an older architecture, in a version of PTX that its
        compilers read. They refuse what they do not know.
        """
        text = _VERSION.sub(f".version {version}", self.text, count=1)
        return replace(self, text=_TARGET.sub(f".target {arch}", text, count=1), arch=arch)

    @staticmethod
    def from_text(text: str, name: str) -> PtxModule:
        """A module of PTX text.

        Raises:
            PtxError: the text has no `.version` or no `.target` of a known form.
        """
        text = _INLINE_ASSEMBLY.sub(_at_its_statement, text)
        module = PtxModule(text=text, name=name, arch="")
        target = _TARGET.search(module._bare)
        if not _VERSION.search(module._bare) or target is None:
            raise PtxError(f"{name}: not PTX: it has no `.version` and `.target sm_NN` directives")
        if _ARCH.match(target[1]) is None:
            raise PtxError(f"{name}: its target is {target[1]}, expected one such as sm_80 or sm_90a")
        return replace(module, arch=target[1])


def _at_its_statement(assembly: re.Match[str]) -> str:
    """Inline assembly whose instructions belong to its statement. LLVM counts the lines of the assembly as if
    they followed that line in the file, where other statements are.
    """
    return _LOCATION.sub("//", assembly[0])


def is_ptx(text: str) -> bool:
    """Whether a text begins like PTX: with a `.version` directive after nothing but comments."""
    return _VERSION.match(_COMMENT.sub(" ", text)) is not None


def arch_number(arch: str) -> tuple[int, str]:
    """Compute capability times ten, and the letter of an architecture- or family-specific target.

    Raises:
        PtxError: the text is not of the form "sm_80" or "sm_90a".
    """
    match = _ARCH.match(arch)
    if match is None:
        raise PtxError(f'architecture {arch!r} is not of the form "sm_80" or "sm_90a"')
    return int(match[1]), match[2]


def runs_on(ptx: str, device: str) -> bool:
    """Whether PTX made for one architecture can be used on a device of another.

    PTX is upward compatible; with "a" it runs on just that compute capability, with "f" on its family, the
    same major number (PTX ISA, `.target`).
    """
    (made, letter), (has, _) = arch_number(ptx), arch_number(device)
    if letter == "a":
        return made == has
    if letter == "f":
        return made <= has and made // 10 == has // 10
    return made <= has
