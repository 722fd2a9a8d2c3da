#pragma once
#include <cstdint>

namespace simt {

/// What an access asks of the eviction order of a cache (PTX: cache eviction priorities).
enum class Eviction : uint8_t {
  Default,    ///< a new line has normal priority; a line that is there keeps its own
  Normal,     ///< the line has normal priority from now on
  First,      ///< it is evicted before others
  Last,       ///< it is evicted after others
  Unchanged,  ///< as Default, and the access does not count as a use
  NoAllocate  ///< a miss takes no line
};

}  // namespace simt
