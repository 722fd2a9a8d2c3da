#include "timing/gpu/gpu.hpp"

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "bindings.hpp"
#include "control.hpp"
#include "counter_names.hpp"
#include "launch_record.hpp"
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
          [](GpuHandle* self, NativeSpec spec, uint32_t threads, uint64_t window, uint64_t timeline_interval,
             bool rehearses) {
            simt::GpuOptions options;
            options.threads = threads;
            options.window = window;
            options.timeline_interval = timeline_interval;
            options.rehearses = rehearses;
            new (self) GpuHandle(spec_from_dict(spec), options);
          },
          "spec"_a, "threads"_a = 1, "window"_a = 0, "timeline_interval"_a = 0, "rehearses"_a = false)
      .def(
          "rehearsal",
          [](GpuHandle& self) {
            const simt::Rehearsal& r = self.gpu.rehearsal();
            return std::tuple(r.tasks, r.threads, r.clock);
          },
          "With `rehearses`, one thread runs what `threads` of them would. Processor seconds: of tasks that "
          "can run on different threads; what they would take there; of timing, which the others leave out.")
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
          "leave_out", [](GpuHandle& self, simt::InstructionSource& source) { self.gpu.leave_out(source); },
          "source"_a, nb::call_guard<nb::gil_scoped_release>(),
          "A launch is neither simulated nor executed: the L2 holds what it works on, as far as that fits; "
          "nothing may be queued.")
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
      .def(
          "begin_as_part",
          [](GpuHandle& self, const GpuHandle& whole, const simt::PartFootprint& footprint, double share) {
            return self.gpu.begin_as_part(whole.gpu.l2_contents(), footprint, share);
          },
          "whole"_a, "footprint"_a, "share"_a,
          "Before the first launch: the L2 holds what that of a larger GPU does, as far as CTAs with this "
          "footprint meet it on a part of that GPU. Returns how many lines and how many modified ones of the "
          "footprint there were, and how many modified ones of the rest.")
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
               result.append(dict_of(record, self.clock_khz, self.priorities));
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
