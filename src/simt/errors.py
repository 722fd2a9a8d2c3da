"""Errors that a user can cause: each names the file, the place, what was found and what was expected."""


class SimtError(Exception):
    """Base class of all errors that simt raises for bad input."""


class TraceError(SimtError):
    """A trace, a launch list or a trace store cannot be read."""


class OpcodeTableError(SimtError):
    """An opcode table cannot be read."""


class SpecError(SimtError):
    """A GPU specification cannot be read, or does not make sense."""
