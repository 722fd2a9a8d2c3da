#pragma once
#include <memory>
#include <vector>

#include "isa/instruction_source.hpp"

namespace simt {

/// Some CTAs of another source as a launch of their own, without effect on memory.
class SomeCtas : public InstructionSource {
 public:
  /// ordinals: ascending; whole clusters.
  SomeCtas(const std::shared_ptr<InstructionSource>& source, std::vector<uint64_t> ordinals);

  const LaunchInfo& launch() const override { return source_->launch(); }
  const std::vector<StaticInstruction>& instructions() const override { return source_->instructions(); }
  const std::vector<std::string>& opcodes() const override { return source_->opcodes(); }
  uint64_t cta_count() const override { return ordinals_.size(); }
  std::unique_ptr<CtaStream> open_cta(uint64_t ordinal) override {
    return source_->open_cta(ordinals_[ordinal]);
  }
  uint32_t lane_addresses(const DynamicRecord& record, uint64_t* out) const override {
    return source_->lane_addresses(record, out);
  }
  uint32_t cluster_size() const override { return source_->cluster_size(); }
  std::vector<Buffer> buffers() const override { return source_->buffers(); }
  bool order_matters() const override { return source_->order_matters(); }
  bool holds_values(uint64_t address) const override { return source_->holds_values(address); }
  std::vector<uint32_t> leaders() override { return source_->leaders(); }
  BlockCounts preview(const std::vector<uint64_t>& ordinals, const BasicBlocks& blocks,
                      uint32_t threads) override;
  BlockCounts execute(uint64_t first, uint64_t end, const BasicBlocks* blocks, uint32_t threads,
                      std::vector<Footprint>* footprints) override;
  BlockCounts finish(const std::vector<std::shared_ptr<CtaStream>>& begun, uint64_t first,
                     const BasicBlocks* blocks, uint32_t threads) override;

 private:
  std::shared_ptr<InstructionSource> source_;
  std::vector<uint64_t> ordinals_;
};

}  // namespace simt
