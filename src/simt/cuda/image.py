"""A program as it is loaded into a GPU: the base class of PTX and machine code."""

from __future__ import annotations

import linecache
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from simt.errors import ImageError
from simt.names import named_by, names_of, short_name

if TYPE_CHECKING:
    from typing_extensions import Self


class Image(ABC):
    """A program in a form that a GPU executes: `PtxModule` or `CubinModule`."""

    # Fields of the subclasses, which are frozen: properties to the type checker, nothing at run time.
    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """File or kernel, for messages."""

        @property
        def arch(self) -> str:
            """What it is made for, such as "sm_80"."""

        @property
        def names(self) -> Mapping[str, str]:
            """Further names of kernels, such as "f<float>", to those in the program."""

    error: ClassVar[type[ImageError]] = ImageError
    """Raised for what it lacks."""
    missing_hint: ClassVar[str] = ""
    """Why it may lack a kernel."""

    @property
    @abstractmethod
    def kernels(self) -> tuple[str, ...]:
        """Names of its kernels, in its order."""

    @property
    @abstractmethod
    def contents(self) -> bytes:
        """The program itself."""

    @abstractmethod
    def runs_on(self, device: str) -> bool:
        """Whether a device of this architecture, such as "sm_90a", can execute it."""

    @abstractmethod
    def without_contraction(self) -> Self:
        """The same with every product and sum rounded separately. Raises `error` if that is not possible."""

    def kernel(self, name: str) -> str:
        """The name in the program of a kernel that is asked for by that name, by a name expression, or by any
        other of its names (`simt.names.names_of`).

        Raises:
            ImageError: there is no such kernel, or several that differ in parameters or template arguments.
        """
        kernels = self.kernels
        if name in kernels:
            return name
        if name in self.names:
            return self.names[name]
        matches = named_by(name, kernels)
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise self.error(
                f"{self.name}: {name!r} is several kernels: {', '.join(matches)}: ask for one of them"
            )
        shared = Counter(map(short_name, kernels))
        own = (names_of(x)[1] if shared[short_name(x)] > 1 else short_name(x) for x in kernels)
        known = ", ".join([*self.names, *own]) or "none"
        raise self.error(f"{self.name}: no kernel {name!r}; there are: {known}{self.missing_hint}")

    def source_text(self, file: str, line: int) -> str:
        """A line of the source without blanks after it, or an empty string where it is not known.

        file, line: as the program has them.
        """
        return linecache.getline(file, line).rstrip() if file else ""
