"""Finds host code in CUDA C++, which NVRTC refuses, and leaves it out of what it compiles.

A `.cu` file holds two programs. Its kernels need the functions, types, variables and macros that are marked
for the device, or that both sides share; `main`, launches and unmarked functions belong to the host. The
scanner knows where declarations begin and end, not what they mean. Host functions are always removed; any
other unmarked declaration (such as a global `std::vector`) is removed only if the compiler finds an error in
it. Removed text is replaced by blanks, so line numbers do not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_MASKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<raw>[^\s()\\]{0,16})\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|(?<![\w])'(?:\\.|[^'\\\n])*'
    |^[ \t]*\#(?:[^\n\\]|\\.)*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_OTHER = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*|[^\n]+", re.MULTILINE | re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b", re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\.)*)", re.MULTILINE | re.DOTALL)
_MARKS = ("__global__", "__device__", "__constant__", "__shared__", "__managed__")
_SCOPE = re.compile(r'(?:inline\s+)?namespace\b[^;=]*|extern\s*"\s*"\s*')
_TYPE = re.compile(r"(?:typedef\s+)?(?:struct|class|union|enum)\b")
_ALIGNMENT = re.compile(r"\b(?:__align__|__builtin_align__|alignas|__attribute__\s*\()\s*\([^()]*\)\)?")
_NO_FUNCTION = re.compile(r"\s*(?:typedef|using|static_assert|friend|asm|_Static_assert)\b|[^(]*=")
_LAUNCH = re.compile(r"\b(\w+)\s*(<[^<>;{}()]*(?:<[^<>;{}()]*>[^<>;{}()]*)?>)\s*<<<")
_PARAMETER = re.compile(r"(?:typename|class|int|unsigned|bool|size_t)\s+(\w+)\s*[,>=]")
_REGISTER = re.compile(r"\bregister\b(?=\s+\w)")
_HOST = re.compile(
    r"<<<|\bint\s+main\s*\(|^[ \t]*#[ \t]*include[ \t]*<(?:cuda\.h|iostream|vector|string)>", re.MULTILINE
)


@dataclass(frozen=True)
class Declaration:
    """A piece of the text, [begin, end). kind: "device", "host", or "shared" for unmarked ones."""

    begin: int
    end: int
    kind: str
    head: str
    space: str
    """The namespace that it stands in, such as "a::b::"."""


class HostSource:
    """One file. `left_out` are declarations and lines that the compiler does not see."""

    def __init__(self, text: str, marks: Iterable[str] = ()) -> None:
        self.text = text
        self._bare = _mask(text)
        self._marked = re.compile(rf"\b(?:{'|'.join((*_MARKS, *sorted(marks)))})\b")
        self.declarations = list(self._scan())
        self._gone = [(d.begin, d.end) for d in self.declarations if d.kind == "host"]
        self._gone += [m.span() for m in _REGISTER.finditer(self._bare)]
        self.left_out: list[str] = []

    @property
    def device_text(self) -> str:
        """The text with blanks in place of the parts left out."""
        text, place, pieces = self.text, 0, []
        for begin, end in sorted(self._gone):
            if end <= place:
                continue
            begin = max(begin, place)
            pieces += [text[place:begin], _blank(text[begin:end])]
            place = end
        return "".join([*pieces, text[place:]])

    def leave_out(self, line: int) -> bool:
        """Leaves out the `#include` or unmarked declaration that contains an error at `line`, from 1. Returns
        False if that is device code, or is left out already.
        """
        lines = self.text.splitlines(keepends=True)
        if not 1 <= line <= len(lines):
            return False
        begin = sum(map(len, lines[: line - 1]))
        end = begin + len(lines[line - 1])
        if re.match(r"[ \t]*#[ \t]*include\b", lines[line - 1]):
            return self._leave_out(begin, end, lines[line - 1].strip())
        hit = [d for d in self.declarations if d.begin < end and d.end > begin and d.kind == "shared"]
        return any([self._leave_out(d.begin, d.end, " ".join(d.head.split())) for d in hit])

    def leave_out_header(self, path: str) -> bool:
        """Leaves out each `#include` to which the foreign header at `path` belongs: the header itself, or its
        folder.
        """
        gone = []
        for number, line in enumerate(self.text.splitlines(), 1):
            if match := re.match(r'[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', line):
                folder, slash, _ = match[1].partition("/")
                if path.endswith(f"/{match[1]}") or (slash and f"/{folder}/" in path):
                    gone.append(self.leave_out(number))
        return any(gone)

    def _leave_out(self, begin: int, end: int, what: str) -> bool:
        if (begin, end) in self._gone:
            return False
        self._gone.append((begin, end))
        self.left_out.append(what)
        return True

    def launches(self) -> list[tuple[str, str]]:
        """Template kernels that the host code launches: name, and arguments as it writes them."""
        found = {
            (match[1], " ".join(match[2].split())): None
            for d in self.declarations
            if d.kind == "host"
            for match in _LAUNCH.finditer(self._bare[d.begin : d.end])
            if not set(re.findall(r"\w+", match[2])) & set(_PARAMETER.findall(d.head))
        }
        return list(found)

    def templates(self, name: str) -> list[str]:
        """The templates of device code with this name, with their namespaces."""
        return [
            d.space + name
            for d in self.declarations
            if d.kind == "device" and "template" in d.head and re.search(rf"\b{name}\s*\(", d.head)
        ]

    def _scan(self) -> Iterable[Declaration]:
        bare, place = self._bare, 0
        spaces: list[str] = []  # names of the namespaces that are open, empty for extern "C"
        while True:
            begin = place
            while begin < len(bare) and (bare[begin].isspace() or bare[begin] in ";}"):
                if bare[begin] == "}" and spaces:
                    spaces.pop()
                begin += 1
            if begin == len(bare):
                return
            stop = _end_of_head(bare, begin)
            head = bare[begin:stop]
            if stop < len(bare) and bare[stop] == "{" and _SCOPE.fullmatch(head.strip()):
                name = re.search(r"namespace\s+([\w:]+)", head)
                spaces.append(name[1] + "::" if name else "")
                place = stop + 1
                continue
            function = "(" in _ALIGNMENT.sub("", head) and not _NO_FUNCTION.match(_without_template(head))
            end = stop
            if stop < len(bare) and bare[stop] == "{":
                end = _matching(bare, stop)
                if not function:
                    end = _end_of_head(bare, end, braces=False)
            place = min(end + 1, len(bare)) if end < len(bare) and bare[end] == ";" else end
            marked = self._marked.search(head if function else bare[begin:place])
            host = function and "constexpr" not in head
            kind = "device" if marked else "host" if host else "shared"
            yield Declaration(begin, place, kind, head, "".join(spaces))


def _blank(text: str) -> str:
    """Blanks of the same length. Directives within a declaration are kept, because their #if or #endif may be
    outside it.
    """
    if text.lstrip().startswith("#"):
        return re.sub(r"[^\n]", " ", text)
    return _OTHER.sub(lambda m: m[0] if m[0].lstrip().startswith("#") else re.sub(r"[^\n]", " ", m[0]), text)


def has_host_code(text: str) -> bool:
    """Whether a text surely has host code: a launch, a `main` or a header of the host's library."""
    return _HOST.search(_COMMENT.sub(" ", text)) is not None


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def marking_macros(texts: Iterable[str]) -> set[str]:
    """Macros whose text has a mark of device code, directly or through other macros."""
    definitions: dict[str, str] = {}
    for match in (m for text in texts for m in _DEFINE.finditer(text)):
        definitions[match[1]] = f"{definitions.get(match[1], '')} {match[2]}"
    marks: set[str] = set()
    while more := {
        name
        for name, text in definitions.items()
        if name not in marks and any(re.search(rf"\b{mark}\b", text) for mark in (*_MARKS, *marks))
    }:
        marks |= more
    return marks


def _mask(text: str) -> str:
    """The text with blanks for comments, directives and what stands in quotes; branches of `#if` that would
    open or close a brace once more have none."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        quoted = found[0] in "\"'R"
        inner = re.sub(r"[^\n]", " ", found[1:-1] if quoted else found)
        return f'"{inner}"' if quoted else inner

    bare = _MASKED.sub(blank, text)
    open_branches: list[list[int]] = []  # of each #if: where its branches begin
    for directive in _DIRECTIVE.finditer(text):
        if bare[directive.start() : directive.end()].strip():
            continue  # in a comment or string that only looks like one
        kind = directive[1]
        if kind.startswith("if"):
            open_branches.append([directive.end()])
        elif open_branches and kind in ("else", "elif"):
            open_branches[-1].append(directive.end())
        elif open_branches:
            places = [*open_branches.pop(), directive.start()]
            branches = [bare[a:b] for a, b in pairwise(places)]
            for a, branch in list(zip(places, branches, strict=False))[1:]:
                if branches[0].count("{") != branches[0].count("}"):
                    bare = bare[:a] + re.sub(r"[{}]", " ", branch) + bare[a + len(branch) :]
    return bare


def _end_of_head(bare: str, place: int, braces: bool = True) -> int:
    """Position of the next `;` outside parentheses or, with `braces`, of the next `{`."""
    opening, closing = ("([", ")]") if braces else ("([{", ")]}")
    depth = 0
    for k in range(place, len(bare)):
        c = bare[k]
        if depth == 0 and (c == ";" or (c == "{" and braces)):
            return k
        depth = max(0, depth + (c in opening) - (c in closing))
    return len(bare)


def _matching(bare: str, place: int) -> int:
    """The position after the brace that closes the one at `place`."""
    depth = 0
    for k in range(place, len(bare)):
        depth += (bare[k] == "{") - (bare[k] == "}")
        if depth == 0:
            return k + 1
    return len(bare)


def _without_template(head: str) -> str:
    """A declaration's head without a leading `template <...>`."""
    text = head.lstrip()
    while text.startswith("template"):
        depth, k = 0, len("template")
        while k < len(text):
            depth += (text[k] == "<") - (text[k] == ">")
            k += 1
            if depth == 0 and text[k - 1] == ">":
                break
        text = text[k:].lstrip()
    return text


def instances(files: Iterable[HostSource]) -> list[str]:
    """Instances of kernel templates of any file, as launched by the host code of any file."""
    every = list(files)
    found = {
        f"{template}{arguments}": None
        for file in every
        for name, arguments in file.launches()
        for other in every
        for template in other.templates(name)
    }
    return list(found)
