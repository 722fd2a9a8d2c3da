#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <ctime>
#include <tuple>

#include "bindings.hpp"
#include "spec.hpp"
#include "timing/core/coalescer.hpp"
#include "timing/core/shared_passes.hpp"
#include "timing/launch/easing.hpp"
#include "timing/memory/address_map.hpp"
#include "timing/memory/crossbar.hpp"
#include "timing/memory/dram_channel.hpp"
#include "timing/memory/hashes/ipoly.hpp"
#include "timing/memory/memory_system.hpp"
#include "timing/memory/sectored_cache.hpp"
#include "timing/schedulers/warp_scheduler.hpp"
#include "timing/warps/warp_table.hpp"
#include "trace/store_format.hpp"

// The engine's components in isolation, so that tests read like a datasheet.

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt;

namespace {

constexpr const char* outcome_names[] = {"hit", "hit_reserved", "miss", "sector_miss", "reservation_fail"};
constexpr const char* failure_names[] = {"none", "line", "miss_queue", "mshr_entries", "mshr_merge"};

Eviction eviction_named(const std::string& name) {
  constexpr const char* names[] = {"default", "normal", "first", "last", "unchanged", "no_allocate"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (name == names[i]) return static_cast<Eviction>(i);
  throw nb::value_error(("unknown eviction " + name).c_str());
}

/// A cache from a specification (its L1 or an L2 slice).
class TestCache {
 public:
  TestCache(python::NativeSpec spec, const std::string& which)
      : spec_(spec_from_dict(spec)), cache_(which == "l1" ? spec_.l1.cache : spec_.l2.slice) {}

  std::string access(uint64_t address, bool write, bool atomic, uint32_t byte_mask, uint64_t token,
                     bool local, const std::string& eviction) {
    CacheAccess access;
    access.eviction = eviction_named(eviction);
    access.address = address;
    access.write = write;
    access.atomic = atomic;
    access.byte_mask = byte_mask;
    access.token = token;
    access.time = ++time_;
    access.kind = local ? (write ? AccessKind::LocalWrite : AccessKind::LocalRead)
                        : (write ? AccessKind::GlobalWrite : AccessKind::GlobalRead);
    return outcome_names[static_cast<size_t>(cache_.access(access))];
  }
  std::string failure() const { return failure_names[static_cast<size_t>(cache_.last_failure())]; }
  bool write_sent() const { return cache_.last_write_sent(); }
  void fill(uint64_t address) { cache_.fill(address, ++time_); }
  std::vector<uint64_t> ready() {
    std::vector<uint64_t> tokens;
    while (cache_.ready()) tokens.push_back(cache_.pop_ready());
    return tokens;
  }
  /// (address, write, write_back, sectors, byte_mask) of each request waiting to leave; empties the queue.
  std::vector<std::tuple<uint64_t, bool, bool, uint32_t, uint32_t>> misses() {
    std::vector<std::tuple<uint64_t, bool, bool, uint32_t, uint32_t>> all;
    for (; !cache_.miss_queue_empty(); cache_.pop_miss()) {
      const CacheMiss& m = cache_.front_miss();
      all.emplace_back(m.address, m.write, m.write_back, m.sectors, m.byte_mask);
    }
    return all;
  }
  void insert(uint64_t address, bool modified) {
    CacheAccess access;
    access.address = address;
    access.write = modified;
    access.time = ++time_;
    cache_.insert(access);
  }
  bool contains(uint64_t address) const { return cache_.contains(address); }
  /// Takes over what another cache holds.
  void restore(const TestCache& other) { cache_.restore(other.cache_.contents()); }
  uint64_t modified_lines() const { return cache_.modified_lines(); }
  void invalidate() { cache_.invalidate(); }
  void set_ways(uint32_t ways) { cache_.set_ways(ways); }
  void set_protected_ways(uint32_t ways) { cache_.set_protected_ways(ways); }
  void reset_protected() { cache_.reset_protected(); }

 private:
  Spec spec_;
  SectoredCache cache_;
  uint64_t time_ = 0;
};

/// A DRAM channel that keeps a log of its commands.
class TestDram {
 public:
  TestDram(const TestDram&) = delete;
  explicit TestDram(python::NativeSpec spec)
      : spec_(spec_from_dict(spec)), counters_(1), channel_(spec_.dram, counters_) {}

  void push(uint32_t bank, uint32_t row, bool write, uint64_t name, uint32_t sectors) {
    DramRequest request;
    request.address = name;
    request.bank = bank;
    request.row = row;
    request.write = write;
    request.sectors = sectors;
    channel_.push(request);
  }
  bool full(bool write) const { return channel_.full(write); }
  /// Runs `cycles` command cycles; returns (cycle, "ACT" | "PRE" | "RD" | "WR" | "DATA", request's name or
  /// 0).
  std::vector<std::tuple<uint64_t, std::string, uint64_t>> run(uint64_t cycles) {
    std::vector<std::tuple<uint64_t, std::string, uint64_t>> log;
    for (uint64_t end = cycle_ + cycles; cycle_ < end; ++cycle_) {
      const Counters before = counters_[0];
      channel_.tick(cycle_);
      const Counters& after = counters_[0];
      const auto note = [&](Counter counter, const char* command) {
        if (after[counter] != before[counter]) log.emplace_back(cycle_, command, 0);
      };
      note(Counter::dram_reads, "RD");
      note(Counter::dram_writes, "WR");
      note(Counter::dram_activates, "ACT");
      note(Counter::dram_precharges, "PRE");
      for (; channel_.has_returned(); channel_.pop_returned())
        log.emplace_back(cycle_, "DATA", channel_.front_returned().address);
      channel_.writes_done().clear();
    }
    return log;
  }
  bool idle() const { return channel_.idle(); }
  /// Skips command cycles, as for an idle channel.
  void skip(uint64_t cycles) { cycle_ += cycles; }

 private:
  Spec spec_;
  std::vector<Counters> counters_;
  DramChannel channel_;
  uint64_t cycle_ = 0;
};

/// The memory system, driven by a list of requests.
class TestMemory {
 public:
  explicit TestMemory(python::NativeSpec spec) : spec_(spec_from_dict(spec)), memory_(spec_, 1) {}

  uint64_t look_ahead() const { return memory_.look_ahead(); }
  void insert(uint64_t address, uint64_t bytes, bool modified) { memory_.insert(address, bytes, modified); }
  uint64_t free_l2_lines() const { return memory_.free_l2_lines(); }
  /// From this address on, memory is another device's.
  void set_peer(uint64_t begin) {
    memory_.set_peers([begin](uint64_t address) { return address >= begin; });
  }
  /// Sends (cycle, sm, address, write) in order of cycles and runs to `end` in windows of `window` cycles,
  /// with the channels in `parts` groups. Returns (cycle, sm, address, write) of every reply.
  std::vector<std::tuple<uint64_t, uint32_t, uint64_t, bool>> run(
      const std::vector<std::tuple<uint64_t, uint32_t, uint64_t, bool>>& requests, uint64_t end,
      uint64_t window, uint32_t parts) {
    std::vector<std::tuple<uint64_t, uint32_t, uint64_t, bool>> replies;
    const std::clock_t start = std::clock();
    size_t next = 0;
    while (now_ < end) {
      const uint64_t window_end = std::min(end, now_ + window);
      const uint32_t channels = memory_.find_running(window_end);
      for (uint32_t p = parts; p-- > 0;)
        memory_.advance_slices(channels * p / parts, channels * (p + 1) / parts, window_end);
      memory_.advance_replies(window_end);
      for (uint32_t sm = 0; sm < spec_.sm.count; ++sm) {
        MemoryPort& port = memory_.port(sm);
        for (const MemoryReply& r : port.replies) replies.emplace_back(r.cycle, sm, r.address, r.write);
        port.replies.clear();
        port.departures.clear();
      }
      for (; next < requests.size() && std::get<0>(requests[next]) < window_end; ++next) {
        const auto& [cycle, sm, address, write] = requests[next];
        MemoryRequest request;
        request.cycle = cycle;
        request.sm = static_cast<uint16_t>(sm);
        request.address = address;
        request.write = write;
        request.kind = write ? AccessKind::GlobalWrite : AccessKind::GlobalRead;
        memory_.port(sm).requests.push_back(request);
      }
      for (uint32_t sm = 0; sm < spec_.sm.count; ++sm) memory_.take_requests(sm);
      memory_.advance_requests(window_end);
      now_ = window_end;
    }
    seconds_ += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    return replies;
  }
  uint64_t counter(const std::string& name) const {
    const Counters counters = memory_.counters(0);
    if (name == "dram_reads") return counters[Counter::dram_reads];
    if (name == "dram_writes") return counters[Counter::dram_writes];
    if (name == "dram_row_hits") return counters[Counter::dram_row_hits];
    if (name == "dram_activates") return counters[Counter::dram_activates];
    if (name == "tlb_misses") return counters[Counter::tlb_misses];
    throw nb::key_error(name.c_str());
  }
  bool idle() const { return memory_.idle(); }
  /// Processor time spent in run(), without passing lists to and from Python.
  double seconds() const { return seconds_; }

 private:
  Spec spec_;
  MemorySystem memory_;
  uint64_t now_ = 0;
  double seconds_ = 0;
};

/// The warps a scheduler issues, cycle by cycle: `ready[c]` has one bit per warp that could issue in cycle c,
/// `waits[c]` one per warp waiting for memory. `ages[w]`: order of launch.
std::vector<int32_t> scheduler_choices(const std::string& policy, const std::vector<uint64_t>& ages,
                                       const std::vector<uint64_t>& ready, const std::vector<uint64_t>& waits,
                                       uint32_t active_warps) {
  SchedulerSpec spec;
  spec.policy = Choice<SchedulerPolicy>::named(policy);
  if (!spec.policy) throw nb::value_error(("unknown policy " + policy).c_str());
  spec.active_warps = active_warps;
  const auto count = static_cast<uint32_t>(ages.size());
  WarpTable warps(count, 1, 1, 2, false);
  for (uint32_t w = 0; w < count; ++w) {
    warps.set_age(w, ages[w]);
    warps.change_masks(0).resident |= uint64_t{1} << w;
  }
  const std::unique_ptr<WarpScheduler> scheduler = spec.policy->make({spec, warps.view(0), 0, 0, count});
  std::vector<int32_t> chosen;
  for (size_t c = 0; c < ready.size(); ++c) {
    warps.change_masks(0).blocked_long = c < waits.size() ? waits[c] : 0;
    scheduler->begin_cycle();
    const int32_t choice = ready[c] ? scheduler->choose(ready[c], c) : -1;
    if (choice >= 0) scheduler->issued(choice);
    chosen.push_back(choice);
  }
  return chosen;
}

/// The (input, output, name) that move in each cycle of a crossbar whose inputs hold `queues` of (output,
/// name).
std::vector<std::tuple<uint64_t, uint32_t, uint32_t, uint32_t>> crossbar_moves(
    const std::vector<std::vector<std::tuple<uint32_t, uint32_t>>>& queues, uint32_t outputs, bool islip,
    uint64_t cycles, uint32_t look_ahead, uint32_t input_width, uint32_t output_width) {
  struct Packet {
    uint64_t tick = 0;
    uint32_t output = 0;
    uint32_t number = 0;
  };
  Crossbar<Packet> crossbar(static_cast<uint32_t>(queues.size()), outputs,
                            islip ? NetworkArbiter::Islip : NetworkArbiter::RoundRobin,
                            {look_ahead, input_width, output_width});
  for (uint32_t i = 0; i < queues.size(); ++i) {
    for (const auto& [output, name] : queues[i]) crossbar.queue(i).push_back({0, output, name});
    crossbar.notice(i);
  }
  std::vector<std::tuple<uint64_t, uint32_t, uint32_t, uint32_t>> moves;
  for (uint64_t c = 0; c < cycles; ++c)
    crossbar.advance(
        c, [](uint32_t) { return true; },
        [&](uint32_t input, const Packet& p) { moves.emplace_back(c, input, p.output, p.number); });
  return moves;
}

nb::typed<nb::dict, nb::str, uint64_t> locate(python::NativeSpec spec, uint64_t address) {
  const Spec s = spec_from_dict(spec);
  const AddressMap map(s);
  const DramLocation where = map.locate(address);
  const uint32_t slice = map.slice_of(address);
  nb::typed<nb::dict, nb::str, uint64_t> result;
  result["slice"] = slice;
  result["channel"] = slice / s.address_map.slices_per_channel;
  result["bank"] = where.bank;
  result["row"] = where.row;
  result["column"] = map.column(address);
  result["local"] = map.local_address(address);
  return result;
}

std::vector<uint32_t> slices(python::NativeSpec spec, const std::vector<uint64_t>& addresses) {
  const Spec s = spec_from_dict(spec);
  const AddressMap map(s);
  std::vector<uint32_t> result;
  for (uint64_t a : addresses) result.push_back(map.slice_of(a));
  return result;
}

std::vector<std::tuple<uint64_t, uint32_t, uint32_t>> coalesced(const std::vector<uint64_t>& addresses,
                                                                uint32_t bytes, bool sectored, bool atomic) {
  std::vector<Transaction> transactions;
  const auto count = static_cast<uint32_t>(addresses.size());
  if (atomic)
    coalesce_atomic(addresses.data(), count, bytes, transactions);
  else
    coalesce(addresses.data(), count, bytes, sectored, transactions);
  std::vector<std::tuple<uint64_t, uint32_t, uint32_t>> result;
  for (const Transaction& t : transactions) result.emplace_back(t.address, t.byte_mask, t.lanes);
  return result;
}

/// (index, file, width, operand slot) of a register.
using RegisterRow = std::tuple<uint16_t, uint32_t, uint8_t, uint8_t>;
/// An instruction of a store: pc, opcode, immediates, destinations, sources, control bits.
using InstructionRow = std::tuple<uint64_t, uint32_t, int64_t, int64_t, std::vector<RegisterRow>,
                                  std::vector<RegisterRow>, std::optional<uint32_t>>;

/// The rows of an encoded instruction table.
std::vector<InstructionRow> instruction_rows(const nb::bytes& table, size_t opcodes) {
  std::vector<InstructionRow> rows;
  for (const RawInstruction& r :
       store::decode_instructions(static_cast<const uint8_t*>(table.data()), table.size(), opcodes)) {
    const auto registers = [](const auto& list, uint8_t count, const auto& slots) {
      std::vector<RegisterRow> found;
      for (uint8_t i = 0; i < count; ++i)
        found.emplace_back(list[i].index, static_cast<uint32_t>(list[i].file), list[i].width, slots[i]);
      return found;
    };
    constexpr std::array<uint8_t, StaticInstruction::max_registers> no_slots{};
    rows.emplace_back(r.pc, r.opcode, r.immediate, r.immediate2,
                      registers(r.destinations, r.destination_count, no_slots),
                      registers(r.sources, r.source_count, r.source_slots),
                      r.control.present() ? std::optional(r.control.to_bits()) : std::nullopt);
  }
  return rows;
}

/// The inverse: `table` with its rows replaced, which has as many; other columns stay as they are.
nb::bytes with_instruction_rows(const nb::bytes& table, size_t opcodes,
                                const std::vector<InstructionRow>& rows) {
  std::vector<RawInstruction> instructions =
      store::decode_instructions(static_cast<const uint8_t*>(table.data()), table.size(), opcodes);
  for (size_t i = 0; i < instructions.size(); ++i) {
    RawInstruction& r = instructions[i];
    const auto& [pc, opcode, immediate, immediate2, destinations, sources, control] = rows.at(i);
    r.pc = pc;
    r.opcode = opcode;
    r.immediate = immediate;
    r.immediate2 = immediate2;
    r.destination_count = static_cast<uint8_t>(destinations.size());
    r.source_count = static_cast<uint8_t>(sources.size());
    const auto as_register = [](const RegisterRow& row) {
      return Register{std::get<0>(row), static_cast<RegisterFile>(std::get<1>(row)), std::get<2>(row)};
    };
    for (size_t k = 0; k < destinations.size(); ++k) r.destinations.at(k) = as_register(destinations[k]);
    for (size_t k = 0; k < sources.size(); ++k) {
      r.sources.at(k) = as_register(sources[k]);
      r.source_slots.at(k) = std::get<3>(sources[k]);
    }
    if (control) r.control = ControlBits::from_bits(*control);
  }
  const std::string bytes = store::encode_instructions(instructions);
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_testing(nb::module_& m) {
  nb::module_ t = m.def_submodule("testing", "Single components of the engine, for its tests.");
  bind_testing_dispatch(t);
  nb::class_<TestCache>(t, "Cache")
      .def(nb::init<python::NativeSpec, std::string>(), "spec"_a, "which"_a = "l1")
      .def("access", &TestCache::access, "address"_a, "write"_a = false, "atomic"_a = false,
           "byte_mask"_a = 0xffffffffu, "token"_a = 0, "local"_a = false, "eviction"_a = "default")
      .def("set_protected_ways", &TestCache::set_protected_ways)
      .def("reset_protected", &TestCache::reset_protected)
      .def("failure", &TestCache::failure)
      .def("write_sent", &TestCache::write_sent)
      .def("fill", &TestCache::fill)
      .def("ready", &TestCache::ready)
      .def("misses", &TestCache::misses)
      .def("insert", &TestCache::insert)
      .def("contains", &TestCache::contains)
      .def("restore", &TestCache::restore)
      .def("modified_lines", &TestCache::modified_lines)
      .def("invalidate", &TestCache::invalidate)
      .def("set_ways", &TestCache::set_ways);
  nb::class_<TestDram>(t, "Dram")
      .def(nb::init<python::NativeSpec>(), "spec"_a)
      .def("push", &TestDram::push, "bank"_a, "row"_a, "write"_a = false, "name"_a = 0, "sectors"_a = 1)
      .def("full", &TestDram::full, "write"_a = false)
      .def("run", &TestDram::run, "cycles"_a)
      .def("idle", &TestDram::idle)
      .def("skip", &TestDram::skip, "cycles"_a);
  t.def("eased_cycles", [](std::vector<double> left, double resident, double fastest, bool in_turn) {
    return simt::eased_cycles(left, resident, fastest, in_turn);
  });
  nb::class_<TestMemory>(t, "Memory")
      .def(nb::init<python::NativeSpec>(), "spec"_a)
      .def("look_ahead", &TestMemory::look_ahead)
      .def("insert", &TestMemory::insert, "address"_a, "bytes"_a, "modified"_a = false)
      .def_prop_ro("free_l2_lines", &TestMemory::free_l2_lines)
      .def("set_peer", &TestMemory::set_peer, "begin"_a)
      .def("run", &TestMemory::run, "requests"_a, "end"_a, "window"_a, "parts"_a = 1)
      .def("counter", &TestMemory::counter)
      .def("idle", &TestMemory::idle)
      .def("seconds", &TestMemory::seconds);
  t.def("scheduler_choices", &scheduler_choices, "policy"_a, "ages"_a, "ready"_a,
        "waits"_a = std::vector<uint64_t>{}, "active_warps"_a = 4);
  t.def("crossbar_moves", &crossbar_moves, "queues"_a, "outputs"_a, "islip"_a, "cycles"_a, "look_ahead"_a = 1,
        "input_width"_a = 1, "output_width"_a = 1);
  t.def("locate", &locate, "spec"_a, "address"_a);
  t.def("slices", &slices, "spec"_a, "addresses"_a);
  t.def("ipoly_hash", &ipoly_hash, "high"_a, "index"_a, "n"_a);
  t.def(
      "eviction_of",
      [](uint64_t policy, uint64_t address) {
        return static_cast<int>(eviction_of(static_cast<uint32_t>(policy >> 32), address));
      },
      "policy"_a, "address"_a);
  t.def("coalesce", &coalesced, "addresses"_a, "bytes"_a, "sectored"_a = true, "atomic"_a = false);
  t.def("instruction_rows", &instruction_rows, "table"_a, "opcodes"_a);
  t.def("with_instruction_rows", &with_instruction_rows, "table"_a, "opcodes"_a, "rows"_a);
  t.def(
      "shared_passes",
      [](const std::vector<uint64_t>& a, uint64_t mask, uint32_t bytes, bool by_width, bool load,
         bool atomic) {
        return shared_memory_passes(a.data(), mask, bytes, 32, by_width,
                                    atomic ? SharedAccess::Atomic
                                    : load ? SharedAccess::Load
                                           : SharedAccess::Store);
      },
      "addresses"_a, "mask"_a, "bytes"_a, "by_width"_a = true, "load"_a = true, "atomic"_a = false);
  t.def(
      "shared_passes_of_loads",
      [](const std::vector<std::vector<uint64_t>>& loads, uint64_t mask, uint32_t bytes) {
        SharedPasses passes(32, true);
        std::vector<uint32_t> of_loads;
        for (const std::vector<uint64_t>& addresses : loads)
          of_loads.push_back(passes.of(0, addresses.data(), mask, bytes, SharedAccess::Load));
        return of_loads;
      },
      "loads"_a, "mask"_a, "bytes"_a);
}
