"""Each public class has a name of its own."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "simt"


def test_public_classes_have_names_of_their_own() -> None:
    modules: dict[str, set[str]] = defaultdict(set)
    for path in sorted(SOURCES.rglob("*.py")):
        module = path.relative_to(SOURCES)
        if module.parts[0] == "examples":  # programs as users write them
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].add(str(module))
    assert {name: sorted(found) for name, found in modules.items() if len(found) > 1} == {}
