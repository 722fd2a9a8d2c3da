#include "control.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "counter_names.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using simt::Decision;

constexpr const char* kind_of_decision[] = {"go on", "stop", "skip", "predict"};

template <class T>
nb::bytes bytes_of(const std::vector<T>& values) {
  return nb::bytes(values.data(), values.size() * sizeof(T));
}

template <class T>
void take(const nb::dict& given, const char* key, T& value) {
  if (given.contains(key)) value = nb::cast<T>(given[key]);
}

/// Forwards questions to Python. The thread that runs the engine does not hold the GIL.
class PythonController : public simt::Controller {
 public:
  explicit PythonController(simt::python::LaunchControl control) : control_(std::move(control)) {}
  ~PythonController() override {
    nb::gil_scoped_acquire acquire;
    control_.reset();
  }
  PythonController(const PythonController&) = delete;
  PythonController& operator=(const PythonController&) = delete;

  simt::Cycle interval() const override { return interval_; }
  uint64_t awaited_cta() const override { return awaited_cta_; }
  bool wants_warps() const override { return warps_; }
  bool wants_blocks() const override { return blocks_; }

  Decision begin(const Facts& facts) override {
    nb::gil_scoped_acquire acquire;
    const Decision first =
        decision(control_.attr("begin")(facts.source, facts.warps_per_cta, facts.ctas_per_sm));
    read_when();
    warps_ = nb::cast<bool>(control_.attr("warps"));
    blocks_ = nb::cast<bool>(control_.attr("blocks"));
    return first;
  }

  Decision observe(const simt::Observation& o) override {
    nb::gil_scoped_acquire acquire;
    const Decision answer = decision(control_.attr("observe")(
        o.index, o.begin, o.end, bytes_of(o.counters), bytes_of(o.warps), bytes_of(o.blocks),
        bytes_of(o.latencies), bytes_of(o.sm_instructions), bytes_of(o.sm_warp_cycles), o.l2_free_lines,
        nb::make_tuple(o.skipped_ctas, o.skipped.warp_instructions, o.skipped.thread_instructions,
                       o.skipped_dram_sectors)));
    read_when();
    return answer;
  }

 private:
  void read_when() {
    interval_ = nb::cast<uint64_t>(control_.attr("interval"));
    const nb::object cta = control_.attr("awaited_cta");
    awaited_cta_ = cta.is_none() ? ~uint64_t{0} : nb::cast<uint64_t>(cta);
  }
  static Decision decision(const nb::object& answer) {
    Decision d;
    if (answer.is_none()) return d;
    const auto given = nb::cast<nb::dict>(answer);
    d.kind = static_cast<Decision::Kind>(nb::cast<int>(given["kind"]));
    d.reason = nb::cast<std::string>(given["reason"]);
    take(given, "ctas", d.ctas);
    take(given, "recent", d.recent);
    take(given, "warp_cycles", d.warp_cycles);
    take(given, "block_cycles", d.block_cycles);
    take(given, "launch_cycles", d.launch_cycles);
    take(given, "executes", d.executes);
    take(given, "keeps_l2", d.keeps_l2);
    take(given, "residents", d.residents);
    take(given, "sm_scale", d.sm_scale);
    take(given, "sm_warps", d.sm_warps);
    take(given, "fastest", d.fastest);
    take(given, "in_turn", d.in_turn);
    return d;
  }

  simt::python::LaunchControl control_;
  uint64_t interval_ = 1, awaited_cta_ = ~uint64_t{0};
  bool warps_ = false, blocks_ = false;
};

}  // namespace

std::shared_ptr<simt::Controller> controller_of(std::optional<simt::python::LaunchControl> control) {
  if (!control) return nullptr;
  return std::make_shared<PythonController>(std::move(*control));
}

simt::python::RawSampling dict_of(const simt::Sampled& sampled) {
  nb::list decisions;
  for (const auto& taken : sampled.decisions)
    decisions.append(nb::make_tuple(taken.cycle, kind_of_decision[static_cast<size_t>(taken.decision.kind)],
                                    taken.decision.reason));
  simt::python::RawSampling result;
  result["decisions"] = decisions;
  result["predicted_ctas"] = sampled.predicted_ctas;
  result["skipped_ctas"] = sampled.skipped_ctas;
  result["stopped"] = sampled.stopped;
  result["detailed_cycle"] = sampled.detailed_cycle;
  result["released_cycle"] = sampled.released_cycle;
  result["executed"] = nb::none();
  if (const auto& executed = sampled.executed)
    result["executed"] = nb::make_tuple(executed->warp_instructions, executed->thread_instructions);
  return result;
}

void bind_control(nb::module_& m) {
  nb::list names;
  for (const char* name : counter_names) names.append(name);
  for (const char* level : {"l1", "l2"})
    for (const char* kind : kind_names)
      for (const char* outcome : outcome_names) names.append(std::string(level) + "." + kind + "." + outcome);
  for (const char* table : {"stalls", "warp_stalls"})
    for (const char* reason : reason_names) names.append(std::string(table) + "." + reason);
  m.attr("OBSERVED") = names;
}
