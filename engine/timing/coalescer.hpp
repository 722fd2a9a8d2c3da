#pragma once
#include <cstdint>
#include <vector>

#include "timing/core/in_flight.hpp"

namespace simt {

/// Merges the addresses of `count` lanes, `bytes` each, into one transaction per 32-byte sector, addresses
/// rising. An access that crosses a sector's end makes a transaction there too. Without `sectored`,
/// transactions are widened as GPUs before Maxwell do: to both halves of a 64-byte segment or all of a
/// 128-byte line, whatever the lanes span.
void coalesce(const uint64_t* addresses, uint32_t count, uint32_t bytes, bool sectored,
              std::vector<Transaction>& transactions);

/// As coalesce(), but lanes that touch the same bytes go into different transactions: the L2 performs each
/// transaction's operations at once.
void coalesce_atomic(const uint64_t* addresses, uint32_t count, uint32_t bytes,
                     std::vector<Transaction>& transactions);

/// Passes that an access to shared memory takes: the largest number of different words that one bank has to
/// deliver. With `by_width`, 64- and 128-bit accesses are served 16 and 8 lanes at a time, every word
/// counted; without it only each lane's first word counts, as in GPGPU-Sim.
uint32_t shared_memory_passes(const uint64_t* addresses, uint32_t count, uint32_t bytes, uint32_t banks,
                              bool by_width);

}  // namespace simt
