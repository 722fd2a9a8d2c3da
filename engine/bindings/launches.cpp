#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>

#include "bindings.hpp"
#include "check/checker.hpp"
#include "check/unbacked.hpp"
#include "loaded_module.hpp"
#include "machine/grid.hpp"
#include "machine/grid_run.hpp"
#include "machine/source.hpp"
#include "machine/stop_on_error.hpp"
#include "python_types.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt::functional;

namespace {

using simt::python::contents_of;
using simt::python::LoadedModule;
using simt::python::MachineFacts;

Machine machine_of(const MachineFacts& d) {
  Machine m;
  const auto set = [&](const char* key, uint32_t& value) {
    if (d.contains(key)) value = nb::cast<uint32_t>(d[key]);
  };
  set("sm_version", m.sm_version);
  set("sm_count", m.sm_count);
  set("warps_per_sm", m.warps_per_sm);
  set("threads_per_cta", m.threads_per_cta);
  set("shared_bytes_per_cta", m.shared_bytes_per_cta);
  set("resident_ctas", m.resident_ctas);
  set("stack_limit", m.stack_limit);
  uint32_t exact = 0;
  set("exact_tensor_arithmetic", exact);
  m.tensor_core = exact ? TensorCore::Exact : tensor_core(m.sm_version);
  if (d.contains("core_khz")) m.core_khz = std::max<uint64_t>(1, nb::cast<uint64_t>(d["core_khz"]));
  return m;
}

/// A launch as the host describes it, which may be made several times, with other parameters.
struct DescribedLaunch {
  std::shared_ptr<LoadedModule> module;
  uint32_t function;
  LaunchConfig config;
  Machine machine;
  std::vector<std::byte> state;  ///< of CTAs that have begun

  LaunchConfig with(const nb::bytes& parameters, uint64_t id) const {
    LaunchConfig made = config;
    made.parameters = contents_of(parameters);
    made.id = id;
    return made;
  }
};

using Poll = nb::typed<nb::callable, void()>;
using Print = nb::typed<nb::callable, void(nb::bytes)>;

/// Asks Python, while a launch runs without timing, whether a signal has come, and calls `poll`; what they
/// raise stops the launch.
std::function<void()> asking(std::optional<Poll> poll) {
  std::shared_ptr<Poll> kept;
  if (poll)
    kept = {new Poll(std::move(*poll)), [](Poll* held) {
              nb::gil_scoped_acquire acquire;
              delete held;
            }};
  return [kept] {
    nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (kept) (*kept)();
  };
}

/// What passes printed text to a function of Python, which must live as long.
PrintSink sink_of(const std::optional<Print>& print) {
  if (!print) return nullptr;
  return [&print](const std::string& text) {
    nb::gil_scoped_acquire acquire;
    (*print)(nb::bytes(text.data(), text.size()));
  };
}

/// Follows what the launch does with memory that holds no values, if there is such memory.
void track_unbacked(Grid& grid) {
  if (grid.memory().has_unknown())
    grid.track(std::make_unique<simt::check::Unbacked>(grid.program(), grid.memory()));
}

/// A launch that leaves no values needs those of matrix products only for addresses and control flow.
void leave_out_products(Grid& grid) {
  if (!simt::check::decided_by_products(grid.program())) grid.leave_out_products();
}

/// A launch that is executed without timing, part by part.
class Execution {
 public:
  Execution(const DescribedLaunch& launch, const nb::bytes& parameters, uint64_t id, uint32_t threads,
            std::optional<Print> print, std::optional<Poll> poll, simt::check::Checker* checker)
      : module_(launch.module),
        print_(std::move(print)),
        stop_(asking(std::move(poll))),
        grid_(module_->program, launch.function, launch.with(parameters, id), *module_->memory,
              launch.machine, sink_of(print_)) {
    if (!launch.state.empty()) grid_.restore(launch.state);
    grid_.observe(checker);
    track_unbacked(grid_);
    Grid::Part all;
    all.count = grid_.cluster_count() - grid_.first_cluster();
    all.number = [this](uint64_t i) { return grid_.first_cluster() + i; };
    run_.emplace(grid_, std::move(all), threads);
  }

  bool advance(uint64_t most) {
    const bool over = run_->advance(stop_.question(), most);
    stop_.rethrow();
    return over;
  }
  bool repeats() { return run_->repeats(); }
  void report_endless_wait() { run_->report_endless_wait(); }
  std::pair<uint64_t, uint64_t> instructions() const {
    const Grid::Counts counts = run_->counts();
    return {counts.warp_instructions, counts.thread_instructions};
  }

 private:
  std::shared_ptr<LoadedModule> module_;
  std::optional<Print> print_;
  StopOnError stop_;
  Grid grid_;
  std::optional<GridRun> run_;
};

std::tuple<uint64_t, uint64_t, nb::bytes> run(const DescribedLaunch& self, const nb::bytes& parameters,
                                              uint64_t id, uint32_t threads, std::optional<Print> print,
                                              DeviceMemory* memory,
                                              std::optional<std::tuple<uint64_t, uint64_t, uint64_t>> until,
                                              std::optional<Poll> poll, simt::check::Checker* checker) {
  LaunchConfig config = self.with(parameters, id);
  std::vector<std::byte> reached;
  const PrintSink sink = sink_of(print);
  StopOnError stop(asking(std::move(poll)));
  Grid::Counts counts;
  {
    nb::gil_scoped_release release;
    Grid launch(self.module->program, self.function, std::move(config),
                memory ? *memory : *self.module->memory, self.machine, sink);
    if (!self.state.empty()) launch.restore(self.state);
    launch.observe(checker);
    track_unbacked(launch);
    if (until) {
      const auto [cta, partial, instructions] = *until;
      reached = launch.run_to({cta, partial, instructions}, threads, stop.question(), counts);
    } else {
      counts = launch.run(threads, stop.question());
    }
  }
  stop.rethrow();
  if (!counts.complete)
    throw ProgramFault("blocks before " + std::to_string(std::get<0>(*until)) + " wait for later ones");
  return {counts.warp_instructions, counts.thread_instructions,
          nb::bytes(reinterpret_cast<const char*>(reached.data()), reached.size())};
}

std::shared_ptr<ExecutedSource> source(const DescribedLaunch& self, const nb::bytes& parameters, uint64_t id,
                                       const simt::OpcodeTable& table, uint32_t sm_version,
                                       uint32_t registers, uint64_t stream, bool plain,
                                       std::optional<Poll> poll) {
  ExecutedSource::Description description;
  description.name = self.module->program.functions.at(self.function).name;
  description.registers_per_thread = registers;
  description.sm_version = sm_version;
  description.stream = stream;
  description.owner = self.module;
  description.state = self.state;
  if (poll) description.poll = asking(std::move(poll));
  description.prepare = track_unbacked;
  description.prepare_for_time = leave_out_products;
  return std::make_shared<ExecutedSource>(
      self.module->program, self.function, self.with(parameters, id), *self.module->memory, self.machine,
      self.module->lowering(sm_version, plain), table, std::move(description));
}

}  // namespace

void bind_launches(nb::module_& m) {
  nb::class_<ExecutedSource, simt::InstructionSource>(m, "ExecutedSource")
      .def_prop_ro("printed",
                   [](const ExecutedSource& self) {
                     const std::string text = self.printed();
                     return nb::bytes(text.data(), text.size());
                   })
      .def_prop_ro("unknown_opcodes", &ExecutedSource::unknown_opcodes);

  nb::class_<Execution>(m, "Execution")
      .def(
          "advance", &Execution::advance, "most"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Executes `most` warp instructions, and to the end of the turn. False if the launch has not ended. "
          "What `poll` raises ends it.")
      .def("repeats", &Execution::repeats,
           "After a pause: whether its warps only repeat themselves, for many calls of this function.")
      .def("report_endless_wait", &Execution::report_endless_wait, "Raises ProgramFault for such warps.")
      .def_prop_ro("instructions", &Execution::instructions, "Warp and thread instructions so far.");

  nb::class_<DescribedLaunch>(m, "Launch")
      .def(
          "__init__",
          [](DescribedLaunch* self, std::shared_ptr<LoadedModule> module, uint32_t function,
             std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block, std::array<uint32_t, 3> cluster,
             uint32_t dynamic_shared, const MachineFacts& machine, bool cooperative, uint64_t first_cta,
             const nb::bytes& state) {
            LaunchConfig config;
            config.grid = grid;
            config.block = block;
            config.cluster = cluster;
            config.dynamic_shared_bytes = dynamic_shared;
            config.cooperative = cooperative;
            config.first_cta = first_cta;
            new (self) DescribedLaunch{std::move(module), function, std::move(config), machine_of(machine),
                                       contents_of(state)};
          },
          "module"_a, "function"_a, "grid"_a, "block"_a, "cluster"_a, "dynamic_shared"_a, "machine"_a,
          "cooperative"_a = false, "first_cta"_a = 0, "state"_a = nb::bytes("", 0),
          "A launch, to be made once or several times: from `first_cta` on, and from `state` for CTAs that "
          "have begun.")
      .def(
          "run", &run, "parameters"_a, "id"_a, "threads"_a = 1, "print"_a.none() = nb::none(),
          "memory"_a.none() = nb::none(), "until"_a.none() = nb::none(), "poll"_a.none() = nb::none(),
          "checker"_a.none() = nb::none(),
          "Runs it without timing, on a copy of the module's memory if `memory` is given. until: (number of "
          "CTAs to finish, of those to begin after them, instructions per warp of the latter). Returns warp "
          "and thread instructions, and with `until` the state. poll: called again and again meanwhile; what "
          "it raises stops the launch. Raises ValueError for the state of another launch.")
      .def(
          "begin",
          [](const DescribedLaunch& self, const nb::bytes& parameters, uint64_t id, uint32_t threads,
             std::optional<Print> print, std::optional<Poll> poll, simt::check::Checker* checker) {
            return std::make_unique<Execution>(self, parameters, id, threads, std::move(print),
                                               std::move(poll), checker);
          },
          "parameters"_a, "id"_a, "threads"_a = 1, "print"_a.none() = nb::none(),
          "poll"_a.none() = nb::none(), "checker"_a.none() = nb::none(), nb::keep_alive<0, 7>(),
          "The same, as an Execution, which can pause.")
      .def("source", &source, "parameters"_a, "id"_a, "table"_a, "sm_version"_a, "registers"_a, "stream"_a,
           "plain"_a = false, "poll"_a.none() = nb::none(),
           "A launch that executes as the timing engine asks for its instructions. plain: divisions, roots "
           "and "
           "special functions of PTX are timed as products. poll: see `run`, for CTAs that are executed "
           "without timing.");
}
