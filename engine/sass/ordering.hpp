#pragma once
#include "sass/translation.hpp"

namespace simt::sass {

/// Takes what a memory access says about order and caches. True if it takes effect in time order.
bool take_ordering(Translation& t);

}  // namespace simt::sass
