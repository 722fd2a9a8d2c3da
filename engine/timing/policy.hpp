#pragma once
#include <cstdint>

/// Signatures of policies that a user may supply as compiled functions (for example through Numba's @cfunc).
/// Arrays are read-only and have `count` entries.
namespace simt {

/// Chooses a warp. Index i is a warp of the scheduler; `ready[i]` != 0 if it can issue now; `age[i]` is the
/// order in which warps were launched (smaller is older); `last` is the index that issued last (-1: none).
/// Returns the index to issue, or -1 for none.
using SchedulerFunction = int32_t (*)(const uint8_t* ready, const uint64_t* age, int32_t count, int32_t last,
                                      uint64_t cycle);

/// Chooses the way to evict among those with `evictable[i]` != 0 (at least one). Returns its index.
using ReplacementFunction = int32_t (*)(const uint8_t* evictable, const uint64_t* last_access,
                                        const uint64_t* allocated, int32_t count);

/// Chooses the L2 slice, 0 to slices - 1, of an address.
using SliceHashFunction = int32_t (*)(uint64_t address, int32_t slices);

}  // namespace simt
