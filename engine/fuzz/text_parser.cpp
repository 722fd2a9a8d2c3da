// Feeds arbitrary bytes to the trace reader, in pieces, and reads what it accepted back through the store.

#include "trace/text_parser.hpp"

#include <cstdlib>
#include <string_view>

#include "isa/opcode_table.hpp"
#include "trace/regrouper.hpp"
#include "trace/store_encoder.hpp"
#include "trace/trace_error.hpp"
#include "trace/trace_source.hpp"

namespace {

using namespace simt;

/// Computes a sum over all records, independent of their order among warps.
class Witness : public TraceSink {
 public:
  explicit Witness(StoreEncoder& encoder) : encoder_(encoder) {}
  void begin_kernel(const LaunchInfo& launch, const std::vector<RawInstruction>& instructions,
                    const std::vector<std::string>& opcodes) override {
    encoder_.begin_kernel(launch, instructions, opcodes);
  }
  void begin_cta(const CtaPosition& position) override { encoder_.begin_cta(position); }
  void begin_warp(uint32_t warp, uint64_t instructions) override { encoder_.begin_warp(warp, instructions); }
  void record(const TraceRecord& record) override {
    encoder_.record(record);
    add(record.static_index, record.mask);
    uint64_t address = record.addresses.base;
    for (uint32_t k = 0; k < record.address_count; ++k) {
      if (k > 0)
        address += static_cast<uint64_t>(record.addresses.strided ? record.addresses.stride
                                                                  : record.addresses.differences[k - 1]);
      add_address(k, address);
    }
  }
  void end_cta() override { encoder_.end_cta(); }

  void add(uint64_t index, uint64_t mask) { sum_ += (index + 1) * 0x9e3779b97f4a7c15ull ^ mask; }
  void add_address(uint64_t k, uint64_t address) { sum_ += (address + k) * 0xff51afd7ed558ccdull; }
  uint64_t sum() const { return sum_; }

 private:
  StoreEncoder& encoder_;
  uint64_t sum_ = 0;
};

void require(bool condition) {
  if (!condition) std::abort();
}

void read_back(const TextParser& parser, StoreEncoder& encoder, const Witness& written) {
  StoredKernel kernel;
  kernel.launch = parser.launch();
  kernel.opcodes = parser.opcodes();
  const std::string table = encoder.encoded_instructions();
  kernel.instructions = store::decode_instructions(reinterpret_cast<const uint8_t*>(table.data()),
                                                   table.size(), kernel.opcodes.size());
  require(kernel.instructions == parser.instructions());
  kernel.cta_count = parser.counts().ctas;
  const auto blocks = encoder.take_blocks();
  for (const auto& b : blocks) kernel.blocks.push_back(b.summary);
  TraceSource source(std::move(kernel), OpcodeTable("none"), [&](size_t i) {
    return std::vector<uint8_t>(blocks[i].bytes.begin(), blocks[i].bytes.end());
  });
  StoreEncoder unused;
  Witness read(unused);
  uint64_t count = 0;
  std::vector<uint64_t> addresses(store::max_bulk_addresses);
  DynamicRecord record;
  for (uint64_t ordinal = 0; ordinal < source.cta_count(); ++ordinal) {
    const auto stream = source.open_cta(ordinal);
    for (uint32_t w = 0; w < stream->warps(); ++w)
      while (stream->next(w, record)) {
        ++count;
        read.add(record.static_index, record.mask);
        const uint32_t lanes = source.lane_addresses(record, addresses.data());
        for (uint32_t k = 0; k < lanes; ++k) read.add_address(k, addresses[k]);
      }
  }
  require(count == parser.counts().instructions);
  require(read.sum() == written.sum());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = size_t{data[0]} + 1;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    if (trace_layout(text) == TraceLayout::Ungrouped) {
      Regrouper regrouper;
      for (size_t at = 0; at < text.size(); at += piece) regrouper.feed(text.substr(at, piece));
      regrouper.finish();
      regrouper.take_pieces();
    }
    StoreEncoder encoder;
    Witness witness(encoder);
    TextParser parser(witness);
    for (size_t at = 0; at < text.size(); at += piece) parser.feed(text.substr(at, piece));
    parser.finish();
    encoder.finish();
    read_back(parser, encoder, witness);
  } catch (const TraceError&) {
  }
  return 0;
}
