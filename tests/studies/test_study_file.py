"""Study files: what they mean, and one clear error for each mistake."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from simt import Study
from simt.errors import SimtError, StudyError
from support.study_programs import write_program
from support.tiny import dependent, write_kernel

GOOD = """
inputs = ["small.py"]
gpus = ["qv100", "a100"]
seeds = [0, 1]
where = ["sm.count < 80 or l1.latency == 20"]
methods = ["full", "pkp threshold=0.5"]
[set]
sm.count = [40, 80]
l1.latency = [20, 30]
[set.memory]
"""


def load(folder: Path, text: str) -> Study:
    write_program(folder)
    gpus = "" if "gpus" in text else 'gpus = ["qv100"]\n'
    (folder / "study.toml").write_text(gpus + text)
    return Study.load(folder / "study.toml")


def test_the_names_of_points_do_not_depend_on_the_order_of_hashes(tmp_path: Path) -> None:
    load(tmp_path, GOOD.replace("[set.memory]", ""))
    show = "import simt; print(*(p.digest for p in simt.Study.load('study.toml').points))"
    names = [
        subprocess.check_output(
            [sys.executable, "-c", show], cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": str(seed)}
        )
        for seed in range(3)
    ]
    assert len(set(names)) == 1 and len(set(names[0].split())) == 24


def test_points_are_the_product_less_what_where_leaves_out(tmp_path: Path) -> None:
    points = load(tmp_path, GOOD.replace("[set.memory]", "")).points
    assert len(points) == 2 * 3 * 2 * 2
    assert points[0].columns == {
        "input": "small",
        "gpu": "qv100",
        "sm.count": 40,
        "l1.latency": 20,
        "method": "full",
        "seed": 0,
    }
    assert [(p.columns["sm.count"], p.columns["l1.latency"]) for p in points[:12:4]] == [
        (40, 20),
        (40, 30),
        (80, 20),
    ]
    assert len({p.digest for p in points}) == len(points)


def test_fields_that_change_together_are_one_axis(tmp_path: Path) -> None:
    study = load(
        tmp_path,
        'inputs = ["small.py"]\n[set]\n'
        'half = [{name = "whole"}, {name = "half", sm.count = 40, address_map.channels = 16}]\n',
    )
    assert [p.columns["half"] for p in study.points] == ["whole", "half"]
    assert [dict(p.work.overrides) for p in study.points] == [
        {},
        {"sm.count": 40, "address_map.channels": 16},
    ]
    assert study.points[1].row["address_map.channels"] == 16


def test_lists_are_values_of_fields_that_take_lists(tmp_path: Path) -> None:
    text = """inputs = ["small.py"]
    gpus = ["h100"]
    [set]
    l1.carve_out_options = [[0, 233472], [0, 131072, 233472]]
    """
    points = load(tmp_path, text).points
    assert [p.columns["l1.carve_out_options"] for p in points] == ["[0, 233472]", "[0, 131072, 233472]"]
    assert [json.loads(p.specification)["l1"]["carve_out_options"] for p in points] == [
        [0, 233472],
        [0, 131072, 233472],
    ]
    both = 'both = [{ name = "whole" }, { name = "less", l1.carve_out_options = [0, 233472] }]'
    points = load(
        tmp_path, text.replace("l1.carve_out_options = [[0, 233472], [0, 131072, 233472]]", both)
    ).points
    assert [len(json.loads(p.specification)["l1"]["carve_out_options"]) > 2 for p in points] == [True, False]
    with pytest.raises(StudyError, match="or a list of them for a field that takes a list"):
        load(tmp_path, text.replace("[0, 233472],", "[0, [1]],"))


def test_seeds_that_nothing_takes_add_no_points(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("def main(gpu):\n    pass\n")
    study = load(tmp_path, 'inputs = ["small.py", "plain.py"]\nseeds = [0, 1, 2]\n')
    assert [(p.columns["input"], p.columns["seed"]) for p in study.points] == [
        ("small", 0),
        ("small", 1),
        ("small", 2),
        ("plain", 0),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'inputs = ["small.py"]\n[set]\n'
            'size = [{ name = "a", sm.count = 4 }, { name = "b", sm.count = 4 }]',
            "set.size: 'a' and 'b' are the same simulation (input=small, gpu=qv100, method=full)",
        ),
        (
            'inputs = [{ input = "small.py", name = "one" }, "small.py"]',
            "inputs: 'one' and 'small' are the same simulation (gpu=qv100, method=full)",
        ),
        (
            'inputs = ["small.py"]\nmethods = ["pkp", { name = "other", sample = "pkp" }]',
            "methods: 'pkp' and 'other' are the same simulation",
        ),
    ],
)
def test_points_that_are_the_same_simulation_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """A table has a row for a simulation: none is lost in silence."""
    study = load(tmp_path, text)
    with pytest.raises(StudyError, match=re.escape(message) + ".*; leave one out"):
        print(study.points)


def test_options_that_an_input_does_not_take_add_no_points(tmp_path: Path) -> None:
    write_kernel(tmp_path / "trace", [[dependent(4)]])
    study = load(tmp_path, 'inputs = ["small.py", "trace"]\n[options]\ncode = ["ptx", "sass"]\n')
    assert [(p.columns["input"], p.columns["code"]) for p in study.points] == [
        ("small", "ptx"),
        ("small", "sass"),
        ("trace", "ptx"),
    ]


def test_options_are_axes(tmp_path: Path) -> None:
    study = load(tmp_path, 'inputs = ["small.py"]\n[options]\ncode = ["ptx", "sass"]\nclock = [1000, 1200]\n')
    assert [(p.columns["code"], p.columns["clock"]) for p in study.points] == [
        ("ptx", 1000),
        ("sass", 1000),
        ("ptx", 1200),
        ("sass", 1200),
    ]
    assert [p.work.options["code"] for p in study.points] == ["ptx", "sass", "ptx", "sass"]
    assert len({p.digest for p in study.points}) == 4
    with pytest.raises(StudyError, match=r"options.code: run.code sets it, too"):
        load(tmp_path, 'inputs = ["small.py"]\n[run]\ncode = "sass"\n[options]\ncode = ["ptx"]\n')
    with pytest.raises(StudyError, match=r"options.threads: unknown key"):  # no outcome depends on it
        load(tmp_path, 'inputs = ["small.py"]\n[options]\nthreads = [1, 2]\n')


def test_digests_follow_contents(tmp_path: Path) -> None:
    def digest(text: str = 'inputs = ["small.py"]\n') -> str:
        return load(tmp_path, text).points[0].digest

    first = digest()
    assert digest() == first
    assert digest('inputs = ["small.py"]\ngpus = ["a100"]\n') != first
    assert digest('inputs = ["small.py"]\n[set]\nsm.count = 40\n') != first
    assert digest('inputs = ["small.py"]\n[set]\nsm.count = 80\n') == first  # qv100 has 80
    assert digest('inputs = ["small.py"]\nmethods = ["pkp"]\n') != first
    assert digest('inputs = ["small.py"]\n[run]\nthreads = 2\ntimeout = 5\n') == first
    assert digest('inputs = ["small.py"]\n[run]\npower = true\n') != first
    (tmp_path / "data.bin").write_bytes(b"1")
    further = 'inputs = [{input = "small.py", files = ["data.bin"]}]\n'
    second = digest(further)
    (tmp_path / "data.bin").write_bytes(b"2")
    assert len({first, second, digest(further)}) == 3


def test_digests_follow_modules_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import helper\ndef main(gpu):\n    pass\n")
    (tmp_path / "other.py").write_text("unrelated = 1\n")
    (tmp_path / "helper.py").write_text("import deeper\n")
    (tmp_path / "deeper.py").write_text("value = 1\n")

    def digest() -> str:
        return Study(inputs=["main.py"], folder=tmp_path).points[0].digest

    first = digest()
    (tmp_path / "other.py").write_text("unrelated = 2\n")
    assert digest() == first
    (tmp_path / "deeper.py").write_text("value = 2\n")
    assert digest() != first


def test_digests_follow_ones_own_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = write_program(tmp_path)
    code = "from simt.control.pkp import PKP\nclass Mine(PKP):\n    pass\n"
    digests = set()
    for comment in ("", "# changed\n"):
        (tmp_path / "own_controller.py").write_text(code + comment)
        digests.add(Study(inputs=[name], methods=["own_controller:Mine"], folder=tmp_path).points[0].digest)
    assert len(digests) == 2


def test_digests_follow_traces(tmp_path: Path) -> None:
    trace = write_kernel(tmp_path / "trace", [[dependent(5)]])
    first = Study(inputs=["trace"], folder=tmp_path).points[0].digest
    assert Study(inputs=["trace/kernelslist.g"], folder=tmp_path).points[0].digest == first
    (trace / "kernelslist.g").write_text("MemcpyHtoD,0x7f0000000000,64\nkernel-1.traceg\n")
    second = Study(inputs=["trace"], folder=tmp_path).points[0].digest
    kernel = trace / "kernel-1.traceg"
    kernel.write_text(kernel.read_text().replace("FFMA", "FADD", 1))
    assert len({first, second, Study(inputs=["trace"], folder=tmp_path).points[0].digest}) == 3


def test_digests_follow_included_files(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text('#include "part.cuh"\n')
    (tmp_path / "kernel.py").write_text("def main(gpu, module):\n    pass\n")
    (tmp_path / "part.cuh").write_text("// 1\n")

    def digest() -> str:
        return Study(inputs=["kernel.cu"], folder=tmp_path).points[0].digest

    first = digest()
    (tmp_path / "part.cuh").write_text("// 2\n")
    assert digest() != first


WRONG = [
    ("inputs = [", "not valid TOML"),
    ("", "inputs: missing"),
    ("inputs = []", r"inputs: found \[\], list should have at least 1 item"),
    ("inputs = [3]", r"inputs\[1\]: found 3, expected a table"),
    ('input = ["x.py"]', r"input: unknown key; did you mean inputs"),
    ('inputs = [{input = "small.py", sise = 3}]', r"inputs\[1\]\.sise: unknown key; did you mean size"),
    ('inputs = ["nothing.py"]', "nothing.py: there is no such file"),
    ('inputs = ["lonely.cu"]', "lonely.cu: its driver .*lonely.py is missing"),
    (
        'inputs = [{input = "small.py", driver = "small.py"}]',
        "small.py: a Python program is its own driver",
    ),
    ('inputs = ["nothing"]', "inputs: nothing: there is no such file, example or workload"),
    ('inputs = ["small.py", "small.py"]', "inputs: 'small' occurs twice"),
    ('inputs = ["small.py"]\ngpus = ["h1000"]', "there is no GPU called 'h1000'"),
    ('inputs = ["small.py"]\nseeds = ["a"]', r"seeds\[1\]: found 'a', expected a valid integer"),
    ('inputs = ["small.py"]\nseeds = [true]', r"seeds\[1\]: found True"),
    ('inputs = ["small.py"]\nmethods = ["fast"]', "no method 'fast'"),
    ('inputs = ["small.py"]\nmethods = [{sampler = "stem"}]', r"methods\[1\]: .*go together"),
    ('inputs = ["small.py"]\nmethods = [{name = "s", spread = 1}]', "spread needs a plan or a trace"),
    ('inputs = ["small.py"]\nmethods = [{plan = "p.json"}]', "p.json: there is no such file"),
    ('inputs = ["small.py"]\n[set]\nsm.counts = 3', r"set.sm.counts: .*unknown field.*sm.count"),
    ('inputs = ["small.py"]\n[set]\nsm.count = []', "set.sm.count: found no value"),
    (
        'inputs = ["small.py"]\n[set]\nsm.count = [4, 4]',
        "set.sm.count: 4 occurs twice; leave one out",
    ),
    (
        'inputs = ["small.py"]\n[set]\nsm.count = [4, 4.0]',
        "set.sm.count: 4 and 4.0 are the same value; leave one out",
    ),
    (
        'inputs = ["small.py"]\n[set]\nsm.count = [4, "4"]',
        "set.sm.count: 4 and '4' are the same value; leave one out",
    ),
    ('inputs = ["small.py"]\nseeds = [0, 1, 0]', "seeds: 0 occurs twice; leave one out"),
    (
        'inputs = ["small.py"]\n[options]\nclock = [1200, 1200.0]',
        "options.clock: 1200.0 occurs twice; leave one out",
    ),
    ('inputs = ["small.py"]\n[set]\nsm.count = [0]', r"point .*sm.count=0.*: .*sm.count: found 0"),
    ('inputs = ["small.py"]\n[set]\nsm.count = [1979-05-27]', "expected a number, text, true or false"),
    ('inputs = ["small.py"]\n[set]\ngpu = [1]', "set.gpu: the name is that of a column"),
    ('inputs = ["small.py"]\n[set]\na = [{sm.count = 3}]', r"set.a\[1\]: found name None"),
    (
        'inputs = ["small.py"]\n[set]\nsm.count = [3]\na = [{name = "x", sm.count = 3}]',
        "set.a: set.sm.count sets sm.count, too",
    ),
    ('inputs = ["small.py"]\nwhere = ["sm.count <"]', r"where\[1\]: expression 'sm.count <'"),
    ('inputs = ["small.py"]\nwhere = ["sm.count"]', "where: .*expected true or false"),
    (
        'inputs = ["small.py"]\nwhere = ["sm.cuont > 1"]',
        "where: .*no column 'sm.cuont'; did you mean sm.count",
    ),
    ('inputs = ["small.py"]\nwhere = ["sm.count > 80"]', "where leaves out all 1 points"),
    ('inputs = ["small.py"]\nwhere = [3]', r"where\[1\]: found 3, expected an expression as text"),
    (
        'inputs = ["small.py"]\n[run]\nthreads = 0',
        "run.threads: found 0, expected greater|run.threads: found 0",
    ),
    ('inputs = ["small.py"]\n[run]\ntimeout = nan', "run.timeout: found nan"),
    ('inputs = ["small.py"]\n[workers]\nkind = "hosts"', "workers: hosts and kind"),
    ('inputs = ["small.py"]\n[search]\ntrials = 3', "search: found neither minimise nor maximise"),
    ('inputs = ["small.py"]\nrun = 3', "run: found 3, expected a table"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_mistakes_name_file_key_found_and_expected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "lonely.cu").touch()
    with pytest.raises(SimtError, match=message) as raised:
        print(load(tmp_path, text).points)
    assert str(raised.value).startswith(f"{tmp_path / 'study.toml'}: ")


def test_what_is_no_file_of_text(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    for name, message in (("binary.toml", "byte 0 is not UTF-8"), ("missing.toml", "no such file")):
        with pytest.raises(StudyError, match=message):
            Study.load(tmp_path / name)
    with pytest.raises(StudyError, match=r"study.json: there is no such file"):
        Study.load(tmp_path)


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_VALUES = st.recursive(
    _SCALARS,
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=6), x, max_size=3),
    max_leaves=8,
)
_KEYS = ("inputs", "gpus", "methods", "seeds", "set", "where", "results", "run", "workers", "search", "show")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.sampled_from(_KEYS) | st.text(max_size=6), _VALUES, max_size=4))
@example({"methods": [""]})
def test_any_values_are_a_study_or_one_error(tmp_path: Path, keys: dict[str, object]) -> None:
    write_program(tmp_path)
    given_ = {
        "inputs": ["small.py"],
        **{key: value for key, value in keys.items() if key not in ("folder", "self")},
    }
    try:
        study = Study(folder=tmp_path, **given_)
        if study.space.size < 1000:
            print(study.points)
    except SimtError as error:
        assert str(error)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 5), st.text(max_size=4))
def test_damaged_files_are_a_study_or_one_error(tmp_path: Path, at: int, cut: int, put: str) -> None:
    try:
        study = load(tmp_path, (GOOD[:at] + put + GOOD[at + cut :]).encode("utf-8", "replace").decode())
        if study.space.size < 1000:
            print(study.points)
    except SimtError as error:
        assert str(error)


def test_a_study_is_found_by_its_folder(tmp_path: Path) -> None:
    study = load(tmp_path, GOOD.replace("[set.memory]", ""))
    with study.session([]):
        pass
    (tmp_path / "small.py").unlink()
    kept = json.loads((study.results / "study.json").read_text())
    assert kept["keys"]["gpus"] == ["qv100", "a100"]
    again = Study.load(study.results)
    assert again.results == study.results
    assert again.table().columns == study.table().columns
