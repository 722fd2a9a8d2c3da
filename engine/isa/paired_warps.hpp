#pragma once
#include <memory>
#include <string>
#include <vector>

#include "isa/instruction_source.hpp"

namespace simt {

/// Presents the 32-lane warps of another source as warps of 64 lanes: warps 2w and 2w + 1 are the lower and
/// the upper half of warp w.
///
/// Halves whose next records are of the same instruction continue together, as one record. Otherwise the half
/// with the lower PC continues alone, so that they meet again where their paths do. A half that runs alone
/// for long is interrupted for a while by the other one, which it may be waiting for.
///
/// A warp of 64 lanes waits at a barrier as a whole, while programs for 32 lanes may diverge at one. The
/// record of a barrier for the whole CTA is therefore held back until both halves have reached it. Barriers
/// with a thread count have no lanes in their record, and neither has the first of two halves that reach a
/// barrier at different instructions: only the source itself makes the warps wait (if it executes them; a
/// trace does not).
class PairedWarps : public InstructionSource {
 public:
  explicit PairedWarps(std::shared_ptr<InstructionSource> source);

  const LaunchInfo& launch() const override { return launch_; }
  const std::vector<StaticInstruction>& instructions() const override { return source_->instructions(); }
  const std::vector<std::string>& opcodes() const override { return source_->opcodes(); }
  uint64_t cta_count() const override { return source_->cta_count(); }
  std::unique_ptr<CtaStream> open_cta(uint64_t ordinal) override;
  uint32_t lane_addresses(const DynamicRecord& record, uint64_t* out) const override;
  uint32_t cluster_size() const override { return source_->cluster_size(); }
  bool order_matters() const override { return source_->order_matters(); }
  std::shared_ptr<InstructionSource> without_effect() const override {
    auto copy = source_->without_effect();
    return copy ? std::make_shared<PairedWarps>(std::move(copy)) : nullptr;
  }
  bool leaves_no_values() const override { return source_->leaves_no_values(); }
  std::string signature() const override { return source_->signature(); }
  bool holds_values(uint64_t address) const override { return source_->holds_values(address); }
  std::vector<Buffer> buffers() const override { return source_->buffers(); }
  std::vector<uint32_t> leaders() override { return source_->leaders(); }
  /// A warp's count of a block is that of the half that executes it more often: halves that go through a loop
  /// do so together as long as both are in it. If they diverge in other ways, it may be too small.
  BlockCounts preview(const std::vector<uint64_t>& ordinals, const BasicBlocks& blocks,
                      uint32_t threads) override;
  BlockCounts execute(uint64_t first, uint64_t end, const BasicBlocks* blocks, uint32_t threads,
                      std::vector<Footprint>* footprints) override;
  BlockCounts finish(const std::vector<std::shared_ptr<CtaStream>>& begun, uint64_t first,
                     const BasicBlocks* blocks, uint32_t threads) override;

 private:
  class Stream;
  std::shared_ptr<InstructionSource> source_;
  LaunchInfo launch_;
  std::unique_ptr<BasicBlocks> blocks_;  // by which instructions of pairs are counted, if they have been
};

}  // namespace simt
