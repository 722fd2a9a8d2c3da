"""Specification files: finding, reading (with the source of each value), overriding and writing them.

A file is TOML with the sections and fields of `simt.spec.sections`. Beside the values a section may say
`source = "..."`: the source of all values in it and below that name none themselves. A value names its own
so: `latency = { value = 4, source = "..." }`. With `extends = "qv100"` what it leaves out comes from there.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from simt.errors import SpecError
from simt.files import kind_of, parse_toml, replacing
from simt.spec.models import Spec
from simt.spec.section import Megahertz, PolicyName, Quantity

if TYPE_CHECKING:
    from simt.engine_types import PolicyFacts

Overrides = Mapping[str, Any] | Iterable[str]

_MOST_BYTES = 1 << 20
NOT_GIVEN = "not given: the value of a GPU without it"
"""The source of a value that a file does not give."""
_SHIPPED = resources.files("simt.spec") / "gpus"


def available() -> list[str]:
    """Names of the shipped GPUs, sorted."""
    return sorted(
        file.name.removesuffix(".toml") for file in _SHIPPED.iterdir() if file.name.endswith(".toml")
    )


# What products are called, without makers, families and what is no letter or digit: shipped name.
_ALIASES = {
    "v100": "qv100", "v100sxm2": "qv100", "v100sxm3": "qv100", "v100pcie": "qv100", "gv100": "qv100",
    "a10080gb": "a100", "a100sxm": "a100", "a100sxm4": "a100", "h100sxm": "h100", "h100sxm5": "h100",
    "h10080gb": "h100", "h10080gbhbm3": "h100", "h200sxm": "h200", "h200141gb": "h200",
    "a10080gbpcie": "a100-pcie", "h10080gbpcie": "h100-pcie", "a100sxm440gb": "a100-40gb",
    "a10040gbpcie": "a100-pcie-40gb", "rtxa6000": "a6000", "rtx308010gb": "rtx3080", "rtx306012gb": "rtx3060",
    "gtxtitan": "titan", "titanxpascal": "titanx",
}  # fmt: skip
_MAKERS = re.compile(r"nvidia|amd|geforce|tesla|quadro|radeon|instinct|[^a-z0-9]")
_MEMORY = re.compile(r"(?:16gb|32gb|80gb|141gb)$")


def shipped_name(gpu: str) -> str | None:
    """The shipped GPU of a product's name, such as `V100`, `a100-80gb` or `NVIDIA A100-SXM4-80GB`; None for
    any other name.

    Products that share a name but not a memory, such as the A100 of 40 and of 80 GB, are told apart by it.
    """
    products, plain = _products(), _MAKERS.sub("", gpu.lower())
    return products.get(plain) or products.get(_MEMORY.sub("", plain))


def _products() -> dict[str, str]:
    """Shipped names by the products' plain names."""
    return {_MAKERS.sub("", name): name for name in available()} | _ALIASES


def _nearest_gpus(gpu: str) -> str:
    """`; did you mean a100?`: shipped GPUs whose products are called nearly so; empty if there are none."""
    products = _products()
    near = difflib.get_close_matches(_MAKERS.sub("", gpu.lower()), products, n=3)
    names = dict.fromkeys(products[product] for product in near)
    return f"; did you mean {' or '.join(names)}?" if names else ""


def load_spec(gpu: str | os.PathLike[str] | Spec, overrides: Overrides = ()) -> Spec:
    """Loads, checks and freezes the specification of a GPU.

    Args:
        gpu: the name of a shipped GPU, the path of a TOML file, or a specification.
        overrides: values that replace the file's: `{"sm.count": 40}` or `["sm.count=40"]`.

    Raises:
        SpecError: no such GPU, file or field, or a value that makes no sense; the message says which.
    """
    if isinstance(gpu, Spec):
        spec = gpu
    else:
        file, name, text = _find(os.fspath(gpu), base=None)
        try:
            values, sources = _read(file, name, text, chain=())
        except RecursionError:
            raise SpecError(f"{file}: nested too deeply; expected sections and values") from None
        spec = validate(values, sources, file)
    changes = _override_pairs(overrides)
    if not changes:
        return spec
    values, sources = spec.values(), dict(spec.sources)
    for path, value in changes:
        _override(values, path, value, spec.name)
        sources[path] = "override given by the user"
    changed = validate(values, sources, spec.name)
    if changed.l1.adaptive and any(path == "l1.cache.ways" for path, _ in changes):
        raise SpecError(
            f"{spec.name}: l1.cache.ways: has no effect with l1.adaptive = true, where the L1 has what is "
            "left of l1.unified_bytes; set l1.unified_bytes, or l1.adaptive = false"
        )
    return changed


def validate(values: dict[str, Any], sources: Mapping[str, str], file: str) -> Spec:
    """Makes a Spec of plain values.

    Raises:
        SpecError: each error with `file` and the field's path.
    """
    try:
        spec = Spec.model_validate(values)
    except ValidationError as error:
        raise SpecError("\n".join(f"{file}: {line}" for line in _explain(error))) from None
    leaves = {path for path, _ in spec.leaves()}
    spec._sources.update({path: source for path, source in sources.items() if path in leaves})
    for path in spec.absent_values():
        if not _gives(values, path):
            spec._sources[path] = NOT_GIVEN
    return spec


def _gives(values: Any, path: str) -> bool:
    """Whether nested values have one at a path."""
    for part in path.split("."):
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True


def _explain(error: ValidationError) -> Iterator[str]:
    for item in error.errors():
        path = ".".join(str(part) for part in item["loc"])
        found = item["input"]
        if item["type"] == "cross_field":
            yield from (f"{field}: {message}" for field, message in item["ctx"]["problems"])
        elif item["type"] == "missing":
            yield f'{path}: missing; add it, or start from a shipped GPU with extends = "qv100"'
        elif item["type"] == "extra_forbidden":
            yield f"{path}: unknown field{_nearest(path)}"
        elif item["type"] in ("model_type", "model_attributes_type"):
            yield f"{path}: found {found!r}, expected a section with fields"
        else:
            message = item["msg"].replace("Input should be", "expected")
            yield f"{path}: found {found!r}, {message[0].lower()}{message[1:]}"


ANY_NAME = "NAME"
"""In paths of fields: the name that a special unit has in a specification."""


def _sections(field: FieldInfo) -> tuple[type[BaseModel], str] | None:
    """The model of a field that is a section, and what stands behind its name in paths; None of a value."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind, "."
    if get_origin(kind) is dict:
        return get_args(kind)[1], f".{ANY_NAME}."
    return None


@cache
def _fields() -> Mapping[str, FieldInfo]:
    """The model field behind every value, by path."""

    def walk(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
        for name, field in model.model_fields.items():
            if section := _sections(field):
                yield from walk(section[0], f"{prefix}{name}{section[1]}")
            else:
                yield prefix + name, field

    return dict(walk(Spec, ""))


def _field(path: str) -> FieldInfo | None:
    """The field of a path, in which a special unit has its name; None if there is none."""
    fields = _fields()
    parts = path.split(".")
    return fields.get(path) or fields.get(".".join([*parts[:-2], ANY_NAME, parts[-1]]))


def _has_sections(values: Mapping[str, Any], path: str) -> bool:
    for section in path.split(".")[:-1]:
        if section not in values:
            return False
        values = values[section]
    return True


def range_of(field: FieldInfo) -> Quantity | Megahertz | PolicyName | None:
    """The values that a model's field can have, and their unit; None for flags, choices and text."""
    of_items = getattr(next(iter(get_args(field.annotation)), None), "__metadata__", ())
    rules = [
        rule for rule in (*field.metadata, *of_items) if isinstance(rule, Quantity | Megahertz | PolicyName)
    ]
    return rules[0] if rules else None


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings of a model's own and inherited fields, by name.

    pydantic can read them when it makes the models, but every command would wait for that (60 ms).
    """
    found = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, BaseModel) or base is BaseModel:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[field.target.id] = inspect.cleandoc(str(text.value.value))
    return found


@cache
def describe() -> Mapping[str, str]:
    """What each value means, by path, in the order of the models."""

    def walk(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str]]:
        meanings = _meanings(model)
        for name, field in model.model_fields.items():
            if section := _sections(field):
                yield from walk(section[0], f"{prefix}{name}{section[1]}")
            else:
                yield prefix + name, meanings.get(name, "")

    return dict(walk(Spec, ""))


@dataclass(frozen=True)
class FieldText:
    """A field as people read of it."""

    path: str
    values: str
    """Range with its unit, or the choices."""
    meaning: str
    policies: dict[str, PolicyFacts]
    """Where it chooses a policy: those of simt, with meaning and source."""


def field_texts() -> list[FieldText]:
    """Every field, in the order of the models."""
    texts = []
    meanings = describe()
    for path, field in _fields().items():
        rule = range_of(field)
        policies = rule.own if isinstance(rule, PolicyName) else {}
        options = choices(path)
        values = ", ".join(json.dumps(o) if isinstance(o, bool) else o for o in options or ()) or str(
            rule or "text"
        )
        texts.append(FieldText(path, values, meanings[path], policies))
    return texts


def choices(path: str) -> tuple[Any, ...] | None:
    """The values that a field can have where they are names or flags; None for numbers and other text.

    Raises:
        SpecError: there is no such field.
    """
    field = _field(path)
    if field is None:
        raise SpecError(f"{path}: unknown field{_nearest(path)}")
    if field.annotation is bool:
        return (False, True)
    if isinstance(rule := range_of(field), PolicyName):
        return tuple(rule.own)
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else None


def _nearest(path: str) -> str:
    known = list(_fields())
    inside = [field for field in known if field.startswith(path + ".")]
    if inside:
        return f"; it is a section with the fields {', '.join(inside)}"
    last = path.rsplit(".", 1)[-1]
    same_ending = [field for field in known if field.rsplit(".", 1)[-1] == last]
    near = list(dict.fromkeys(difflib.get_close_matches(path, known, n=3, cutoff=0.6) + same_ending))[:4]
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return "; `simt gpus show qv100` lists all fields"


def _override_pairs(overrides: Overrides) -> list[tuple[str, Any]]:
    if isinstance(overrides, Mapping):
        return list(overrides.items())
    pairs = []
    for text in overrides:
        path, equals, value = text.partition("=")
        if not equals or not path.strip():
            raise SpecError(f"override {text!r}: expected path=value, for example sm.count=40")
        pairs.append((path.strip(), value.strip()))
    return pairs


def _override(values: dict[str, Any], path: str, value: Any, name: str) -> None:
    field = _field(path)
    if field is None or not _has_sections(values, path):
        raise SpecError(f"{name}: override {path}: unknown field{_nearest(path)}")
    kind = field.annotation
    # Text stays text where text is expected; elsewhere it is written as in TOML.
    textual = kind is str or (get_origin(kind) is Literal and isinstance(get_args(kind)[0], str))
    if isinstance(value, str) and not textual:
        rule = range_of(field)
        size = rule if isinstance(rule, Quantity) and rule.is_size else None
        try:
            if "\n" in value:
                raise ValueError("several lines")
            value = parse_toml(f"value = {size.without_sizes(value) if size else value}")["value"]
        except ValueError:
            expected = rule or ("true or false" if kind is bool else "a value as in TOML")
            raise SpecError(
                f"{name}: override {path}: cannot read the value {value!r}, expected {expected}"
                + (", or a size such as 64KiB" if size else "")
            ) from None
    *sections, last = path.split(".")
    for section in sections:
        values = values[section]
    values[last] = value


_ACCEL_SIM = (
    "is a configuration of Accel-Sim; `simt gpus import gpgpusim.config trace.config -o gpu.toml` makes a "
    "specification of it, for --gpu gpu.toml"
)


def _find(gpu: str, base: Path | None) -> tuple[str, str, str]:
    """File (for messages), name and text of a GPU given by name or path, relative to `base`."""
    if not gpu.endswith(".toml") and os.sep not in gpu:
        names = available()
        gpu = shipped_name(gpu) or gpu
        if gpu not in names:
            if gpu.endswith(".config"):
                raise SpecError(f"{gpu}: {_ACCEL_SIM}")
            hint = _nearest_gpus(gpu) or "."
            raise SpecError(
                f"there is no GPU called {gpu!r}{hint} There are {', '.join(names)}; a file ends in .toml"
            )
        resource = _SHIPPED / f"{gpu}.toml"
        return str(resource), gpu, resource.read_text(encoding="utf-8")
    path = Path(gpu) if base is None else base / gpu
    if path.suffix == ".config":
        raise SpecError(f"{path}: {_ACCEL_SIM}")
    if (kind := kind_of(path)) and not path.is_dir():
        raise SpecError(f"{path}: cannot be read: this is {kind}, expected a specification in TOML")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise SpecError(f"{path}: larger than {_MOST_BYTES:,} bytes; this is not a specification")
        return str(path), path.stem, path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        if not isinstance(error, UnicodeDecodeError):  # a zero byte in the name
            raise SpecError(f"{gpu!r}: no name of a file") from None
        raise SpecError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None


def _read(file: str, name: str, text: str, chain: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    """Values and sources of a file and of what it extends."""
    if file in chain:
        raise SpecError(f"{file}: extends: the files extend each other: {' -> '.join([*chain, file])}")
    try:
        table = dict(_parsed(text))
    except ValueError as error:
        raise SpecError(f"{file}: not valid TOML: {error}") from None
    parent = table.pop("extends", None)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    if parent is not None:
        if not isinstance(parent, str):
            raise SpecError(f"{file}: extends: found {parent!r}, expected the name of a GPU or a path")
        try:
            found = _find(parent, base=Path(file).parent)
        except SpecError as error:
            raise SpecError(f"{file}: extends: {error}") from None
        values, inherited = _read(*found, chain=(*chain, file))
        sources = {
            path: source if source.startswith("as ") else f"as {found[1]}: {source}"
            for path, source in inherited.items()
        }
    values["name"] = name
    merge(table, values, sources, file)
    _locate_policies(values, Path(file).parent)
    values.setdefault("description", "")
    return values, sources


@cache
def policy_fields() -> tuple[str, ...]:
    """The fields that choose a policy."""
    return tuple(path for path, field in _fields().items() if isinstance(range_of(field), PolicyName))


def outside_policies(spec: Spec) -> dict[str, str]:
    """The policies of a specification that are not part of simt, by field: name@hash of the source."""
    chosen = set(policy_fields())
    return {path: value for path, value in spec.leaves() if path in chosen and "@" in value}


def _locate_policies(values: dict[str, Any], folder: Path) -> None:
    """Makes the paths of policies' files absolute; relative ones start from this folder."""
    from simt.policy.outside import located

    for path in policy_fields():
        *sections, last = path.split(".")
        table: Any = values
        for section in sections:
            table = table.get(section) if isinstance(table, dict) else None
        if isinstance(table, dict) and isinstance(table.get(last), str) and ":" in table[last]:
            table[last] = located(table[last], folder)


@lru_cache(maxsize=32)
def _parsed(text: str) -> dict[str, Any]:
    """A file's contents, for reading only: parsing takes most of the time of `load_spec`."""
    return parse_toml(text)


def merge(
    table: dict[str, Any],
    values: dict[str, Any],
    sources: dict[str, str],
    file: str,
    prefix: str = "",
    source: str | None = None,
) -> None:
    """Puts a file's values and their sources, as TOML gives them, over others.

    Raises:
        SpecError: a section where a value belongs, or a source that is none. `validate` finds the rest.
    """
    source = _source(table, source, file, prefix)
    for key, value in table.items():
        path = prefix + key
        if key == "source":
            continue
        if isinstance(value, dict) and "value" not in value:
            inner = values.setdefault(key, {})
            if not isinstance(inner, dict):
                raise SpecError(f"{file}: {path}: found a section, expected a value{_nearest(path)}")
            merge(value, inner, sources, file, f"{path}.", source)
            continue
        own = source
        if isinstance(value, dict):
            if unknown := sorted(set(value) - {"value", "source"}):
                raise SpecError(
                    f"{file}: {path}: found {unknown[0]!r} beside value, expected value and source"
                )
            own, value = _source(value, source, file, f"{path}."), value["value"]
        values[key] = deepcopy(value)  # `table` may be cached
        sources.pop(path, None)
        if own is not None:
            sources[path] = own


def _source(table: dict[str, Any], inherited: str | None, file: str, prefix: str) -> str | None:
    source = table.get("source", inherited)
    if source is not None and (not isinstance(source, str) or not source.strip()):
        raise SpecError(
            f"{file}: {prefix}source: found {source!r}, expected text that says where values come from"
        )
    return source


def _literal(value: Any) -> str:
    """A value as in TOML, whose escapes are JSON's."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return repr(value)


def extending_toml(base: str, description: str, changed: Mapping[str, tuple[Any, str]]) -> str:
    """A file that extends a GPU, shipped or a file, with other values: value and source by path."""
    lines = [f"extends = {_literal(base)}", f"description = {_literal(description)}"]
    section = None
    for path in _fields():  # in their order
        if path not in changed:
            continue
        where, _, name = path.rpartition(".")
        if where != section:
            lines.append(f"\n[{where}]" if where else "")
            section = where
        value, source = changed[path]
        lines.append(f"{name} = {{ value = {_literal(value)}, source = {_literal(source)} }}")
    return "\n".join(lines) + "\n"


def to_toml(spec: Spec) -> str:
    """The specification as a complete file, with the source of each value."""
    lines: list[str] = []

    def section(table: dict[str, Any], prefix: str) -> None:
        own = {key: value for key, value in table.items() if not isinstance(value, dict)}
        named = [spec.sources[prefix + key] for key in own if prefix + key in spec.sources]
        common = max(named, key=named.count, default=None)
        if own and prefix:
            lines.append(f"\n[{prefix[:-1]}]")
        # A source in a section also covers the sections below: those name their own.
        if common is not None and prefix:
            lines.append(f"source = {_literal(common)}")
        for key, value in own.items():
            source = spec.sources.get(prefix + key)
            if source is None or (source == common and prefix):
                lines.append(f"{key} = {_literal(value)}")
            else:
                lines.append(f"{key} = {{ value = {_literal(value)}, source = {_literal(source)} }}")
        for key, value in table.items():
            if isinstance(value, dict):
                section(value, f"{prefix}{key}.")

    values = spec.values()
    del values["name"]
    section(values, "")
    return "\n".join(lines) + "\n"


def to_json(spec: Spec) -> str:
    """One JSON object: `hash`, `values` nested as in the TOML file, and `sources` by path."""
    whole = {"hash": spec.hash, "values": spec.values(), "sources": dict(spec.sources)}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def write_toml(spec: Spec, path: str | os.PathLike[str]) -> None:
    """Writes the specification to a file, which appears only when it is complete.

    Raises:
        SpecError: the file cannot be written.
    """
    target = Path(path)
    try:
        with replacing(target) as temporary:
            temporary.write_text(to_toml(spec), encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{target}: cannot be written: {error.strerror}") from None
