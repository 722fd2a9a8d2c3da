#include "timing/dispatch/launch_queue.hpp"

namespace simt {
namespace {

using Wide = unsigned __int128;

/// a * b / c, rounded up.
Cycle scaled(uint64_t a, uint64_t b, Wide c) {
  return static_cast<Cycle>((Wide{a} * b + c - 1) / c);
}

}  // namespace

void LaunchQueue::push(Launch launch) {
  const uint64_t id = launch.id, stream = launch.source->launch().stream;
  const std::vector<uint64_t> after = std::move(launch.after);
  push(Command{std::move(launch), id, stream}, after, false);
}

void LaunchQueue::push(Transfer transfer) {
  const uint64_t id = transfer.id;
  const std::optional<uint64_t> stream = transfer.stream;
  const std::vector<uint64_t> after = std::move(transfer.after);
  const bool barrier = transfer.barrier;
  push(Command{std::move(transfer), id, stream}, after, barrier);
}

void LaunchQueue::push(Command command, const std::vector<uint64_t>& after, bool barrier) {
  if (done()) host_ = std::max(host_, last_end_);
  command.ready = host_;
  const Number number = next_++;
  const auto wait_for = [&](Number earlier) {
    unfinished_.at(earlier).followers.push_back(number);
    ++command.waits_for;
  };
  if (barrier) {
    // If the last barrier has ended, so has everything queued before it.
    for (auto c = unfinished_.lower_bound(barrier_); c != unfinished_.end(); ++c) wait_for(c->first);
    barrier_ = number;
  } else {
    if (barrier_) wait_for(barrier_);
    if (command.stream)
      if (const auto last = last_of_stream_.find(*command.stream); last != last_of_stream_.end())
        wait_for(last->second);
    for (const uint64_t id : after)
      if (const auto found = by_id_.find(id); found != by_id_.end()) wait_for(found->second);
    by_id_[command.id] = number;
  }
  if (command.stream) last_of_stream_[*command.stream] = number;
  const bool ready = command.waits_for == 0;
  unfinished_.emplace(number, std::move(command));
  if (ready) is_ready(number);
}

void LaunchQueue::is_ready(Number number) {
  Command& command = unfinished_.at(number);
  const auto* transfer = std::get_if<Transfer>(&command.work);
  if (!transfer) {
    ready_launches_.insert(number);
  } else if (transfer->link == Link::None) {
    command.start = command.ready;
    under_way_.emplace(command.start + transfer->cycles, number);
  } else {
    ready_transfers_[static_cast<size_t>(transfer->link)].emplace(command.ready, number);
  }
}

/// Starts the transfer that can start first, if that is before `before`.
bool LaunchQueue::start_transfer(Cycle before) {
  std::pair<Cycle, Number> first{before, 0};
  size_t link = 0;
  for (size_t i = 0; i < links; ++i) {
    if (ready_transfers_[i].empty() || !free_since_[i]) continue;
    const auto& [ready, number] = *ready_transfers_[i].begin();
    const std::pair candidate{std::max(ready, *free_since_[i]), number};
    if (candidate >= first) continue;
    first = candidate;
    link = i;
  }
  if (first.second == 0) return false;
  ready_transfers_[link].erase(ready_transfers_[link].begin());
  free_since_[link].reset();
  Command& command = unfinished_.at(first.second);
  command.start = first.first;
  under_way_.emplace(command.start + std::get<Transfer>(command.work).cycles, first.second);
  return true;
}

std::optional<LaunchQueue::End> LaunchQueue::next_end(Cycle now) {
  // In time order, and ends before starts, since an end can change which transfer starts next.
  while (start_transfer(next_event())) {
  }
  if (next_event() > now) return std::nullopt;
  const auto [end, number] = *under_way_.begin();
  under_way_.erase(under_way_.begin());
  Command& command = unfinished_.at(number);
  End ended{std::move(std::get<Transfer>(command.work)), command.start, end};
  free_since_[static_cast<size_t>(ended.transfer.link)] = end;
  finish(number, end);
  return ended;
}

std::optional<LaunchQueue::Start> LaunchQueue::next_start() {
  if (ready_launches_.empty()) return std::nullopt;
  const auto free = std::find(running_.begin(), running_.end(), std::nullopt);
  if (free == running_.end()) return std::nullopt;
  const Number number = *ready_launches_.begin();
  ready_launches_.erase(ready_launches_.begin());
  Command& command = unfinished_.at(number);
  Start start{std::move(std::get<Launch>(command.work)), static_cast<uint16_t>(free - running_.begin()),
              std::max(earliest_, command.ready), running() == 0};
  *free = number;
  return start;
}

void LaunchQueue::ended(uint16_t slot, Cycle end) {
  const Number number = *running_[slot];
  running_[slot].reset();
  finish(number, end);
  if (unfinished_.size() > running()) earliest_ = std::max(earliest_, end);
}

void LaunchQueue::finish(Number number, Cycle end) {
  const Command command = std::move(unfinished_.extract(number).mapped());
  const auto forget = [number](auto& numbers, uint64_t key) {
    if (const auto found = numbers.find(key); found != numbers.end() && found->second == number)
      numbers.erase(found);
  };
  forget(by_id_, command.id);
  if (command.stream) forget(last_of_stream_, *command.stream);
  if (barrier_ == number) barrier_ = 0;
  last_end_ = std::max(last_end_, end);
  if (std::find(awaited_.begin(), awaited_.end(), number) != awaited_.end()) {
    host_ = std::max(host_, end);
    host_goes_on_ = true;
  }
  for (const Number follower : command.followers) {
    Command& next = unfinished_.at(follower);
    next.ready = std::max(next.ready, end);
    if (--next.waits_for == 0) is_ready(follower);
  }
}

void LaunchQueue::host_waits_for(const std::vector<uint64_t>& ids) {
  awaited_.clear();
  for (const uint64_t id : ids)
    if (const auto found = by_id_.find(id); found != by_id_.end()) awaited_.push_back(found->second);
  host_goes_on_ = false;
}

Cycle LaunchQueue::latency(const Spec& spec, uint64_t ctas) {
  const LaunchSpec& launch = spec.launch;
  const Cycle overhead = scaled(launch.overhead, spec.clock.core_mhz.khz, 1'000'000);
  // A launch becomes known up to two windows after the end of the previous one, so its first CTA cannot be
  // dispatched earlier.
  return std::max(launch.kernel_latency + overhead + uint64_t{launch.cta_latency} * ctas, 3 * notice(spec));
}

Cycle LaunchQueue::notice(const Spec& spec) {
  return std::min(spec.launch.dispatch_latency + 1, spec.interconnect.credit_latency);
}

Cycle LaunchQueue::duration(const Spec& spec, Link link, uint64_t bytes) {
  if (link == Link::None) return 0;
  const uint64_t core_khz = spec.clock.core_mhz.khz;
  const DramSpec& dram = spec.dram;
  const bool is_peer = link == Link::PeerToDevice || link == Link::DeviceToPeer;
  const bool has_link = is_peer && spec.peer_link.bandwidth > 0;
  const Wide bytes_per_ms = link == Link::Device
                                ? Wide{spec.address_map.channels} * dram.bus_bytes * dram.data_command_ratio *
                                      spec.clock.dram_mhz.khz
                                : Wide{has_link ? spec.peer_link.bandwidth : spec.host_link.bandwidth} * 1000;
  const uint64_t latency = is_peer ? spec.peer_link.latency : spec.host_link.latency;
  return scaled(latency, core_khz, 1'000'000) + scaled(bytes, core_khz, bytes_per_ms);
}

Link LaunchQueue::occupied(const Spec& spec, Link link) {
  if (spec.peer_link.bandwidth > 0) return link;
  if (link == Link::PeerToDevice) return Link::HostToDevice;
  return link == Link::DeviceToPeer ? Link::DeviceToHost : link;
}

}  // namespace simt
