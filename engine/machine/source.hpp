#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "isa/instruction_source.hpp"
#include "isa/opcode_table.hpp"
#include "machine/grid.hpp"
#include "machine/lowering.hpp"
#include "trace/trace_sink.hpp"

namespace simt::functional {

/// Feeds the timing engine by executing a launch: the source of execution-driven simulation.
class ExecutedSource : public InstructionSource {
 public:
  /// Everything a launch needs besides its Grid. `owner` keeps the program and memory alive.
  struct Description {
    std::string name;
    uint32_t registers_per_thread = 0;
    uint32_t sm_version = 0;
    uint64_t stream = 0;
    std::shared_ptr<const void> owner;
    std::vector<std::byte> state;        ///< of CTAs that have begun, from Grid::run_to
    std::function<void()> poll;          ///< called while CTAs are executed without timing; may throw
    std::function<void(Grid&)> prepare;  ///< called for each Grid that is made
    /// Called for the Grid of a launch that is executed for its time alone and leaves no values.
    std::function<void(Grid&)> prepare_for_time;
  };

  ExecutedSource(const Program& program, uint32_t function, LaunchConfig config, DeviceMemory& memory,
                 const Machine& machine, std::shared_ptr<const Lowering> lowering, const OpcodeTable& table,
                 Description description);
  ~ExecutedSource() override;

  const LaunchInfo& launch() const override { return launch_; }
  const std::vector<StaticInstruction>& instructions() const override { return instructions_; }
  const std::vector<std::string>& opcodes() const override { return lowering_->opcodes; }
  uint64_t cta_count() const override { return grid_.cta_count() - grid_.config().first_cta; }
  std::unique_ptr<CtaStream> open_cta(uint64_t ordinal) override;
  uint32_t lane_addresses(const DynamicRecord& record, uint64_t* out) const override;
  uint32_t cluster_size() const override { return grid_.cluster_size(); }
  bool order_matters() const override { return grid_.order_matters(); }
  std::shared_ptr<InstructionSource> without_effect() const override;
  bool leaves_no_values() const override;
  /// Of launches that access memory without values only: the kernel, its shape, and its parameters, with
  /// allocations in place of addresses.
  std::string signature() const override;
  bool holds_values(uint64_t address) const override;
  /// For each pointer parameter, the range up to the end of its allocation; read-only ones first.
  std::vector<Buffer> buffers() const override;
  std::vector<uint32_t> leaders() override;
  /// Executes on a copy of memory. CTAs that wait for others, or that fault because others have not run, are
  /// executed as far as possible.
  BlockCounts preview(const std::vector<uint64_t>& ordinals, const BasicBlocks& blocks,
                      uint32_t threads) override;
  /// Throws ProgramFault, also if these CTAs wait for later ones.
  BlockCounts execute(uint64_t first, uint64_t end, const BasicBlocks* blocks, uint32_t threads,
                      std::vector<Footprint>* footprints) override;
  /// Throws ProgramFault.
  BlockCounts finish(const std::vector<std::shared_ptr<CtaStream>>& begun, uint64_t first,
                     const BasicBlocks* blocks, uint32_t threads) override;

  /// Executes the whole launch and records it as a trace, with warps of `lanes` lanes, 32 or 64. converged:
  /// leaves out what instructions of a part of a warp cost beyond that part, as if a CTA's threads that
  /// execute the same were in the same warps. combined: atomics to one address by several lanes of a warp are
  /// recorded as one lane's. Throws ProgramFault.
  void record(TraceSink& sink, uint32_t lanes, bool converged, bool combined);
  const std::vector<RawInstruction>& raw_instructions() const { return lowering_->instructions; }

  /// What the program printed, in an order independent of host threads.
  std::string printed() const;
  const std::map<std::string, std::string>& unknown_opcodes() const { return unknown_; }

 private:
  class Stream;
  /// The same launch in another memory.
  ExecutedSource(const ExecutedSource& other, std::shared_ptr<DeviceMemory> memory);
  void run_part(Grid& grid, Grid::Part part, const BasicBlocks* blocks, uint32_t threads,
                BlockCounts& result);

  std::shared_ptr<const void> owner_;     // outlives the grid
  std::shared_ptr<DeviceMemory> memory_;  // of a source without effect; outlives the grid
  std::shared_ptr<const Lowering> lowering_;
  std::function<void()> poll_;
  std::function<void(Grid&)> prepare_, prepare_for_time_;
  Grid grid_;
  LaunchInfo launch_;
  std::vector<StaticInstruction> instructions_;
  std::map<std::string, std::string> unknown_;
  bool resumed_ = false;  ///< some CTAs begin in the middle
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<std::vector<std::unique_ptr<Cta>>>>
      clusters_;  ///< those whose CTAs have not all been opened
};

}  // namespace simt::functional
