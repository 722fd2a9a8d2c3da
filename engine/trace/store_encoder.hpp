#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/store_format.hpp"
#include "trace/trace_sink.hpp"

namespace simt {

/// Encodes a kernel trace into the blocks of a trace store. The caller takes finished blocks after each
/// parsed piece of text, so memory is bounded by one block and the static instructions.
class StoreEncoder : public TraceSink {
 public:
  struct Block {
    BlockSummary summary;
    std::string bytes;
  };

  void begin_kernel(const LaunchInfo& launch, const std::vector<RawInstruction>& instructions,
                    const std::vector<std::string>& opcodes) override;
  void begin_cta(const CtaPosition& position) override;
  void begin_warp(uint32_t warp, uint64_t instructions) override;
  void record(const TraceRecord& record) override;
  void end_cta() override;
  /// Closes the last block. Call it once, after the last CTA.
  void finish();

  /// The blocks finished since the last call.
  std::vector<Block> take_blocks();
  std::string encoded_instructions() const { return store::encode_instructions(*instructions_); }

 private:
  void open_piece();
  void close_piece();
  void close_run();
  void close_cta_entry();
  void flush();
  void lane_addresses(const TraceRecord& record, uint16_t slot);
  void bulk_access(const TraceRecord& record);
  uint64_t coded_bytes() const;

  const std::vector<RawInstruction>* instructions_ = nullptr;
  Dim3 grid_;
  store::SlotMap slots_;
  std::vector<Block> finished_;

  /// The block being written. Columns compress better separately than mixed.
  struct OpenBlock {
    BlockSummary summary;
    std::string masks, ctas, pieces, paths, bases, data;
    uint64_t mask_count = 0, path_count = 0, piece_count = 0, first_count = 0;
    std::unordered_map<uint64_t, uint32_t> mask_index;
    std::unordered_map<std::string, uint32_t> path_index;
    std::unordered_map<std::string, uint64_t> differences_index;  ///< position of coded differences in `data`
    store::FirstBasePredictor predictor;
    int64_t last_cta_number = -1;
    int64_t last_path = 0;
  } block_;

  // the CTA being written
  CtaPosition position_;
  uint64_t ordinal_ = 0;
  uint64_t pieces_of_cta_ = 0;  ///< in this block
  int64_t last_warp_ = -1;      ///< in this block

  // the piece being written: a warp, or as much of it as fits into the block
  uint32_t warp_ = 0;
  bool piece_open_ = false;
  uint32_t piece_number_ = 0;
  uint64_t piece_data_ = 0;  ///< start of its data
  uint64_t piece_instructions_ = 0;
  std::string runs_;
  std::string first_slots_;  ///< slots in the order of their first execution in the piece
  std::vector<store::SlotState> slot_states_;
  uint64_t run_start_ = 0, run_length_ = 0, run_mask_ = 0;
  uint64_t expected_start_ = 0;
  uint32_t written_mask_ = 0;
  std::string scratch_;
};

}  // namespace simt
