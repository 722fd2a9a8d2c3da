#include <vector>

#include "timing/memory/replacement.hpp"

namespace simt {
namespace {

class CompiledReplacement final : public Replacement {
 public:
  CompiledReplacement(uint32_t lines, ReplacementFunction function)
      : function_(function), used_(lines), allocated_(lines) {}

  void allocated(uint32_t line, uint64_t time) override { used_[line] = allocated_[line] = time; }
  void used(uint32_t line, uint64_t time) override { used_[line] = time; }
  int32_t victim(uint32_t first, std::span<const uint8_t> evictable) const override {
    return function_(evictable.data(), used_.data() + first, allocated_.data() + first,
                     static_cast<int32_t>(evictable.size()));
  }

 private:
  ReplacementFunction function_;
  std::vector<uint64_t> used_, allocated_;  // times, by line
};

std::unique_ptr<Replacement> make(uint32_t lines, ReplacementFunction custom) {
  return std::make_unique<CompiledReplacement>(lines, custom);
}

const Registered<ReplacementPolicy> registered_custom_replacement{
    {{"custom", "A user-supplied function, for example compiled from Python.", "docs/policies.md"},
     /*renewed_by_use=*/true,
     make}};

}  // namespace
}  // namespace simt
