#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "isa/instruction.hpp"

namespace simt {

struct LaunchInfo;

/// Sectors of a 128-byte line of global memory that a CTA reads, or writes.
struct LineAccess {
  static constexpr uint64_t line_bytes = 128, sector_bytes = 32;

  uint64_t line = 0;
  uint8_t sectors = 0;  ///< bit per sector
  bool write = false;   ///< an atomic operation writes

  friend bool operator==(const LineAccess&, const LineAccess&) = default;
};

/// What a CTA asks the L2 for, warp by warp as far as it runs, without what it asked for shortly before.
using Footprint = std::vector<LineAccess>;

/// CTAs whose footprints are in memory together.
constexpr uint64_t followed_at_once = 256;

/// Sectors of global memory that instructions ask for, each instruction on its own.
struct AccessCounts {
  uint64_t load_sectors = 0, store_sectors = 0;

  AccessCounts& operator+=(const AccessCounts& other) {
    load_sectors += other.load_sectors;
    store_sectors += other.store_sectors;
    return *this;
  }
};

/// Collects the footprints of CTAs that are executed, or replayed, without timing.
class FootprintRecorder {
 public:
  /// Of a launch with these instructions; both must outlive this.
  FootprintRecorder(const LaunchInfo& launch, const std::vector<StaticInstruction>& instructions)
      : launch_(launch), instructions_(instructions) {}

  /// What follows is of this CTA. Of a footprint that becomes very long, only the end is kept, which is what
  /// stays in a cache.
  void begin(Footprint& footprint);
  /// An execution of an instruction. bulk_bytes: size of a bulk copy, which has one address.
  void add(uint32_t static_index, const uint64_t* addresses, uint32_t count, uint64_t bulk_bytes);
  /// Of everything so far.
  const AccessCounts& accesses() const { return accesses_; }

 private:
  static constexpr size_t longest = 1 << 20;
  void add_line(uint64_t line, uint32_t sectors, bool write);

  // As an L1 of 128 KiB does, it keeps what is repeated soon away from the L2.
  static constexpr uint32_t remembered = 1024;
  struct Recent {
    uint64_t key = ~uint64_t{0};
    uint32_t sectors = 0, cta = 0;
  };

  const LaunchInfo& launch_;
  const std::vector<StaticInstruction>& instructions_;
  Footprint* footprint_ = nullptr;
  uint32_t cta_ = 0;
  std::array<Recent, remembered> recent_{};
  AccessCounts accesses_;
};

}  // namespace simt
