#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "isa/instruction_source.hpp"
#include "isa/opcode_table.hpp"
#include "isa/raw_instruction.hpp"
#include "trace/store_block.hpp"
#include "trace/store_format.hpp"

namespace simt {

/// A kernel in a trace store, without its instruction streams.
struct StoredKernel {
  LaunchInfo launch;
  std::vector<std::string> opcodes;
  std::vector<RawInstruction> instructions;
  std::vector<BlockSummary> blocks;  ///< in file order
  uint64_t cta_count = 0;
};

/// Feeds a launch from a trace store. A block is fetched when a warp reaches it and dropped when no warp
/// is in it.
class TraceSource : public InstructionSource {
 public:
  /// Returns the uncompressed, checked bytes of a block. Called from any thread, without locks held.
  using Fetch = std::function<std::vector<uint8_t>(size_t block)>;

  /// Throws TraceError if the kernel's description is inconsistent.
  TraceSource(StoredKernel kernel, const OpcodeTable& table, Fetch fetch);

  const LaunchInfo& launch() const override { return kernel_.launch; }
  const std::vector<StaticInstruction>& instructions() const override { return instructions_; }
  const std::vector<std::string>& opcodes() const override { return kernel_.opcodes; }
  uint64_t cta_count() const override { return kernel_.cta_count; }
  std::unique_ptr<CtaStream> open_cta(uint64_t ordinal) override;
  uint32_t lane_addresses(const DynamicRecord& record, uint64_t* out) const override;

  /// Opcodes missing from the table, and the replacement for each.
  const std::map<std::string, std::string>& unknown_opcodes() const { return unknown_; }
  const std::vector<RawInstruction>& raw_instructions() const { return kernel_.instructions; }
  CtaPosition position(uint64_t ordinal);

 private:
  class Stream;

  std::shared_ptr<const StoreBlock> block(size_t index);
  size_t first_block(uint64_t ordinal) const;

  StoredKernel kernel_;
  std::vector<StaticInstruction> instructions_;
  std::map<std::string, std::string> unknown_;
  store::SlotMap slots_;
  std::vector<uint32_t> plain_;  // from each static instruction on: how many in a row have no slot
  Fetch fetch_;
  std::mutex mutex_;  ///< guards the two below
  std::map<size_t, std::weak_ptr<const StoreBlock>> open_blocks_;
  std::shared_ptr<const StoreBlock> last_block_;  ///< the next CTA is usually in it
};

}  // namespace simt
