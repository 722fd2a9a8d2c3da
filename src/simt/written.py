"""Dataclasses as they are written to JSON.

The annotations of a dataclass's fields (`msgspec.Meta`: ranges, descriptions) are the one definition of its
format: what is read is checked against them, and the JSON Schema follows from them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cached_property
from inspect import cleandoc
from typing import Annotated, Any, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

Count = Annotated[int, Meta(ge=0, le=2**53)]
Positive = Annotated[int, Meta(ge=1, le=2**53)]
Small = Annotated[int, Meta(ge=0, le=2**32)]
Amount = Count | Annotated[float, Meta(ge=0, le=1e30)]


@dataclass(frozen=True)
class WrittenAs:
    """Annotates a field that is written as another type than it has in memory."""

    kind: Any


def written(
    kind: type,
    *,
    optional: Collection[str] = (),
    derived: Mapping[str, Sequence[str]] | None = None,
    without: Collection[str] = (),
    instead: Mapping[str, Any] | None = None,
    forbid_unknown_fields: bool = False,
) -> type[msgspec.Struct]:
    """The Struct that a dataclass is written as: its fields, in their order.

    optional: fields that files of earlier versions lack; they have their defaults then, if any. derived: by
    the name of a field, the properties that are written before it; they are not needed to read it. without:
    fields that are not written. instead: by the name of a field whose type is only known to checkers, as
    what it is written.
    """
    own = {each.name: each.type for each in fields(kind) if each.name not in {*without, *(instead or {})}}
    part = type(kind.__name__, (), {"__annotations__": own, "__module__": kind.__module__})
    types = get_type_hints(part, include_extras=True) | dict(instead or {})
    found: list[Any] = []
    for field in fields(kind):
        found += [(name, _of_property(kind, name), UNSET) for name in (derived or {}).get(field.name, ())]
        if field.name in without:
            continue
        kind_of_value = _written_type(types[field.name])
        if field.name not in optional:
            found.append((field.name, kind_of_value))
        elif field.default is MISSING and field.default_factory is MISSING:
            found.append((field.name, kind_of_value | UnsetType, UNSET))
        else:
            found.append((field.name, kind_of_value, _default_of(field)))
    return msgspec.defstruct(kind.__name__, found, kw_only=True, forbid_unknown_fields=forbid_unknown_fields)


def _default_of(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return msgspec.field(default_factory=field.default_factory)
    return field.default


def _written_type(given: Any) -> Any:
    if get_origin(given) is not Annotated:
        return given
    kind = next((extra.kind for extra in given.__metadata__ if isinstance(extra, WrittenAs)), None)
    if kind is None:
        return given
    metas = tuple(extra for extra in given.__metadata__ if isinstance(extra, Meta))
    for meta in metas:
        kind = Annotated[kind, meta]
    return kind


def _of_property(kind: type, name: str) -> Any:
    """What a property returns, with the first sentence of its docstring."""
    found = getattr(kind, name)
    getter = found.func if isinstance(found, cached_property) else found.fget
    returned = _written_type(get_type_hints(getter, include_extras=True)["return"])
    text = cleandoc(getter.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    return Annotated[returned | UnsetType, Meta(description=text)] if text else returned | UnsetType


def columns_of(kind: type) -> type[msgspec.Struct]:
    """The Struct that a sequence of a dataclass is written as: a list for each field."""
    types = get_type_hints(kind, include_extras=True)
    found = [(each.name, list[_written_type(types[each.name])]) for each in fields(kind)]  # type: ignore[misc]
    return msgspec.defstruct(f"{kind.__name__}Columns", found, forbid_unknown_fields=True)


def json_schema(
    kind: type[msgspec.Struct],
    name: str,
    title: str,
    *,
    sometimes: Collection[str] = (),
    also: Sequence[type] = (),
) -> str:
    """The JSON Schema of what is written, whose field `schema` is `name`. sometimes: the fields that are not
    always written, as `Class.field`. also: further types that its fields refer to.
    """
    _, found = msgspec.json.schema_components([kind, *also], ref_template="#/$defs/{name}")
    for title_of, part in found.items():
        if "properties" in part:
            part["required"] = [each for each in part["properties"] if f"{title_of}.{each}" not in sometimes]
            part["additionalProperties"] = False
    whole = found.pop(kind.__name__)
    whole["properties"] = {"schema": {"const": name}, **whole["properties"]}
    whole["required"] = ["schema", *whole["required"]]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name}
    whole = {**head, **whole, "title": title, **({"$defs": found} if found else {})}
    # msgspec 0.23 describes the keys of a dictionary, 0.22 does not: the file is the same with both.
    plain = json.loads(json.dumps(whole), object_hook=_without_key_names)
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def _without_key_names(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "propertyNames"}
