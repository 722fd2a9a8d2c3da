"""`simt run` and `simt report`, in this process on the fake engine."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import polars as pl
import pytest

import simt
from simt.cli import main
from simt.result import Result
from support.fake_gpu import COMMANDS, FakeGpu, Kernel, installed


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Runs a command line in a directory that contains only a folder for the trace."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["simt", *arguments])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    with installed([*COMMANDS, Kernel(5, "long", (50, 1, 1))]):
        yield call


def test_table_and_sentences(run: Run) -> None:
    done = run("run", "traces")
    assert done.status == 0
    assert "gemm_128x64" in done.out and "8,500" in done.out
    assert "5 launches on toy: 67,500 cycles" in done.out
    assert "bound by memory latency" in done.out
    assert "Traceback" not in done.err


def test_quiet_says_nothing(run: Run) -> None:
    done = run("run", "traces", "--quiet")
    assert (done.status, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_json_on_stdout_is_pure(run: Run, quiet: tuple[str, ...]) -> None:
    done = run("run", "traces", "--json", "-", "--timeline", "100", *quiet)
    data = json.loads(done.out)
    schema = Path(simt.__file__).parent / "result" / "simt.result-1.schema.json"
    jsonschema.validate(data, json.loads(schema.read_text()))
    assert [x["id"] for x in data["launches"]] == [1, 2, 3, 4, 5]
    assert ("gemm_128x64" in done.err) == (not quiet)


def test_options_reach_the_simulation(run: Run) -> None:
    options = ["--kernels", "2-3", "--threads", "2", "--set", "sm.count=40", "--max-cycles", "9000"]
    data = json.loads(run("run", "traces", "--json", "-", "--quiet", *options).out)
    provenance = data["provenance"]
    assert [x["id"] for x in data["launches"]] == [2]
    assert (provenance["kernels"], provenance["threads"], provenance["max_cycles"]) == ("2-3", 2, 9000)
    assert provenance["overrides"] == {"sm.count": "40"}
    assert data["status"] == "max_cycles" and data["unfinished"] == [2]


def test_files(run: Run) -> None:
    options = [
        "--output",
        "out",
        "--json",
        "deep/result.json",
        "--perfetto",
        "deep/trace.json",
        "--timeline",
        "500",
    ]
    assert run("run", "traces", *options).status == 0
    assert Result.load("out").totals.cycles == 67_500
    assert json.loads(Path("deep/result.json").read_text())["totals"]["cycles"] == 67_500
    assert json.loads(Path("deep/trace.json").read_text())["traceEvents"]
    assert pl.read_parquet("out/timeline.parquet").height == 135


def test_report(run: Run) -> None:
    run("run", "traces", "--output", "out", "--quiet")
    done = run("report", "out", "-o", "pages/report.html")
    assert (done.status, done.out) == (0, "wrote pages/report.html\n")
    assert "gemm_128x64" in Path("pages/report.html").read_text()
    done = run("report", "out", "--perfetto", "pages/trace.json")
    assert (done.status, done.out) == (0, "wrote pages/trace.json\n") and not Path("report.html").exists()
    assert json.loads(Path("pages/trace.json").read_text())["traceEvents"]


def test_ctrl_c_saves_and_says_how_to_go_on(run: Run) -> None:
    def before_run(gpu: FakeGpu) -> None:
        if gpu.cycle >= 4500:
            signal.raise_signal(signal.SIGINT)

    engine = sys.modules["simt._engine"]
    engine.before_run = before_run  # type: ignore[attr-defined]
    stopped = run("run", "traces", "--gpu", "toy")
    assert stopped.status == 130
    assert "saved in simt-interrupted" in stopped.err and "Traceback" not in stopped.err
    command = stopped.err.strip().splitlines()[-1].strip()
    assert command == "simt run traces --gpu toy --output simt-interrupted --resume"
    finished = len(Result.load("simt-interrupted").launches)
    assert 1 <= finished < 5

    refused = run(*command.split()[1:-1])
    assert refused.status == 2 and "holds an unfinished Result; add --resume" in refused.err

    engine.before_run = None  # type: ignore[attr-defined]
    resumed = run(*command.split()[1:])
    assert resumed.status == 0
    result = Result.load("simt-interrupted")
    assert result.status == "complete" and len(result.launches) == 5
    assert result.provenance.resumed_after == finished
    assert "resumed after" in resumed.out


def test_a_second_interruption_gets_its_own_place(run: Run) -> None:
    Path("simt-interrupted").mkdir()
    sys.modules["simt._engine"].before_run = lambda _: signal.raise_signal(signal.SIGINT)  # type: ignore[attr-defined]
    assert "--output simt-interrupted-2 --resume" in run("run", "traces").err


def test_resume_where_nothing_was_saved_starts_at_the_beginning(run: Run) -> None:
    assert run("run", "traces", "--output", "out", "--resume", "--quiet").status == 0
    assert len(Result.load("out").launches) == 5


def test_deadlock_saves_what_is_finished(run: Run) -> None:
    sys.modules["simt._engine"].deadlock_at = 9000  # type: ignore[attr-defined]
    done = run("run", "traces", "--output", "out", "--quiet")
    assert done.status == 2
    assert "warp 3 of CTA 0 waits for barrier 1" in done.err and "Traceback" not in done.err
    assert [x.id for x in Result.load("out").launches] == [1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "traces", "--kernels", "99"), "error: kernels: '99' matches none of the 5 kernels"),
        (("run", "traces", "--set", "nonsense"), "expected KEY=VALUE"),
        (("run", "traces", "--resume"), "--resume needs --output"),
        (("run", "traces", "--threads", "0"), "--threads"),
        (("run", "traces", "--no-such-option"), "--no-such-option"),
        (("run",), "Usage: simt run"),
        (("report", "out", "out", "--perfetto", "x.json"), "error: --perfetto takes one Result"),
        (("report", "nothing"), "error: nothing: there is no such file, expected a saved Result"),
    ],
)
def test_bad_input_is_one_clear_error(run: Run, arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.status == 2
    assert message in done.err + done.out
    assert "Traceback" not in done.err


def test_output_that_cannot_be_written_is_refused_before_the_simulation(run: Run) -> None:
    Path("file").write_text("x")
    for option in ("--output", "--json", "--perfetto"):
        target = "file" if option == "--output" else "file/x.json"
        done = run("run", "traces", option, target)
        assert done.status == 2 and "error: file: cannot write there: " in done.err
        assert "launches on" not in done.out


def test_debug_shows_the_traceback(run: Run) -> None:
    with pytest.raises(simt.SimtError, match="matches none"):
        run("--debug", "run", "traces", "--kernels", "99")
    with pytest.raises(simt.SimtError, match="matches none"):
        run("run", "traces", "--kernels", "99", "--debug")


@pytest.mark.parametrize("command", ["run", "report"])
def test_help_has_examples(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.status == 0
    assert "Examples:" in done.out and f"simt {command} " in done.out


def test_version(run: Run) -> None:
    assert run("--version").out == f"simt {simt.__version__}\n"
