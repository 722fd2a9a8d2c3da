#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "blocks.hpp"
#include "machine/source.hpp"
#include "trace/store_encoder.hpp"
#include "trace/text_parser.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using simt::functional::ExecutedSource;

/// Writes an executed launch into the blocks of a trace store.
class Recorder {
 public:
  Recorder(ExecutedSource& source, uint32_t lanes, bool converged, bool combined)
      : launch_(source.launch()), opcodes_(source.opcodes()) {
    launch_.warp_size = lanes;
    Counting sink(encoder_, counts_);
    source.record(sink, lanes, converged, combined);
    encoder_.finish();
  }
  auto take_blocks() { return blocks_of(encoder_.take_blocks()); }
  const simt::LaunchInfo& launch() const { return launch_; }
  const std::vector<std::string>& opcodes() const { return opcodes_; }
  nb::bytes instructions() const {
    const std::string bytes = encoder_.encoded_instructions();
    return nb::bytes(bytes.data(), bytes.size());
  }
  const simt::TextParser::Counts& counts() const { return counts_; }

 private:
  /// Forwards records and counts them as the text parser does.
  class Counting : public simt::TraceSink {
   public:
    Counting(simt::StoreEncoder& encoder, simt::TextParser::Counts& counts)
        : encoder_(encoder), counts_(counts) {}
    void begin_kernel(const simt::LaunchInfo& launch, const std::vector<simt::RawInstruction>& instructions,
                      const std::vector<std::string>& opcodes) override {
      encoder_.begin_kernel(launch, instructions, opcodes);
    }
    void begin_cta(const simt::CtaPosition& position) override {
      ++counts_.ctas;
      encoder_.begin_cta(position);
    }
    void begin_warp(uint32_t warp, uint64_t instructions) override {
      ++counts_.warps;
      counts_.empty_warps += instructions == 0;
      encoder_.begin_warp(warp, instructions);
    }
    void record(const simt::TraceRecord& record) override {
      ++counts_.instructions;
      encoder_.record(record);
    }
    void end_cta() override { encoder_.end_cta(); }

   private:
    simt::StoreEncoder& encoder_;
    simt::TextParser::Counts& counts_;
  };

  simt::LaunchInfo launch_;
  std::vector<std::string> opcodes_;
  simt::StoreEncoder encoder_;
  simt::TextParser::Counts counts_;
};

}  // namespace

void bind_recorder(nb::module_& m) {
  nb::class_<Recorder>(m, "Recorder")
      .def(nb::init<ExecutedSource&, uint32_t, bool, bool>(), "source"_a, "lanes"_a, "converged"_a = false,
           "combined"_a = false, nb::call_guard<nb::gil_scoped_release>(),
           "Executes a launch at once and encodes what it did as a trace with warps of 32 or 64 lanes. "
           "converged: leaves out what instructions of a part of a warp's lanes cost. combined: atomics to "
           "one "
           "address by several lanes of a warp are one lane's.")
      .def("take_blocks", &Recorder::take_blocks)
      .def_prop_ro("launch", &Recorder::launch)
      .def_prop_ro("opcodes", &Recorder::opcodes)
      .def_prop_ro("instructions", &Recorder::instructions)
      .def_prop_ro("counts", &Recorder::counts);
}
