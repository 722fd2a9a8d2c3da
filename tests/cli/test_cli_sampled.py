"""simt run --sample, --plan, --verify, --full, and simt sample what-if."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

import simt as package
from simt.cli import app
from simt.errors import SimtError
from simt.options import share
from simt.result import Result
from support.tiny import dependent, write_kernel

PKP = ["--sample", "pkp", "--sample-set", "interval=100", "--sample-set", "window=400"]
SMALL = ["--gpu", "a100", "--set", "sm.count=2"]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three launches of 1,200 equal CTAs: a replayed timeline has no preview, and needs more waves."""
    folder = tmp_path_factory.mktemp("trace")
    for number in (1, 2, 3):
        write_kernel(folder, [[dependent(60)]] * 1200, number, sm=80)
    return folder


def simt(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
def test_a_sampled_run_says_speedup_and_error(trace: Path, tmp_path: Path) -> None:
    full, out = tmp_path / "full", tmp_path / "out"
    simt("run", str(trace), *SMALL, "--timeline", "100", "-o", str(full), "-q")
    text = simt("run", str(trace), *SMALL, *PKP, "--verify", "5%", "--full", str(full), "-o", str(out))
    assert "Sampled by pkp: 3 launches, 3 stopped and projected" in text
    assert "Verified: 2 of the 3 launches cut short" in text
    assert "Error against the full simulation: " in text
    found = Result.load(out)
    schema = json.loads(simt_schema().read_text())
    jsonschema.validate(found.to_json(), schema)
    assert found.sampling is not None and found.sampling["speedup"] > 1.5
    assert found.sampling["verification"]["share"] == 0.05
    for launch, truth in zip(found.launches, Result.load(full).launches, strict=True):
        assert launch.cycles == pytest.approx(truth.cycles, rel=0.05)
    swept = simt(
        "sample", "what-if", str(full), *PKP, "--sweep", "threshold=0,5", "--plot", str(tmp_path / "a.png")
    )
    assert [line.split()[:4] for line in swept.splitlines()[1:3]] == [
        ["threshold=0", "0", "of", "3"],
        ["threshold=5", "3", "of", "3"],
    ]
    assert (tmp_path / "a.png").stat().st_size > 1000
    shown = simt("sample", "what-if", str(full), *PKP)
    assert "3 of 3 launches cut short" in shown
    data = json.loads(simt("sample", "what-if", str(full), *PKP, "--json", "-"))
    assert data[0]["stopped"] == 3 and len(data[0]["launches"]) == 3
    page = tmp_path / "page.html"
    simt("report", str(out), "-o", str(page))
    assert "Sampled by pkp" in page.read_text()


def simt_schema() -> Path:
    return Path(package.__file__).parent / "result" / "simt.result-1.schema.json"


def test_pka_is_a_plan_with_pkp(trace: Path, tmp_path: Path) -> None:
    full, plan = tmp_path / "full.json", tmp_path / "plan.json"
    simt("run", str(trace), *SMALL, "-o", str(full), "-q")
    simt("sample", str(full), "-m", "random", "--set", "p=0.6", "--seed", "1", "-o", str(plan), "-q")
    text = simt(
        "run", str(trace), *SMALL, "--sample", "pka", *PKP[2:], "--plan", str(plan), "--verify", "100%"
    )
    assert "All 3 launches of the program: " in text and "together " in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sample", "pkq"], "did you mean pkp"),
        (["--sample", "pkp:other"], "pkp:paper, pkp:artifact"),
        (["--sample", "first-n:many"], "no variant 'many'"),
        (["--sample", "pkp", "--sample-set", "treshold=1"], "no parameter 'treshold'"),
        (["--sample", "pkp", "--sample-set", "window=1"], "window is 1"),
        (["--sample", "pka"], "needs --plan"),
        (["--verify", "5%"], "need --sample"),
        (["--sample", "pkp", "--verify", "150%"], "--verify 150%"),
        (["--sample", "pkp", "--plan", "missing.json"], "missing.json"),
    ],
)
def test_what_makes_no_sense_is_refused(trace: Path, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["run", str(trace), *SMALL, *arguments])
    assert isinstance(done.exception, SimtError) and message in str(done.exception)


def test_shares() -> None:
    assert [share(text) for text in ("5%", "0.25", "100%")] == [0.05, 0.25, 1.0]


def test_a_program_is_verified_by_a_second_run(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        '''
SOURCE = """extern "C" __global__ void f(float* x) {
    float v = x[threadIdx.x];
    for (int i = 0; i < 60; ++i) v = v * 1.5f + 1.0f;
    x[threadIdx.x] = v;
}"""


def main(gpu):
    f = gpu.compile(SOURCE).f
    x = gpu.zeros(64)
    for _ in range(3):
        f[600, 64](x)
    print("finished")
'''
    )
    text = simt("run", str(script), *SMALL, *PKP, "--verify", "50%")
    assert text.count("finished") == 1
    assert "Verified: 2 of the 3 launches cut short" in text
