"""Whole programs against measured times: statistics by hand, resuming, limits, and the command itself."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from simt.cli.validate import app
from simt.cuda.nvcc import find_nvcc
from simt.errors import ProfileError, ToolkitError
from simt.exec import Finished
from simt.result import LaunchResult
from simt.result.sampled import Sampled
from simt.spec import Spec, available, load_spec
from simt.validate import page, row_errors, whole_programs
from simt.validate.correlation import CYCLES
from simt.validate.recipes import (
    MeasuredTable,
    Recipe,
    RecipeClock,
    RecipeInput,
    RecipeSource,
    Row,
    folder_of,
    read_recipes,
    rows_of,
)
from simt.validate.row_errors import error_rows
from simt.validate.whole_programs import (
    RowOutcome,
    Setting,
    checked_out,
    clock_settings,
    clocked,
    correlation,
    cycles_of,
    prepare,
    read_outcomes,
    record,
    recorded,
    run_rows,
    shares,
    table,
)
from support.launches import launch

GPU = "rtx2060"
OUTCOME = RowOutcome(
    GPU, "s", "e", "r", "ptx", "suite", "p", "p n=1", "tuning", "", "done", 1000.0, 1100.0, 1, 32,
    {"dram__sectors_read.sum": (12.0, 10.0)}, {"long_scoreboard": 0.75, "wait": 0.25}, 0.1,
)  # fmt: skip


def recipe(place: Path, **values: object) -> Recipe:
    about = Recipe(
        GPU, "suite", "p", "tuning", RecipeSource("simt", "", ""),
        MeasuredTable("t.csv", "ns", "ns"), ("p.cu",), {},
        place=place,
    )  # fmt: skip
    return replace(about, **values)  # type: ignore[arg-type]


def finished(*spans: tuple[int, int]) -> list[LaunchResult]:
    return [replace(launch(i), start_cycle=a, end_cycle=b) for i, (a, b) in enumerate(spans)]


def test_statistics_by_hand() -> None:
    """Errors of +10, -20 and +50 %; two rows do not count."""
    rows = [
        OUTCOME,
        replace(OUTCOME, row="p n=2", measured=2000, simulated=1600),
        replace(OUTCOME, row="p n=3", measured=100, simulated=150, suite="other"),
        replace(OUTCOME, row="p n=4", simulated=9000, unclear="which sizes?"),
        replace(OUTCOME, row="p n=5", simulated=0, status="limit"),
    ]
    assert [round(row.error, 6) for row in rows[:3]] == [0.1, -0.2, 0.5]
    pairs = correlation(rows)
    (found,) = pairs.only([CYCLES]).agreement().to_dicts()
    assert found["n"] == 3
    assert found["mae"] == pytest.approx(0.8 / 3)
    assert found["median"] == pytest.approx(0.2)
    assert found["within_20"] == pytest.approx(2 / 3)
    by_suite = {r["suite"]: r["mae"] for r in pairs.only([CYCLES]).agreement(by_suite=True).to_dicts()}
    assert by_suite == {"suite": pytest.approx(0.15), "other": pytest.approx(0.5)}
    (reads,) = pairs.only(["dram__sectors_read.sum"]).agreement().to_dicts()
    assert reads["mae"] == pytest.approx(0.2)
    (worst,) = pairs.outliers(most=1).to_dicts()
    assert (worst["name"], worst["stall"]) == ("p n=3", "long_scoreboard 75 %")
    text = page.html(pairs, "rows")
    assert "p n=3" in text
    assert "p n=4" not in text


def test_nothing_that_counts_is_an_error() -> None:
    with pytest.raises(ProfileError, match="no program"):
        correlation([replace(OUTCOME, unclear="why?")])


def test_what_a_measured_time_stands_for(tmp_path: Path) -> None:
    launches = finished((0, 100), (150, 300), (310, 520))
    assert cycles_of(launches, recipe(tmp_path)) == 100 + 150 + 210
    assert cycles_of(launches, recipe(tmp_path, time="last")) == 210
    assert cycles_of(launches, recipe(tmp_path, time="difference")) == 210 - 150
    with pytest.raises(ProfileError, match="a difference of 1 launches, expected 2 or more"):
        cycles_of(launches[:1], recipe(tmp_path, time="difference"))
    assert cycles_of(launches, recipe(tmp_path, time="period", warm=1)) == (520 - 100) / 2
    assert cycles_of(launches, recipe(tmp_path, time="period", warm=2)) == 520 - 300
    for warm in (0, 3):
        with pytest.raises(ProfileError, match=f"a period after {warm} of 3 launches"):
            cycles_of(launches, recipe(tmp_path, time="period", warm=warm))


def test_shares_of_states() -> None:
    two = [replace(launch(0), warp_stalls={"wait": 1, "barrier": 2, "drain": 0}) for _ in range(2)]
    assert shares(two) == {"barrier": pytest.approx(2 / 3), "wait": pytest.approx(1 / 3)}
    assert shares([]) == {}
    assert replace(OUTCOME, stalls={"a": 0.5, "b": 0.3, "c": 0.2}).stall_text(2) == "a 50 %, b 30 %"


def test_outcomes_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert read_outcomes(tmp_path) == []
    line = json.dumps(asdict(OUTCOME))
    path.write_text(f"{line}\n{line[:50]}", encoding="utf-8")  # interrupted
    assert read_outcomes(tmp_path) == [OUTCOME]
    path.write_text(f"{line}\n{line[:50]}\n{line}\n", encoding="utf-8")
    with pytest.raises(ProfileError, match=r"rows.jsonl:2: not a finished row"):
        read_outcomes(tmp_path)


class Fake:
    """Stands in for the simulation: each row takes 2 cycles per measured ns; some take too long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, late: float = 1e9) -> None:
        self.late, self.ran = late, list[str]()
        monkeypatch.setattr(whole_programs, "build", lambda *_: Path("program"))
        monkeypatch.setattr(whole_programs, "_simulated", self)

    def __call__(
        self, row: Row, program: Path, spec: Spec, setting: Setting
    ) -> tuple[str, Sequence[LaunchResult]]:
        self.ran.append(row.name)
        if row.measured > self.late:
            return "limit", []
        return "done", finished((0, int(2 * row.measured)))


def rows(place: Path, *times: float, program: str = "p") -> list[Row]:
    (place / "p.cu").write_text("__global__ void p() {}", encoding="utf-8")
    of = recipe(place, program=program)
    return [Row(of, {"n": f"{time:g}"}, time, False) for time in times]


def test_short_rows_first_and_none_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake, told = Fake(monkeypatch), list[str]()
    setting = Setting(tmp_path, None)
    found = run_rows(rows(tmp_path, 300, 100, 200), setting, lambda each: told.append(each.row))
    assert fake.ran == told == ["p n=100", "p n=200", "p n=300"]
    core = load_spec(GPU).clock.core_mhz
    assert [each.measured for each in found] == pytest.approx([0.1 * core, 0.2 * core, 0.3 * core])
    assert [each.simulated for each in found] == [200, 400, 600]
    with (tmp_path / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"gpu": "rt')  # interrupted
    again = run_rows(rows(tmp_path, 100, 200, 250), setting, lambda each: told.append(each.row))
    assert told[3:] == ["p n=250"]
    assert again[:2] == found[:2]
    assert len(read_outcomes(tmp_path)) == 4
    run_rows(rows(tmp_path, 100), replace(setting, code="sass"), lambda each: told.append(each.code))
    run_rows(rows(tmp_path, 100), replace(setting, set={"sm.count": 4}), lambda each: told.append(each.spec))
    run_rows(rows(tmp_path, 100), replace(setting, controller="pkp"), lambda each: told.append(each.sampling))
    assert told[6:] == ["pkp"]
    assert len(set(each.key for each in read_outcomes(tmp_path))) == 7


def test_a_row_is_done_for_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another measured value is taken as it is; another source, or another way to run it, is simulated."""
    fake, setting = Fake(monkeypatch), Setting(tmp_path, None)
    (row,) = rows(tmp_path, 100)
    run_rows([row], setting, lambda _: None)
    (found,) = run_rows([replace(row, measured=50)], setting, lambda _: None)
    assert (found.simulated, found.measured) == (200, pytest.approx(0.05 * load_spec(GPU).clock.core_mhz))
    unclear = replace(row, recipe=replace(row.recipe, unclear="why?", use="held-out"))
    (found,) = run_rows([unclear], setting, lambda _: None)
    assert (found.unclear, found.use) == ("why?", "held-out")
    assert len(fake.ran) == 1
    ways = [{"arguments": ("-v",)}, {"flags": ("-O2",)}, {"time": "last"}, {"set": {"sm.count": 4}}]
    ways.append({"inputs": (RecipeInput(row.recipe.source, "p.cu"),)})
    for changed in ways:
        run_rows([replace(row, recipe=replace(row.recipe, **changed))], setting, lambda _: None)
    (tmp_path / "p.cu").write_text("__global__ void q() {}", encoding="utf-8")
    run_rows([row], setting, lambda _: None)
    assert len(fake.ran) == 7


def test_a_row_that_failed_is_simulated_again(tmp_path: Path) -> None:
    """What was missing may be there, which no recipe says; each outcome is one line of the record."""
    place = tmp_path / "data.txt"
    script = f"from pathlib import Path\nfrom simt.errors import LaunchError\n{PYTHON}"
    script += f"    if not Path({str(place)!r}).exists():\n        raise LaunchError('no data')\n"
    (tmp_path / "p.py").write_text(script, encoding="utf-8")
    row = Row(recipe(tmp_path, files=("p.py",), arguments=("1",)), {}, 1.0, False)
    setting = Setting(tmp_path / "out", None)
    for _ in range(2):
        (found,) = run_rows([row], setting, lambda _: None)
        assert found.status == "failed: no data"
    assert len(whole_programs.read_outcomes(setting.out)) == 1
    place.touch()
    (found,) = run_rows([row], setting, lambda _: None)
    assert found.status == "done"


def test_longer_rows_are_not_tried_after_one_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(monkeypatch, late=150)
    both = [*rows(tmp_path, 100, 200, 300), *rows(tmp_path, 120, 140, program="q")]
    found = run_rows(both, Setting(tmp_path, None), lambda _: None)
    assert fake.ran == ["p n=100", "q n=120", "q n=140", "p n=200"]
    assert [each.status for each in found] == ["done", "done", "done", "limit", "limit"]
    fake.late = 1e9  # with more time, they are run
    found = run_rows(both, Setting(tmp_path, None, limit=600), lambda _: None)
    assert fake.ran[4:] == ["p n=200", "p n=300"]
    assert {each.status for each in found} == {"done"}


def test_a_sampled_row_has_the_interval_of_its_launches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 cycles ± 10 % and 100 in full detail are 400 ± 7.5 %; a method without interval says none."""
    whole, sampled = finished((0, 100), (100, 400))
    known = Sampled("systematic", "skip", "", 50, 60, 1, 1, 1, 2, half_widths={"cycles": 0.1})
    ends = []
    full = replace(known, decision="full", at_cycle=None, half_widths={})
    for each in (known, full, replace(known, half_widths={})):
        launches = [whole, replace(sampled, sampled=each)]
        Fake(monkeypatch)
        monkeypatch.setattr(whole_programs, "_simulated", lambda *_, of=launches: ("done", of))
        setting = Setting(tmp_path / str(len(ends)), None, controller="systematic")
        (row,) = rows(tmp_path, 100)
        ends += run_rows([replace(row, recipe=replace(row.recipe, time="kernels"))], setting, lambda _: None)
    assert [each.simulated for each in ends] == [400] * 3
    assert [each.half_width for each in ends] == pytest.approx([0.075, 0.0, math.nan], nan_ok=True)


def test_a_table_of_all_rows() -> None:
    frame = table([OUTCOME, replace(OUTCOME, row="late", status="limit", simulated=0)])
    assert frame["error"].to_list() == [pytest.approx(0.1), None]
    assert frame["stalls"][0] == "long_scoreboard 75 %, wait 25 %"


ROW_COLUMNS = (
    "gpu,sm_version,code,suite,program,row,use,cycles,instructions,waits,ratio,"
    "sampling,half_width,model,commit,date"
)
TOGETHER = "gpu,suite,code,use,rows,mae,within_20,date"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """An empty record of rows, and one of suites."""
    found = tmp_path / "rows.csv", tmp_path / "together.csv"
    for path, columns in zip(found, (ROW_COLUMNS, TOGETHER), strict=True):
        path.write_text(f"{columns}\n", encoding="utf-8")
    return found


def test_a_record_is_of_all_rows(files: tuple[Path, Path]) -> None:
    """Each GPU, code, suite and use has a mean of its own."""
    record([OUTCOME], *files)
    record([replace(OUTCOME, code="sass", simulated=900)], *files)
    record([replace(OUTCOME, gpu="a100", simulated=1500), replace(OUTCOME, gpu="a100", suite="b")], *files)
    many = [replace(OUTCOME, row=f"p n={n}", measured=n, simulated=1.3 * n) for n in (1, 2, 3)]
    held = replace(OUTCOME, row="h n=1", use="held-out", simulated=2000)
    found = record([*many, held, replace(OUTCOME, row="late", status="limit")], *files)
    assert found == [each for each in recorded(*files) if (each.gpu, each.code) == (GPU, "ptx")]
    assert [(r.gpu, r.suite, r.code, r.use, r.rows, round(r.mae, 3)) for r in recorded(*files)] == [
        ("a100", "b", "ptx", "tuning", 1, 0.1),
        ("a100", "suite", "ptx", "tuning", 1, 0.5),
        (GPU, "suite", "ptx", "held-out", 1, 1.0),
        (GPU, "suite", "ptx", "tuning", 3, 0.3),
        (GPU, "suite", "sass", "tuning", 1, 0.1),
    ]
    tuning = found[1]
    assert str(tuning) == f"suite, PTX: 30.0 % over 3 tuning rows, 0 % of them within 20 % ({tuning.first})"
    (own_code,) = [r for r in error_rows(files[0]) if r.features.code == "sass"]
    assert own_code.ratio == pytest.approx(OUTCOME.measured / 900, abs=1e-4)
    assert own_code.features.waits == {"long_scoreboard": 0.75, "wait": 0.25}


def test_fewer_rows_do_not_replace_a_fuller_record(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rows of one model, then one of them again, of the next model: the others stay as they were."""
    monkeypatch.setattr(row_errors, "MODELS", ((3, ()),))
    monkeypatch.setattr(whole_programs, "checked_out", lambda: "0ld")
    record([replace(OUTCOME, row=f"p n={n}", simulated=1000 + 100 * n) for n in (1, 2, 3)], *files)
    kept = {row.row: row for row in error_rows(files[0])}
    monkeypatch.setattr(row_errors, "MODELS", ((3, ()), (4, (GPU,))))
    monkeypatch.setattr(whole_programs, "checked_out", lambda: "new+")
    (now,) = record([replace(OUTCOME, row="p n=2", simulated=1050)], *files)
    rows = {row.row: row for row in error_rows(files[0])}
    assert rows.keys() == kept.keys()
    assert [rows[name] == kept[name] for name in ("p n=1", "p n=2", "p n=3")] == [True, False, True]
    assert {(row.model, row.commit, row.is_older) for row in rows.values()} == {
        (3, "0ld", True),
        (4, "new+", False),
    }
    assert (now.rows, now.older, now.sampled) == (3, 2, 0)
    assert now.mae == pytest.approx((0.1 + 0.05 + 0.3) / 3, abs=1e-4)
    assert (
        f"over 3 tuning rows, 67 % of them within 20 % ({now.first}; 2 of an older model, the other 1: 5.0 %)"
        in (str(now))
    )
    monkeypatch.setattr(row_errors, "MODELS", ((5, ()),))
    assert f"({now.first}; an older model)" in str(recorded(*files)[0])
    monkeypatch.setattr(
        row_errors, "MODELS", ((3, ()), (4, ("a100",)))
    )  # another GPU's model is none of its own
    assert [each.older for each in recorded(*files)] == [0]


def test_other_rows_stay_to_the_byte(files: tuple[Path, Path]) -> None:
    record([replace(OUTCOME, stalls={"wait": 0.992, "membar": 0.0041, "drain": 0.0039})], *files)
    before = files[0].read_text(encoding="utf-8").splitlines()
    assert " drain=0.00 membar=0.00," in before[1]
    record([replace(OUTCOME, row="p n=2")], *files)
    assert files[0].read_text(encoding="utf-8").splitlines()[:2] == before


def test_a_row_that_is_unclear_by_now_is_in_no_mean(files: tuple[Path, Path]) -> None:
    both = [OUTCOME, replace(OUTCOME, row="p n=2", simulated=2000)]
    record(both, *files)
    (now,) = record([both[0], replace(both[1], unclear="which sizes?")], *files)
    assert (now.rows, round(now.mae, 4)) == (1, 0.1)
    assert len(error_rows(files[0])) == 2


def test_sampled_rows_are_recorded_with_their_interval(files: tuple[Path, Path]) -> None:
    """One without an interval is not, and none replaces a row that the same model simulated whole."""
    sampled = replace(OUTCOME, sampling="systematic", half_width=0.04, simulated=1200)
    nothing_left_out = replace(sampled, row="p n=2", half_width=0.0)
    unstated = replace(sampled, row="p n=3", half_width=math.nan)
    (now,) = record([sampled, nothing_left_out, unstated], *files)
    assert [(r.row, r.sampling, r.half_width) for r in error_rows(files[0])] == [
        ("p n=1", "systematic", 0.04),
        ("p n=2", "", 0.0),
    ]
    assert (now.rows, now.sampled) == (2, 1)
    assert str(now).endswith(f"({now.first}; 1 sampled)")
    (now,) = record([OUTCOME], *files)
    assert (now.rows, now.sampled) == (2, 0)
    record([sampled], *files)
    (row, _) = error_rows(files[0])
    assert (row.sampling, row.ratio) == ("", pytest.approx(OUTCOME.measured / OUTCOME.simulated, abs=1e-4))


def test_a_sampled_row_replaces_one_of_an_older_model(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_errors, "MODELS", ((3, ()),))
    record([OUTCOME], *files)
    monkeypatch.setattr(row_errors, "MODELS", ((4, ()),))
    record([replace(OUTCOME, sampling="pkp", half_width=0.04, simulated=1200)], *files)
    assert [(r.sampling, r.model) for r in error_rows(files[0])] == [("pkp", 4)]


def test_a_mean_of_rows_that_are_not_known_stays_until_as_many_are(files: tuple[Path, Path]) -> None:
    rows, together = files
    line = f"{GPU},suite,ptx,tuning,2,0.25,0.5,2026-11-25"
    together.write_text(f"{TOGETHER}\n{line}\n", encoding="utf-8")
    one, earlier = record([OUTCOME], rows, together)
    assert (one.rows, one.one_by_one, earlier.rows, earlier.one_by_one) == (1, True, 2, False)
    assert str(earlier) == (
        "suite, PTX: 25.0 % over 2 tuning rows, 50 % of them within 20 % "
        "(2026-11-25; an older model, rows not recorded one by one)"
    )
    (both,) = record([replace(OUTCOME, row="p n=2")], rows, together)
    assert (both.rows, both.one_by_one) == (2, True)


def test_the_record_that_is_shipped() -> None:
    """Each row has what it was measured with; the last model is the last one of the table in docs/records."""
    rows = error_rows()
    assert len({row.key for row in rows}) == len(rows)
    assert {row.features.gpu for row in rows} <= set(available())
    for row in rows:
        assert row.commit and row.date and row.use in ("", "tuning", "held-out", "judging"), row
        assert 0 < row.model <= row_errors.present_model(row.features.gpu), row
        assert bool(row.sampling) == (row.half_width > 0), row
    assert {each.gpu for each in recorded()} <= set(available())
    text = (Path(__file__).parents[2] / "docs" / "records" / "whole-programs.md").read_text(encoding="utf-8")
    _, _, models = text.partition("| model | date (November 2026) | what it has |\n|---|---|---|\n")
    last = models.partition("\n\n")[0].splitlines()[-1]
    assert last.startswith(f"| {max(number for number, _ in row_errors.MODELS)} | ")


def test_the_commit_that_is_checked_out() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}\+?", checked_out())


def test_sources_are_where_the_user_has_put_them(tmp_path: Path) -> None:
    of = recipe(tmp_path, source=RecipeSource("suite", "https://example.org/suite", "0123"))
    with pytest.raises(
        ProfileError, match=r"p needs a checkout of https://example.org/suite at 0123; --sources"
    ):
        folder_of(of.source, of, None)
    with pytest.raises(ProfileError, match="suite: no such folder; p needs a checkout"):
        folder_of(of.source, of, tmp_path)
    assert folder_of(recipe(tmp_path).source, recipe(tmp_path), None) == tmp_path


WRITES = """
import sys
from pathlib import Path
Path(sys.argv[1]).write_text(sys.argv[2])
"""


def test_inputs_are_put_where_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, suite = RecipeSource("simt", "", ""), RecipeSource("suite", "https://example.org/suite", "")
    (tmp_path / "write.py").write_text(WRITES, encoding="utf-8")
    (tmp_path / "sources" / "suite" / "data").mkdir(parents=True)
    (tmp_path / "sources" / "suite" / "data" / "a.txt").write_text("a", encoding="utf-8")
    inputs = (RecipeInput(suite, "data/a.txt"), RecipeInput(own, "write.py", ("b.txt", "b")))
    of = recipe(tmp_path, inputs=inputs, folder="run/here")
    ran = list[Path]()

    def run(command: list[object], gpu: str, **options: object) -> Finished:
        ran.append(Path(str(command[4])))
        return Finished(1, ())

    monkeypatch.setattr("simt.exec.run", run)
    monkeypatch.setattr(whole_programs, "build", lambda *_: Path("program"))
    (tmp_path / "p.cu").write_text("", encoding="utf-8")
    setting = Setting(tmp_path / "out", tmp_path / "sources")
    run_rows([Row(of, {}, 1, False)], setting, lambda _: None)
    place = ran[0].parents[1]
    assert ran == [place / "run" / "here"]
    assert ran[0].is_dir()
    assert (place / "data" / "a.txt").read_text(encoding="utf-8") == "a"
    assert (place / "b.txt").read_text(encoding="utf-8") == "b"
    (place / "b.txt").write_text("kept", encoding="utf-8")
    assert prepare(of, setting.out.resolve(), setting.sources) == place
    assert (place / "b.txt").read_text(encoding="utf-8") == "kept"
    (tmp_path / "write.py").write_text(f"{WRITES}#", encoding="utf-8")
    again = prepare(of, setting.out, setting.sources)
    assert (again / "b.txt").read_text(encoding="utf-8") == "b"


def test_inputs_that_cannot_be_had_are_named(tmp_path: Path) -> None:
    own = RecipeSource("simt", "", "")
    of = recipe(tmp_path, inputs=(RecipeInput(own, "data.txt"),))
    (tmp_path / "data.txt").write_text("", encoding="utf-8")
    assert (prepare(of, tmp_path / "out", None) / "data.txt").is_file()
    of = recipe(tmp_path, inputs=(RecipeInput(own, "fails.py"),))
    (tmp_path / "fails.py").write_text("raise SystemExit('no disk')", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(ProfileError, match=r"p: .*fails.py failed: no disk"):
            prepare(of, tmp_path / "out", None)
    of = recipe(tmp_path, inputs=(RecipeInput(RecipeSource("suite", "", ""), "data.txt"),))
    (tmp_path / "suite").mkdir()
    with pytest.raises(ProfileError, match=r"suite/data.txt: no such file, which p needs"):
        prepare(of, tmp_path / "out", tmp_path)


def at(clock: RecipeClock | None, place: Path) -> Recipe:
    about = recipe(place, gpu="qv100")
    return replace(about, table=replace(about.table, clock=clock))


def test_clocks_are_varied_one_at_a_time(tmp_path: Path) -> None:
    setting = Setting(tmp_path, None, set={"sm.count": 4})
    found = clock_settings(setting, [], {"core": (0.9,), "dram": (1.05,)})
    assert list(found) == ["as stated", "core clock -10 %", "dram clock +5 %"]
    assert clocked(at(None, tmp_path), found["as stated"]) == {"sm.count": 4}
    clock = load_spec("qv100", clocked(at(None, tmp_path), found["core clock -10 %"])).clock
    assert (clock.core_mhz, clock.interconnect_mhz, clock.l2_mhz, clock.dram_mhz) == (1242, 1242, 1242, 877)
    clock = load_spec("qv100", clocked(at(None, tmp_path), found["dram clock +5 %"])).clock
    assert (clock.core_mhz, clock.dram_mhz) == (1380, pytest.approx(920.85))
    locked = RecipeClock("locked", "", 1000)
    clock = load_spec("qv100", clocked(at(locked, tmp_path), found["core clock -10 %"])).clock
    assert (clock.core_mhz, clock.l2_mhz) == (900, 900)


def test_rows_run_at_the_clock_of_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 ns are 178 cycles of 1,780 MHz. What --set says goes before the recipe."""
    Fake(monkeypatch)
    (row,) = rows(tmp_path, 100)
    row = replace(row, recipe=at(RecipeClock("derived", "", 1780, rows=("q",)), tmp_path))
    (found,) = run_rows([row], Setting(tmp_path, None), lambda _: None)
    assert (found.measured, found.counts) == (178, True)
    (found,) = run_rows([row], Setting(tmp_path, None, set={"clock.core_mhz": 1000}), lambda _: None)
    assert found.measured == 100
    values = clocked(row.recipe, Setting(tmp_path, None))
    assert values == {f"clock.{name}_mhz": 1780 for name in ("core", "interconnect", "l2")}
    derived = replace(row, recipe=at(RecipeClock("derived", "", 1780, rows=("p",)), tmp_path))
    (found,) = run_rows([derived], Setting(tmp_path, None), lambda _: None)
    assert (found.unclear, found.counts) == ("the clock of the card was derived from them", False)


def test_an_unknown_clock_gives_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch)
    (row,) = rows(tmp_path, 100)
    row = replace(row, recipe=at(RecipeClock("unknown", "", range=(1000, 2000)), tmp_path))
    settings = clock_settings(Setting(tmp_path, None), [row], {})
    assert list(settings) == ["as stated", "lowest possible", "highest possible"]
    found = [run_rows([row], each, lambda _: None)[0].measured for each in settings.values()]
    assert found == [138, 100, 200]
    chosen = clock_settings(Setting(tmp_path, None, set={"clock.core_mhz": 1000}), [row], {})
    assert list(chosen) == ["as stated"]


TINY = """
schema = "simt.programs/1"
[clock]
known = "unknown"
range = [1000, 2000]
source = "a guess"
[tables.t]
file = "t.csv"
value = "ns"
unit = "ns"
[[program]]
suite = "own"
name = "fill"
use = "tuning"
source = "simt"
files = ["fill.cu"]
table = "t"
where = { n = "*", odd = "" }
arguments = ["{n}"]
launches = 1
[[program]]
suite = "own"
name = "fails"
use = "tuning"
source = "simt"
files = ["fill.cu"]
table = "t"
where = { odd = "*" }
arguments = ["-{odd}"]
"""
SOURCE = """
#include <cstdlib>
__global__ void fill(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
int main(int, char** arguments) {
  const int n = atoi(arguments[1]);
  if (n < 0) return 3;
  int* x;
  cudaMalloc(&x, 4 * 32 * n);
  fill<<<n, 32>>>(x);
  return cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(("gpu", "code", "sm_version"), [("qv100", "ptx", 75), ("qv100", "sass", 70)])
def test_old_gpus_execute_ptx_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: str, code: str, sm_version: int
) -> None:
    """nvcc has no PTX for sm_70; a V100 would execute the machine code for sm_75 in its place."""
    used = list[int]()

    def run(command: object, gpu: str, **options: object) -> Finished:
        used.append(load_spec(gpu, dict(options["set"])).sm_version)  # type: ignore[call-overload]
        return Finished(1, ())

    monkeypatch.setattr("simt.exec.run", run)
    monkeypatch.setattr(whole_programs, "build", lambda *_: Path("program"))
    of = recipe(tmp_path, gpu=gpu)
    (tmp_path / "p.cu").write_text("", encoding="utf-8")
    (found,) = run_rows([Row(of, {}, 1, False)], Setting(tmp_path, None, code), lambda _: None)
    assert used == [sm_version]
    assert found.status.startswith("failed: the program ended with status 1; ")


PYTHON = """
def run(gpu, count):
    from simt.cuda import PtxModule

    text = ".version 8.7\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }"
    kernel = gpu.load(PtxModule.from_text(text, "k.ptx")).k
    for _ in range(int(count)):
        kernel[1, 32]()
"""


def test_a_program_in_python(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(PYTHON, encoding="utf-8")
    of = recipe(tmp_path, files=("p.py",), arguments=("{n}",), time="last", launches=2)
    two, three = (Row(of, {"n": n}, 1.0, False) for n in ("2", "3"))
    found = run_rows([two, three], Setting(tmp_path, None), lambda _: None)
    assert [(each.status, each.launches) for each in found] == [
        ("done", 2),
        ("failed: 3 launches, expected 2", 3),
    ]
    assert found[0].simulated > 0
    (tmp_path / "p.py").write_text("import no_such_module", encoding="utf-8")
    (found,) = run_rows([two], Setting(tmp_path, None), lambda _: None)
    assert found.status == f"failed: {tmp_path / 'p.py'}: No module named 'no_such_module'"


@pytest.mark.slow
@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_the_command_on_a_tiny_program(tmp_path: Path, code: str) -> None:
    try:
        find_nvcc()
    except ToolkitError as error:
        pytest.skip(str(error))
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    (tmp_path / f"{GPU}.toml").write_text(TINY, encoding="utf-8")
    (tmp_path / "fill.cu").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "t.csv").write_text("n,odd,ns\n1,,2000\n64,,2100\n2,3,5000\n", encoding="utf-8")
    options = [
        "programs",
        "--gpu",
        GPU,
        "--recipes",
        str(tmp_path),
        "--measured",
        str(tmp_path),
        "--code",
        code,
    ]
    options += ["-o", str(tmp_path / "out"), "--html", str(tmp_path / "page.html")]
    first = CliRunner().invoke(app, options, catch_exceptions=False)
    assert first.exit_code == 0, first.output
    assert "own fails odd=3: failed: the program ended with status 3" in first.output
    assert "core clock unknown, 1,000 to 2,000 MHz: a guess" in first.output
    assert "lowest possible" in first.output
    assert "MAE from " in first.output
    frame = pl.read_parquet(tmp_path / "out" / f"{GPU}-{code}-tuning.parquet")
    assert frame["row"].to_list() == ["fill n=1", "fill n=64", "fails odd=3"]
    assert frame["launches"].to_list() == [1, 1, 0]
    assert (frame["simulated"][:2] > load_spec(GPU).launch.kernel_latency).all()
    assert frame["measured"][0] == pytest.approx(2 * load_spec(GPU).clock.core_mhz)
    assert "fill n=64" in (tmp_path / "page.html").read_text(encoding="utf-8")
    lines = (tmp_path / "out" / "rows.jsonl").read_text(encoding="utf-8")
    again = CliRunner().invoke(app, options, catch_exceptions=False)
    assert again.exit_code == 0
    assert (tmp_path / "out" / "rows.jsonl").read_text(encoding="utf-8") == lines


@pytest.fixture
def sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command whose rows are one with an interval, one without, and one that was simulated whole."""
    (tmp_path / f"{GPU}.toml").write_text(
        TINY.replace('where = { odd = "*" }', 'where = { odd = "5" }'), encoding="utf-8"
    )
    (tmp_path / "fill.cu").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "t.csv").write_text("n,odd,ns\n1,,1000\n2,,2000\n3,,3000\n4,5,4000\n", encoding="utf-8")
    known = Sampled("pkp", "skip", "", 50, 60, 1, 1, 1, 2, half_widths={"cycles": 0.1})
    whole = replace(known, decision="full", at_cycle=None, half_widths={})
    ways = {1000: known, 2000: replace(known, half_widths={}), 3000: whole}

    def simulated(row: Row, *_: object) -> tuple[str, Sequence[LaunchResult]]:
        (one,) = finished((0, int(2 * row.measured)))
        return (
            ("done", [replace(one, sampled=ways[int(row.measured)])])
            if row.measured < 4000
            else ("limit", [])
        )

    monkeypatch.setattr(whole_programs, "build", lambda *_: Path("program"))
    monkeypatch.setattr(whole_programs, "_simulated", simulated)
    options = ["programs", "--gpu", GPU, "--recipes", str(tmp_path), "--measured", str(tmp_path)]
    return [*options, "-o", str(tmp_path / "out"), "--set", "clock.core_mhz=1680", "--sample", "pkp"]


def test_the_command_says_how_many_rows_are_sampled(
    sampled: list[str], files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simt.cli.validate.record", lambda outcomes: record(outcomes, *files))
    found = CliRunner().invoke(app, [*sampled, "--record"], catch_exceptions=False)
    assert f"{GPU}, " in found.output and ", 2 of 3 rows sampled\n" in found.output
    header, own = (
        line.split() for line in found.output.splitlines() if line.startswith(("suite ", "own   "))
    )
    assert own[header.index("sampled")] == "2"
    assert "own fill n=1: " in found.output and "± 11.9 %" in found.output and "± ? %" in found.output
    assert "recorded: own, " in found.output and "; 1 sampled)" in found.output
    assert "not recorded, as pkp states no interval: 1 row\n" in found.output
    assert [(row.row, row.sampling) for row in error_rows(files[0])] == [
        ("fill n=1", "pkp"),
        ("fill n=3", ""),
    ]


def test_rows_of_another_use_are_not_run(tmp_path: Path) -> None:
    (tmp_path / f"{GPU}.toml").write_text(TINY, encoding="utf-8")
    (tmp_path / "t.csv").write_text("n,odd,ns\n1,,2000\n2,3,5000\n", encoding="utf-8")
    assert len([row for of in read_recipes(tmp_path, GPU) for row in rows_of(of, tmp_path)]) == 2
    options = ["programs", "--gpu", GPU, "--recipes", str(tmp_path), "--measured", str(tmp_path)]
    with pytest.raises(ProfileError, match=r"judging rows of .*: no row of this suite and name"):
        CliRunner().invoke(app, [*options, "--use", "judging"], catch_exceptions=False)
