#include "launch_record.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <set>
#include <stdexcept>
#include <type_traits>

#include "bindings.hpp"
#include "control.hpp"
#include "counter_names.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using simt::LaunchCode;
using simt::python::RawLaunch;
using simt::python::RawLaunchParts;

nb::dict cache_table(const simt::Counters::CacheTable& table) {
  nb::dict result;
  for (size_t k = 0; k < table.size(); ++k) {
    nb::dict row;
    for (size_t o = 0; o < table[k].size(); ++o) row[outcome_names[o]] = table[k][o];
    result[kind_names[k]] = row;
  }
  return result;
}

/// Machine code as text: `LDG.E R4, R2`. Constant operands and source predicates are not known.
std::string text_of(const simt::StaticInstruction& s, const std::string& opcode) {
  std::string text = opcode;
  const auto add = [&](const simt::Register& r) {
    static constexpr const char* prefixes[] = {"R", "UR", "P", "UP"};
    text += text.size() == opcode.size() ? " " : ", ";
    text += prefixes[static_cast<size_t>(r.file)];
    text += r.file == simt::RegisterFile::General && r.index == 255 ? "Z" : std::to_string(r.index);
  };
  for (uint8_t i = 0; i < s.destination_count; ++i) add(s.destinations[i]);
  for (uint8_t i = 0; i < s.source_count; ++i) add(s.sources[i]);
  return text;
}

/// 32-bit general registers that a lane reads or writes; RZ is none.
template <class Registers>
uint32_t general_registers(const Registers& registers, uint8_t count) {
  uint32_t found = 0;
  for (uint8_t i = 0; i < count; ++i)
    if (registers[i].file == simt::RegisterFile::General && registers[i].index != 255)
      found += registers[i].width;
  return found;
}

/// The instructions that were executed, or at which a warp waited.
std::vector<size_t> instructions_in_use(const simt::LaunchRecord& record) {
  const simt::LaunchActivity& activity = record.activity;
  std::vector<size_t> rows;
  for (size_t i = 0; i < record.code->instructions.size(); ++i) {
    const auto& samples = activity.samples[i];
    if (activity.executions[i].warps > 0 ||
        std::any_of(samples.begin(), samples.end(), [](auto n) { return n; }))
      rows.push_back(i);
  }
  return rows;
}

nb::dict per_instruction(const simt::LaunchRecord& record, const std::vector<size_t>& rows) {
  const simt::LaunchActivity& activity = record.activity;
  nb::list pc, opcode, line, text, reads, writes, issued, threads;
  for (const size_t i : rows) {
    const simt::StaticInstruction& s = record.code->instructions[i];
    pc.append(s.pc);
    opcode.append(record.code->opcodes[s.opcode]);
    line.append(s.source_line);
    text.append(text_of(s, record.code->opcodes[s.opcode]));
    reads.append(general_registers(s.sources, s.source_count));
    writes.append(general_registers(s.destinations, s.destination_count));
    issued.append(activity.executions[i].warps);
    threads.append(activity.executions[i].threads);
  }
  nb::dict stalled;
  for (size_t r = 0; r < simt::LaunchActivity::reasons; ++r) {
    std::vector<uint64_t> column;
    for (const size_t i : rows) column.push_back(activity.samples[i][r]);
    stalled[reason_names[r]] = column;
  }
  nb::dict result;
  result["pc"] = pc;
  result["opcode"] = opcode;
  result["source_line"] = line;
  result["text"] = text;
  result["reads"] = reads;
  result["writes"] = writes;
  result["issued"] = issued;
  result["threads"] = threads;
  result["stalled"] = stalled;
  result["sample_interval"] = simt::ActivityRecorder::sample_interval;
  return result;
}

/// How the launch's work is distributed.
nb::dict spread(const simt::LaunchRecord& record) {
  nb::list instructions, cycles, warps, lookups, hits;
  for (const auto& sm : record.sms) {
    instructions.append(sm.warp_instructions);
    cycles.append(sm.active_cycles);
    warps.append(sm.active_warp_cycles);
  }
  for (const auto& slice : record.slices) {
    lookups.append(slice.lookups);
    hits.append(slice.hits);
  }
  nb::dict sm, slice, result;
  sm["warp_instructions"] = instructions;
  sm["active_cycles"] = cycles;
  sm["active_warp_cycles"] = warps;
  slice["lookups"] = lookups;
  slice["hits"] = hits;
  result["sm"] = sm;
  result["l2_slice"] = slice;
  return result;
}

nb::bytes bytes_of(const std::vector<uint32_t>& column) {
  return nb::bytes(column.data(), column.size() * sizeof(uint32_t));
}

/// Columns of 32-bit numbers, a row per interval and instruction in use. rows: of per_instruction().
nb::dict instruction_uses(const simt::Timeline& t, const std::vector<size_t>& rows) {
  std::vector<uint32_t> intervals, instructions, issued, waiting;
  for (uint32_t i = 0; i < t.intervals().size(); ++i) {
    size_t row = 0;
    for (const simt::InstructionUse& use : t.intervals()[i].instructions) {
      while (row < rows.size() && rows[row] < use.instruction) ++row;
      intervals.push_back(i);
      instructions.push_back(static_cast<uint32_t>(row));
      issued.push_back(use.issued);
      waiting.push_back(use.waiting);
    }
  }
  nb::dict result;
  result["interval"] = bytes_of(intervals);
  result["instruction"] = bytes_of(instructions);
  result["issued"] = bytes_of(issued);
  result["waiting"] = bytes_of(waiting);
  return result;
}

/// Columns of 32-bit numbers, a row per interval and bank that was in use.
nb::dict bank_uses(const simt::Timeline& t) {
  std::vector<uint32_t> intervals, channels, numbers, bus, pending;
  for (uint32_t i = 0; i < t.intervals().size(); ++i)
    for (const simt::BankUse& use : t.intervals()[i].banks) {
      intervals.push_back(i);
      channels.push_back(use.channel);
      numbers.push_back(use.bank);
      bus.push_back(use.bus_cycles);
      pending.push_back(use.pending_cycles);
    }
  nb::dict result;
  result["interval"] = bytes_of(intervals);
  result["channel"] = bytes_of(channels);
  result["bank"] = bytes_of(numbers);
  result["bus_cycles"] = bytes_of(bus);
  result["pending_cycles"] = bytes_of(pending);
  return result;
}

/// rows: of per_instruction().
nb::dict timeline(const simt::Timeline& t, const std::vector<size_t>& rows) {
  static constexpr const char* names[] = {
#define SIMT_TIMELINE_COUNT(name) #name,
      SIMT_TIMELINE_COUNTS(SIMT_TIMELINE_COUNT)
#undef SIMT_TIMELINE_COUNT
  };
  using Interval = simt::Timeline::Interval;
  const auto column = [&](auto&& value) {
    nb::list found;
    for (const Interval& each : t.intervals()) found.append(value(each));
    return found;
  };
  const auto by_channel = [&](uint64_t simt::ChannelActivity::* value) {
    return column([&](const Interval& each) {
      nb::list row;
      for (const simt::ChannelActivity& channel : each.activity.channels) row.append(channel.*value);
      return row;
    });
  };
  nb::dict result, stalls, warp_stalls;
  result["interval"] = t.interval();
  result["cycle"] = column([](const Interval& each) { return each.end; });
  for (size_t i = 0; i < std::size(names); ++i)
    result[names[i]] = column([&](const Interval& each) { return each.activity.counts[i]; });
  for (size_t r = 0; r < simt::LaunchActivity::reasons; ++r) {
    stalls[reason_names[r]] = column([&](const Interval& each) { return each.activity.stalls[r]; });
    warp_stalls[reason_names[r]] = column([&](const Interval& each) { return each.activity.warp_states[r]; });
  }
  result["stalls"] = stalls;
  result["warp_stalls"] = warp_stalls;
  result["dram_reads"] = by_channel(&simt::ChannelActivity::reads);
  result["dram_writes"] = by_channel(&simt::ChannelActivity::writes);
  result["dram_bus_cycles"] = by_channel(&simt::ChannelActivity::bus_cycles);
  result["dram_pending_cycles"] = by_channel(&simt::ChannelActivity::pending_cycles);
  result["dram_banks"] = bank_uses(t);
  result["instructions"] = instruction_uses(t, rows);
  return result;
}

/// Names the first places in machine code that issue too early; empty if there are none.
std::string uncovered_dependences(const simt::LaunchRecord& record) {
  constexpr size_t most = 5;
  std::string text;
  size_t places = 0;
  for (size_t i = 0; i < record.activity.uncovered.size(); ++i) {
    const uint64_t times = record.activity.uncovered[i];
    if (times == 0 || ++places > most) continue;
    const simt::StaticInstruction& s = record.code->instructions[i];
    char pc[20];
    std::snprintf(pc, sizeof pc, "%04llx", static_cast<unsigned long long>(s.pc));
    text += (places > 1 ? ", " : "") + std::string(pc) + " " + text_of(s, record.code->opcodes[s.opcode]) +
            " (" + std::to_string(times) + " times)";
  }
  if (places == 0) return {};
  if (places > most) text += " and " + std::to_string(places - most) + " more";
  return "control bits let instructions issue before their registers are ready, by the latencies of this "
         "specification: " +
         text;
}

/// Names the modifiers and instructions of the launch that only advise the caches and have no effect here;
/// empty if there are none. priorities: whether the GPU has eviction priorities.
std::string ignored_hints(const simt::LaunchRecord& record, const std::vector<size_t>& rows,
                          bool priorities) {
  constexpr std::string_view ignored[] = {".LTC64B",    ".LTC128B",    ".LTC256B",    "CCTL.E.PF1",
                                          "CCTL.E.PF2", "CCTL.E.PML2", "CCTL.E.DML2", "CCTL.E.RML2"};
  constexpr std::string_view evictions[] = {".EF", ".EL", ".EU", ".LU", ".NA"};
  std::set<std::string_view> found;
  for (const size_t i : rows) {
    const std::string_view opcode = record.code->opcodes[record.code->instructions[i].opcode];
    for (const std::string_view hint : ignored)
      if (opcode.find(hint) != opcode.npos) found.insert(hint);
    if (priorities || !record.code->instructions[i].has_eviction()) continue;
    for (const std::string_view hint : evictions)
      if ((std::string(opcode) + ".").find(std::string(hint) + ".") != std::string::npos) found.insert(hint);
  }
  std::string text;
  for (const std::string_view hint : found) text += (text.empty() ? "" : ", ") + std::string(hint);
  return text.empty() ? text : "hints to the caches that have no effect here (docs/model/l2.md): " + text;
}

/// Numbers as bytes, seven bits in each, the lowest first: most of a launch's are 0 or small.
class NumberWriter {
 public:
  void add(uint64_t n) {
    for (; n > 127; n >>= 7) bytes_.push_back(static_cast<char>(n | 128));
    bytes_.push_back(static_cast<char>(n));
  }
  template <class Range>
  void add_all(const Range& numbers) {
    for (const auto n : numbers) add(n);
  }
  nb::bytes bytes() const { return nb::bytes(bytes_.data(), bytes_.size()); }

 private:
  std::string bytes_;
};

class NumberReader {
 public:
  explicit NumberReader(const nb::bytes& bytes) : next_(bytes.c_str()), end_(next_ + bytes.size()) {}
  uint64_t take() {
    uint64_t n = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      if (next_ == end_) break;
      const auto byte = static_cast<uint8_t>(*next_++);
      n |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return n;
    }
    throw std::invalid_argument("no numbers of a launch");
  }
  template <class Range>
  void take_all(Range& numbers) {
    for (auto& n : numbers) n = static_cast<std::remove_reference_t<decltype(n)>>(take());
  }

 private:
  const char* next_;
  const char* end_;
};

/// The record's numbers, for parts_of(). rows: of instructions_in_use().
nb::bytes packed(const simt::LaunchRecord& record, const std::vector<size_t>& rows) {
  const simt::LaunchActivity& activity = record.activity;
  NumberWriter out;
  out.add_all(activity.counters.values);
  for (const auto& kind : activity.counters.l1) out.add_all(kind);
  for (const auto& kind : activity.counters.l2) out.add_all(kind);
  out.add_all(activity.warp_states);
  out.add(activity.scheduler_cycles.size());
  for (const auto& scheduler : activity.scheduler_cycles) out.add_all(scheduler);
  out.add(rows.size());
  for (const size_t i : rows) {
    out.add(i);
    out.add(activity.executions[i].warps);
    out.add(activity.executions[i].threads);
    out.add_all(activity.samples[i]);
  }
  out.add(record.sms.size());
  for (const auto& sm : record.sms) {
    out.add(sm.warp_instructions);
    out.add(sm.active_cycles);
    out.add(sm.active_warp_cycles);
  }
  out.add(record.slices.size());
  for (const auto& slice : record.slices) {
    out.add(slice.lookups);
    out.add(slice.hits);
  }
  return out.bytes();
}

/// The parts of a launch's record that most launches are never asked for.
RawLaunchParts parts_of(const std::shared_ptr<LaunchCode>& code, const nb::bytes& numbers) {
  NumberReader in(numbers);
  simt::LaunchRecord record;
  record.code = code;
  simt::LaunchActivity& activity = record.activity;
  in.take_all(activity.counters.values);
  for (auto& kind : activity.counters.l1) in.take_all(kind);
  for (auto& kind : activity.counters.l2) in.take_all(kind);
  in.take_all(activity.warp_states);
  activity.scheduler_cycles.resize(in.take());
  for (auto& scheduler : activity.scheduler_cycles) in.take_all(scheduler);
  activity.executions.resize(code->instructions.size());
  activity.samples.resize(code->instructions.size());
  std::vector<size_t> rows(in.take());
  for (size_t& i : rows) {
    i = in.take();
    activity.executions.at(i).warps = in.take();
    activity.executions[i].threads = in.take();
    in.take_all(activity.samples[i]);
  }
  record.sms.resize(in.take());
  for (auto& sm : record.sms) {
    sm.warp_instructions = in.take();
    sm.active_cycles = in.take();
    sm.active_warp_cycles = in.take();
  }
  record.slices.resize(in.take());
  for (auto& slice : record.slices) {
    slice.lookups = in.take();
    slice.hits = in.take();
  }
  nb::dict counters;
  for (size_t i = 0; i < std::size(counter_names); ++i)
    counters[counter_names[i]] = activity.counters.values[i];
  nb::dict stalls, warp_stalls;
  for (size_t r = 0; r < simt::LaunchActivity::reasons; ++r) {
    std::vector<uint64_t> cycles;
    for (const auto& scheduler : activity.scheduler_cycles) cycles.push_back(scheduler[r]);
    stalls[reason_names[r]] = cycles;
    warp_stalls[reason_names[r]] = activity.warp_states[r];
  }
  RawLaunchParts parts;
  parts["engine"] = counters;
  parts["l1"] = cache_table(activity.counters.l1);
  parts["l2"] = cache_table(activity.counters.l2);
  parts["stalls"] = stalls;
  parts["warp_stalls"] = warp_stalls;
  parts["pc"] = per_instruction(record, rows);
  parts["spread"] = spread(record);
  return parts;
}

using CodeState = std::tuple<nb::bytes, std::vector<std::string>>;

/// For pickles that this process reads.
CodeState state_of(const LaunchCode& code) {
  static_assert(std::is_trivially_copyable_v<simt::StaticInstruction>);
  const auto& instructions = code.instructions;
  return CodeState(nb::bytes(instructions.data(), instructions.size() * sizeof instructions[0]),
                   code.opcodes);
}

void set_state(LaunchCode& code, const CodeState& state) {
  const auto& [bytes, opcodes] = state;
  auto* made = new (&code) LaunchCode;
  made->instructions.resize(bytes.size() / sizeof(simt::StaticInstruction));
  std::memcpy(made->instructions.data(), bytes.c_str(), bytes.size());
  made->opcodes = opcodes;
}

}  // namespace

RawLaunch dict_of(const simt::LaunchRecord& record, uint64_t clock_khz, bool priorities) {
  const std::vector<size_t> rows = instructions_in_use(record);
  nb::list warnings;
  if (!record.occupancy.warning.empty()) warnings.append(record.occupancy.warning);
  if (std::string text = uncovered_dependences(record); !text.empty()) warnings.append(text);
  if (std::string text = ignored_hints(record, rows, priorities); !text.empty()) warnings.append(text);
  RawLaunch result;
  result["id"] = record.launch.id;
  result["stream"] = record.launch.stream;
  result["start_cycle"] = record.start_cycle;
  result["end_cycle"] = record.end_cycle;
  result["launch_latency"] = record.launch_latency;
  result["occupancy_limit_ctas"] = record.occupancy.ctas_per_sm;
  result["occupancy_limited_by"] = record.occupancy.limited_by;
  result["l1_bytes"] = record.occupancy.l1_bytes;
  result["shared_carve_out_bytes"] = record.occupancy.carve_out_bytes;
  result["clock_khz"] = clock_khz;
  result["code"] = record.code;
  result["numbers"] = packed(record, rows);
  result["timeline"] = record.timeline.intervals().empty() ? nb::object(nb::none())
                                                           : nb::object(timeline(record.timeline, rows));
  result["warnings"] = warnings;
  result["sampled"] = record.sampled ? nb::object(dict_of(*record.sampled)) : nb::none();
  return result;
}

void bind_launch_record(nb::module_& m) {
  nb::class_<LaunchCode>(m, "LaunchCode", "The instructions of a kernel, which its launches share.")
      .def("__getstate__", &state_of)
      .def("__setstate__", &set_state)
      .def_prop_ro(
          "opcodes",
          [](const LaunchCode& code) {
            std::vector<std::string> found;
            for (const simt::StaticInstruction& s : code.instructions)
              found.push_back(code.opcodes[s.opcode]);
            return found;
          },
          "Of each instruction.")
      .def("parts", &parts_of, "numbers"_a,
           "What the numbers of a launch say; a dict of RawLaunch has both.");
}
