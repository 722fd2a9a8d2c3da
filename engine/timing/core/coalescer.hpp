#pragma once
#include <cstdint>
#include <vector>

#include "timing/core/in_flight.hpp"

namespace simt {

/// Merges the addresses of `count` lanes, `bytes` each, into one transaction per 32-byte sector, in ascending
/// order. An access that crosses the end of a sector also makes a transaction in the next one. Without
/// `sectored`, transactions are widened as in GPUs before Maxwell, to both halves of a 64-byte segment or all
/// of a 128-byte line, depending on what the lanes span.
void coalesce(const uint64_t* addresses, uint32_t count, uint32_t bytes, bool sectored,
              std::vector<Transaction>& transactions);

/// As coalesce(), but lanes that touch the same bytes go into separate transactions, because the L2 performs
/// all operations of a transaction at once.
void coalesce_atomic(const uint64_t* addresses, uint32_t count, uint32_t bytes,
                     std::vector<Transaction>& transactions);

enum class SharedAccess : uint8_t { Load, Store, Atomic };

/// Passes that a shared-memory access of the lanes in `mask` takes, with their addresses in lane order: the
/// largest number of distinct words that one bank must deliver. With `by_width`, 64- and 128-bit accesses are
/// served 16 and 8 lanes at a time, and every word counts; otherwise only each lane's first word counts, as
/// in GPGPU-Sim. Twice as many lanes are served at a time by a load of a warp of 32 lanes whose active
/// lanes n and n ^ 1 all have the same address, or all those n and n ^ 2 (NVIDIA, developer forum, topic
/// 77228). An atomic takes a pass for each lane that needs the same bank, even the same word.
uint32_t shared_memory_passes(const uint64_t* addresses, uint64_t mask, uint32_t bytes, uint32_t banks,
                              bool by_width, SharedAccess access);

}  // namespace simt
