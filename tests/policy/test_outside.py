"""Policies named by their files: on the command line, in specifications, and as axes of studies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import simt
from simt.errors import SpecError, StudyError
from simt.spec import load_spec, outside_policies, to_toml
from simt.trace.generate import generate

pytest.importorskip("numba")

GPU = "qv100-accelsim"
POLICIES = """
import simt

SHIFT = 8

class Newest:
    def choose(self, warps, last, cycle):
        best = -1
        for w in range(len(warps)):
            if warps[w].ready and (best < 0 or warps[w].age > warps[best].age):
                best = w
        return best

@simt.policy.scheduler
def newest(ready, age, last, cycle):
    best = -1
    for w in range(len(ready)):
        if ready[w] and (best < 0 or age[w] > age[best]):
            best = w
    return best

def by_shift(address, slices):
    return (address >> SHIFT) % slices

number = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the file and a trace."""
    (tmp_path / "own.py").write_text(POLICIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIMT_POLICIES", str(tmp_path / "policies"))
    return tmp_path


def test_a_class_a_compiled_policy_and_a_function_of_a_file(here: Path) -> None:
    trace = generate(["gemm", "gather"], here / "t", sm=70, size=128, compression="none")

    def run(**settings: str) -> list[object]:
        names = {key.replace("__", "."): value for key, value in settings.items()}
        return [x.counters for x in simt.simulate(trace, GPU, set=names).launches]

    by_class = run(sm__scheduler__policy="own.py:Newest")
    assert by_class == run(sm__scheduler__policy="./own.py:newest")
    assert by_class != run(sm__scheduler__policy="oldest")
    assert by_class == run(sm__scheduler__policy=f"{here}/own.py:Newest")
    assert run(address_map__hash="own.py:by_shift") != run()


def test_the_hash_follows_the_source_and_its_globals(here: Path) -> None:
    before = load_spec(GPU, ["address_map.hash=own.py:by_shift", "sm.scheduler.policy=own.py:Newest"])
    (here / "own.py").write_text(POLICIES.replace("SHIFT = 8", "SHIFT = 9"))
    after = load_spec(GPU, ["address_map.hash=own.py:by_shift", "sm.scheduler.policy=own.py:Newest"])
    assert after.address_map.hash != before.address_map.hash
    assert after.sm.scheduler == before.sm.scheduler  # does not refer to it
    assert after.hash != before.hash
    assert set(outside_policies(after)) == {"address_map.hash", "sm.scheduler.policy"}


def test_paths_in_a_specification_are_relative_to_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "mine.toml").write_text(
        f'extends = "{GPU}"\n[sm.scheduler]\npolicy = {{ value = "own.py:Newest", source = "mine" }}\n'
    )
    (here / "below").mkdir()
    (here / "below" / "more.toml").write_text('extends = "../mine.toml"\n')
    monkeypatch.chdir("/")
    first, more = load_spec(here / "mine.toml"), load_spec(here / "below" / "more.toml")
    assert first.hash == more.hash
    assert first.sm.scheduler.policy.startswith("Newest@")
    # As it is written out, it is known in this process, but not in another one.
    (here / "written.toml").write_text(to_toml(first))
    assert load_spec(here / "written.toml").hash == first.hash
    code = f"import simt.spec; simt.spec.load_spec({str(here / 'written.toml')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "its file is not loaded: name that, such as my.py:Newest or my.cpp:Newest" in done.stderr


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("sm.scheduler.policy=own.py:Oldest", "found 'own.py:Oldest', own.py has no Oldest"),
        ("sm.scheduler.policy=none.py:X", "none.py: cannot be read: No such file"),
        ("sm.scheduler.policy=none.cpp:x", "none.cpp: cannot be read: No such file"),
        ("sm.scheduler.policy=none:X", "none: no such module: .*a file is named with its ending"),
        ("sm.scheduler.policy=own.py:number", "own.py: number is 3, expected a function or a class"),
        ("l1.cache.replacement=own.py:newest", "own.py: newest is a scheduler, expected a replacement"),
        ("dram.scheduler=own.py:newest", "a dram_scheduler cannot be written in Python, only in C\\+\\+"),
        ("sm.scheduler.policy=broken.py:X", "broken.py: cannot be run: ZeroDivisionError"),
        ("sm.scheduler.policy=gto@0123456789ab", "its file is not loaded: name that"),
    ],
)
def test_what_cannot_be_found_is_named(setting: str, message: str, here: Path) -> None:
    (here / "broken.py").write_text("1 / 0\n")
    with pytest.raises(SpecError, match=f"{GPU}: {setting.partition('=')[0]}: .*{message}"):
        load_spec(GPU, [setting])


def simt_command(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", "import simt.cli; simt.cli.main()", *arguments]
    return subprocess.run(line, capture_output=True, text=True, cwd=here, env=dict(os.environ))


CPP = """#include "timing/schedulers/warp_scheduler.hpp"
namespace simt {
struct Newest final : WarpScheduler {
  using WarpScheduler::WarpScheduler;
  int32_t choose(uint64_t candidates, uint64_t) override { return youngest(candidates); }
};
const Registered<SchedulerPolicy> registered_newest{{{"newest", "", ""}, make_scheduler<Newest>}};
}  // namespace simt
"""


@pytest.mark.slow
def test_studies_and_the_command_line(here: Path) -> None:
    """The same policy in C++ and in Python, in a study that is started elsewhere; an edited file is simulated
    again, simt's own policy is not."""
    from simt.study import Study

    (here / "newest.cpp").write_text(CPP)
    built = simt_command(here, "policy", "build", "newest.cpp")
    assert built.stdout == "built scheduler newest: --set sm.scheduler.policy=newest\n", built.stderr
    assert "newest" in simt_command(here, "policy", "list").stdout
    generate(["gemm", "gather"], here / "t", sm=70, size=64, compression="none")
    values = ["oldest", "newest.cpp:newest", "own.py:Newest"]
    (here / "study.toml").write_text(
        f'inputs = ["t"]\ngpus = ["{GPU}"]\n[set]\n"sm.scheduler.policy" = {values}\n'
    )
    done = simt_command(here.parent, "study", "run", str(here / "study.toml"))
    assert done.returncode == 0, done.stdout + done.stderr
    table = Study.load(here / "study.toml").table()
    cycles = dict(zip(table["sm.scheduler.policy"], table["cycles"], strict=True))
    assert cycles["newest.cpp:newest"] == cycles["own.py:Newest"] != cycles["oldest"]
    finished = dict(zip(table["sm.scheduler.policy"], table["finished"], strict=True))
    (here / "own.py").write_text(POLICIES.replace("age > ", "age < "))
    done = simt_command(here, "study", "run", "study.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    table = Study.load(here / "study.toml").table()
    again = dict(zip(table["sm.scheduler.policy"], table["finished"], strict=True))
    assert {name for name in again if again[name] != finished[name]} == {"own.py:Newest"}
    cycles = dict(zip(table["sm.scheduler.policy"], table["cycles"], strict=True))
    assert cycles["own.py:Newest"] == cycles["oldest"]
    for other in ("./newest.cpp:newest", "newest"):
        names = ["newest.cpp:newest", other]
        twice = Study(inputs=["t"], gpus=[GPU], set={"sm.scheduler.policy": names}, folder=here)
        with pytest.raises(
            StudyError, match=f"set.sm.scheduler.policy: '{names[0]}' and '{other}' are the same"
        ):
            print(twice.points)
    gone = simt_command(here, "policy", "remove", "newest")
    assert gone.stdout == "removed scheduler newest\n"
    assert simt_command(here, "policy", "list").stdout == "no policies have been built\n"
