#include "isa/footprint.hpp"

#include <algorithm>
#include <bit>

#include "isa/instruction_source.hpp"

namespace simt {
namespace {

/// Whether an access with this first address goes to global memory.
bool is_global(const LaunchInfo& launch, MemorySpace space, uint64_t address) {
  if (space == MemorySpace::Global || space == MemorySpace::Texture) return true;
  if (space != MemorySpace::Generic) return false;
  const auto within = [&](uint64_t base) {
    return base != 0 && address >= base && address - base < launch.window_bytes;
  };
  return !within(launch.shared_base) && !within(launch.local_base);
}

}  // namespace

void FootprintRecorder::begin(Footprint& footprint) {
  footprint_ = &footprint;
  ++cta_;
}

void FootprintRecorder::add_line(uint64_t line, uint32_t sectors, bool write) {
  const uint64_t key = line | uint64_t{write};
  Recent& recent = recent_[(line / LineAccess::line_bytes * 2 + write) % remembered];
  if (recent.key == key && recent.cta == cta_) {
    sectors &= ~recent.sectors;
    if (sectors == 0) return;
    recent.sectors |= sectors;
  } else {
    recent = {key, sectors, cta_};
  }
  if (footprint_->size() == longest)
    footprint_->erase(footprint_->begin(), footprint_->begin() + longest / 2);
  footprint_->push_back({line, static_cast<uint8_t>(sectors), write});
}

void FootprintRecorder::add(uint32_t static_index, const uint64_t* addresses, uint32_t count,
                            uint64_t bulk_bytes) {
  const StaticInstruction& s = instructions_[static_index];
  const bool bulk = s.operation == Operation::BulkLoad || s.operation == Operation::BulkStore;
  const uint64_t bytes = bulk ? bulk_bytes / std::max(1u, count) : s.access_bytes;
  if (count == 0 || bytes == 0 || !(bulk || is_global(launch_, s.space, addresses[0]))) return;
  const bool write = s.operation == Operation::Store || s.operation == Operation::BulkStore ||
                     s.operation == Operation::Atomic || s.operation == Operation::Reduction;
  const bool loads = s.operation == Operation::Load || s.operation == Operation::AsyncCopy;
  uint64_t* const asked = loads                             ? &accesses_.load_sectors
                          : s.operation == Operation::Store ? &accesses_.store_sectors
                                                            : nullptr;
  uint64_t line = ~uint64_t{0};
  uint32_t sectors = 0;
  const auto end_line = [&] {
    if (asked) *asked += static_cast<uint64_t>(std::popcount(sectors));
    add_line(line, sectors, write);
  };
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t last = (addresses[i] + bytes - 1) / LineAccess::sector_bytes;
    for (uint64_t sector = addresses[i] / LineAccess::sector_bytes; sector <= last; ++sector) {
      const uint64_t of = sector * LineAccess::sector_bytes / LineAccess::line_bytes * LineAccess::line_bytes;
      if (of != line) {
        if (sectors) end_line();
        line = of;
        sectors = 0;
      }
      sectors |= 1u << sector % (LineAccess::line_bytes / LineAccess::sector_bytes);
    }
  }
  end_line();
}

}  // namespace simt
