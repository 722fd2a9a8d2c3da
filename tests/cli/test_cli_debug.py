"""`simt debug`, run as a user would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from simt.cli import main
from support.debug_programs import AXPY

PROGRAM = """
import numpy as np

PTX = open(__file__.replace(".py", ".ptx")).read()

def main(gpu):
    module = gpu.load(PTX)
    x, y = (gpu.array(v) for v in np.random.default_rng(1).random((2, 1000), np.float32))
    module.axpy[8, 128](x, y, 1.1, 1000, 1)
    print("the program's own words")
"""


def simt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import simt.cli; simt.cli.main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name, text in (("right", AXPY), ("wrong", AXPY.replace("fma.rn", "fma.rz"))):
        (tmp_path / f"{name}.py").write_text(PROGRAM)
        (tmp_path / f"{name}.ptx").write_text(text)
    return tmp_path


@pytest.mark.slow
def test_record_and_compare(programs: Path) -> None:
    done = simt(programs, "debug", "record", "right.py", "-o", "right")
    assert (done.returncode, done.stdout.strip()) == (0, "1 launch recorded in right")
    assert "the program's own words" in done.stderr
    same = simt(programs, "debug", "compare", "right.py", "right")
    assert (same.returncode, same.stdout.split(" on ")[0]) == (0, "The same: 1 launch of right.py")
    different = simt(programs, "debug", "compare", "wrong.py", "right")
    assert different.returncode == 1
    for words in (
        "Launch 1, `axpy` (grid 8 x 1 x 1, block 128 x 1 x 1): the memory it leaves behind differs.",
        "st.global.f32 [%rd5], %f3",
        "fma.rz.f32 %f3, %f1, %f2, %f3",
        "fma.rn.f32 %f3, %f1, %f2, %f3",
        "%f3 (result)",
    ):
        assert words in different.stdout, different.stdout
    assert different.stdout.splitlines()[0].split()[:3] == ["allocation", "parameter", "element"]
    within = simt(programs, "debug", "compare", "wrong.py", "right", "--rtol", "1e-6")
    assert within.returncode == 0


@pytest.mark.slow
def test_json(programs: Path) -> None:
    simt(programs, "debug", "record", "right.py", "-o", "right")
    found = json.loads(simt(programs, "debug", "compare", "wrong.py", "right", "--json", "-").stdout)
    assert found["same"] is False
    assert found["difference"]["memory"][0]["ulps"] == 1
    assert found["difference"]["instruction"]["register"] == "%f3"
    memory = simt(programs, "debug", "compare", "wrong.py", "right", "--json", "-", "--memory-only").stdout
    assert json.loads(memory)["difference"]["instruction"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", "right.py", "nothing"), "nothing: not a reference: expected a directory"),
        (("compare", "missing.py", "right.py"), "not a reference"),
        (("compare", "right.py", "cuda:x"), "expected cuda or cuda:N"),
        (("compare", "right.py", "right.py", "--block", "1,a"), "expected up to three numbers"),
        (("record", "right.py", "-o", "out", "--on", "tpu"), "executor 'tpu': expected simt, cuda or cuda:N"),
        (("record", "nothing-of-this-name", "-o", "out"), "no such file, example or workload"),
        (("record", "right.py", "-o", "right.py"), "right.py: exists already"),
    ],
)
def test_what_is_refused(
    programs: Path,
    arguments: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(programs)
    monkeypatch.setattr(sys, "argv", ["simt", "debug", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
    assert not (programs / "out").exists()
