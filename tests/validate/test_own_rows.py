"""Rows of one's own measurement: what is read, what is refused, and the command on a TOML file."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from simt.cli.validate import app
from simt.cuda import ptxas
from simt.cuda.nvcc import find_nvcc
from simt.errors import ProfileError, ToolkitError
from simt.spec import load_spec
from simt.validate import whole_programs
from simt.validate.own_rows import read_own_rows
from simt.validate.recipes import read_recipes
from simt.validate.whole_programs import Setting, recommended_code, run_rows

PYTHON = """
def run(gpu, count, ctas="1"):
    from simt.cuda import PtxModule

    text = ".version 8.7\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }"
    kernel = gpu.load(PtxModule.from_text(text, "k.ptx")).k
    for _ in range(int(count)):
        kernel[int(ctas), 32]()
"""
SOURCE = """
#include <cstdlib>
__global__ void fill(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
int main(int, char** arguments) {
  const int n = atoi(arguments[1]);
  int* x;
  cudaMalloc(&x, 4 * 32 * n);
  fill<<<n, 32>>>(x);
  return cudaDeviceSynchronize();
}
"""
INSTRUCTIONS = "smsp__inst_executed.sum"


def written(folder: Path, text: str) -> Path:
    (folder / "k.py").write_text(PYTHON, encoding="utf-8")
    (folder / "k.cu").write_text(SOURCE, encoding="utf-8")
    (folder / "rows.csv").write_text(text, encoding="utf-8")
    return folder / "rows.csv"


def test_what_is_written_is_read(tmp_path: Path) -> None:
    text = f"""# locked at 1545 MHz
program,arguments,us,{INSTRUCTIONS},flags,time,warm
k.py,3,1.5,96,,,
k.py,"2 'a b'",,64,,,
k.cu,64,2.25,,-O2 -DN=3,period,2
"""
    first, second, third = read_own_rows(written(tmp_path, text), "t4")
    assert [row.name for row in (first, second, third)] == ["k.py 3", "k.py 2 'a b'", "k.cu 64"]
    assert [row.arguments for row in (first, second, third)] == [["3"], ["2", "a b"], ["64"]]
    assert [row.measured for row in (first, second, third)] == [1500, 0, 2250]  # ns
    assert [dict(row.counters) for row in (first, second, third)] == [
        {INSTRUCTIONS: 96},
        {INSTRUCTIONS: 64},
        {},
    ]
    assert first.recipe is second.recipe  # so that longer rows of a program that is late are not tried
    assert (first.recipe.gpu, first.recipe.suite, first.recipe.use) == ("t4", "rows", "own")
    assert (first.recipe.time, first.recipe.in_python, first.recipe.is_compiled) == ("kernels", True, False)
    assert (third.recipe.time, third.recipe.warm, third.recipe.flags) == ("period", 2, ("-O2", "-DN=3"))
    (cycles,) = read_own_rows(written(tmp_path, "program,cycles\nk.py,1200\n"), "t4")
    assert (cycles.measured, cycles.in_cycles, cycles.arguments) == (1200, True, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no header"),
        ("program,us\n", "rows.csv: no row"),
        ("arguments,us\n3,1\n", "rows.csv:2: no column 'program'"),
        (
            "program,arguments\nk.py,3\n",
            "rows.csv:2: no measured value: expected a column ns, us, ms, s, cycles",
        ),
        ("program,us,ms\nk.py,1,2\n", "columns us and ms: expected one of them"),
        ("program,us,flag\nk.py,1,-O3\n", "column 'flag': unknown; did you mean flags"),
        (
            "program,us,smsp__inst_executed.avg\nk.py,1,3\n",
            "column 'smsp__inst_executed.avg': unknown; did you",
        ),
        ("program,gpc__cycles_elapsed.max\nk.py,3\n", "its name here is cycles"),
        ("program,us,sm__warps_active.avg.pct_of_peak_sustained_active\nk.py,1,3\n", "does not add up over"),
        ("program,us\nmissing.py,1\n", "program: 'missing.py' is no file beside rows.csv"),
        ("program,us\n,1\n", "program: '' is no file"),
        ("program,us\nrows.csv,1\n", "is neither a source (.cu, .py) nor an executable file"),
        ("program,us\nk.py,0\n", "us is 0, expected more than 0"),
        ("program,us\nk.py,fast\n", "us: 'fast' is not a number"),
        (f"program,{INSTRUCTIONS}\nk.py,-1\n", "is -1, expected 0 or more"),
        (f"program,us,{INSTRUCTIONS}\nk.py,,\n", "rows.csv:2: neither a time nor a counter is given"),
        (
            "program,us,time\nk.py,1,1.5\n",
            "time: found '1.5', expected what a time is of, kernels, period, last",
        ),
        ("program,us,time,warm\nk.py,1,period,\n", "warm: found '0'"),
        ("program,us,time,warm\nk.py,1,last,2\n", "warm: found '2'"),
        ("program,us,arguments\nk.py,1,'a\n", 'arguments: "\'a": No closing quotation'),
        ("program,us\nk.py,1,2\n", "3 cells, expected 2"),
    ],
)
def test_refusals(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProfileError) as error:
        read_own_rows(written(tmp_path, text), "t4")
    assert message in str(error.value)


def test_a_row_of_counters_only_has_no_error_of_cycles(tmp_path: Path) -> None:
    text = f"program,arguments,us,{INSTRUCTIONS}\nk.py,3,,3\nk.py,2,4,\n"
    rows = read_own_rows(written(tmp_path, text), "t4")
    counted, timed = run_rows(rows, Setting(tmp_path / "out", None), lambda _: None)
    assert (counted.row, counted.status, counted.launches) == ("k.py 3", "done", 3)
    assert counted.counters == {INSTRUCTIONS: (3, 3)}
    assert counted.error != counted.error
    assert timed.error == pytest.approx(timed.simulated / (4 * load_spec("t4").clock.core_mhz) - 1)
    frame = whole_programs.table([counted, timed])
    assert frame["error"].to_list() == [None, pytest.approx(timed.error)]
    found = whole_programs.correlation([counted, timed]).agreement().to_dicts()
    assert {(each["counter"], each["n"]) for each in found} == {
        ("gpc__cycles_elapsed.max", 1),
        (INSTRUCTIONS, 1),
    }


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["programs", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def card(folder: Path) -> str:
    (folder / "mine.toml").write_text('extends = "t4"\nsm.count = 4\n', encoding="utf-8")
    return str(folder / "mine.toml")


def test_the_command_on_a_toml_file(tmp_path: Path) -> None:
    table = written(tmp_path, "program,arguments,us\nk.py,1 8,2.5\nk.py,1,2\n")
    options = ["--gpu", card(tmp_path), "--rows", str(table), "--output", str(tmp_path / "out")]
    output = invoke(*options, "--code", "ptx")
    assert f"mine, PTX: {table}\n" in output
    frame = pl.read_parquet(tmp_path / "out" / "mine-ptx-own.parquet")
    assert frame["row"].to_list() == ["k.py 1", "k.py 1 8"]
    assert frame["gpu"].to_list() == ["mine", "mine"]
    assert (frame["measured"] == pl.Series([2.0, 2.5]) * load_spec("t4").clock.core_mhz).all()
    assert "k.py 1 8" in invoke(*options, "--code", "ptx", "--only", "1 8", "-q")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "rows.csv", "--use", "judging"], "--use judging: chooses among rows of recipes"),
        (["--rows", "rows.csv", "--record"], "--record is for a shipped GPU"),
        (["--record"], "--record is for a shipped GPU"),
        (
            ["--gpu", "a100", "--record", "--set", "clock.core_mhz=1000", "--set", "sm.count=4"],
            "at any clock; found --set sm.count",
        ),
        (["--rows", "rows.csv", "--only", "zzz"], "rows.csv: no row of this suite and name"),
        (["--rows", "counted.csv", "--vary-clocks"], "counted.csv has counters only, expected times"),
        (["--recipes", "."], "mine.toml: no schema"),
        (["--recipes", "none"], "--rows names a table of your own"),
    ],
)
def test_what_the_command_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "program,us\nk.py,2\n")
    (tmp_path / "counted.csv").write_text(f"program,{INSTRUCTIONS}\nk.py,2\n", encoding="utf-8")
    card(tmp_path)
    with pytest.raises(ProfileError) as error:
        invoke("--gpu", "mine.toml", *options)
    assert message in str(error.value)


def test_recipes_of_another_card(tmp_path: Path) -> None:
    """A file of recipes runs on the GPU that is given; a folder has a file for each GPU, by shipped name."""
    recipes = Path(__file__).parents[2] / "validation" / "programs"
    assert {each.gpu for each in read_recipes(recipes / "rtx2060.toml", "mine.toml")} == {"mine.toml"}
    assert {each.gpu for each in read_recipes(recipes, "V100")} == {"V100"}
    assert {each.place for each in read_recipes(recipes, "V100")} == {recipes}


def test_machine_code_is_recommended_where_it_can_be_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_programs, "is_installed", lambda: True)
    monkeypatch.setattr(ptxas, "_assemblers", lambda: (Path("a"),))
    monkeypatch.setattr(ptxas, "_version", lambda _: "13.0.48")
    gpus = ("titanx", "qv100", "t4", "h100", "b200", "rtx5090")
    codes = {gpu: recommended_code(load_spec(gpu)) for gpu in gpus}
    wanted = ("ptx", "ptx", "sass", "sass", "sass", "sass")
    assert codes == dict(zip(gpus, wanted, strict=True))
    monkeypatch.setattr(ptxas, "_version", lambda _: "12.9.86")  # which knows Volta
    assert recommended_code(load_spec("qv100")) == "sass"
    monkeypatch.setattr(whole_programs, "is_installed", lambda: False)
    assert recommended_code(load_spec("t4")) == "ptx"
    monkeypatch.setattr(whole_programs, "is_installed", lambda: True)
    monkeypatch.setattr(ptxas, "_assemblers", lambda: ())
    assert recommended_code(load_spec("t4")) == "ptx"


@pytest.mark.slow
def test_sources_and_compiled_programs(tmp_path: Path) -> None:
    try:
        nvcc = find_nvcc()
    except ToolkitError as error:
        pytest.skip(str(error))
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    assert nvcc
    table = written(tmp_path, "program,arguments,us\nk.cu,64,2\n")
    (row,) = read_own_rows(table, "t4")
    program = whole_programs.build(row.recipe, 75, tmp_path / "out", None)
    shutil.copy(program, tmp_path / "compiled.out")
    (tmp_path / "compiled.out").chmod(stat.S_IRWXU)
    (tmp_path / "rows.csv").write_text(
        "program,arguments,us\nk.cu,64,2\ncompiled.out,64,2\n", encoding="utf-8"
    )
    found = run_rows(read_own_rows(table, "t4"), Setting(tmp_path / "out", None), lambda _: None)
    assert [each.status for each in found] == ["done", "done"]
    assert found[0].simulated == found[1].simulated > 0
