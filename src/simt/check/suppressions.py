"""Findings that are known, and not to be reported again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from simt.errors import CheckError

from .findings import REMEDIES, Finding


@dataclass(frozen=True)
class _Rule:
    kind: str
    kernel: str
    file: str
    line: int | None

    def covers(self, finding: Finding) -> bool:
        accesses = [a for a in (finding.first, finding.second) if a is not None]
        places = [(finding.file, finding.line), *((a.file, a.line) for a in accesses)]
        return (
            fnmatchcase(finding.kind, self.kind)
            and any(fnmatchcase(name, self.kernel) for name in (finding.kernel, finding.kernel_name))
            and any(
                (fnmatchcase(file, self.file) or fnmatchcase(os.path.basename(file), self.file))
                and self.line in (None, line)
                for file, line in places
            )
        )


class Suppressions:
    """Rules of a file: one a line, `KIND [KERNEL [FILE[:LINE]]]`, in which `*` stands for anything; what
    follows a `#` is a comment.

    Raises CheckError for a file that cannot be read, and for a kind that does not exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CheckError(f"{path}: the suppressions cannot be read: {error}") from None
        self._rules = []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) > 3:
                raise CheckError(
                    f"{path}:{number}: expected KIND [KERNEL [FILE[:LINE]]], not {line.strip()!r}"
                )
            kind, kernel, place = [*words, *["*"] * (3 - len(words))]
            if not any(fnmatchcase(each, kind) for each in REMEDIES):
                raise CheckError(
                    f"{path}:{number}: there is no kind {kind!r}; there are {', '.join(REMEDIES)}"
                )
            file, _, at = place.rpartition(":")
            is_line = bool(file) and at.isdigit()
            self._rules.append(_Rule(kind, kernel, file if is_line else place, int(at) if is_line else None))

    def apply(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that no rule covers."""
        return [each for each in findings if not any(rule.covers(each) for rule in self._rules)]
