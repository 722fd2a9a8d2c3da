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


FERMI = {
    "gpgpu_compute_capability_major": "2",
    "gpgpu_n_clusters": "15",
    "gpgpu_n_cores_per_cluster": "1",
    "gpgpu_n_mem": "6",
    "gpgpu_clock_domains": "700.0:700.0:700.0:924.0",
    "gpgpu_shader_registers": "32768",
    "gpgpu_shader_core_pipeline": "1536:32",
    "gpgpu_shader_cta": "8",
    "gpgpu_pipeline_widths": "2,1,1,2,1,1,3",
    "gpgpu_num_sp_units": "2",
    "ptx_opcode_latency_int": "5,13,6,5,145",
    "ptx_opcode_initiation_int": "2,2,2,1,8",
    "ptx_opcode_latency_fp": "6,13,4,5,39",
    "ptx_opcode_initiation_fp": "1,2,1,1,4",
    "ptx_opcode_latency_dp": "9,19,8,8,330",
    "gpgpu_num_sched_per_core": "2",
    "gpgpu_cache:dl1": "32:128:4,L:L:m:N:H,A:32:8,8",
    "gpgpu_cache:dl2": "64:128:8,L:B:m:W:L,A:32:4,4:0,32",
    "gpgpu_cache:il1": "4:128:4,L:R:f:N:L,A:2:32,4",
    "gpgpu_const_cache:l1": "64:64:2,L:R:f:N:L,A:2:32,4",
    "gpgpu_shmem_size": "49152",
    "gpgpu_shmem_num_banks": "32",
    "gpgpu_l2_rop_latency": "120",
    "gpgpu_dram_buswidth": "4",
    "gpgpu_dram_burst_length": "8",
    "dram_data_command_freq_ratio": "4",
    "gpgpu_mem_addr_mapping": "dramid@8;00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.BBBCCCCB."
    "CCSSSSSS",
    "gpgpu_dram_timing_opt": "nbk=16:CCD=2:RRD=6:RCD=12:RAS=28:RP=12:RC=40:CL=12:WL=4:CDLR=5:WR=12:nbkgrp=4:"
    "CCDL=3:RTPL=2",
}


def test_a_configuration_of_gpgpusim_without_trace_config(tmp_path: Path) -> None:
    path, _ = write(tmp_path, FERMI, {})
    with pytest.warns(SpecWarning) as notes:
        spec = from_gpgpusim(path)
    text = "\n".join(str(note.message) for note in notes)
    assert "without a trace.config, units have the latencies of PTX's additions" in text
    assert "-gpgpu_cache:dl2 has whole lines" in text
    units = spec.sm.units
    assert (units.int.latency, units.int.initiation_interval) == (5, 2)
    assert (units.fp32.count, units.fp32.latency, units.fp32.initiation_interval) == (2, 6, 1)
    assert (units.fp64.latency, units.fp64.initiation_interval) == (9, 8)  # GPGPU-Sim's default interval
    assert (units.sfu.latency, units.sfu.initiation_interval) == (8, 8)  # both absent
    assert spec.sources["sm.units.int.latency"].endswith(
        "-ptx_opcode_latency_int and -ptx_opcode_initiation_int"
    )
    assert spec.sm.register_file.write_back_width == 3  # EX_WB, the last of seven
    assert spec.l2.slice.sectored and spec.l2.slice.ways == 8
    assert (
        spec.address_map.layout == "RRRRRRRRRRRRBBBCCCCBCCCSSSSS"
    )  # the sixth bit of the burst is a column's
    assert spec.l1.cache.sets == 32 and not spec.l1.cache.sectored


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("gpgpu_pipeline_widths", "2,1,1,2", "4 widths, expected 7"),
        ("gpgpu_pipeline_widths", "1,1,1,1,1,1,1,1,1,1", "10 widths, expected 7"),
        ("ptx_opcode_latency_int", "", "invalid literal"),
        (
            "gpgpu_cache:dl1",
            "32:128:4,L:L:m:N:H",
            "2 of 4 parts of <geometry>,<policies>,<MSHRs>,<miss queue>",
        ),
        ("gpgpu_cache:dl1", "32:128,L:L:m:N:H,A:32:8,8", "3 of 4 parts of <N or S>:<sets>"),
        ("gpgpu_cache:dl1", "32:128:4,L:L:m,A:32:8,8", "3 of 5 parts of <replacement>"),
        ("gpgpu_cache:dl1", "32:128:4,L:L:m:N:H,A:32,8", "2 of 3 parts of <kind>:<MSHRs>"),
        ("gpgpu_dram_timing_opt", "nbk:CCD=1", "1 of 2 parts of <name>=<cycles>"),
        ("gpgpu_dram_timing_opt", "4:2:8", "3 numbers, expected 14"),
    ],
)
def test_lists_of_a_wrong_length_name_what_is_expected(
    option: str, value: str, reason: str, tmp_path: Path
) -> None:
    path, _ = write(tmp_path, {**FERMI, option: value}, {})
    with pytest.raises(SpecError) as error:
        from_gpgpusim(path)
    assert reason in str(error.value)
    assert "out of range" not in str(error.value)


@pytest.mark.parametrize("value", ["1", "1,4", ""])
def test_short_lists_of_trace_config(value: str, tmp_path: Path) -> None:
    trace = {**TRACES["qv100"], "specialized_unit_1": value}
    with pytest.raises(
        SpecError, match=r"-specialized_unit_1: cannot use .* of 3 parts of <enabled>,<units>"
    ):
        from_gpgpusim(*write(tmp_path, CONFIGURATIONS["qv100"], trace))


def test_a_trace_config_alone_is_named(tmp_path: Path) -> None:
    (tmp_path / "trace.config").write_text("-trace_opcode_latency_initiation_int 2,2\n")
    with pytest.raises(SpecError, match=r"trace\.config: .*name the gpgpusim\.config before it"):
        from_gpgpusim(tmp_path / "trace.config")
