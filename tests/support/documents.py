"""The commands of README and docs, run in a user's folder as the text shows them.

`python tests/support/documents.py README.md docs/tutorial.md` needs nothing but what `make demo` installs.

A command is an indented line that begins with `simt`. What cannot run here (other machines, long runs) is
only parsed. Indented lines that are no commands are output: they must come, white space aside, from a command
before them on the page; a line `...` and `…` stand for any text. A command whose output begins with `error:`
must fail.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.profiles import PID, nsys_database, nsys_statements

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, "-c", "import simt.cli; simt.cli.main()"]
SECONDS = 300

# Blocks that are not run, and why.
PARSED_ONLY = {
    r"--device|\bcuda\b|~/|-- python": "another machine or another installation",
    r"resnet50|matmul --size 65536|bench run l1 |simt tune|gpus errors|sample compare|half_the_": "minutes",
    r"simt model": "minutes",
    r"70_blackwell_fp16_gemm|\./fa-128-0": "programs of CUTLASS and FlashAttention",
    r"--truth|vectoradd|my-gpu|results/|-m pks|--plan|study\.toml": "files that only the text has",
    r"validate programs": "programs and measured values of the user",
    r"own_sampler": "has a test of its own",
}
USAGE = re.compile(r"\[(?!\.)|\b(PATH|RESULTS?|MEASURED|PROFILE|PROGRAM|DIR|FILE)\b")
_COMMAND = re.compile(r" *(simt|make|pip|python|ncu|nsys|cd|\.venv) ?")
_COMMENT = re.compile(r"\s{2,}\S.*$|\s+#.*$")

# Python for what need not be installed (see tests/cuda and tests/pytorch), and a copy of a microbenchmark.
TESTED_ELSEWHERE = re.compile(r"simt\.network|simt\.cuda\.(triton|numba_cuda)|\btorch\.|^@microbenchmark")

# Names that the Python of a page assumes.
_SAMPLING = """
import numpy as np
from simt.profile import Profile, read_profile
from simt.sampling import Adaptive, Choice, Sampler

profile = read_profile("profile.sqlite").kernels()
results = profile
"""
PREAMBLES = {
    "docs/functional/cooperative.md": """
import simt

module = simt.GPU("h100").compile('''#include <cooperative_groups.h>
extern "C" __global__ void steps(int* a, int* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;
  cooperative_groups::this_grid().sync();
  if (i < n) b[i] = a[n - 1 - i];
}''')
n = 264 * 256
a, b = module.gpu.zeros(n, "i4"), module.gpu.zeros(n, "i4")
""",
    "docs/sampling/README.md": _SAMPLING,
    "docs/sampling/adaptive.md": _SAMPLING + "metrics = ('duration_ns',)\n",
    "docs/cuda-sources.md": """
with open("kernel.cu", "w") as file:
    file.write("template <class T> __global__ void f(T* x) { *x = 1; }"
               "namespace space { __global__ void plain(int* x) { *x = 2; } }")
""",
}

KERNEL = """
extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }
"""
DRIVER = """
import numpy as np


def main(gpu, module):
    module.twice[1, 32](np.ones(32, np.float32))
"""
PROGRAM = f"""
import numpy as np

def main(gpu):
    module = gpu.compile({KERNEL!r}, name="twice.cu")
    for _ in range(4):
        module.twice[1, 32](np.ones(32, np.float32))
"""


@dataclass
class Page:
    """The commands of a page, in order, and the output that the page shows for them."""

    name: str
    parts: list[tuple[str, str]] = field(default_factory=list)
    """("command" or "output", text)"""

    @property
    def commands(self) -> list[str]:
        return [text for kind, text in self.parts if kind == "command"]


def read(name: str) -> Page:
    page = Page(name)
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE):
        lines = [line[4:] for line in block.splitlines()]
        if any(_COMMAND.match(line) for line in lines):
            commands = [c for line in lines for c in _COMMENT.sub("", line).split(" && ")]
            page.parts += [("command", c) for c in commands if c.startswith("simt ")]
        else:
            page.parts.append(("output", "\n".join(lines)))
    return page


def make_stage(folder: Path, page: str) -> None:
    """A folder with the files that the commands name."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(ROOT / "examples" / "demo", folder / "traces")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o755)
    (folder / "times.csv").write_text("kernel,time,insts\nf,2.5,1000\ng,3.5,2000\n")
    statements = nsys_statements()
    statements.append(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
        + ", ".join(
            f"({10_000 * i}, {10_000 * i + 900 + 37 * (i % 7)}, 0, 7, {100 + i}, {PID}, {1 + 2 * (i % 2)}, "
            f"2, 32, {8 + i % 2}, 1, 1, 256, 1, 1, 0, 0, NULL)"
            for i in range(1, 200)
        )
    )
    nsys_database(folder / "profile.sqlite", statements)
    (folder / "ncu.csv").write_text(
        '"ID","Kernel Name","Block Size","Grid Size","Device","CC","gpc__cycles_elapsed.max"\n'
        '"","","","","","","cycle"\n'
        '"0","saxpy(float)","(256, 1, 1)","(32, 1, 1)","0","7.0","4000"\n'
    )
    for profile in (ROOT.parent / "shared" / "data" / "profiles").glob("*.json.gz"):
        (folder / profile.name).symlink_to(profile)
    (folder / "kernel.cu").write_text(KERNEL)
    (folder / "kernel.py").write_text(DRIVER)
    text = (ROOT / page).read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language == "cuda":
            (folder / "kernel.cu").write_text(block)
        elif named := re.match(r"(?:#|//) (\w+\.(?:py|cpp))\n", block):
            (folder / named[1]).write_text(block)
        elif "def main(gpu, module)" in block:
            (folder / "kernel.py").write_text(block)


def reason_not_to_run(command: str, folder: Path) -> str | None:
    if USAGE.search(command):
        return "usage"
    if any(word.endswith(".json.gz") and not (folder / word).exists() for word in command.split()):
        return "a profile that is only in the shared folder"
    return next((why for pattern, why in PARSED_ONLY.items() if re.search(pattern, command)), None)


def parse(command: str) -> None:
    """Checks options and arguments without running anything. Raises click's UsageError."""
    import typer

    from simt.cli import app

    current, args = typer.main.get_command(app), shlex.split(command)[1:]
    context = current.make_context("simt", args)
    while hasattr(current, "resolve_command"):
        name, current, args = current.resolve_command(context, [*context._protected_args, *context.args])
        context = current.make_context(name, args, parent=context)


def problems(name: str, folder: Path) -> Iterator[str]:
    """Runs a page in an empty folder; returns a text for each deviation from the page."""
    page = read(name)
    make_stage(folder, name)
    printed, ran = "", False
    own = os.environ | {"SIMT_POLICIES": str(folder / "policies")}
    for number, (kind, text) in enumerate(page.parts):
        if kind == "command":
            why = reason_not_to_run(text, folder)
            ran = why is None
            if ran:
                line = [*RUN, *shlex.split(text)[1:]]
                done = subprocess.run(
                    line, capture_output=True, text=True, cwd=folder, timeout=SECONDS, env=own
                )
                printed += _bare(done.stdout + done.stderr)
                shown = page.parts[number + 1][1] if number + 1 < len(page.parts) else ""
                if done.returncode != (2 if shown.startswith("error: ") else 0):
                    yield f"{name}: {text}\n{done.stdout}{done.stderr}"
            elif why != "usage":
                try:
                    parse(text)
                except Exception as error:
                    yield f"{name}: {text}\n{error}"
        elif ran:
            for chunk in re.split(r"…|^\s*\.\.\..*$", text, flags=re.MULTILINE):
                if _bare(chunk) not in printed:
                    yield f"{name}: no command before it prints\n{chunk}"


def _bare(text: str) -> str:
    return re.sub(r"\s+", "", re.sub(r"\x1b\[[0-9;]*m", "", text))


def python_of(name: str) -> str:
    """The Python code of a page as one program, after the preparation that its text assumes."""
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n\n".join([PREAMBLES.get(name, ""), *(b for b in blocks if not TESTED_ELSEWHERE.search(b))])


def run_python(name: str, folder: Path) -> None:
    """Runs the Python code of a page in its folder. Raises CalledProcessError."""
    program = folder / "page.py"
    program.write_text(python_of(name))
    subprocess.run([sys.executable, str(program)], cwd=folder, check=True, timeout=SECONDS)


def _wrong(name: str) -> list[str]:
    """The problems of a page, whose Python is run as well."""
    with tempfile.TemporaryDirectory() as folder:
        found = list(problems(name, Path(folder)))
        run_python(name, Path(folder))
    return found


def main() -> None:
    """Runs the pages given on the command line, all at once, and prints problems."""
    names = sys.argv[1:]
    with ThreadPoolExecutor() as pool:
        wrong = dict(zip(names, pool.map(_wrong, names), strict=True))
    for name, found in wrong.items():
        print(json.dumps({"page": name, "commands": len(read(name).commands), "problems": len(found)}))
    if any(wrong.values()):
        sys.exit("\n\n".join(text for found in wrong.values() for text in found))


if __name__ == "__main__":
    main()
