#include "timing/gpu/gpu.hpp"

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <set>

#include "bindings.hpp"
#include "control.hpp"
#include "counter_names.hpp"
#include "machine/memory.hpp"
#include "memory_operation.hpp"
#include "python_types.hpp"
#include "spec.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using simt::python::EngineProgress;
using simt::python::LaunchControl;
using simt::python::NativeSpec;
using simt::python::RawLaunch;

constexpr const char* counter_texts[] = {
#define SIMT_COUNTER(name, text) text,
    SIMT_COUNTERS(SIMT_COUNTER)
#undef SIMT_COUNTER
};
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
  for (size_t i = 0; i < record.instructions.size(); ++i) {
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
    const simt::StaticInstruction& s = record.instructions[i];
    pc.append(s.pc);
    opcode.append(record.opcodes[s.opcode]);
    line.append(s.source_line);
    text.append(text_of(s, record.opcodes[s.opcode]));
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
    const simt::StaticInstruction& s = record.instructions[i];
    char pc[20];
    std::snprintf(pc, sizeof pc, "%04llx", static_cast<unsigned long long>(s.pc));
    text += (places > 1 ? ", " : "") + std::string(pc) + " " + text_of(s, record.opcodes[s.opcode]) + " (" +
            std::to_string(times) + " times)";
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
    const std::string_view opcode = record.opcodes[record.instructions[i].opcode];
    for (const std::string_view hint : ignored)
      if (opcode.find(hint) != opcode.npos) found.insert(hint);
    if (priorities || !record.instructions[i].has_eviction()) continue;
    for (const std::string_view hint : evictions)
      if ((std::string(opcode) + ".").find(std::string(hint) + ".") != std::string::npos) found.insert(hint);
  }
  std::string text;
  for (const std::string_view hint : found) text += (text.empty() ? "" : ", ") + std::string(hint);
  return text.empty() ? text : "hints to the caches that have no effect here (docs/model/l2.md): " + text;
}

RawLaunch to_dict(const simt::LaunchRecord& record, uint64_t clock_khz, bool priorities) {
  const simt::LaunchActivity& activity = record.activity;
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
  const std::vector<size_t> rows = instructions_in_use(record);
  nb::list warnings;
  if (!record.occupancy.warning.empty()) warnings.append(record.occupancy.warning);
  if (std::string text = uncovered_dependences(record); !text.empty()) warnings.append(text);
  if (std::string text = ignored_hints(record, rows, priorities); !text.empty()) warnings.append(text);
  RawLaunch result;
  result["id"] = record.launch.id;
  result["name"] = record.launch.name;
  result["stream"] = record.launch.stream;
  result["grid"] = nb::make_tuple(record.launch.grid.x, record.launch.grid.y, record.launch.grid.z);
  result["block"] = nb::make_tuple(record.launch.block.x, record.launch.block.y, record.launch.block.z);
  result["start_cycle"] = record.start_cycle;
  result["end_cycle"] = record.end_cycle;
  result["launch_latency"] = record.launch_latency;
  result["occupancy_limit_ctas"] = record.occupancy.ctas_per_sm;
  result["occupancy_limited_by"] = record.occupancy.limited_by;
  result["l1_bytes"] = record.occupancy.l1_bytes;
  result["shared_carve_out_bytes"] = record.occupancy.carve_out_bytes;
  result["clock_khz"] = clock_khz;
  result["counters"] = counters;
  result["l1"] = cache_table(activity.counters.l1);
  result["l2"] = cache_table(activity.counters.l2);
  result["stalls"] = stalls;
  result["warp_stalls"] = warp_stalls;
  result["pc"] = per_instruction(record, rows);
  result["spread"] = spread(record);
  result["timeline"] = record.timeline.intervals().empty() ? nb::object(nb::none())
                                                           : nb::object(timeline(record.timeline, rows));
  result["warnings"] = warnings;
  result["sampled"] = record.sampled ? nb::object(dict_of(*record.sampled)) : nb::none();
  return result;
}

simt::Link link_of(const std::string& name) {
  constexpr const char* names[] = {"none",   "host_to_device", "device_to_host",
                                   "device", "peer_to_device", "device_to_peer"};
  static_assert(std::size(names) == static_cast<size_t>(simt::Link::Count));
  for (size_t i = 0; i < std::size(names); ++i)
    if (name == names[i]) return static_cast<simt::Link>(i);
  throw nb::value_error(("link is " + name +
                         ", expected none, host_to_device, device_to_host, device, peer_to_device or "
                         "device_to_peer")
                            .c_str());
}

/// Rows of device memory: address, width, pitch, height, slice, depth, use.
using TouchedRows = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, std::string>;

std::vector<simt::MemoryRows> rows_of(const std::vector<TouchedRows>& rows) {
  std::vector<simt::MemoryRows> found;
  for (const auto& [address, width, pitch, height, slice, depth, use] : rows) {
    if (use != "read" && use != "received" && use != "written")
      throw nb::value_error(("use is " + use + ", expected read, received or written").c_str());
    found.push_back({address, width, pitch, height, slice, depth,
                     use == "read"       ? simt::MemoryRows::Use::Read
                     : use == "received" ? simt::MemoryRows::Use::Received
                                         : simt::MemoryRows::Use::Written});
  }
  return found;
}

/// An access window: address, bytes, hit ratio, and the properties of hits and misses.
using Window = std::tuple<uint64_t, uint64_t, double, std::string, std::string>;

simt::AccessWindow window_of(const Window& window) {
  const auto property = [](const std::string& name) {
    if (name == "normal") return simt::Eviction::Normal;
    if (name == "streaming") return simt::Eviction::First;
    if (name == "persisting") return simt::Eviction::Last;
    throw nb::value_error(("property is " + name + ", expected normal, streaming or persisting").c_str());
  };
  const auto& [address, bytes, hit_ratio, hit, miss] = window;
  return {address, bytes, hit_ratio, property(hit), property(miss)};
}

using Perform = nb::typed<nb::callable, void()>;

/// The action of a transfer when it ends; a MemoryOperation does not need Python's lock.
std::function<void()> perform_of(const std::optional<Perform>& perform) {
  if (!perform) return {};
  MemoryOperation native;
  if (nb::try_cast(*perform, native)) return native.perform;
  return nb::cast<std::function<void()>>(*perform);
}

/// A Gpu, and the clock used to label its records.
struct GpuHandle {
  GpuHandle(const simt::Spec& spec, const simt::GpuOptions& options)
      : gpu(spec, options), clock_khz(spec.clock.core_mhz.khz), priorities(spec.l2.persisting_kib > 0) {}
  simt::Gpu gpu;
  uint64_t clock_khz;
  bool priorities;
};

}  // namespace

void bind_gpu(nb::module_& m) {
  m.def(
      "demangled",
      [](const std::string& name) {
        const std::unique_ptr<char, decltype(&std::free)> text(
            abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr), &std::free);
        return text ? std::string(text.get()) : name;
      },
      "name"_a, "The C++ declaration of a mangled name; any other name as it is.");
  nb::exception<simt::Deadlock>(m, "DeadlockError", PyExc_RuntimeError);

  nb::dict counters;
  for (size_t i = 0; i < std::size(counter_names); ++i) counters[counter_names[i]] = counter_texts[i];
  m.attr("COUNTERS") = counters;
  nb::list reasons;
  for (const char* name : reason_names) reasons.append(name);
  m.attr("STALL_REASONS") = reasons;

  m.def(
      "occupancy",
      [](const NativeSpec& spec, uint32_t threads, uint32_t shared_bytes, uint32_t registers) {
        simt::LaunchInfo launch;
        launch.block.x = threads;
        launch.shared_bytes = shared_bytes;
        launch.registers_per_thread = registers;
        const simt::Occupancy found = occupancy_of(spec_from_dict(spec), launch, ~uint64_t{0} >> 1);
        return std::pair(found.warning.empty() ? found.ctas_per_sm : 0, std::string(found.limited_by));
      },
      "spec"_a, "threads"_a, "shared_bytes"_a, "registers"_a,
      "How many CTAs an SM holds (0: none), and what limits them. Raises ValueError for too many threads.");

  nb::class_<GpuHandle>(m, "Gpu", "A GPU with a queue of launches and transfers.")
      .def(
          "__init__",
          [](GpuHandle* self, NativeSpec spec, uint32_t threads, uint64_t window,
             uint64_t timeline_interval) {
            simt::GpuOptions options;
            options.threads = threads;
            options.window = window;
            options.timeline_interval = timeline_interval;
            new (self) GpuHandle(spec_from_dict(spec), options);
          },
          "spec"_a, "threads"_a = 1, "window"_a = 0, "timeline_interval"_a = 0)
      .def(
          "copy_from_host",
          [](GpuHandle& self, uint64_t address, uint64_t bytes) { self.gpu.copy_from_host(address, bytes); },
          "address"_a, "nbytes"_a)
      .def(
          "set_aside", [](GpuHandle& self, uint64_t bytes) { self.gpu.set_aside(bytes); }, "nbytes"_a,
          "Sets aside a part of the L2 for persisting accesses, in order with launches; 0: none.")
      .def(
          "reset_persisting", [](GpuHandle& self) { self.gpu.reset_persisting(); },
          "Gives persisting lines of the L2 normal priority, in order with launches.")
      .def(
          "set_peers",
          [](GpuHandle& self, std::shared_ptr<simt::functional::DeviceMemory> memory) {
            self.gpu.set_peers([memory = std::move(memory)](uint64_t a) { return memory->is_in_peer(a); });
          },
          "memory"_a,
          "Accesses to other devices of this memory's address space take the link to them. Before the first "
          "launch.")
      .def(
          "follow",
          [](GpuHandle& self, std::shared_ptr<simt::InstructionSource> source, uint64_t first) {
            self.gpu.follow(std::move(source), first);
          },
          "source"_a, "first"_a = 0,
          "Puts what the CTAs from `first` on access into the L2, in order with launches: the launch itself "
          "is "
          "not simulated.")
      .def(
          "execute",
          [](GpuHandle& self, simt::InstructionSource& source, uint64_t first, uint64_t end) {
            const simt::InstructionCounts counts = self.gpu.execute(source, first, end);
            return std::pair{counts.warp_instructions, counts.thread_instructions};
          },
          "source"_a, "first"_a, "end"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Executes CTAs [first, end) of a launch that is not simulated, now, and puts what they access into "
          "the L2; nothing may be queued. Returns warp and thread instructions.")
      .def(
          "launch",
          [](GpuHandle& self, std::shared_ptr<simt::InstructionSource> source, uint64_t id,
             std::vector<uint64_t> after, std::optional<LaunchControl> controller,
             const std::optional<Window>& window) {
            self.gpu.launch(std::move(source), id, std::move(after), controller_of(std::move(controller)),
                            window ? window_of(*window) : simt::AccessWindow{});
          },
          "source"_a, "launch_id"_a, "after"_a = std::vector<uint64_t>{}, "controller"_a = nb::none(),
          "window"_a = nb::none(),
          "after: ids of launches that must have ended before it starts. window: address, bytes, share of "
          "its lines that hit, and the "
          "properties of these and of the others: normal, streaming or persisting.")
      .def(
          "transfer",
          [](GpuHandle& self, uint64_t id, std::optional<uint64_t> stream, std::vector<uint64_t> after,
             const std::string& link, uint64_t traffic, const std::vector<TouchedRows>& touched,
             const std::optional<Perform>& perform) {
            simt::LaunchQueue::Transfer transfer;
            transfer.id = id;
            transfer.stream = stream;
            transfer.after = std::move(after);
            transfer.link = link_of(link);
            transfer.touched = rows_of(touched);
            transfer.perform = perform_of(perform);
            self.gpu.transfer(std::move(transfer), traffic);
          },
          "transfer_id"_a, nb::kw_only(), "stream"_a = nb::none(), "after"_a = std::vector<uint64_t>{},
          "link"_a = "none", "traffic"_a = 0, "touched"_a = std::vector<TouchedRows>{},
          "perform"_a = nb::none(),
          "Work in stream order that is no launch. after: as of a launch. stream: None for one that is "
          "ordered by `after` alone. link: what it occupies: none, host_to_device, device_to_host, device, "
          "peer_to_device or device_to_peer. "
          "traffic: bytes over the link; those copied within the device count twice. touched: device memory "
          "whose contents may stay in the L2: rows as address, bytes, pitch, rows of a slice, bytes from "
          "slice to slice, slices, and use: read, received (from the host) or written. perform: called when "
          "it "
          "ends.")
      .def(
          "run",
          [](GpuHandle& self, uint64_t max_cycles, const std::vector<uint64_t>& until, double seconds) {
            return self.gpu.run(max_cycles, until, seconds);
          },
          "max_cycles"_a, "until"_a = std::vector<uint64_t>{},
          "seconds"_a = std::numeric_limits<double>::infinity(), nb::call_guard<nb::gil_scoped_release>(),
          "Simulates up to max_cycles more core cycles, or until a launch with a controller, or one of the "
          "launches and transfers in `until`, has ended, or `seconds` of the host have passed; True when all "
          "queued work is done.")
      .def(
          "l2_contents",
          [](const GpuHandle& self) {
            const simt::Gpu::L2Contents contents = self.gpu.l2_contents();
            std::vector<nb::bytes> slices;
            for (const auto& lines : contents.slices)
              slices.emplace_back(lines.data(), lines.size() * sizeof(simt::CacheLine));
            return std::pair(contents.launches_begun, std::move(slices));
          },
          "Number of launches begun, and the lines of each L2 slice, for restore_l2().")
      .def(
          "restore_l2",
          [](GpuHandle& self, uint64_t launches_begun, const std::vector<nb::bytes>& slices) {
            simt::Gpu::L2Contents contents{launches_begun, {}};
            for (const nb::bytes& bytes : slices) {
              if (bytes.size() % sizeof(simt::CacheLine) != 0)
                throw std::invalid_argument("the contents of an L2: the length of a slice");
              auto& lines = contents.slices.emplace_back(bytes.size() / sizeof(simt::CacheLine));
              std::memcpy(lines.data(), bytes.data(), bytes.size());
            }
            self.gpu.restore_l2(contents);
          },
          "launches_begun"_a, "slices"_a, "Raises ValueError if they are not those of such an L2.")
      .def_prop_ro("cycle", [](const GpuHandle& self) { return self.gpu.cycle(); })
      .def_prop_ro("window", [](const GpuHandle& self) { return self.gpu.window(); })
      .def("progress",
           [](GpuHandle& self) {
             const simt::Gpu::Progress p = self.gpu.progress();
             EngineProgress result;
             result["cycle"] = p.cycle;
             result["warp_instructions"] = p.warp_instructions;
             result["ctas_done"] = p.ctas_done;
             result["ctas_total"] = p.ctas_total;
             result["launches_done"] = p.launches_done;
             result["running"] = p.running;
             return result;
           })
      .def(
          "describe_work", [](const GpuHandle& self) { return self.gpu.describe_work(); },
          "What the running launches and their warps do: lines, each with a newline before it; empty if none "
          "is "
          "running.")
      .def("finished",
           [](GpuHandle& self) {
             nb::typed<nb::list, RawLaunch> result;
             for (const simt::LaunchRecord& record : self.gpu.take_finished())
               result.append(to_dict(record, self.clock_khz, self.priorities));
             return result;
           })
      .def(
          "finished_transfers",
          [](GpuHandle& self) {
            std::vector<std::tuple<uint64_t, uint64_t, uint64_t>> result;
            for (const auto& record : self.gpu.take_finished_transfers())
              result.emplace_back(record.id, record.start, record.end);
            return result;
          },
          "(id, start cycle, end cycle) of each, in the order of their ends.");
}
