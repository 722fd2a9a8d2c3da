"""The user's headers that a CUDA source includes."""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include\b[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")?', re.MULTILINE)


@dataclass(frozen=True)
class Headers:
    """What `find_headers` finds."""

    texts: dict[Path, str]
    """Text of every file that an `#include` may refer to, whatever conditions surround it: one header too
    many costs a compilation, one too few would give stale code."""
    named: dict[str, Path]
    """The file that each name in an `#include` refers to."""
    complete: bool
    """False if a macro names a header, or a text asks which ones exist (`__has_include`)."""

    @property
    def digests(self) -> list[tuple[str, str]]:
        """Path and SHA-256 of every file, ordered by path."""
        found = {str(path): hashlib.sha256(raw(text)).hexdigest() for path, text in self.texts.items()}
        return sorted(found.items())


def find_headers(source: str, folders: Sequence[Path]) -> Headers:
    """Follows `#include`s, looking in the including file's own folder and in `folders`."""
    texts: dict[Path, str] = {}
    named: dict[str, Path] = {}
    complete = True
    # Files that names refer to are searched before other candidates, whose own names refer to nothing.
    todo: deque[tuple[str, list[Path], bool]] = deque([(source, [], True)])
    queued = set()
    while todo:
        text, beside, referred = todo.pop()
        complete = complete and "__has_include" not in text
        for match in _INCLUDE.finditer(text):
            name = match[1] or match[2]
            if name is None:
                complete = False
                continue
            for path in (folder / name for folder in (*beside, *folders)):
                if not os.path.isfile(path):
                    continue
                if path not in texts:
                    texts[path] = path.read_text(encoding="utf-8", errors="surrogateescape")
                place = path.parent.resolve() / path.name  # `..` gives a header endless paths
                if referred and name not in named:
                    named[name] = path
                    todo.append((texts[path], [path.parent], True))
                elif place not in queued:
                    todo.appendleft((texts[path], [path.parent], False))
                queued.add(place)
    return Headers(texts, named, complete)


def raw(text: str) -> bytes:
    """The bytes behind a header's text or name, which need not be UTF-8."""
    return text.encode("utf-8", "surrogateescape")
