// Interprets arbitrary bytes as a kernel's instruction table and one of its blocks, and traverses the result.

#include "trace/store_block.hpp"

#include <algorithm>
#include <cstdint>

#include "isa/opcode_table.hpp"
#include "trace/trace_error.hpp"
#include "trace/trace_source.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace simt;
  // First two bytes: size of the instruction table; then the table; then the block.
  if (size < 2) return 0;
  const size_t table_size = std::min<size_t>(data[0] | data[1] << 8, size - 2);
  const uint8_t* block = data + 2 + table_size;
  const size_t block_size = size - 2 - table_size;
  try {
    StoredKernel kernel;
    kernel.opcodes = {"LDG.E",    "FFMA", "UTMALDG.2D",   "STS.128",
                      "BAR.SYNC", "EXIT", "LDGSTS.E.128", "HMMA.16816.F32"};
    kernel.instructions = store::decode_instructions(data + 2, table_size, kernel.opcodes.size());
    kernel.launch.grid = {4, 1, 1};
    kernel.launch.block = {64, 1, 1};
    const StoreBlock decoded(block, block_size, kernel.launch.grid);
    kernel.cta_count = decoded.ctas().size();
    if (kernel.cta_count == 0) return 0;
    kernel.blocks.push_back({0, kernel.cta_count, 0, decoded.pieces().back().warp, 0});
    TraceSource source(std::move(kernel), OpcodeTable("none"),
                       [&](size_t) { return std::vector<uint8_t>(block, block + block_size); });
    std::vector<uint64_t> addresses(store::max_bulk_addresses);
    DynamicRecord record;
    for (uint64_t ordinal = 0; ordinal < source.cta_count(); ++ordinal) {
      const auto stream = source.open_cta(ordinal);
      for (uint32_t w = 0; w < stream->warps(); ++w)
        while (stream->next(w, record, 0) == CtaStream::Next::Record)
          source.lane_addresses(record, addresses.data());
    }
  } catch (const TraceError&) {
  }
  return 0;
}
