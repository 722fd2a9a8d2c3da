#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/code_facts.hpp"
#include "ptx/control_flow.hpp"
#include "ptx/module.hpp"

namespace simt::check {

/// What becomes of the values in a kernel's registers, on whatever way its threads take; of PTX.
class ValueFlow {
 public:
  ValueFlow(const Program& program, const std::vector<OpFacts>& facts) : program_(program), facts_(facts) {}

  /// All that what a load gives is good for: the stores of what is computed from it. nullptr if it is, or may
  /// be, used otherwise: in a branch, a guard or an address, or by other threads.
  const std::vector<uint32_t>* stores_of(uint32_t load);
  /// What becomes of what an instruction loads, on any way: also through shared and local memory, which count
  /// as one value.
  struct Use {
    const char* decides = nullptr;      ///< what depends on it, but for values; nullptr: nothing
    uint32_t by = 0;                    ///< the instruction that decides
    std::vector<uint32_t> stores = {};  ///< instructions that store it in global memory, in order
  };
  const Use& use_of(uint32_t load);
  /// Floating-point values of an element of a store that the lanes of a warp have combined with each other,
  /// by butterfly shuffles: the bits of their numbers in which lanes may differ that have the same result,
  /// each rounded in its own order. 0 if there are none.
  uint32_t combined_by(uint32_t store, uint32_t element);

 private:
  struct Step {
    std::vector<uint32_t> reads, writes;
    uint32_t op = UINT32_MAX;  ///< the store, if it is one
  };
  /// The instructions of a kernel.
  struct Kernel {
    std::vector<Step> steps;
    std::vector<std::vector<uint32_t>> readers, writers;  ///< instructions, by register
    ptx::ControlFlow flow;
    std::unordered_map<uint64_t, std::vector<uint32_t>> read_by;  ///< by instruction and what it writes
    std::optional<Use> chip;
  };
  Kernel* kernel_of(uint32_t op);
  std::optional<std::vector<uint32_t>> follow(uint32_t load);
  Use find_use(uint32_t load);
  Use find_use(Kernel& kernel, const ptx::Function& function, std::optional<uint32_t> load);
  const Use& use_of_chip(Kernel& kernel, const ptx::Function& function);
  static const std::vector<uint32_t>& readers_of(Kernel& kernel, const ptx::Function& function,
                                                 uint32_t written_by, uint32_t value);
  static std::vector<uint32_t> find_readers(const Kernel& kernel, const ptx::Function& function,
                                            uint32_t written_by, uint32_t value);
  uint32_t trace_back(uint32_t store, uint32_t element);
  uint32_t constant(const Kernel& kernel, const ptx::Function& function, const ptx::Operand& operand) const;
  bool is_rounded(const Kernel& kernel, uint32_t function, uint32_t from) const;

  const Program& program_;
  const std::vector<OpFacts>& facts_;
  std::map<uint32_t, std::unique_ptr<Kernel>> kernels_;
  std::map<uint32_t, std::optional<std::vector<uint32_t>>> stores_;
  std::map<uint32_t, Use> uses_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> combined_;
};

}  // namespace simt::check
