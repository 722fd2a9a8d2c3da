#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings.hpp"
#include "control.hpp"
#include "spec.hpp"
#include "timing/dispatch/cta_dispatcher.hpp"
#include "timing/dispatch/launch_queue.hpp"
#include "timing/launch/sampling_control.hpp"

// CTA dispatch, launch queue and sampling without a GPU, so that tests read like a datasheet.

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt;

namespace {

/// Launches with two instructions per warp, which are never simulated. Records what would be executed without
/// timing.
class FakeSource : public InstructionSource {
 public:
  FakeSource(uint64_t ctas, uint32_t warps, uint32_t cluster, uint64_t stream)
      : ctas_(ctas), cluster_(cluster) {
    launch_.grid.x = static_cast<uint32_t>(ctas);
    launch_.block.x = 32 * warps;
    launch_.stream = stream;
    instructions_.resize(2);
    instructions_[1].operation = Operation::Exit;
  }
  const LaunchInfo& launch() const override { return launch_; }
  const std::vector<StaticInstruction>& instructions() const override { return instructions_; }
  const std::vector<std::string>& opcodes() const override { return opcodes_; }
  uint64_t cta_count() const override { return ctas_; }
  std::unique_ptr<CtaStream> open_cta(uint64_t) override { return nullptr; }
  uint32_t lane_addresses(const DynamicRecord&, uint64_t*) const override { return 0; }
  uint32_t cluster_size() const override { return cluster_; }
  BlockCounts execute(uint64_t first, uint64_t end, const BasicBlocks*, uint32_t,
                      std::vector<Footprint>*) override {
    executed.emplace_back(first, end);
    return instructions_of(end - first);
  }
  BlockCounts finish(const std::vector<std::shared_ptr<CtaStream>>& begun, uint64_t first, const BasicBlocks*,
                     uint32_t) override {
    finished.emplace_back(begun.size(), first);
    return instructions_of(ctas_ - first);
  }

  std::vector<std::tuple<uint64_t, uint64_t>> executed;  ///< [first, end)
  std::vector<std::tuple<uint64_t, uint64_t>> finished;  ///< number of begun CTAs, first of the others

 private:
  BlockCounts instructions_of(uint64_t ctas) const {
    const uint64_t warps = ctas * launch_.block.x / 32;
    BlockCounts counts;
    counts.executed = InstructionCounts{2 * warps, 64 * warps};
    return counts;
  }

  uint64_t ctas_;
  uint32_t cluster_;
  LaunchInfo launch_;
  std::vector<StaticInstruction> instructions_;
  std::vector<std::string> opcodes_{"NOP"};
};

using PlacedCta = std::tuple<uint64_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t>;
PlacedCta as_tuple(const CtaDispatcher::Placement& p) {
  return {p.cycle, p.sm, p.cta_slot, p.first_warp, p.launch_slot, p.cta};
}

class TestDispatcher {
 public:
  TestDispatcher(python::NativeSpec spec, uint16_t launch_slots)
      : dispatcher_(spec_from_dict(spec), launch_slots) {}

  void begin(uint16_t slot, uint64_t ctas, uint32_t warps, uint32_t ctas_per_sm, uint64_t first_dispatch,
             uint32_t shared_bytes, uint32_t registers, bool overcommits) {
    dispatcher_.begin(slot, {ctas, first_dispatch, warps, shared_bytes, registers, ctas_per_sm, overcommits});
  }
  std::vector<PlacedCta> dispatch(uint64_t limit) {
    std::vector<PlacedCta> placed;
    dispatcher_.dispatch(limit, [&](const auto& p) { placed.push_back(as_tuple(p)); });
    return placed;
  }
  CtaDispatcher& inner() { return dispatcher_; }

 private:
  CtaDispatcher dispatcher_;
};

class TestQueue {
 public:
  explicit TestQueue(uint16_t slots) : queue_(slots) {}

  void launch(uint64_t id, uint64_t stream, std::vector<uint64_t> after) {
    queue_.push(LaunchQueue::Launch{std::make_shared<FakeSource>(1, 1, 1, stream), id, std::move(after), {}});
  }
  void copy(uint64_t address, uint64_t bytes) {
    LaunchQueue::Transfer copy;
    copy.barrier = true;
    copy.touched = {{.address = address, .width = bytes}};
    queue_.push(std::move(copy));
  }
  void transfer(uint64_t id, std::optional<uint64_t> stream, std::vector<uint64_t> after, uint32_t link,
                uint64_t cycles) {
    LaunchQueue::Transfer transfer;
    transfer.id = id;
    transfer.stream = stream;
    transfer.after = std::move(after);
    transfer.link = static_cast<Link>(link);
    transfer.cycles = cycles;
    queue_.push(std::move(transfer));
  }
  /// The next end or start, at `now` at the latest: ("transfer", id, start, end), ("copy", address, bytes,
  /// end), ("launch", id, slot, start), or None.
  std::optional<std::tuple<std::string, uint64_t, uint64_t, uint64_t>> next(uint64_t now) {
    if (const auto ended = queue_.next_end(now)) {
      const LaunchQueue::Transfer& t = ended->transfer;
      if (t.barrier)
        return std::tuple{"copy", t.touched.front().address, t.touched.front().width, ended->end};
      return std::tuple{"transfer", t.id, ended->start, ended->end};
    }
    if (const auto start = queue_.next_start())
      return std::tuple{"launch", start->launch.id, uint64_t{start->slot}, start->cycle};
    return std::nullopt;
  }
  void ended(uint16_t slot, uint64_t end) { queue_.ended(slot, end); }
  void host_waits_for(const std::vector<uint64_t>& ids) { queue_.host_waits_for(ids); }
  bool host_goes_on() { return queue_.host_goes_on(); }
  uint64_t next_event() const { return queue_.next_event(); }
  bool done() const { return queue_.done(); }

 private:
  LaunchQueue queue_;
};

/// (kind, CTAs to skip, cycles per warp, cycles of the launch, residents)
using Answer = std::tuple<std::string, uint64_t, double, double, bool>;

Decision decision_of(const Answer& answer) {
  const auto& [kind, ctas, warp_cycles, launch_cycles, residents] = answer;
  Decision decision;
  decision.kind = kind == "stop"      ? Decision::Kind::Stop
                  : kind == "skip"    ? Decision::Kind::Skip
                  : kind == "predict" ? Decision::Kind::Predict
                                      : Decision::Kind::GoOn;
  decision.ctas = ctas;
  decision.warp_cycles = warp_cycles;
  decision.launch_cycles = launch_cycles;
  decision.residents = residents;
  return decision;
}

/// Gives its answers one after another, then continues.
class ScriptedController : public Controller {
 public:
  ScriptedController(uint64_t interval, std::vector<Answer> answers)
      : interval_(interval), answers_(std::move(answers)) {}
  Cycle interval() const override { return interval_; }
  bool wants_warps() const override { return true; }
  bool wants_blocks() const override { return false; }
  Decision begin(const Facts&) override { return next(); }
  Decision observe(const Observation& o) override {
    intervals.emplace_back(o.index, o.begin, o.end);
    return next();
  }

  std::vector<std::tuple<uint64_t, uint64_t, uint64_t>> intervals;

 private:
  Decision next() { return at_ < answers_.size() ? decision_of(answers_[at_++]) : Decision{}; }
  uint64_t interval_;
  std::vector<Answer> answers_;
  size_t at_ = 0;
};

/// Sampling of one launch whose CTAs end when the test says so.
class TestSampling : public SampledMachine {
 public:
  TestSampling(const TestSampling&) = delete;
  TestSampling(python::NativeSpec spec, uint64_t ctas, uint32_t warps, uint32_t cluster, uint32_t ctas_per_sm,
               uint64_t interval, uint64_t delay, std::vector<Answer> answers)
      : spec_(spec_from_dict(spec)),
        dispatcher_(spec_, 1),
        controller_(std::make_shared<ScriptedController>(interval, std::move(answers))),
        source_(std::make_shared<FakeSource>(ctas, warps, cluster, 0)) {
    launch_.source = source_;
    launch_.kernel = std::make_unique<DecodedKernel>(*source_, spec_, uint16_t{0});
    launch_.total_ctas = ctas;
    dispatcher_.begin(0, {ctas, 0, warps, 0, 0, ctas_per_sm, false});
    control_ = std::make_unique<SamplingControl>(controller_, launch_, dispatcher_, *this,
                                                 SamplingControl::Limits{spec_.sm.count, 1, delay});
    control_->begin(0);
  }

  /// CTAs to be simulated from now on, as in TestDispatcher::dispatch().
  std::vector<PlacedCta> advance(uint64_t now, uint64_t dispatch_until) {
    control_->advance(now);
    std::vector<PlacedCta> simulated;
    dispatcher_.dispatch(std::min(dispatch_until, control_->next_effect()), [&](const auto& p) {
      if (control_->placed(p)) return;
      simulated.push_back(as_tuple(p));
      resident_.push_back({p.sm, nullptr, p.cta_slot, p.cycle + 1, {}, {}});
    });
    return simulated;
  }
  /// A simulated CTA ends; returns the cycle in which it was predicted to end, or 0.
  uint64_t leave(uint32_t sm, uint32_t cta_slot, uint64_t cycle) {
    std::erase_if(resident_, [&](const auto& d) { return d.sm == sm && d.cta_slot == cta_slot; });
    ++launch_.done_ctas;
    const uint64_t predicted = control_->left(sm, cta_slot, cycle);
    dispatcher_.release(static_cast<uint16_t>(sm), cta_slot, std::max(cycle, predicted));
    return predicted;
  }
  nb::typed<nb::dict, nb::str, nb::object> finish() {
    nb::typed<nb::dict, nb::str, nb::object> result = dict_of(*control_->finish().sampled);
    result["last_end"] = launch_.last_end;
    return result;
  }
  uint64_t next_event() const { return control_->next_event(); }
  bool done() const { return launch_.done(); }
  const auto& intervals() const { return controller_->intervals; }
  const auto& executed() const { return source_->executed; }
  const auto& finished() const { return source_->finished; }

 private:
  void begin_observing(uint16_t, size_t) override {}
  Observation observe(const RunningLaunch&) override { return {}; }
  LaunchRecord record(const RunningLaunch&) override { return {}; }
  std::vector<DroppedCta> drop(uint16_t) override { return resident_; }
  uint64_t warm(const Footprint&, uint64_t) override { return 0; }
  void keep_recent(double, const std::function<void()>& warming) override { warming(); }

  Spec spec_;
  CtaDispatcher dispatcher_;
  std::shared_ptr<ScriptedController> controller_;
  std::shared_ptr<FakeSource> source_;
  RunningLaunch launch_;
  std::unique_ptr<SamplingControl> control_;
  std::vector<DroppedCta> resident_;
};

}  // namespace

void bind_testing_dispatch(nb::module_& t) {
  nb::class_<TestDispatcher>(t, "Dispatcher")
      .def(nb::init<python::NativeSpec, uint16_t>(), "spec"_a, "launch_slots"_a = 1)
      .def("begin", &TestDispatcher::begin, "slot"_a, "ctas"_a, "warps"_a = 1, "ctas_per_sm"_a = 32,
           "first_dispatch"_a = 0, "shared_bytes"_a = 0, "registers"_a = 0, "overcommits"_a = false)
      .def(
          "end", [](TestDispatcher& d, uint16_t slot) { d.inner().end(slot); }, "slot"_a)
      .def("dispatch", &TestDispatcher::dispatch, "limit"_a)
      .def("next_event", [](TestDispatcher& d) { return d.inner().next_event(); })
      .def(
          "next_cta", [](TestDispatcher& d, uint16_t slot) { return d.inner().next_cta(slot); }, "slot"_a = 0)
      .def(
          "skip_to", [](TestDispatcher& d, uint16_t slot, uint64_t next) { d.inner().skip_to(slot, next); },
          "slot"_a, "next"_a)
      .def(
          "release",
          [](TestDispatcher& d, uint16_t sm, uint32_t cta_slot, uint64_t cycle) {
            d.inner().release(sm, cta_slot, cycle);
          },
          "sm"_a, "cta_slot"_a, "cycle"_a)
      .def(
          "release_no_later",
          [](TestDispatcher& d, uint16_t slot, const std::vector<uint64_t>& ends) {
            d.inner().release_no_later(slot, ends);
          },
          "slot"_a, "ends"_a);
  nb::class_<TestQueue>(t, "LaunchQueue")
      .def(nb::init<uint16_t>(), "slots"_a = 1)
      .def("launch", &TestQueue::launch, "id"_a, "stream"_a = 0, "after"_a = std::vector<uint64_t>{})
      .def("copy", &TestQueue::copy, "address"_a, "bytes"_a)
      .def("transfer", &TestQueue::transfer, "id"_a, "stream"_a = nb::none(),
           "after"_a = std::vector<uint64_t>{}, "link"_a = 0, "cycles"_a = 0)
      .def("next", &TestQueue::next, "now"_a = ~uint64_t{0} >> 1)
      .def("host_waits_for", &TestQueue::host_waits_for, "ids"_a)
      .def("host_goes_on", &TestQueue::host_goes_on)
      .def("next_event", &TestQueue::next_event)
      .def("ended", &TestQueue::ended, "slot"_a, "end"_a)
      .def("done", &TestQueue::done);
  t.def(
      "transfer_cycles",
      [](python::NativeSpec spec, uint32_t link, uint64_t bytes) {
        return LaunchQueue::duration(spec_from_dict(spec), static_cast<Link>(link), bytes);
      },
      "spec"_a, "link"_a, "nbytes"_a);
  t.def(
      "launch_latency",
      [](python::NativeSpec spec, uint64_t ctas) { return LaunchQueue::latency(spec_from_dict(spec), ctas); },
      "spec"_a, "ctas"_a);
  nb::class_<TestSampling>(t, "Sampling")
      .def(nb::init<python::NativeSpec, uint64_t, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t,
                    std::vector<Answer>>(),
           "spec"_a, "ctas"_a, "warps"_a = 1, "cluster"_a = 1, "ctas_per_sm"_a = 1, "interval"_a = 100,
           "delay"_a = 10, "answers"_a = std::vector<Answer>{})
      .def("advance", &TestSampling::advance, "now"_a, "dispatch_until"_a)
      .def("leave", &TestSampling::leave, "sm"_a, "cta_slot"_a, "cycle"_a)
      .def("finish", &TestSampling::finish)
      .def("next_event", &TestSampling::next_event)
      .def("done", &TestSampling::done)
      .def_prop_ro("intervals", &TestSampling::intervals)
      .def_prop_ro("executed", &TestSampling::executed)
      .def_prop_ro("finished", &TestSampling::finished);
}
