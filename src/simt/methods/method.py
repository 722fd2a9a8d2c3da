"""Parameters of samplers and controllers, on scikit-learn's conventions.

scikit-learn itself is an optional dependency, which controllers do not need. Its tools (`clone`,
`ParameterGrid`, ...) ask for `get_params` and `set_params` only, so they take methods, too.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any, ClassVar, TypeVar

from simt.errors import ParameterError

Self = TypeVar("Self", bound="Method")


class Method:
    """Base class of samplers and controllers.

    The constructor stores each parameter under its name and does nothing else; a class without parameters
    needs none. `validate` checks the parameters when they are used. What is learned is stored under names
    that end in an underscore.
    """

    method: ClassVar[str] = ""
    """Its name in plans, Results and reports; the class's where it is empty."""

    @classmethod
    def label(cls) -> str:
        """The name of the method."""
        return cls.method or cls.__name__

    @classmethod
    def parameters(cls) -> dict[str, inspect.Parameter]:
        """Constructor parameters, in their order. Raises ParameterError for `*args` and `**kwargs`."""
        if cls.__init__ is object.__init__:
            return {}
        found = dict([*inspect.signature(cls.__init__).parameters.items()][1:])
        for name, parameter in found.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise ParameterError(
                    f"{cls.__name__}: the constructor takes {parameter}; name each parameter instead of "
                    f"collecting them in {name}"
                )
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Values of the parameters, by name. deep: those of methods among them, too, as `outer__inner`.

        Raises ParameterError where the constructor has not stored one.
        """
        found: dict[str, Any] = {}
        for name in self.parameters():
            if not hasattr(self, name):
                raise ParameterError(
                    f"{type(self).__name__}: the constructor takes {name} and must store it as self.{name}"
                )
            value = found[name] = getattr(self, name)
            if deep and isinstance(value, Method):
                found |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return found

    def set_params(self: Self, **values: Any) -> Self:
        """Sets parameters, those of a method among them as `outer__inner`. Returns the object.

        Raises ParameterError for one that does not exist.
        """
        for name, value in values.items():
            outer, _, inner = name.partition("__")
            known = self.get_params(deep=False)
            if outer not in known or (inner and not isinstance(known[outer], Method)):
                there = ", ".join(self.get_params()) or "none"
                raise ParameterError(f"{self.label()} has no parameter {name!r}, it has {there}")
            if inner:
                known[outer].set_params(**{inner: value})
            else:
                setattr(self, outer, value)
        return self

    def validate(self) -> None:
        """Raises ParameterError for a parameter that makes no sense (see `simt.parameter_checks`).

        Called before the method is used, never by the constructor.
        """

    def __repr__(self) -> str:
        defaults = self.parameters()
        given = (
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name].default)
        )
        return f"{type(self).__name__}({', '.join(given)})"


def clone(method: Self) -> Self:
    """A new object with the same parameters, which has learned nothing."""
    values = {
        name: clone(value) if isinstance(value, Method) else copy.deepcopy(value)
        for name, value in method.get_params(deep=False).items()
    }
    return type(method)(**values)
