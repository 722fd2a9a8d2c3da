"""Import of Accel-Sim configurations."""

from pathlib import Path

import pytest
from accelsim_configurations import CONFIGURATIONS, TIMING, TRACES, write

from simt.errors import SpecError
from simt.spec import SpecWarning, from_gpgpusim, load_spec


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["qv100", "rtx3070"])
def test_stock_options_give_the_shipped_specification(name: str, tmp_path: Path) -> None:
    spec = from_gpgpusim(*write(tmp_path, CONFIGURATIONS[name], TRACES[name]))
    shipped = load_spec(f"{name}-accelsim")
    assert spec.differences(shipped) == []
    assert spec.hash == shipped.hash


def test_booksim_becomes_a_crossbar_with_a_warning(tmp_path: Path) -> None:
    paths = write(tmp_path, CONFIGURATIONS["titanx"], TRACES["titanx"])
    net = (
        "// x\nflit_size = 40; \nsw_allocator = islip; //y\ninput_buffer_size=256;ejection_buffer_size = 64;"
    )
    (tmp_path / "net.icnt").write_text(net)
    with pytest.warns(SpecWarning, match="BookSim"):
        spec = from_gpgpusim(*paths)
    assert spec.differences(load_spec("titanx-accelsim")) == []
    assert spec.sources["interconnect.flit_bytes"].endswith("net.icnt flit_size")

    (tmp_path / "other.icnt").write_text("flit_size = 64;")
    with pytest.warns(SpecWarning, match="BookSim"):
        assert from_gpgpusim(*paths, icnt=tmp_path / "other.icnt").interconnect.flit_bytes == 64
    (tmp_path / "other.icnt").write_text("flit_size = many;")
    with pytest.raises(SpecError, match=r"other\.icnt: flit_size: found 'many'"):
        from_gpgpusim(*paths, icnt=tmp_path / "other.icnt")
    (tmp_path / "net.icnt").unlink()
    with pytest.warns(SpecWarning) as notes:
        spec = from_gpgpusim(*paths)
    assert any("net.icnt was not found" in str(note.message) for note in notes)
    assert spec.differences(load_spec("titanx-accelsim")) == []


def test_every_value_has_a_source_that_names_its_option(tmp_path: Path) -> None:
    spec = from_gpgpusim(*write(tmp_path, CONFIGURATIONS["qv100"], TRACES["qv100"]))
    assert set(spec.sources) == {path for path, _ in spec.leaves()} - {"name", "description"}
    folder = tmp_path.name
    assert spec.sources["l1.latency"] == f"{folder}/gpgpusim.config: -gpgpu_l1_latency"
    assert spec.sources["sm.units.sfu.latency"] == f"{folder}/trace.config: -{TIMING}sfu"
    absent = f"{folder}/gpgpusim.config: -gpgpu_simple_dram_model absent, Accel-Sim's default 0"
    assert spec.sources["dram.simple"] == absent
    assert spec.name == folder


def test_ignored_options_are_listed_with_their_line(tmp_path: Path) -> None:
    options = {"gpgpu_lrc_enabled": "1", **CONFIGURATIONS["qv100"], "visualizer_enabled": "0"}
    trace = {
        **TRACES["qv100"],
        "specialized_unit_5": "1,4,128,4,4,GMMA",
        "specialized_unit_6": "0,4,4,4,4,UDP",
    }
    with pytest.warns(SpecWarning) as notes:
        spec = from_gpgpusim(*write(tmp_path, options, trace))
    text = str(notes[0].message)
    assert f"-gpgpu_lrc_enabled ({tmp_path}/gpgpusim.config:2)" in text
    assert "-specialized_unit_5" in text
    assert "-specialized_unit_6" in text
    assert "visualizer" not in text
    assert spec.sm.units.uniform.latency == 4


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("gpgpu_scheduler", "warp_limiting:2:16", "there is no such scheduler"),
        ("gpgpu_clock_domains", "1:2:3", "3 numbers, expected 4"),
        ("gpgpu_clock_domains", "a:b:c:d", "could not convert"),
        ("gpgpu_cache:dl1", "none", "cannot use 'none'"),
        ("gpgpu_cache:dl2", "S:32:128:24,L:B:m:L:Q,A:192:4,32:0,32", "cannot use"),
        ("gpgpu_memory_partition_indexing", "9", "cannot use '9'"),
        ("gpgpu_mem_addr_mapping", "dramid@8;RRXX", "dramid@8"),
        ("gpgpu_dram_timing_opt", "nbk=16:CCD=1", "is missing"),
        ("gpgpu_shader_core_pipeline", "2048:0", "a warp of 0 lanes"),
        ("gpgpu_n_clusters", "", "cannot use ''"),
        ("gpgpu_n_clusters", "0", "sm.count: found 0"),
    ],
)
def test_bad_values_are_refused(option: str, value: str, reason: str, tmp_path: Path) -> None:
    paths = write(tmp_path, {**CONFIGURATIONS["qv100"], option: value}, TRACES["qv100"])
    with pytest.raises(SpecError) as error:
        from_gpgpusim(*paths)
    assert str(paths[0]) in str(error.value)
    assert reason in str(error.value)


def test_what_is_no_configuration_is_refused(tmp_path: Path) -> None:
    paths = write(tmp_path, {}, {})
    with pytest.raises(SpecError, match="-gpgpu_cache:dl1 is absent"):
        from_gpgpusim(*paths)
    paths[0].write_text("some text")
    with pytest.raises(SpecError, match=r"gpgpusim\.config:1: found 'some'"):
        from_gpgpusim(*paths)
    with pytest.raises(SpecError, match="No such file"):
        from_gpgpusim(tmp_path / "absent", paths[1])


def test_two_level_scheduler(tmp_path: Path) -> None:
    options = {**CONFIGURATIONS["qv100"], "gpgpu_scheduler": "two_level_active:6:0:1"}
    spec = from_gpgpusim(*write(tmp_path, options, TRACES["qv100"]))
    assert (spec.sm.scheduler.policy, spec.sm.scheduler.active_warps) == ("two_level", 6)
