"""Specifications with absurd values: a SimtError, or a GPU that runs.

SIMT_FUZZ_SECONDS=1200 for as long as that.
"""

from __future__ import annotations

import os
import random
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from simt.errors import SimtError, SpecError
from simt.run.slices import new_engine
from simt.spec import describe, load_spec, to_toml
from simt.spec.files import choices
from simt.trace import open_trace
from simt.trace.writer import Warp
from support.hostile import attempts, damaged
from support.tiny import GLOBAL, warp_of, write_kernel

NUMBERS = [
    -1,
    0,
    1,
    2,
    3,
    4,
    7,
    16,
    31,
    64,
    255,
    4096,
    2**16,
    10**6,
    2**20,
    2**26,
    2**31,
    2**32 - 1,
    2**40,
    1e300,
]
GPUS = ("qv100", "h100", "qv100-accelsim")
MEMORY = 4 << 30


def in_child(work: Any, seconds: int) -> str:
    """What `work` says, in a process with little memory and time; how that ended if it did not end well."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        try:
            said = work()
        except BaseException as error:
            said = f"raised {error!r}"
        os.write(write, said.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    return said if status == 0 else f"ended with status {status}"


def memory(warp: Warp) -> None:
    for i in range(8):
        warp.memory("LDG.E.SYS", [GLOBAL + 4 * lane + 512 * i for lane in range(32)], 4, 8, (2,))
        warp.op("FFMA", 8, (8, 2, 8))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_absurd_values(tmp_path: Path) -> None:
    chance = random.Random(5)
    folder = write_kernel(tmp_path / "t", [[warp_of(memory)]] * 4)
    source = open_trace(folder).kernels[0]
    source.stored()
    fields = [path for path in describe() if path not in ("name", "description")]
    taken, refused = 0, 0
    for _ in attempts(150):
        changed = {}
        for path in chance.sample(fields, chance.choice([1, 1, 2, 3])):
            changed[path] = chance.choice(choices(path) or NUMBERS)
        gpu = chance.choice(GPUS)
        try:
            spec = load_spec(gpu, {"sm.count": 2, **changed})
        except SpecError:
            refused += 1
            continue
        taken += 1

        def run(spec: Any = spec) -> str:
            try:
                engine = new_engine(spec.native(), threads=1, window=0, timeline_interval=0)
                engine.launch(source.source(), 1)
                for _ in range(20):
                    if engine.run(1000):
                        break
            except SimtError:
                return "refused"
            except (RuntimeError, ValueError, MemoryError) as error:  # simulate turns these into SimtErrors
                return f"engine: {type(error).__name__}"
            return "ran"

        said = in_child(run, 60)
        assert said in ("ran", "refused") or said.startswith("engine:"), (gpu, changed, said)
    print(f"{taken} specifications, and {refused} refused when read")
    assert taken and refused


@pytest.mark.slow
def test_damaged_files(tmp_path: Path) -> None:
    chance, file = random.Random(6), tmp_path / "gpu.toml"
    text = to_toml(load_spec("h100")).encode()
    taken, refused = 0, 0
    for _ in attempts(500):
        file.write_bytes(damaged(text, chance))
        try:
            load_spec(file)
            taken += 1
        except SpecError as error:
            refused += 1
            assert str(file) in str(error)
    print(f"{taken} files, and {refused} refused")
    assert refused


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5000, "a = " + "{b=" * 5000, "x = " + "9" * 5000, "[" + ".".join("a" * 3000) + "]\n"],
)
def test_deep_toml(tmp_path: Path, text: str) -> None:
    file = tmp_path / "deep.toml"
    file.write_text(text)
    with pytest.raises(SpecError, match=r"deep\.toml"):
        load_spec(file)
    with pytest.raises(SpecError, match="cannot read the value"):
        load_spec("qv100", {"sm.count": "[" * 5000})
