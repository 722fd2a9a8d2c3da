#pragma once
#include "operations/copies.hpp"
#include "operations/element_reduction.hpp"
#include "operations/mbarrier.hpp"
#include "ptx/translation/operands.hpp"

/// Shared by asynchronous copies. All take effect immediately; groups and mbarriers only report completion.
namespace simt::functional {

Direction take_direction(Translation& t);

/// How a bulk copy signals its completion.
enum class Completion : uint8_t { Group, Mbarrier };
Completion take_completion(Translation& t);

/// cp.async.bulk.tensor and its variants. `reduces`, `prefetches`: given by the modifiers before .tensor.
void translate_bulk_tensor(Translation& t, bool reduces, bool prefetches);  // tensor.cpp

}  // namespace simt::functional
