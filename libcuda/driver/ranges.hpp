#pragma once
#include <string>

#include "process.hpp"

// Ranges of the program: simt can time the launches within them only (--capture-range). They are those of all
// devices. The process's lock is held.

namespace simt::driver {

/// A range begins, for the launches that follow; ranges may be nested.
void open_range(const std::string& name);
/// The range of this name that was opened last ends.
void close_range(const std::string& name);
/// Tells a new device of the ranges that the program has opened before.
void announce_ranges(Device& device);

}  // namespace simt::driver
