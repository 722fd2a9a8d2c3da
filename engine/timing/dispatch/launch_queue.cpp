#include "timing/dispatch/launch_queue.hpp"

namespace simt {

bool LaunchQueue::is_unfinished(uint64_t id) const {
  return std::any_of(running_.begin(), running_.end(), [&](const auto& r) { return r && r->id == id; }) ||
         std::any_of(commands_.begin(), commands_.end(), [&](const Command& c) {
           const Launch* launch = std::get_if<Launch>(&c);
           return launch && launch->id == id;
         });
}

bool LaunchQueue::waits(const Launch& launch, const std::vector<uint64_t>& blocked_streams) const {
  const uint64_t stream = launch.source->launch().stream;
  return std::find(blocked_streams.begin(), blocked_streams.end(), stream) != blocked_streams.end() ||
         std::any_of(running_.begin(), running_.end(),
                     [&](const auto& r) { return r && r->stream == stream; }) ||
         std::any_of(launch.after.begin(), launch.after.end(),
                     [&](uint64_t id) { return is_unfinished(id); });
}

std::optional<std::variant<LaunchQueue::Start, LaunchQueue::Copy>> LaunchQueue::next() {
  const auto free = std::find(running_.begin(), running_.end(), std::nullopt);
  std::vector<uint64_t> blocked_streams;
  for (auto command = commands_.begin(); command != commands_.end(); ++command) {
    if (const Copy* copy = std::get_if<Copy>(&*command)) {
      // A copy waits for the launches before it, so that it does not matter when it was queued.
      if (any_running() || command != commands_.begin()) return std::nullopt;
      const Copy taken = *copy;
      commands_.erase(command);
      return taken;
    }
    if (free == running_.end()) return std::nullopt;
    Launch& launch = std::get<Launch>(*command);
    if (waits(launch, blocked_streams)) {
      // Launches of other streams need not wait for it.
      blocked_streams.push_back(launch.source->launch().stream);
      continue;
    }
    if (!any_running()) earliest_ = std::max(earliest_, idle_since_);
    Start start{std::move(launch), static_cast<uint16_t>(free - running_.begin()), earliest_};
    commands_.erase(command);
    return start;
  }
  return std::nullopt;
}

void LaunchQueue::ended(uint16_t slot, Cycle end) {
  running_[slot].reset();
  if (!commands_.empty()) earliest_ = std::max(earliest_, end);
  idle_since_ = std::max(idle_since_, end);
}

Cycle LaunchQueue::latency(const LaunchSpec& spec, uint64_t ctas) {
  // A launch becomes known up to two windows after the end of the one before it, so its first CTA cannot come
  // earlier.
  return std::max(spec.kernel_latency + uint64_t{spec.cta_latency} * ctas,
                  uint64_t{3} * spec.dispatch_latency);
}

}  // namespace simt
