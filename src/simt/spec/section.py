"""What the models of a specification are made of: sections, and the types of their fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from simt.hints import did_you_mean

if TYPE_CHECKING:
    from simt.engine_types import PolicyFacts

Flag = Annotated[bool, Field(strict=True)]
Opcode = Annotated[
    str, StringConstraints(strict=True, to_upper=True, pattern=r"^(?i)[a-z][a-z0-9_]*(\.[a-z0-9_:]+)*$")
]
"""Of machine code or a trace, with or without modifiers."""
UnitName = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_]*$")]


_SIZE = re.compile(r"(?<![\w.])(\d{1,12}(?:\.\d{1,12})?)\s*([KMG])i?B?(?!\w)", re.IGNORECASE)
_POWERS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# As in documentation of CUDA, KB and KiB are both 1,024 bytes.
_IN_BYTES = {"bytes": 1, "KiB": 1 << 10, "GiB": 1 << 30}


class Section(BaseModel):
    """A section of a specification. Frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Quantity:
    """A whole number of some unit, within the range that the engine can hold."""

    unit: str
    least: int
    most: int
    power_of_two: bool = False
    """Only powers of two, and 0 if that is the least."""

    @property
    def is_size(self) -> bool:
        """Whether it may also be given as text such as `64KB` or `5.5 MiB`."""
        return self.unit in _IN_BYTES

    def without_sizes(self, text: str) -> str:
        """The text with each size in it as a number of this unit, unless that is no whole number."""

        def number(size: re.Match[str]) -> str:
            value = Fraction(size[1]) * _POWERS[size[2].upper()] / _IN_BYTES[self.unit]
            return str(value) if value.denominator == 1 else size[0]

        return _SIZE.sub(number, text) if self.is_size else text

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if not self.power_of_two:
            return f"{self.least} to {self.most}{unit}"
        if self.most == 2 * self.least:
            return f"{self.least} or {self.most}{unit}"
        zero = "0 or " if self.least == 0 else ""
        return f"{zero}a power of two, {max(1, self.least)} to {self.most}{unit}"

    def _check(self, value: int) -> int:
        fits = self.least <= value <= self.most
        if not fits or (self.power_of_two and value & (value - 1)):
            raise PydanticCustomError("range", "expected {range}", {"range": str(self)})
        return value

    def _parse(self, value: Any) -> Any:
        if not self.is_size or not isinstance(value, str):
            return value
        number = self.without_sizes(value.strip())
        if number == value.strip() or not number.isdigit():
            message = "expected {range}, or a size such as 64KiB"
            raise PydanticCustomError("range", message, {"range": str(self)})
        return int(number)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        whole = core_schema.int_schema(strict=True)
        checked = core_schema.no_info_after_validator_function(self._check, whole)
        return core_schema.no_info_before_validator_function(self._parse, checked)


@dataclass(frozen=True)
class Megahertz:
    """A frequency, exact to 1 kHz."""

    least: int
    most: int
    unit: str = "MHz"

    def __str__(self) -> str:
        return f"{self.least} to {self.most} {self.unit}, whole kHz"

    def _check(self, value: float) -> float:
        if not self.least <= value <= self.most or abs(value * 1000 - round(value * 1000)) > 1e-6:
            raise PydanticCustomError("range", "expected {range}", {"range": str(self)})
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, core_schema.float_schema())


@cache
def _own_policies() -> Mapping[str, dict[str, PolicyFacts]]:
    from simt import _engine  # here, for most of what reads models needs no engine

    return _engine.policies()


@dataclass(frozen=True)
class PolicyName:
    """The name of a policy that is registered in the engine, or of one that `simt.policy` finds."""

    kind: str

    @property
    def own(self) -> dict[str, PolicyFacts]:
        """The policies that are part of simt, by name, with what the engine says of each: meaning, source,
        limits."""
        return _own_policies()[self.kind]

    @property
    def registered(self) -> dict[str, PolicyFacts]:
        """The same, and those that are not part of simt, which are called `name@hash`."""
        from simt import _engine

        return self.own | _engine.policies(outside=True)[self.kind]

    def _check(self, value: str) -> str:
        if value in self.own or value in self.registered:
            return value
        from simt.policy.errors import PolicyError
        from simt.policy.outside import resolve

        try:
            found = resolve(self.kind, value)
        except PolicyError as error:
            raise PydanticCustomError("policy", "{text}", {"text": str(error)}) from None
        if found is None:
            raise PydanticCustomError(
                "policy",
                "expected one of {names}{hint}",
                {"names": ", ".join(self.own), "hint": did_you_mean(value, self.own)},
            )
        return found

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, core_schema.str_schema(strict=True))
