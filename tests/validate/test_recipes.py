"""Recipes of whole programs: what is read, what is refused, and which rows of a table are a program's."""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simt.errors import ProfileError
from simt.spec import available, load_spec
from simt.validate.published import published_path
from simt.validate.recipes import OWN, Recipe, RecipeClock, read_recipes, read_table, rows_of

ROOT = Path(__file__).parents[2] / "validation" / "programs"
TABLE = "accel-sim-isca20-silicon"
GPUS = sorted(path.stem for path in ROOT.glob("*.toml"))
RECIPE = """
schema = "simt.programs/1"
note = "a card"

[clock]
known = "locked"
core_mhz = 1500
source = "nvidia-smi -lgc"

[sources.suite]
repository = "https://example.org/suite"
commit = "0123"

[tables.times]
file = "times.csv"
value = "time"
unit = "us"

[tables.times.counters]
"dram__sectors_read.sum" = ["hit", "miss"]

[[program]]
suite = "suite"
name = "add"
use = "tuning"
source = "suite"
files = ["add.cu"]
table = "times"
where = { benchmark = "add", size = "*", block = "" }
arguments = ["--size={size}", "-v"]
"""
TIMES = """# measured somewhere
benchmark,parameters,time,hit,miss
add,size=10,1.5,3,4
add,size=20 block=8,2.5,3,4
sub,size=10,9,3,4
add,,7,3,4
add,size=5,0.5,1,0
"""


def written(folder: Path, recipe: str = RECIPE, times: str = TIMES) -> Path:
    (folder / "gpu.toml").write_text(recipe, encoding="utf-8")
    (folder / "times.csv").write_text(times, encoding="utf-8")
    return folder


def only(folder: Path) -> Recipe:
    (recipe,) = read_recipes(folder, "gpu")
    return recipe


def test_what_is_written_is_read(tmp_path: Path) -> None:
    recipe = only(written(tmp_path))
    assert (recipe.gpu, recipe.suite, recipe.program, recipe.use) == ("gpu", "suite", "add", "tuning")
    assert (recipe.source.repository, recipe.source.commit) == ("https://example.org/suite", "0123")
    assert recipe.table.counters == {"dram__sectors_read.sum": ("hit", "miss")}
    assert (recipe.time, recipe.warm, recipe.launches, recipe.timed, recipe.unclear) == (
        "kernels",
        0,
        0,
        (),
        "",
    )
    assert recipe.place == tmp_path


def test_rows_are_those_whose_fields_match(tmp_path: Path) -> None:
    """Not those of another program, with another field than is wanted, or without one that is wanted."""
    rows = rows_of(only(written(tmp_path)), tmp_path)
    assert [row.name for row in rows] == ["add size=10", "add size=5"]
    assert [row.measured for row in rows] == [1500, 500]  # ns
    assert [row.arguments for row in rows] == [["--size=10", "-v"], ["--size=5", "-v"]]
    assert [row.counters for row in rows] == [{"dram__sectors_read.sum": 7}, {"dram__sectors_read.sum": 1}]
    assert not rows[0].in_cycles


def test_an_offset_is_subtracted(tmp_path: Path) -> None:
    """In the unit of the table: 0.4 of 1.5 and 0.5 us."""
    text = RECIPE.replace('use = "tuning"', 'use = "tuning"\noffset = 0.4')
    rows = rows_of(only(written(tmp_path, text)), tmp_path)
    assert [row.measured for row in rows] == pytest.approx([1100, 100])
    with pytest.raises(
        ProfileError, match=r"times.csv:7: time is -0.1 without the offset of 0.6, expected mo"
    ):
        rows_of(only(written(tmp_path, text.replace("0.4", "0.6"))), tmp_path)
    with pytest.raises(ProfileError, match="offset is -1, expected a number above 0"):
        only(written(tmp_path, text.replace("0.4", "-1")))


def test_cycles_stay_cycles(tmp_path: Path) -> None:
    row = rows_of(only(written(tmp_path, RECIPE.replace('"us"', '"cycles"'))), tmp_path)[0]
    assert (row.measured, row.in_cycles) == (1.5, True)


def test_a_table_that_comes_with_simt_is_known_by_name(tmp_path: Path) -> None:
    text = RECIPE.replace("times.csv", "accel-sim-isca20-silicon").replace('"time"', '"cycles"')
    text = text.replace('["hit", "miss"]', '["cycles"]').replace('"us"', '"cycles"')
    text = text.replace('{ benchmark = "add", size = "*", block = "" }', '{ program = "2dconv" }')
    recipe = only(written(tmp_path, text.replace('["--size={size}", "-v"]', "[]")))
    (row,) = rows_of(recipe, None)
    assert (row.name, row.measured) == ("add", 269298)


LOCKED = """known = "locked"
core_mhz = 1500
"""
DERIVED = """known = "derived"
rows = ["add"]
core_mhz = 1778
"""
UNKNOWN = """known = "unknown"
range = [1350, 1900.5]
"""


def test_how_the_clock_is_known(tmp_path: Path) -> None:
    assert RECIPE.count(LOCKED) == 1
    recipe = only(written(tmp_path))
    assert recipe.table.clock == RecipeClock("locked", "nvidia-smi -lgc", 1500)
    assert [recipe.table.clock.mhz(end) for end in (None, "lowest", "highest")] == [1500, 1500, 1500]
    assert recipe.not_counted == ""
    recipe = only(written(tmp_path, RECIPE.replace(LOCKED, DERIVED)))
    assert recipe.table.clock == RecipeClock("derived", "nvidia-smi -lgc", 1778, rows=("add",))
    assert recipe.not_counted == "the clock of the card was derived from them"
    recipe = only(written(tmp_path, RECIPE.replace(LOCKED, UNKNOWN)))
    assert recipe.table.clock is not None
    assert [recipe.table.clock.mhz(end) for end in (None, "lowest", "highest")] == [None, 1350, 1900.5]
    assert str(recipe.table.clock) == "unknown, 1,350 to 1,900.5 MHz: nvidia-smi -lgc"


def test_a_table_of_another_card_has_its_own_clock(tmp_path: Path) -> None:
    own = 'clock = { known = "published", core_mhz = 1800, source = "the paper" }\n[tables.times.counters]'
    recipe = only(written(tmp_path, RECIPE.replace("[tables.times.counters]", own)))
    assert recipe.table.clock == RecipeClock("published", "the paper", 1800)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", r"gpu.toml: clock: no known"),
        ('known = "guessed"\n', "clock: known is 'guessed', expected one of locked, published, derived, unk"),
        ('known = "locked"\n', "clock: no core_mhz"),
        ('known = "locked"\ncore_mhz = "fast"\n', "core_mhz is 'fast', expected a frequency in MHz"),
        ('known = "locked"\ncore_mhz = 0\n', "core_mhz is 0, expected a frequency in MHz"),
        ('known = "locked"\ncore_mhz = nan\n', "core_mhz is nan, expected a frequency in MHz"),
        ('known = "unknown"\n', "clock: no range"),
        ('known = "unknown"\nrange = [9, 9]\n', r"range is \[9, 9\], expected \[lowest, highest\] in MHz"),
        ('known = "unknown"\nrange = [1900]\n', r"range is \[1900\], expected \[lowest, highest\] in MHz"),
        ('known = "unknown"\nrange = [true, 2]\n', r"range is \[True, 2\], expected \[lowest, highest\] in"),
        ('known = "derived"\ncore_mhz = 1\nrows = []\n', r"clock: rows is \[\], expected names of programs"),
        ('known = "derived"\ncore_mhz = 1\nrows = ["ad"]\n', r"rows is \['ad'\], expected names of programs"),
        ('known = "locked"\ncore_mhz = 1\nrows = ["add"]\n', "clock: unknown rows"),
    ],
)
def test_what_is_wrong_with_a_clock_is_named(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        only(written(tmp_path, RECIPE.replace(LOCKED, lines)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("programs/1", "programs/2", "schema is 'simt.programs/2', expected 'simt.programs/1'"),
        (
            'use = "tuning"',
            'use = "both"',
            r"program 1 \(add\): use is 'both', expected one of tuning, held-out",
        ),
        ('source = "suite"', 'source = "site"', "source is 'site', expected one of suite, simt"),
        ('table = "times"', "", r"program 1 \(add\): no table"),
        ('files = ["add.cu"]', "files = []", "files: expected at least one"),
        ('files = ["add.cu"]', 'files = "add.cu"', "files is 'add.cu', expected a list of texts"),
        ('"-v"]', '"{}"]', r"arguments: '\{\}', expected \{name\}"),
        ('"-v"]', '"{a"]', r"arguments: '\{a': "),
        ('"-v"]', '"{other}"]', r"times.csv:3: no field 'other', which add's arguments use"),
        ('use = "tuning"', 'use = "tuning"\nuser = "me"', "unknown user; did you mean use"),
        ('use = "tuning"', 'use = "tuning"\ninputs = ["a.txt"]', "inputs: 'a.txt', expected SOURCE:FILE, or"),
        ('use = "tuning"', 'use = "tuning"\ninputs = ["simt:"]', "inputs: 'simt:', expected SOURCE:FILE"),
        ('use = "tuning"', 'use = "tuning"\ninputs = ["data:a"]', "arguments; sources are suite, simt"),
        ('use = "tuning"', 'use = "tuning"\ninputs = ["simt:a.txt b"]', "inputs: 'simt:a.txt b', expected"),
        (
            'use = "tuning"',
            'use = "tuning"\nfolder = "a"',
            "folder: expected inputs, as it is a folder among",
        ),
        ('use = "tuning"', 'use = "tuning"\nwarm = -1', "warm is -1, expected 0 or more"),
        (
            'use = "tuning"',
            'use = "tuning"\ntimed = [0]',
            r"timed is \[0\], expected a list of launches, from 1",
        ),
        (
            'use = "tuning"',
            'use = "tuning"\nset = { a = [1] }',
            r"set: a is \[1\], expected a value of the spec",
        ),
        ('use = "tuning"', 'use = "tuning"\nlaunches = true', "launches is True, expected a whole number"),
        ('value = "time"', 'value = "tme"', "times.csv:3: no column 'tme'; did you mean time"),
        ('["hit", "miss"]', '["hits"]', "no column 'hits'; did you mean hit"),
        ('unit = "us"', 'unit = "h"', "tables: times: unit is 'h', expected one of ns, us, ms, s, cycles"),
        ('benchmark = "add"', 'benchmark = "mul"', "no row with .*'mul'.*, which add should have"),
        ("times.csv", "none.csv", "none.csv: no such file; --measured names the folder"),
        ("[[program]]", "[[program]", "gpu.toml: cannot be read"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert RECIPE.count(old) == 1
    written(tmp_path, RECIPE.replace(old, new))
    with pytest.raises(ProfileError, match=message):
        rows_of(only(tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1.5", "fast", "times.csv:3: time: 'fast' is not a number"),
        ("1.5", "inf", "'inf' is not a number"),
        ("1.5", "0", "time is 0, expected more than 0"),
        ("add,size=10,", "add,size=10,1,", "times.csv:3: 6 cells, expected 5"),
        ("size=10,1.5", "size,1.5", "parameters: 'size', expected a new name=value"),
        ("size=10,1.5", "size=10 size=20,1.5", "parameters: 'size=20', expected a new name=value"),
        ("size=10,1.5", "time=3,1.5", "parameters: 'time=3', expected a new name=value"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert TIMES.count(old) == 1
    written(tmp_path, times=TIMES.replace(old, new))
    with pytest.raises(ProfileError, match=message):
        rows_of(only(tmp_path), tmp_path)


def test_without_recipes_or_tables(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"b.toml: no such file: there are recipes for gpu; --recipes"):
        read_recipes(written(tmp_path), "b")
    with pytest.raises(ProfileError, match=r"times.csv: where is it.*SIMT_MEASURED"):
        rows_of(only(tmp_path), None)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_text_is_read_wrongly(tmp_path: Path, data: st.DataObject) -> None:
    """A changed recipe or table gives rows, or an error that names the file; never another exception."""
    texts = []
    for text in (RECIPE, TIMES):
        at = data.draw(st.integers(0, len(text)))
        end = min(len(text), at + data.draw(st.integers(0, 20)))
        texts.append(text[:at] + data.draw(st.text(max_size=8)) + text[end:])
    written(tmp_path, *texts)
    try:
        for recipe in read_recipes(tmp_path, "gpu"):
            assert all(row.measured > 0 for row in rows_of(recipe, tmp_path))
    except ProfileError as error:
        assert str(tmp_path) in str(error)


def test_a_table_may_be_part_of_the_source(tmp_path: Path) -> None:
    text = RECIPE.replace('file = "times.csv"', 'source = "suite"\nfile = "results/times.csv"')
    (tmp_path / "suite" / "results").mkdir(parents=True)
    (tmp_path / "suite" / "results" / "times.csv").write_text(TIMES, encoding="utf-8")
    recipe = only(written(tmp_path, text))
    assert [row.name for row in rows_of(recipe, None, tmp_path)] == ["add size=10", "add size=5"]
    with pytest.raises(ProfileError, match=r"add needs a checkout of .*/suite at 0123; --sources"):
        rows_of(recipe, tmp_path)


def test_where_may_list_values(tmp_path: Path) -> None:
    def names(size: str) -> list[str]:
        recipe = only(written(tmp_path, RECIPE.replace('size = "*"', f"size = {size}")))
        return [row.name for row in rows_of(recipe, tmp_path)]

    assert names('["5", "10", "11"]') == ["add size=10", "add size=5"]
    assert names('["5"]') == names('"5"') == ["add size=5"]
    with pytest.raises(ProfileError, match=r"no row with .*'size': \['7', '8'\].*, which add should have"):
        names('["7", "8"]')
    with pytest.raises(ProfileError, match=r"where: size is \[\], expected at least one value"):
        names("[]")


def test_fields_may_have_spaces(tmp_path: Path) -> None:
    times = "benchmark,Array Size,time,hit,miss\nadd,10,1.5,3,4\n"
    text = RECIPE.replace('size = "*", block = ""', '"Array Size" = "*"').replace("{size}", "{Array Size}")
    (row,) = rows_of(only(written(tmp_path, text, times)), tmp_path)
    assert (row.name, row.arguments) == ("add Array Size=10", ["--size=10", "-v"])


def test_files_may_lie_beside_the_recipe(tmp_path: Path) -> None:
    recipe = only(written(tmp_path, RECIPE.replace('["add.cu"]', '["simt:kernels/add.cu", "sub.cu"]')))
    source = tmp_path / "suite"
    assert [recipe.path_of(name, source) for name in recipe.files] == [
        tmp_path / "kernels" / "add.cu",
        source / "sub.cu",
    ]


def test_headers_beside_the_recipe_are_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "own" / "folder").mkdir(parents=True)
    for name in ("b.h", "a.h"):
        (tmp_path / "own" / name).write_text("", encoding="utf-8")
    lines = 'files = ["add.cu"]\ninclude = ["simt:own", "common"]'
    recipe = only(written(tmp_path, RECIPE.replace('files = ["add.cu"]', lines)))
    assert recipe.own_files() == [tmp_path / "own" / "a.h", tmp_path / "own" / "b.h"]


def test_inputs_are_files_of_a_source_or_what_a_script_writes(tmp_path: Path) -> None:
    inputs = 'inputs = ["suite:data/a.txt", "simt:inputs.py floats b.bin 4"]'
    recipe = only(written(tmp_path, RECIPE.replace('use = "tuning"', f'use = "tuning"\n{inputs}')))
    assert [(each.source.name, each.path, each.arguments) for each in recipe.inputs] == [
        ("suite", "data/a.txt", ()),
        (OWN, "inputs.py", ("floats", "b.bin", "4")),
    ]
    assert [each.is_script for each in recipe.inputs] == [False, True]


def test_written_inputs(tmp_path: Path) -> None:
    """b+tree's is Rodinia's mil.txt to the byte; others are as long as their readers expect."""

    def write(*arguments: str) -> bytes:
        command = [sys.executable, str(ROOT / "inputs.py"), arguments[0], "file", *arguments[1:]]
        subprocess.run(command, cwd=tmp_path, check=True)
        return (tmp_path / "file").read_bytes()

    mil = "1b52b1caf9e0926afbe070cd96327e2645dade902fe9cfd078938ff6d755a29d"
    assert hashlib.sha256(write("keys", "1000000")).hexdigest() == mil
    assert len(write("floats", "6")) == 24
    assert len(write("bytes", "7")) == 7
    assert len(write("mri", "2", "3")) == 8 + 4 * (5 * 2 + 3 * 3)
    assert len(write("lines", "5").splitlines()) == 5
    assert len(write("matrix", "2", "3").split()) == 2 + 6
    graph = write("graph", "3", "2").split()
    assert len(graph) == 1 + 2 * 3 + 1 + 1 + 2 * 6
    assert graph[:9] == [b"3", b"0", b"2", b"2", b"2", b"4", b"2", b"0", b"6"]
    assert graph == write("graph", "3", "2").split()


def test_conditions_are_read(tmp_path: Path) -> None:
    text = RECIPE.replace(
        'use = "tuning"', 'use = "tuning"\nset = { "l2.copies_fill" = false, "sm.count" = 4 }'
    )
    assert only(written(tmp_path, text)).set == {"l2.copies_fill": False, "sm.count": 4}


@pytest.mark.parametrize("gpu", GPUS)
def test_recipes_that_come_with_simt(gpu: str) -> None:
    assert gpu in available()
    for recipe in read_recipes(ROOT, gpu):
        load_spec(gpu, recipe.set)
        source = recipe.source
        own = [name for name in recipe.files if source.name == OWN or name.startswith(f"{OWN}:")]
        assert all(recipe.path_of(name, ROOT).is_file() for name in own)
        assert all((ROOT / each.path).is_file() for each in recipe.inputs if each.source.name == OWN)
        if source.name != OWN:
            assert source.repository.startswith("https://")
            assert re.fullmatch("[0-9a-f]{40}", source.commit)


def held_out(gpu: str, suites: set[str]) -> tuple[set[str], set[str]]:
    recipes = [recipe for recipe in read_recipes(ROOT, gpu) if recipe.suite in suites]
    return {r.program for r in recipes}, {r.program for r in recipes if r.use == "held-out"}


def drawn(names: set[str], seen: set[str], count: int) -> set[str]:
    return set(random.Random(19).sample(sorted(names - seen), count))


def test_rows_of_accel_sims_table_that_have_no_recipe() -> None:
    """docs/whole-programs.md says why; a program with several inputs in Accel-Sim's list is unclear."""
    recipes = [recipe for recipe in read_recipes(ROOT, "qv100") if recipe.table.file == TABLE]
    have = {(recipe.where["suite"][0], recipe.where["program"][0]) for recipe in recipes}
    rows = {(fields["suite"], fields["program"]) for _, fields in read_table(published_path(Path(TABLE)))}
    assert len(rows) == 71
    assert rows - have == {
        *(("parboil", name) for name in ("bfs", "cutcp", "histo", "sad", "spmv")),
        *(("rodinia", name) for name in ("kmeans", "sc")),
        *(("microbenchmarks", name) for name in ("l1-bw", "l1-bw-unroll")),
    }
    for row in have:
        of = [r for r in recipes if (r.where["suite"][0], r.where["program"][0]) == row]
        assert len(of) == 1 or all(recipe.unclear for recipe in of)


def test_the_held_out_programs_were_drawn() -> None:
    names, held = held_out("titanv", {"gpu-perf"})
    seen = {"matmul_naive", "matmul_tiled", "vector_add", "shared_transpose", "naive_transpose"}
    assert held == drawn(names, seen, 8)
    names, held = held_out("a100-pcie", {"gpu-perf-model"})
    assert held == drawn(names, set(), 1)
    names, held = held_out("h100-pcie", {"polybench", "cuda-sdk"})
    names |= {"fastwalshtransform", "mergesort", "scalarprod", "scan-long", "scan-short", "transpose"}
    names |= {"sortingnetworks-bitonic", "sortingnetworks-oddeven"}  # without recipes
    assert held == drawn(names, {"2dconv", "atax", "vectoradd"}, 9) & held
    assert len(held) == 5
    names, held = held_out("rtx2060", {"pmpp"})
    assert held == drawn(names, {"histogram", "histogram_shared"}, 8)


def test_tables_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for text in ("", "# nothing\n", "\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ProfileError, match="no header"):
            read_table(path)
    path.write_text("a,b\n", encoding="utf-8")
    assert read_table(path) == []
