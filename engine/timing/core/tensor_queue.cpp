#include "timing/core/tensor_queue.hpp"

#include <algorithm>

namespace simt {
namespace {

/// What a trace of a real GPU leaves out, for which the largest product of one CTA stands in.
constexpr TensorMemoryWork unrecorded_product{.columns = 256, .row_bytes = 4096};

}  // namespace

Cycle TensorQueue::fetched(const TensorMemoryWork& product, uint32_t bytes) const {
  const uint32_t swizzled = spec_.sm.tensor_memory_swizzled_bandwidth;
  const uint32_t width = product.swizzled && swizzled > 0 ? swizzled : spec_.shared_memory.operand_bandwidth;
  return width == 0 ? 0 : (bytes + width - 1) / width;
}

void TensorQueue::product(TensorMemoryWork product, Cycle now) {
  if (product.columns == 0) product = unrecorded_product;
  if (spec_.sm.tensor_memory_columns == 0) return;
  const SmSpec& sm = spec_.sm;
  take(product,
       sm.tensor_memory_product_latency + (product.ctas > 1 ? sm.tensor_memory_pair_latency : 0) +
           (product.split ? sm.tensor_memory_split_latency : 0),
       now);
}

void TensorQueue::take(const TensorMemoryWork& product, uint32_t latency, Cycle now) {
  const uint32_t rate = std::max(1u, spec_.sm.tensor_memory_columns);
  const Cycle columns = (product.columns + rate - 1) / rate;
  const Cycle begin = std::max(now, free_at_);
  free_at_ = begin + std::max(columns, fetched(product, product.operand_bytes));
  done_ = std::max({done_, free_at_, begin + latency + columns + fetched(product, product.row_bytes)});
}

void TensorQueue::commit(uint32_t cta_slot, uint64_t mbarrier, Cycle now) {
  commits_.push_back({std::max(now + 1, done_), cta_slot, mbarrier});
}

}  // namespace simt
