"""What the models of a specification are made of: sections, and the types of their fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from simt.hints import did_you_mean

Flag = Annotated[bool, Field(strict=True)]


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

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, core_schema.int_schema(strict=True))


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


@dataclass(frozen=True)
class Policy:
    """The name of a policy that is registered in the engine."""

    kind: str

    @property
    def registered(self) -> dict[str, dict[str, Any]]:
        """The policies by name, with what the engine says of each: meaning, source, limits."""
        from simt import _engine  # here, for most of what reads models needs no engine

        return _engine.policies()[self.kind]

    def _check(self, value: str) -> str:
        names = self.registered
        if value not in names:
            raise PydanticCustomError(
                "policy",
                "expected one of {names}{hint}",
                {"names": ", ".join(names), "hint": did_you_mean(value, names)},
            )
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, core_schema.str_schema(strict=True))
