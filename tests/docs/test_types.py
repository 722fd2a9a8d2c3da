"""What users write passes `mypy --strict`, and the package exports what its stub lists."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import simt
from support import documents

PAGES = [
    page
    for page in [
        "README.md",
        *sorted(str(p.relative_to(documents.ROOT)) for p in documents.ROOT.glob("docs/**/*.md")),
    ]
    if documents.python_of(page).strip()
]
# Blocks of a page are one program, in which a name may be used again. Readers' functions may be without
# types; those of Triton and Numba are compiled, not run, and these libraries have no types.
SETTINGS = """
[mypy]
strict = True
allow_redefinition = True
disable_error_code = no-untyped-def
[mypy-triton.*,numba.*,torch.*,sklearn.*]
follow_imports = skip
ignore_missing_imports = True
[mypy-docs_gpu]
disallow_untyped_decorators = False
"""
WRONG = """
import simt

launch = simt.GPU("h100").compile("").f[1, 1]()
reveal_type(launch.cycles)
launch.cycle
simt.simulate("a", gpu=3)
"""


def programs(page: str) -> list[str]:
    """The Python of a page; a block that is a file of its own, for `simt` to run, is one by itself."""
    blocks = re.split(r"\n\n(?=# \w+\.py\n)", documents.python_of(page))
    return [block for block in blocks if block.strip()]


def check(folder: Path, programs: dict[str, str]) -> str:
    (folder / "mypy.ini").write_text(SETTINGS)
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text)
    command = ["mypy", "--config-file", "mypy.ini", *(f"{name}.py" for name in programs)]
    return subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_examples_of_all_pages_pass_strict_checking(tmp_path: Path) -> None:
    found = {
        re.sub(r"\W", "_", page.removesuffix(".md")) + (f"_{number}" if number else ""): text
        for page in PAGES
        for number, text in enumerate(programs(page))
    }
    assert {"README", "docs_gpu", "docs_tutorial", "docs_policies"} <= set(found)
    printed = check(tmp_path, {**found, "wrong": WRONG})
    lines = printed.splitlines()
    assert [line for line in lines if not line.startswith(("wrong.py", "Found"))] == []
    wrong = [line for line in lines if line.startswith("wrong.py")]
    assert len(wrong) == 3, printed
    assert 'Revealed type is "int | Any"' in wrong[0]
    assert '"LaunchResult" of "LaunchResult | Any" has no attribute "cycle"' in wrong[1]
    assert 'incompatible type "int"' in wrong[2]


def test_the_package_says_that_it_is_typed() -> None:
    assert files(simt).joinpath("py.typed").is_file()
    assert files(simt).joinpath("_engine", "functional.pyi").is_file()


def test_the_stub_of_the_package_lists_what_it_exports() -> None:
    stub = ast.parse((documents.ROOT / "src" / "simt" / "__init__.pyi").read_text())
    listed = {}
    for line in stub.body:
        assert isinstance(line, ast.ImportFrom) and line.level == 1
        for name in line.names:
            assert name.asname == name.name, "listed for others: `from . import x as x`"
            listed[name.name] = line.module
    assert set(simt.__all__) | {"__version__", "exec", "torch"} == set(listed) == set(dir(simt)) & set(listed)
    for name, module in listed.items():
        if name == "torch":  # an extra
            continue
        if module is None:
            assert getattr(simt, name) is importlib.import_module(f"simt.{name}")
        else:
            assert getattr(simt, name) is getattr(importlib.import_module(f"simt.{module}"), name)
