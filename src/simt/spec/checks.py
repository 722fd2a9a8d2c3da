"""What several fields of a specification must fulfil together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simt.spec.section import PolicyName
from simt.spec.sections import Cache, ReadOnlyCache, SpecFields

Problem = tuple[str, str]
"""Path of a field, and what was found there and expected."""

SECTOR_BYTES = 32
MOST_LINES = 1 << 25  # of all caches of a kind: 4 GiB of lines of 128 bytes
MOST_PORTS = (1 << 16) - 1  # ports of the interconnect have 16-bit numbers
MOST_SPECIAL_UNITS = 8  # `special_units` of engine/isa/instruction.hpp


def problems(spec: SpecFields) -> Iterator[Problem]:
    """Everything that does not fit together."""
    if not spec.name:
        yield "name", "found none, expected a name"
    yield from _caches(spec)
    yield from _instruction_caches(spec)
    yield from _sm(spec)
    yield from _special_units(spec)
    yield from _l1(spec)
    yield from _constants(spec)
    yield from _interconnect(spec)
    yield from _address_map(spec)
    yield from _l2(spec)
    yield from _dram(spec)


def _all_caches(spec: SpecFields) -> Iterator[tuple[str, Cache | ReadOnlyCache, int]]:
    """Path, cache, and how many of it there are."""
    sms = spec.sm.count
    yield "sm.front_end.instruction_cache.l1", spec.sm.front_end.instruction_cache.l1, sms
    yield "l1.cache", spec.l1.cache, sms
    yield "constant_cache.l1", spec.constant_cache.l1, sms * (1 + spec.sm.sub_cores)
    yield "l2.slice", spec.l2.slice, spec.address_map.slices


def _caches(spec: SpecFields) -> Iterator[Problem]:
    for path, cache, copies in _all_caches(spec):
        if isinstance(cache, Cache) and cache.sectored and cache.line_bytes != 4 * SECTOR_BYTES:
            yield (
                f"{path}.line_bytes",
                f"found {cache.line_bytes}, expected 128: a sectored line is four sectors of 32 bytes",
            )
        if cache.sets == 0:
            continue
        for field in ("ways", "mshr_entries", "mshr_merge"):
            if getattr(cache, field) == 0:
                yield f"{path}.{field}", "found 0, expected at least 1 in a cache that has sets"
        # A miss takes two places, one for what it evicts; a write that fetches takes three.
        fetches = isinstance(cache, Cache) and cache.write_allocation in ("write_allocate", "fetch_on_write")
        if isinstance(cache, Cache) and cache.miss_queue < 2 + fetches:
            yield f"{path}.miss_queue", f"found {cache.miss_queue}, expected at least {2 + fetches}"
        if cache.sets * cache.ways * copies > MOST_LINES:
            yield (
                f"{path}.sets",
                f"found {cache.sets} sets of {cache.ways} ways in {copies} caches, "
                f"{cache.sets * cache.ways * copies:,} lines; expected at most {MOST_LINES:,}",
            )
        most = PolicyName("set_index").registered[cache.set_index]["most_sets"]
        if most and cache.sets > most:
            yield (
                f"{path}.sets",
                f"found {cache.sets}, expected at most {most} with set_index {cache.set_index}",
            )


def _instruction_caches(spec: SpecFields) -> Iterator[Problem]:
    path, caches = "sm.front_end.instruction_cache", spec.sm.front_end.instruction_cache
    if caches.l0_lines * spec.sm.count * spec.sm.sub_cores > MOST_LINES:
        yield (
            f"{path}.l0_lines",
            f"found {caches.l0_lines} in {spec.sm.count * spec.sm.sub_cores} caches, "
            f"expected at most {MOST_LINES:,} lines together",
        )
    if not caches.perfect and caches.l1.bytes == 0:
        yield f"{path}.l1.sets", "found 0, expected a cache with perfect = false"
    if caches.perfect or caches.l1_shared_by == 1:
        return
    if caches.l0_lines == 0:
        yield f"{path}.l0_lines", "found 0, expected a cache where SMs share the L1"
    if caches.l1_latency == 0:
        yield f"{path}.l1_latency", "found 0, expected at least 1 where SMs share the L1"
    ports = spec.sm.count + -(-spec.sm.count // caches.l1_shared_by)
    if ports > MOST_PORTS:
        yield (
            "sm.count",
            f"found {spec.sm.count}, which with shared instruction caches take {ports:,} ports of the "
            f"interconnect, expected at most {MOST_PORTS:,}",
        )


def _sm(spec: SpecFields) -> Iterator[Problem]:
    sm = spec.sm
    if sm.max_warps < sm.sub_cores:
        yield "sm.max_warps", f"found {sm.max_warps}, expected at least sub_cores = {sm.sub_cores}"
    for field in ("banks", "collector_units"):
        value = getattr(sm.register_file, field)
        if value % sm.sub_cores:
            yield (
                f"sm.register_file.{field}",
                f"found {value}, expected a multiple of sub_cores = {sm.sub_cores}",
            )
    if not sm.sub_core_model and sm.register_file.model != "operand_collector":
        yield (
            "sm.sub_core_model",
            f"found false, expected true with register_file.model = {sm.register_file.model!r}: "
            "only operand collectors can be shared",
        )
    if sm.scheduler.policy == "two_level" and sm.scheduler.active_warps == 0:
        yield "sm.scheduler.active_warps", "found 0, expected at least 1 with the two_level policy"
    for field in ("fp32", "sfu"):
        if getattr(sm.units, field).count == 0:
            yield (
                f"sm.units.{field}.count",
                "found 0, expected at least 1: other instructions fall back to it",
            )


def _special_units(spec: SpecFields) -> Iterator[Problem]:
    units = spec.sm.special_units
    if len(units) > MOST_SPECIAL_UNITS:
        yield "sm.special_units", f"found {len(units)} units, expected at most {MOST_SPECIAL_UNITS}"
    named: dict[str, str] = {}
    for name, unit in units.items():
        path = f"sm.special_units.{name}"
        if unit.count == 0:
            yield f"{path}.count", "found 0, expected at least 1"
        if not unit.opcodes:
            yield f"{path}.opcodes", 'found none, expected what the unit executes, such as ["MUFU", "MYOP"]'
        for opcode in unit.opcodes:
            if opcode in named:
                yield f"{path}.opcodes", f"found {opcode}, which {named[opcode]} has too"
            named.setdefault(opcode, path)


def _l1(spec: SpecFields) -> Iterator[Problem]:
    l1 = spec.l1
    if l1.cache.bytes == 0:
        yield (
            "l1.cache.sets",
            "found 0, expected an L1 (use bypass_global to send global loads to the L2)",
        )
        return
    if not l1.adaptive:
        return
    options = l1.carve_out_options
    if not options:
        yield "l1.carve_out_options", "found none, expected at least one with adaptive = true"
        return
    if list(options) != sorted(set(options)):
        yield "l1.carve_out_options", f"found {list(options)}, expected ascending sizes"
    yield from _unified(spec)
    lines = l1.unified_bytes // l1.cache.line_bytes * spec.sm.count
    if lines > MOST_LINES:
        yield (
            "l1.unified_bytes",
            f"found {l1.unified_bytes}, {lines:,} lines in all SMs; expected at most {MOST_LINES:,}",
        )


def _unified(spec: SpecFields) -> Iterator[Problem]:
    """How the memory that L1 and shared memory have together bounds three other fields. Where several do not
    fit, one message names what they can be together: mending one after another takes as many attempts."""
    l1, way = spec.l1, spec.l1.cache.bytes // spec.l1.cache.ways
    total, options = l1.unified_bytes, list(l1.carve_out_options)
    if total < way or total % way:
        near = [n for n in (total // way * way, (total // way + 1) * way) if n]
        yield (
            "l1.unified_bytes",
            f"found {total}, expected whole ways of {way} bytes, such as {' or '.join(map(str, near))}",
        )
        return
    fitting = [size for size in options if size <= total] or [total]
    found: list[tuple[str, str, str]] = []  # field, why it does not fit, what it can be
    if fitting != options:
        text = f"found {options[-1]} bytes, expected at most unified_bytes = {total}"
        found.append(("l1.carve_out_options", text, str(fitting)))
    only_options = l1.cache.bytes <= total and spec.shared_memory.bytes <= min(total, options[-1])
    if spec.shared_memory.bytes > fitting[-1] and not only_options:
        text = f"found {spec.shared_memory.bytes}, expected at most the largest of l1.carve_out_options"
        found.append(("shared_memory.bytes", f"{text}, {fitting[-1]}", str(fitting[-1])))
    if l1.cache.bytes > total:
        text = f"found {l1.cache.ways} ways of {way} bytes, expected at most unified_bytes = {total}"
        found.append(("l1.cache.ways", text, str(total // way)))
    if len(found) > 1:
        together = ", ".join(f"{field} = {value}" for field, _, value in found)
        yield (
            "l1.unified_bytes",
            f"found {total}, which does not hold the rest; expected with it at most {together}",
        )
    else:
        yield from ((field, text) for field, text, _ in found)


def _constants(spec: SpecFields) -> Iterator[Problem]:
    constants, behind = spec.constant_cache, spec.sm.front_end.instruction_cache
    if constants.perfect:
        return
    if constants.l1.bytes == 0:
        yield "constant_cache.l1.sets", "found 0, expected a cache with perfect = false"
    for field in ("latency", "miss_latency"):
        if getattr(constants, field) == 0:
            yield f"constant_cache.{field}", "found 0, expected at least 1 with perfect = false"
    if spec.sm.register_file.model != "read_ports":
        yield (
            "constant_cache.perfect",
            f"found false, expected true with sm.register_file.model = {spec.sm.register_file.model!r}: "
            "constant caches are simulated with read_ports only",
        )
    path = "sm.front_end.instruction_cache"
    if behind.l1_shared_by > 1:
        yield (
            "constant_cache.perfect",
            f"found false, expected true with {path}.l1_shared_by = {behind.l1_shared_by}: "
            "misses go to an SM's own L1 instruction cache",
        )
    line = constants.l1.line_bytes
    if behind.l1.bytes == 0 or behind.l1.line_bytes < line:
        yield (
            f"{path}.l1.line_bytes",
            f"found {behind.l1.line_bytes} bytes in a cache of {behind.l1.bytes}, expected lines of at least "
            f"{line}, those of constant_cache.l1",
        )


def _interconnect(spec: SpecFields) -> Iterator[Problem]:
    network = spec.interconnect
    if network.look_ahead > 1 and network.arbiter != "islip":
        yield (
            "interconnect.look_ahead",
            f"found {network.look_ahead}, expected 1 with the {network.arbiter} arbiter",
        )


def _address_map(spec: SpecFields) -> Iterator[Problem]:
    map_, banks = spec.address_map, spec.dram.banks
    rules = PolicyName("slice_hash").registered[map_.hash]
    if rules["power_of_two_channels"] and map_.channels & (map_.channels - 1):
        yield (
            "address_map.hash",
            f"{map_.hash} needs a power of two of channels, found {map_.channels}; "
            "use ipoly_skewed or linear",
        )
    if rules["exact_slices"] not in (0, map_.slices):
        yield (
            "address_map.hash",
            f"{map_.hash} is defined for {rules['exact_slices']} slices, found {map_.slices}",
        )
    slices_up = (1 << (map_.channels - 1).bit_length()) * map_.slices_per_channel
    if rules["most_slices"] and slices_up > rules["most_slices"]:
        yield (
            "address_map.hash",
            f"{map_.hash} distributes among {rules['most_slices']} slices at most, found {map_.slices}",
        )
    if not re.fullmatch(r"[RBC]+S+", map_.layout):
        yield "address_map.layout", f"found {map_.layout!r}, expected letters R, B and C, then letters S"
        return
    letters = {letter: map_.layout.count(letter) for letter in "RBCS"}
    if 1 << letters["S"] != SECTOR_BYTES:
        yield (
            "address_map.layout",
            f"found {letters['S']} letters S, expected 5: DRAM atoms have 32 bytes",
        )
    if len(map_.layout) > 58:
        yield "address_map.layout", f"found {len(map_.layout)} bits, expected at most 58"
    for letter in "RC":
        if letters[letter] > 31:
            yield "address_map.layout", f"found {letters[letter]} letters {letter}, expected at most 31"
    if 1 << letters["B"] != banks:
        yield (
            "address_map.layout",
            f"its letters B number {1 << letters['B']} banks, expected dram.banks = {banks}",
        )
    if map_.slices_per_channel > banks:
        yield (
            "address_map.slices_per_channel",
            f"found {map_.slices_per_channel}, expected at most dram.banks = {banks}: the low bank bits "
            "choose the slice",
        )


def _l2(spec: SpecFields) -> Iterator[Problem]:
    l2, slices = spec.l2, spec.address_map.slices
    if l2.slice.bytes == 0:
        yield "l2.slice.sets", "found 0, expected an L2"
    if not l2.slice.sectored:
        yield "l2.slice.sectored", "found false, expected true: requests reach the L2 as sectors"
    if slices % l2.partitions:
        yield "l2.partitions", f"found {l2.partitions}, expected a divisor of the {slices} slices"
    if l2.partitions == 1:
        if l2.far_latency:
            yield "l2.far_latency", f"found {l2.far_latency}, expected 0 with one partition"
        return
    if l2.far_latency < 4:
        yield "l2.far_latency", f"found {l2.far_latency}, expected at least 4 with several partitions"
    if l2.slice.ways < 2:
        yield "l2.slice.ways", f"found {l2.slice.ways}, expected at least 2 with several partitions"
    if l2.slice.mshr_entries < 8:
        yield (
            "l2.slice.mshr_entries",
            f"found {l2.slice.mshr_entries}, expected at least 8 with several partitions: each keeps an "
            "eighth for the requests of the others",
        )
    if l2.slice.dirty_threshold:
        yield (
            "l2.slice.dirty_threshold",
            f"found {l2.slice.dirty_threshold}, expected 0 with several partitions: modified lines that are "
            "kept could block their requests to each other",
        )


def _dram(spec: SpecFields) -> Iterator[Problem]:
    dram = spec.dram
    atom = dram.bus_bytes * dram.burst_length
    if atom != SECTOR_BYTES:
        yield "dram.burst_length", f"bus_bytes * burst_length is {atom} bytes, expected 32: a sector"
    if dram.burst_length % dram.data_command_ratio:
        yield (
            "dram.data_command_ratio",
            f"found {dram.data_command_ratio}, expected a divisor of burst_length = {dram.burst_length}",
        )
    if dram.bank_groups > dram.banks:
        yield "dram.bank_groups", f"found {dram.bank_groups}, expected at most banks = {dram.banks}"
    if not dram.write_low < dram.write_high <= dram.write_queue_size:
        yield (
            "dram.write_high",
            f"found write_low = {dram.write_low}, write_high = {dram.write_high}, write_queue_size = "
            f"{dram.write_queue_size}, expected write_low < write_high <= write_queue_size",
        )
    queued, slices = dram.scheduler_queue + dram.return_queue, spec.address_map.slices_per_channel
    if queued < slices:
        yield (
            "dram.return_queue",
            f"found {dram.return_queue} with scheduler_queue = {dram.scheduler_queue}, expected places for "
            f"each of the channel's {slices} slices",
        )
    if dram.rc < dram.ras:
        yield "dram.rc", f"found {dram.rc}, expected at least ras = {dram.ras}"
    if dram.refi and dram.refi <= max(dram.rfc + dram.rc, dram.banks):
        yield (
            "dram.refi",
            f"found {dram.refi}, expected 0 or more than rfc + rc = {dram.rfc + dram.rc} "
            f"and than banks = {dram.banks}",
        )
    if dram.rcd <= dram.wl:
        yield "dram.rcd", f"found {dram.rcd}, expected more than wl = {dram.wl}"
    if dram.cl + dram.burst_length // dram.data_command_ratio + 2 < dram.wl:
        yield "dram.wl", f"found {dram.wl}, expected at most a read's {dram.cl} cycles, its burst and 2"
