#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "timing/base/request.hpp"

namespace simt {

/// Lines that arrive sector by sector.
class LineAssembly {
 public:
  explicit LineAssembly(uint32_t line_bytes) : line_bytes_(std::max(sector_bytes, line_bytes)) {}

  /// Records the arrival of a sector. Returns whether its line is now complete.
  bool add(uint64_t sector) {
    if (line_bytes_ == sector_bytes) return true;
    const uint64_t line = sector / line_bytes_ * line_bytes_;
    const auto found =
        std::find_if(arriving_.begin(), arriving_.end(), [&](const Arriving& a) { return a.line == line; });
    if (found == arriving_.end()) {
      arriving_.push_back({line, line_bytes_ / sector_bytes - 1});
      return false;
    }
    if (--found->missing > 0) return false;
    arriving_.erase(found);
    return true;
  }

 private:
  struct Arriving {
    uint64_t line;
    uint32_t missing;  // sectors
  };
  uint32_t line_bytes_;
  std::vector<Arriving> arriving_;
};

}  // namespace simt
