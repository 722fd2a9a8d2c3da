"""What profilers do to launches."""

from pathlib import Path

import pytest

from simt.errors import ProfileError
from simt.spec import load_spec
from simt.spec.files import available
from simt.validate.own_rows import read_own_rows
from simt.validate.profilers import conditions
from simt.validate.recipes import read_recipes

RECIPES = Path(__file__).parents[2] / "validation/programs"


def test_nsight_compute_starts_in_cycles_where_that_is_known() -> None:
    turing, hopper = conditions("nsight-compute", 75), conditions("nsight-compute", 90)
    assert turing == {"launch.cold_caches": True, "launch.kernel_latency": 1200, "launch.overhead": 0}
    assert hopper == {"launch.cold_caches": True}


@pytest.mark.parametrize("gpu", available())
def test_every_gpu_has_such_a_specification(gpu: str) -> None:
    version = load_spec(gpu).sm_version
    cold = load_spec(gpu, conditions("nsight-compute", version))
    assert cold.launch.cold_caches
    warm = load_spec(gpu, conditions("nvprof", version))
    assert not warm.launch.cold_caches and not warm.l2.copies_fill
    assert (warm.launch.kernel_latency, warm.launch.overhead) == (5000, 0)


def test_own_rows_have_the_conditions(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("int main() {}")
    table = tmp_path / "rows.csv"
    table.write_text("program,cycles\na.cu,1000\n")
    (plain,) = read_own_rows(table, "a100")
    (counted,) = read_own_rows(table, "a100", "nsight-compute")
    assert plain.recipe.set == {}
    assert counted.recipe.set["launch.kernel_latency"] == 2150


def test_a_table_says_its_profiler() -> None:
    """A row's own conditions are added: this card's memory ran at another clock."""
    nsight = [r for r in read_recipes(RECIPES, "rtx3090") if r.suite == "nsight"]
    assert nsight and all(r.set["launch.kernel_latency"] == 1700 for r in nsight)
    assert {r.set["clock.dram_mhz"] for r in nsight} == {4745, 4865}
    events = [r for r in read_recipes(RECIPES, "rtx3090") if r.suite == "gemm-versions"]
    assert events and all(r.set == {} for r in events)


def test_an_unknown_profiler_is_refused(tmp_path: Path) -> None:
    text = (RECIPES / "t4.toml").read_text(encoding="utf-8")
    (tmp_path / "t4.toml").write_text(text.replace('profiler = "nsight-compute"', 'profiler = "vtune"'))
    with pytest.raises(ProfileError, match="profiler is 'vtune', expected one of nsight-compute, nvprof"):
        read_recipes(tmp_path, "t4")
