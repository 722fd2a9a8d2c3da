"""Import of an Accel-Sim configuration: `gpgpusim.config`, `trace.config` and, where named, the `.icnt` file;
or of a configuration of GPGPU-Sim, which has no `trace.config`.

Every option that changes timing in trace mode is mapped to a value of the specification, with the option as
its source; an option that is absent has Accel-Sim's default. What Accel-Sim has no option for follows its
mechanisms, or is an addition that the source calls so.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from simt.errors import SpecError
from simt.files import require_regular
from simt.spec.checks import SECTOR_BYTES
from simt.spec.files import validate
from simt.spec.models import Spec
from simt.spec.sections import Cache, ReadOnlyCache

T = TypeVar("T")


class SpecWarning(UserWarning):
    """An imported configuration has options that the specification cannot express."""


# Options that do not change timing when a trace is simulated: functional simulation, limits of the CUDA
# runtime, barriers (PTX has 16), statistics, power, and what Accel-Sim itself ignores.
_WITHOUT_EFFECT = re.compile(
    r"-(gpgpu_num_cta_barriers"
    r"|ptx_opcode_.*|gpgpu_ptx_.*|gpgpu_(stack|heap)_size_limit|gpgpu_runtime_.*|gpgpu_occupancy_sm_number"
    r"|gpgpu_simd_model|gpgpu_clock_gated_lanes|gpgpu_registers_per_block|gpgpu_shmem_(sizeDefault|per_block)"
    r"|gpgpu_shmem_size_Pref.*|gpgpu_cache:(dl1Pref.*|dl2_texture_only)|gpgpu_shmem_limited_broadcast"
    r"|gpgpu_tex_cache:l1|gpgpu_tensor_core_avail|gpgpu_num_tensor_core_units|gpgpu_mem_address_mask"
    r"|gpgpu_memlatency_stat|enable_ptx_file_line_stats|visualizer_.*|power_.*|accelwattch_.*|hw_perf_.*|trace_(enabled|components)"
    r"|trace_sampling_.*|gpgpu_ignore_resources_limitation|gpgpu_operand_collector_num_(in|out)_ports_.*"
    r"|gpgpu_deadlock_detect|gpu_stat_sample_freq|liveness_message_freq|icnt_subnets"
    r"|trace_opcode_latency_initiation_tensor)"
)

_SECTOR_BITS = (SECTOR_BYTES - 1).bit_length()
_WRITE_POLICIES = {
    "R": "read_only",
    "B": "write_back",
    "T": "write_through",
    "E": "write_evict",
    "L": "local_write_back_global_write_through",
}
_ALLOCATIONS = {"m": "on_miss", "f": "on_fill", "s": "streaming"}
_WRITE_ALLOCATIONS = {"N": "none", "W": "write_allocate", "F": "fetch_on_write", "L": "write_validate"}
_SET_INDICES = {"L": "linear", "X": "xor", "P": "ipoly", "H": "fermi"}
_SLICE_HASHES = {"0": "linear", "1": "xor", "2": "ipoly", "3": "pae", "4": "random", "6": "ipoly_modulo"}
_SCHEDULERS = {"lrr": "lrr", "gto": "gto", "old": "oldest", "two_level_active": "two_level"}
_SPECIALIZED_UNITS = {"BRA": "branch", "TEX": "texture", "TENSOR": "tensor", "UDP": "uniform"}
_DRAM_TIMINGS = {
    "CCD": "ccd", "RRD": "rrd", "RCD": "rcd", "RAS": "ras", "RP": "rp", "RC": "rc", "CL": "cl", "WL": "wl",
    "CDLR": "cdlr", "WR": "wr", "nbk": "banks", "nbkgrp": "bank_groups", "CCDL": "ccdl", "RTPL": "rtpl",
}  # fmt: skip

# What is added so that any trace runs on any configuration: unit -> count, latency, initiation interval.
_ADDITIONS = {
    "uniform": (4, 4, 1, "as Accel-Sim's SM75_RTX2060 has it"),
    "texture": (4, 200, 4, "as Accel-Sim's SM7_QV100 has it"),
    "tensor": (4, 2, 2, "as Accel-Sim's SM7_QV100 has it"),
}

# The link to the host, newest architecture first: from which compute capability on, MB/s, and its source.
_HOST_LINKS = (
    (90, 55630, "PCIe 5.0 x16: [R] 55.63 GB/s in the published example of NVIDIA's nvbandwidth"),
    (80, 25130, "PCIe 4.0 x16: [R] 25.13 GB/s to an A100 (nvbandwidth issue 42)"),
    (75, 13100, "PCIe 3.0 x16: [R] 13.1 GB/s to an RTX 2080 Ti (bandwidthTest, Helixer issue 22)"),
    (0, 12150, "PCIe 3.0 x16: [R] 12.15 GB/s to a P100 (bandwidthTest, gearshifft pull request 82)"),
)
# Links to other devices are not part of configurations.
_PEER_LINK = {
    "bandwidth": (0, "not part of the configuration: the link to the host"),
    "latency": (
        13500,
        "[R] 13.4 to 14.4 us between two TITAN RTX, which have no P2P, through the host's memory "
        "(wohlbier/gpu-micro, from p2pBandwidthLatencyTest)",
    ),
    "access_latency": (642, "assumed: as over the NVLink of an H100; nothing is published for PCIe"),
}
_COPY_LATENCY = (
    1400,
    "[R] shortest copies of ArborX in nvprof (issue 230): 1.41 us to the device, 1.54 us from it",
)


def _text(path: Path) -> str:
    try:
        require_regular(path)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None


class _Options:
    """The options of a configuration file, and which of them were used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.label = f"{path.parent.name}/{path.name}" if path.parent.name else path.name
        text = _text(path)
        self._values: dict[str, tuple[str, int]] = {}
        self._used: set[str] = set()
        self._parse(re.sub(r"#[^\n]*", "", text))

    def _parse(self, text: str) -> None:
        option: str | None = None
        for match in re.finditer(r'"[^"]*"|\S+', text):
            word, line = match.group(), text.count("\n", 0, match.start()) + 1
            if re.match(r"-[A-Za-z]", word):
                option = word
                self._values[option] = ("", line)
            elif option is None:
                raise SpecError(
                    f"{self.path}:{line}: found {word!r}, expected an option that starts with '-'"
                )
            else:
                self._values[option] = (self._values[option][0] + re.sub(r'[\s"]', "", word), line)

    def __contains__(self, option: str) -> bool:
        return option in self._values

    def read(self, option: str, default: str, convert: Callable[[str], T]) -> tuple[T, str]:
        """The converted value of an option, and its source."""
        self._used.add(option)
        text, line = self._values.get(option, (default, 0))
        place = f"{self.path}:{line}: {option}" if line else f"{self.path}: {option} is absent"
        try:
            value = convert(text)
        except KeyError as error:
            raise SpecError(f"{place}: cannot use {text!r}: {error} is no value of it here") from None
        except ValueError as error:
            raise SpecError(
                f"{place}: cannot use {text!r}: {error}; "
                "expected a value as in Accel-Sim's tested configurations"
            ) from None
        source = f"{self.label}: {option}"
        return value, source if line else f"{source} absent, Accel-Sim's default {default}"

    def ignore(self, *options: str) -> None:
        """Takes back that options were used."""
        self._used -= set(options)

    def unused(self) -> list[str]:
        return [
            f"{option} ({self.path}:{line})"
            for option, (_, line) in self._values.items()
            if option not in self._used and not _WITHOUT_EFFECT.fullmatch(option)
        ]


class _Values:
    """The specification under construction."""

    def __init__(self, options: _Options) -> None:
        self.tree: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self._options = options

    def put(self, path: str, value: Any, source: str) -> None:
        *sections, last = path.split(".")
        table = self.tree
        for section in sections:
            table = table.setdefault(section, {})
        table[last] = value
        self.sources[path] = source

    def copy(self, path: str, option: str, default: str, convert: Callable[[str], Any] = int) -> None:
        """Takes a value from the option that stands for it."""
        self.put(path, *self._options.read(option, default, convert))


def from_gpgpusim(
    gpgpusim_config: str | os.PathLike[str],
    trace_config: str | os.PathLike[str] | None = None,
    icnt: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> Spec:
    """Converts an Accel-Sim configuration.

    Args:
        gpgpusim_config: path of `gpgpusim.config`.
        trace_config: path of `trace.config`; without it, units have the latencies and initiation intervals of
            PTX's additions (`-ptx_opcode_latency_int` and the like), as GPGPU-Sim has them.
        icnt: path of the interconnect file; without it the file that `-inter_config_file` names is looked for
            beside `gpgpusim_config`.
        name: name of the specification; without it, that of the folder of `gpgpusim_config`.

    Raises:
        SpecError: a file cannot be read, or an option has a value that cannot be expressed.

    Warns:
        SpecWarning: options that are ignored.
    """
    path = Path(gpgpusim_config)
    options = _Options(path)
    if "-trace_opcode_latency_initiation_int" in options and "-gpgpu_cache:dl1" not in options:
        raise SpecError(
            f"{path}: holds latencies only, as a trace.config; name the gpgpusim.config before it"
        )
    trace = None if trace_config is None else _Options(Path(trace_config))
    values = _Values(options)
    name = name or path.resolve().parent.name or path.stem
    values.tree["name"] = name
    values.tree["description"] = f"imported from Accel-Sim's {options.label}"
    _machine(options, values)
    _sm(options, values)
    _units(options, trace, values)
    _sm_memory(options, values)
    notes = _memory_side(options, values)
    notes += _interconnect(options, values, path.parent, icnt)
    if trace is None:
        notes.append("without a trace.config, units have the latencies of PTX's additions (-ptx_opcode_*)")
    ignored = options.unused() + (trace.unused() if trace is not None else [])
    if ignored:
        notes.insert(0, "options without an equivalent are ignored: " + ", ".join(ignored))
    for note in notes:
        warnings.warn(f"{path}: {note}", SpecWarning, stacklevel=2)
    return validate(values.tree, values.sources, str(path))


def _flag(text: str) -> bool:
    return int(text) != 0


def _machine(options: _Options, values: _Values) -> None:
    major, source = options.read("-gpgpu_compute_capability_major", "7", int)
    minor, _ = options.read("-gpgpu_compute_capability_minor", "0", int)
    values.put("sm_version", 10 * major + minor, source + " and _minor")
    clocks, source = options.read("-gpgpu_clock_domains", "500:2000:2000:2000", _numbers(float, ":", 4))
    for domain, mhz in zip(("core", "interconnect", "l2", "dram"), clocks, strict=True):
        values.put(f"clock.{domain}_mhz", mhz, source)
    values.copy("launch.kernel_latency", "-gpgpu_kernel_launch_latency", "0")
    values.copy("launch.cta_latency", "-gpgpu_TB_launch_latency", "0")
    values.put(
        "launch.dispatch_latency",
        7,
        "addition: Accel-Sim has 0; SMs that run alone for a window of up to a cycle more are faster",
    )
    values.put("launch.overhead", 0, "mechanism of Accel-Sim: launches take core cycles")
    for field in ("warp_start_interval", "peak_dispatch_rate", "dispatch_rate", "dispatch_burst"):
        values.put(f"launch.{field}", 0, "mechanism of Accel-Sim: one CTA per SM and cycle")
    values.put("launch.cold_caches", False, "a condition of measurements, not of the GPU")
    window, window_source = options.read("-gpgpu_max_concurrent_kernel", "32", int)
    concurrent, source = options.read("-gpgpu_concurrent_kernel_sm", "0", int)
    if concurrent:
        values.put("launch.max_concurrent_kernels", window, window_source)
    else:
        values.put("launch.max_concurrent_kernels", 1, f"{source}: launches run one after another")
    _, bandwidth, source = next(link for link in _HOST_LINKS if 10 * major + minor >= link[0])
    values.put("host_link.bandwidth", bandwidth, f"addition: {source}")
    latency, source = _COPY_LATENCY
    values.put("host_link.latency", latency, f"addition: {source}")
    for field, (number, source) in _PEER_LINK.items():
        values.put(f"peer_link.{field}", number, f"addition: {source}")
    clusters, source = options.read("-gpgpu_n_clusters", "10", int)
    cores, _ = options.read("-gpgpu_n_cores_per_cluster", "3", int)
    values.put("sm.count", clusters * cores, source + " times -gpgpu_n_cores_per_cluster")


def _numbers(
    kind: Callable[[str], T], separator: str, count: int, most: int | None = None
) -> Callable[[str], list[T]]:
    """A conversion of lists of `count` numbers, or from `count` to `most`."""

    def convert(text: str) -> list[T]:
        parts = text.split(separator)
        if not count <= len(parts) <= (most or count):
            raise ValueError(
                f"{len(parts)} number{'s' * (len(parts) != 1)}, expected {count}"
                + (f" to {most}" if most is not None else "")
            )
        return [kind(part) for part in parts]

    return convert


def _parts(text: str, separator: str, least: int, form: str) -> list[str]:
    """Parts of a text, at least so many. form: how it is written, for the message."""
    parts = text.split(separator)
    if len(parts) < least:
        raise ValueError(f"{len(parts)} of {least} parts of {form}")
    return parts


def _sm(options: _Options, values: _Values) -> None:
    values.copy("sm.sub_cores", "-gpgpu_num_sched_per_core", "1")
    values.copy("sm.sub_core_model", "-gpgpu_sub_core_model", "0", _flag)
    pipeline = options.read("-gpgpu_shader_core_pipeline", "1024:32", _warps)
    (warps, warp_size), source = pipeline
    values.put("sm.warp_size", warp_size, source)
    values.put("sm.max_warps", warps, source)
    values.copy("sm.max_ctas", "-gpgpu_shader_cta", "32")

    values.copy("sm.front_end.fetch_width", "-gpgpu_inst_fetch_throughput", "1")
    values.put("sm.front_end.instruction_buffer", 2, "mechanism of Accel-Sim: two instructions per warp")
    values.put(
        "sm.front_end.branch_latency",
        0,
        "mechanism of Accel-Sim: the next instruction in a trace issues like any other",
    )
    values.put("sm.conversion_latency", 0, "mechanism of Accel-Sim: integer instructions")
    values.put("sm.multiplications_on_fp32", False, "mechanism of Accel-Sim: units by type")
    values.put("sm.half_precision_interval", 0, "mechanism of Accel-Sim: half of FP32's")
    values.put(
        "sm.half_rate_fp32_accumulation", False, "mechanism of Accel-Sim: one interval for tensor products"
    )
    values.put("sm.warp_group_queue", 1, "mechanism of Accel-Sim: the unit is held")
    for field in (
        *("columns", "product_latency", "pair_latency", "split_latency"),
        *("swizzled_bandwidth", "bandwidth", "latency"),
    ):
        values.put(f"sm.tensor_memory_{field}", 0, "mechanism of Accel-Sim: no tensor memory")
    for field in ("interval", "latency"):
        values.put(f"sm.barrier_{field}", 0, "mechanism of Accel-Sim: barriers take no time")
    cache = "sm.front_end.instruction_cache"
    values.copy(f"{cache}.perfect", "-gpgpu_perfect_inst_const_cache", "0", _flag)
    l1, source = options.read("-gpgpu_cache:il1", "N:4:256:4,L:R:f:N:L,S:2:32,4", _cache_string)
    _read_only_cache(f"{cache}.l1", l1, source, values)
    values.put(f"{cache}.l1_miss_queue", l1["miss_queue"], source)
    values.put(f"{cache}.code_in_l2", False, "mechanism of Accel-Sim: code begins at address 0")
    values.put(f"{cache}.l1_latency", 0, "mechanism of Accel-Sim: a hit is served in the fetch stage")
    values.put(f"{cache}.l1_shared_by", 1, "mechanism of Accel-Sim: each SM has its own")
    values.put(f"{cache}.l0_lines", 0, "mechanism of Accel-Sim: no L0 instruction caches")
    values.put(f"{cache}.prefetch_lines", 0, "mechanism of Accel-Sim: no instruction prefetch")

    (policy, active_warps), source = options.read("-gpgpu_scheduler", "gto", _scheduler)
    values.put("sm.scheduler.policy", policy, source)
    values.put("sm.scheduler.active_warps", active_warps, source)
    values.copy("sm.scheduler.issue_width", "-gpgpu_max_insn_issue_per_warp", "2")
    values.copy("sm.scheduler.dual_issue_different_units", "-gpgpu_dual_issue_diff_exec_units", "1", _flag)

    registers = "sm.register_file"
    values.copy(f"{registers}.registers", "-gpgpu_shader_registers", "8192")
    values.put(f"{registers}.allocation_unit", 0, "mechanism of Accel-Sim: rounded up to four per thread")
    values.put(f"{registers}.model", "operand_collector", "mechanism of Accel-Sim")
    values.copy(f"{registers}.banks", "-gpgpu_num_reg_banks", "8")
    specialized, _ = options.read("-gpgpu_enable_specialized_operand_collector", "1", _flag)
    kinds = {"sp": 4, "dp": 0, "sfu": 4, "int": 0, "mem": 2} if specialized else {}
    collectors, source = options.read("-gpgpu_operand_collector_num_units_gen", "0", int)
    for kind, default in kinds.items():
        option = f"-gpgpu_operand_collector_num_units_{kind}"
        units, _ = options.read(option, str(default), int)
        collectors += units
        source = f"{options.label}: the sum of -gpgpu_operand_collector_num_units_*"
    values.put(f"{registers}.collector_units", collectors, source)
    values.copy(f"{registers}.port_throughput", "-gpgpu_reg_file_port_throughput", "1")
    values.put(f"{registers}.read_ports_per_bank", 1, "not used by the operand_collector model")
    values.put(f"{registers}.operand_cache", False, "mechanism of Accel-Sim: no register-file cache")
    values.copy(
        f"{registers}.write_back_width",
        "-gpgpu_pipeline_widths",
        "1,1,1,1,1,1,1,1,1,1,1,1,1",
        _write_back_width,
    )


def _write_back_width(text: str) -> int:
    """Of the widths of the pipeline's stages, EX_WB: the last of seven in GPGPU-Sim 3, the eleventh since."""
    widths = text.split(",")
    if len(widths) != 7 and len(widths) < 11:
        raise ValueError(
            f"{len(widths)} widths, expected 7 (GPGPU-Sim 3: ID_OC_SP,ID_OC_SFU,ID_OC_MEM,OC_EX_SP,OC_EX_SFU,"
            "OC_EX_MEM,EX_WB) or at least 11 (ID_OC_SP,ID_OC_DP,ID_OC_INT,ID_OC_SFU,ID_OC_MEM,OC_EX_SP,"
            "OC_EX_DP,OC_EX_INT,OC_EX_SFU,OC_EX_MEM,EX_WB)"
        )
    return int(widths[6] if len(widths) == 7 else widths[10])


def _units(options: _Options, trace: _Options | None, values: _Values) -> None:
    def put(unit: str, count: tuple[int, str], timing: tuple[list[int], str]) -> None:
        values.put(f"sm.units.{unit}.count", *count)
        values.put(f"sm.units.{unit}.latency", timing[0][0], timing[1])
        values.put(f"sm.units.{unit}.initiation_interval", max(1, timing[0][1]), timing[1])

    # By unit: its name in counts and trace.config, and the kind of PTX instruction with GPGPU-Sim's defaults.
    classes = {
        "int": ("int", "0", "int", "1,1,19,25,145,32", "1,1,4,4,32,4"),
        "fp32": ("sp", "1", "fp", "1,1,1,1,30", "1,1,1,1,5"),
        "fp64": ("dp", "0", "dp", "8,8,8,8,335", "8,8,8,8,130"),
        "sfu": ("sfu", "1", "sfu", "8", "8"),
    }
    for unit, (accelsim, units, ptx, latencies, intervals) in classes.items():
        if trace is not None:
            option = f"-trace_opcode_latency_initiation_{accelsim}"
            timing = trace.read(option, "4,1", _numbers(int, ",", 2))
        else:
            own, source = options.read(f"-ptx_opcode_latency_{ptx}", latencies, _numbers(int, ",", 1, 6))
            held, _ = options.read(f"-ptx_opcode_initiation_{ptx}", intervals, _numbers(int, ",", 1, 6))
            timing = [own[0], held[0]], f"{source} and -ptx_opcode_initiation_{ptx}"
        put(unit, options.read(f"-gpgpu_num_{accelsim}_units", units, int), timing)
    if trace is not None:
        for kind, units_there, timing in _specialized_units(trace):
            put(kind, units_there, timing)
    present = values.tree["sm"]["units"]
    if "branch" not in present:
        why = f"{(trace or options).label}: no specialised unit BRA; branches use the integer unit"
        put("branch", (0, why), ([4, 1], why))
    for unit, (count, latency, interval, why) in _ADDITIONS.items():
        if unit not in present:
            source = f"addition so that any trace runs: Accel-Sim's configuration has none; {why}"
            put(unit, (count, source), ([latency, interval], source))


def _specialized_units(
    trace: _Options,
) -> Iterator[tuple[str, tuple[int, str], tuple[list[int], str]]]:
    """The specialised units that have an equivalent: unit, count and timing, each with its source."""
    for number in range(1, 9):
        option = f"-specialized_unit_{number}"
        if option not in trace:
            continue
        (kind, count), source = trace.read(option, "", _specialized_unit)
        timing_option = f"-trace_opcode_latency_initiation_spec_op_{number}"
        timing = trace.read(timing_option, "4,4", _numbers(int, ",", 2))
        if kind is None:
            trace.ignore(option, timing_option)
        else:
            yield kind, (count, source), timing


def _warps(text: str) -> tuple[int, int]:
    threads, warp_size = _numbers(int, ":", 2)(text)
    if warp_size < 1:
        raise ValueError(f"a warp of {warp_size} lanes")
    return threads // warp_size, warp_size


def _scheduler(text: str) -> tuple[str, int]:
    """Policy, and the size of the active set."""
    parts = text.split(":")
    if parts[0] not in _SCHEDULERS:
        raise ValueError(f"there is no such scheduler here; there are {', '.join(_SCHEDULERS)}")
    return _SCHEDULERS[parts[0]], int(parts[1]) if parts[0] == "two_level_active" else 0


def _specialized_unit(text: str) -> tuple[str | None, int]:
    """Unit (none where it is switched off or unknown) and how many there are."""
    fields = _parts(text, ",", 3, "<enabled>,<units>,...,<name>")
    kind = _SPECIALIZED_UNITS.get(fields[-1].upper()) if int(fields[0]) else None
    return kind, int(fields[1])


def _cache_string(text: str) -> dict[str, Any]:
    """Values of a cache string of Accel-Sim: port_bytes, and those of `Cache` but for dirty lines."""
    groups = _parts(text, ",", 4, "<geometry>,<policies>,<MSHRs>,<miss queue>")
    geometry = groups[0].split(":")
    if geometry[0] not in ("N", "S"):
        geometry.insert(0, "N")  # before sectors there was no letter
    geometry = _parts(":".join(geometry), ":", 4, "<N or S>:<sets>:<bytes of a line>:<ways>")
    policies = _parts(groups[1], ":", 5, "<replacement>:<write>:<allocation>:<write allocation>:<set index>")
    mshr = _parts(groups[2], ":", 3, "<kind>:<MSHRs>:<merged>")
    line = int(geometry[2])
    return {
        "sets": int(geometry[1]),
        "line_bytes": line,
        "ways": int(geometry[3]),
        "sectored": geometry[0] == "S",
        "replacement": {"L": "lru", "F": "fifo"}[policies[0]],
        "write_policy": _WRITE_POLICIES[policies[1]],
        "allocation": _ALLOCATIONS[policies[2]],
        "write_allocation": _WRITE_ALLOCATIONS[policies[3]],
        "set_index": _SET_INDICES[policies[4]],
        "mshr_entries": int(mshr[1]),
        "mshr_merge": int(mshr[2]),
        "miss_queue": int(groups[3].split(":")[0]),
        "port_bytes": int(groups[4]) if len(groups) > 4 else line,
    }


def _cache(path: str, cache: dict[str, Any], source: str, values: _Values, dirty: tuple[int, str]) -> None:
    for field in (name for name in Cache.model_fields if not name.startswith("dirty_")):
        values.put(f"{path}.{field}", cache[field], source)
    values.put(f"{path}.dirty_threshold", *dirty)
    values.put(f"{path}.dirty_limit", 100, "mechanism of Accel-Sim: lines are written back when evicted")


def _read_only_cache(path: str, cache: dict[str, Any], source: str, values: _Values) -> None:
    for field in ReadOnlyCache.model_fields:
        values.put(f"{path}.{field}", cache[field], source)


def _sm_memory(options: _Options, values: _Values) -> None:
    values.copy("shared_memory.bytes", "-gpgpu_shmem_size", "16384")
    values.put("shared_memory.reserved_per_cta", 0, "mechanism of Accel-Sim: nothing is reserved")
    values.put("shared_memory.allocation_unit", 1, "mechanism of Accel-Sim: exact bytes")
    values.copy("shared_memory.banks", "-gpgpu_shmem_num_banks", "16")
    # The Kepler configuration writes -smem_latency.
    latency = "-smem_latency" if "-smem_latency" in options else "-gpgpu_smem_latency"
    values.copy("shared_memory.latency", latency, "3")
    values.put(
        "shared_memory.wide_accesses_take_wavefronts",
        False,
        "mechanism of Accel-Sim: the first word of each lane counts",
    )

    dirty = options.read("-gpgpu_l1_cache_write_ratio", "0", int)
    _cache("l1.cache", *options.read("-gpgpu_cache:dl1", "none", _cache_string), values, dirty)
    values.copy("l1.banks", "-gpgpu_l1_banks", "1")
    values.copy("l1.latency", "-gpgpu_l1_latency", "1")
    adaptive, source = options.read("-gpgpu_adaptive_cache_config", "0", _flag)
    values.put("l1.adaptive", adaptive, source)
    values.copy("l1.unified_bytes", "-gpgpu_unified_l1d_size", "0", lambda text: 1024 * int(text))
    option = "-gpgpu_shmem_option"
    sizes, source = options.read(option, "0", lambda text: [1024 * int(size) for size in text.split(",")])
    values.put("l1.carve_out_options", sizes if adaptive else [], source)
    values.copy("l1.bypass_global", "-gpgpu_gmem_skip_L1D", "0", _flag)
    values.put("l1.bypass_sectors_per_cycle", 1, "mechanism of Accel-Sim: one transaction per cycle")
    values.put("l1.bypass_latency", 0, "mechanism of Accel-Sim: straight to the network")
    values.copy("l1.flush_at_kernel_end", "-gpgpu_flush_l1_cache", "0", _flag)
    values.copy("l1.invalidate_at_membar", "-gpgpu_flush_l1_cache", "0", _flag)

    values.copy("load_store.coalescing_sub_warps", "-gpgpu_shmem_warp_parts", "2")
    values.copy("load_store.sectored_coalescing", "-gpgpu_coalesce_arch", "13", lambda text: int(text) >= 40)
    values.put("load_store.sub_core_queue", 0, "mechanism of Accel-Sim: one register shared by the sub-cores")
    for memory in ("l1", "shared_memory"):
        values.put(f"{memory}.access_interval", 1, "mechanism of Accel-Sim: as soon as the register is free")
    values.put("l1.line_interval", 0, "mechanism of Accel-Sim: data take no time")
    values.put("shared_memory.pass_interval", 1, "mechanism of Accel-Sim: a cycle for each pass")
    values.put("shared_memory.atomic_interval", 0, "mechanism of Accel-Sim: as loads")
    values.put("shared_memory.operand_bandwidth", 0, "mechanism of Accel-Sim: operands take no bandwidth")

    # Whatever the option says: see docs/model/operands.md.
    values.put("constant_cache.perfect", True, "mechanism of Accel-Sim: traces give no address of constants")
    default = "N:64:64:2,L:R:f:N:L,A:2:32,4"
    cache = options.read("-gpgpu_const_cache:l1", default, _cache_string)
    _read_only_cache("constant_cache.l1", *cache, values)
    values.put(
        "constant_cache.latency", 0, "mechanism of Accel-Sim: a hit is served in the load/store unit's cycle"
    )
    values.put(
        "constant_cache.access_interval", 1, "mechanism of Accel-Sim: traces give no address of constants"
    )
    values.put(
        "constant_cache.miss_latency", 0, "mechanism of Accel-Sim: traces give no address of constants"
    )


def _memory_side(options: _Options, values: _Values) -> list[str]:
    """Fills the sections behind the interconnect; returns notes for the user."""
    notes: list[str] = []
    values.copy("address_map.channels", "-gpgpu_n_mem", "8")
    values.copy("address_map.slices_per_channel", "-gpgpu_n_sub_partition_per_mchannel", "1")
    values.copy("address_map.hash", "-gpgpu_memory_partition_indexing", "0", _SLICE_HASHES.__getitem__)
    (bit, layout), source = options.read(
        "-gpgpu_mem_addr_mapping",
        "dramid@8;00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.BBBCCCCB.CCSSSSSS",
        _address_mapping,
    )
    values.put("address_map.channel_bit", bit, source)
    if (extra := layout.count("S") - _SECTOR_BITS) > 0:
        # The bits of a burst of several sectors are column bits here: banks and rows stay as they are.
        layout = layout.replace("S", "C", extra)
        source += f", whose {extra} highest bits within a burst count as column bits"
    values.put("address_map.layout", layout, source)

    default = "S:32:128:24,L:B:m:L:P,A:192:4,32:0,32"
    cache, source = options.read("-gpgpu_cache:dl2", default, _cache_string)
    if not cache["sectored"] and cache["line_bytes"] == 4 * SECTOR_BYTES:
        cache["sectored"] = True
        notes.append(
            "-gpgpu_cache:dl2 has whole lines; here requests reach the L2 as sectors: its lines have four"
        )
    _cache("l2.slice", cache, source, values, dirty=(0, source))
    values.put("l2.port_bytes", cache["port_bytes"], source)
    for write in ("write", "partial_write"):
        values.put(f"l2.{write}_interval", 1, "mechanism of Accel-Sim: one access per cycle")
    values.put("l2.atomic_rate", 0, "mechanism of Accel-Sim: one access per cycle")
    values.copy("l2.latency", "-gpgpu_l2_rop_latency", "85")
    queues, source = options.read("-gpgpu_dram_partition_queues", "8:8:8:8", _numbers(int, ":", 4))
    for queue, entries in zip(("request", "dram", "fill", "reply"), queues, strict=True):
        values.put(f"l2.{queue}_queue", entries, source)
    values.copy("l2.copies_fill", "-gpgpu_perf_sim_memcpy", "1", _flag)
    values.put("l2.persisting_kib", 0, "mechanism of Accel-Sim: no eviction priorities")
    values.put("l2.partitions", 1, "mechanism of Accel-Sim: one uniform L2")
    values.put("l2.far_latency", 0, "mechanism of Accel-Sim: one uniform L2")

    values.put("dram.capacity_gib", 64, "mechanism of Accel-Sim: traces bring their addresses")
    values.copy("dram.simple", "-gpgpu_simple_dram_model", "0", _flag)
    values.copy("dram.latency", "-dram_latency", "30")
    values.copy("dram.scheduler", "-gpgpu_dram_scheduler", "1", {"0": "fcfs", "1": "fr_fcfs"}.__getitem__)
    values.copy("dram.scheduler_queue", "-gpgpu_frfcfs_dram_sched_queue_size", "0", _unlimited)
    values.copy("dram.return_queue", "-gpgpu_dram_return_queue_size", "0", _unlimited)
    values.copy("dram.write_queue", "-dram_seperate_write_queue_enable", "0", _flag)
    sizes, source = options.read("-dram_write_queue_size", "32:28:16", _numbers(int, ":", 3))
    for field, size in zip(("write_queue_size", "write_high", "write_low"), sizes, strict=True):
        values.put(f"dram.{field}", size, source)
    width, source = options.read("-gpgpu_dram_buswidth", "4", int)
    chips, _ = options.read("-gpgpu_n_mem_per_ctrlr", "1", int)
    values.put("dram.bus_bytes", width * chips, source + " times -gpgpu_n_mem_per_ctrlr")
    values.copy("dram.burst_length", "-gpgpu_dram_burst_length", "4")
    values.copy("dram.data_command_ratio", "-dram_data_command_freq_ratio", "2")
    values.copy("dram.dual_bus", "-dram_dual_bus_interface", "0", _flag)
    values.copy("dram.bank_group_low_bits", "-dram_bnkgrp_indexing_policy", "0", _flag)
    values.copy("dram.bank_xor", "-dram_bnk_indexing_policy", "0", _flag)
    timings, source = options.read("-gpgpu_dram_timing_opt", "4:2:8:12:21:13:34:9:4:5:13:1:0:0", _dram_timing)
    for field, cycles in timings.items():
        values.put(f"dram.{field}", cycles, source)
    for field in ("faw", "refi", "rfc"):
        values.put(f"dram.{field}", 0, "mechanism of Accel-Sim: no four-activate window and no refresh")
    values.put("dram.per_bank_refresh", False, "mechanism of Accel-Sim: no refresh")
    return notes


def _unlimited(text: str) -> int:
    return int(text) or 2**20


def _address_mapping(text: str) -> tuple[int, str]:
    match = re.fullmatch(r"dramid@(\d+);([01RBCSD.]+)", text)
    if not match:
        raise ValueError("not of the form dramid@8;RRRR...SSSSS")
    layout = match.group(2).replace(".", "").lstrip("0")
    if set(layout) - set("RBCS"):
        raise ValueError("only letters R, B, C and S can follow the leading zeros")
    return int(match.group(1)), layout


def _dram_timing(text: str) -> dict[str, int]:
    if "=" in text:
        pairs = dict(_parts(part, "=", 2, "<name>=<cycles>")[:2] for part in text.split(":") if part)
    else:
        order = (
            "nbk",
            "CCD",
            "RRD",
            "RCD",
            "RAS",
            "RP",
            "RC",
            "CL",
            "WL",
            "CDLR",
            "WR",
            "nbkgrp",
            "CCDL",
            "RTPL",
        )
        pairs = dict(zip(order, _numbers(str, ":", len(order))(text), strict=True))
    if missing := sorted(set(_DRAM_TIMINGS) - set(pairs)):
        raise ValueError(f"{missing[0]} is missing")
    return {field: int(pairs[name]) for name, field in _DRAM_TIMINGS.items()}


def _interconnect(
    options: _Options, values: _Values, folder: Path, icnt: str | os.PathLike[str] | None
) -> list[str]:
    """Fills the section; returns notes for the user."""
    notes: list[str] = []
    mode, mode_source = options.read("-network_mode", "1", int)
    values.put(
        "interconnect.credit_latency",
        32,
        "addition: Accel-Sim sees the buffers at once; an SM that runs alone cannot",
    )
    values.put("interconnect.look_ahead", 1, "mechanism of Accel-Sim: packets behind a blocked head wait")
    values.put(
        "interconnect.sm_port_sectors", 1, "mechanism of Accel-Sim: one reply and one request per cycle"
    )
    if mode == 2:
        values.put(
            "interconnect.latency", 0, "mechanism of Accel-Sim: no wire latency beyond one cycle per hop"
        )
        for target, option, default in (("input_buffer", "in", "64"), ("output_buffer", "out", "64")):
            values.put(f"interconnect.{target}", *options.read(f"-icnt_{option}_buffer_limit", default, int))
        arbiter, source = options.read(
            "-icnt_arbiter_algo", "1", {"0": "round_robin", "1": "islip"}.__getitem__
        )
        values.put("interconnect.arbiter", arbiter, source)
        options.read("-icnt_flit_size", "32", int)
        values.put(
            "interconnect.flit_bytes",
            0,
            f"{mode_source} 2: the built-in crossbar sends every packet as one flit",
        )
        return notes
    named, _ = options.read("-inter_config_file", "", str)
    path = Path(icnt) if icnt is not None else folder / named
    # Values of BookSim's stock files, used where there is no file.
    settings = {
        "flit_size": "40",
        "input_buffer_size": "256",
        "ejection_buffer_size": "64",
    }
    origin = f"{mode_source} {mode} (BookSim) replaced by a crossbar: "
    if icnt is not None or (named and path.is_file()):
        settings.update(re.findall(r"(\w+)\s*=\s*([^;]+?)\s*;", re.sub(r"//[^\n]*", "", _text(path))))
        origin += path.name
    else:
        origin += "as Accel-Sim's config_pascal_islip.icnt"
        if named:
            notes.append(f"{named} was not found; interconnect values are those of Accel-Sim's stock files")
    notes.append("-network_mode 1 (BookSim) becomes simt's crossbar")
    options.read("-icnt_flit_size", "32", int)
    fields = {
        "flit_bytes": "flit_size",
        "input_buffer": "input_buffer_size",
        "output_buffer": "ejection_buffer_size",
    }
    for field, setting in fields.items():
        if not settings[setting].isdigit():
            raise SpecError(f"{path}: {setting}: found {settings[setting]!r}, expected a number")
        values.put(f"interconnect.{field}", int(settings[setting]), f"{origin} {setting}")
    # BookSim moves one packet an input and cycle, and its router's pipeline takes five cycles more each way
    # than the built-in crossbar: dependent L2 hits on TITAN X are 145 cycles apart, 135 without it (measured
    # on Accel-Sim).
    values.put("interconnect.latency", 5, f"{origin}router pipeline, measured on Accel-Sim")
    values.put("interconnect.arbiter", "round_robin", f"{origin}one packet an input and cycle")
    return notes
