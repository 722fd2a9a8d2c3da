#include "ranges.hpp"

#include <algorithm>

namespace simt::driver {
namespace {

std::vector<std::string> open_ranges;  // in the order in which they were opened

}  // namespace

void open_range(const std::string& name) {
  open_ranges.push_back(name);
  for (const auto& device : Process::get().devices)
    if (device) device->connection.send(OpenRangeRequest{.name = name});
}

void close_range(const std::string& name) {
  const auto last = std::find(open_ranges.rbegin(), open_ranges.rend(), name);
  if (last == open_ranges.rend()) return;
  open_ranges.erase(std::next(last).base());
  for (const auto& device : Process::get().devices)
    if (device) device->connection.send(CloseRangeRequest{.name = name});
}

void announce_ranges(Device& device) {
  for (const std::string& name : open_ranges) device.connection.send(OpenRangeRequest{.name = name});
}

}  // namespace simt::driver
