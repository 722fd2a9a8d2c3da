#include "work.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "process.hpp"
#include "run_ahead.hpp"

namespace simt::driver {
namespace {

void copy_dense(std::byte* to, const std::byte* from, uint64_t bytes) {
#ifdef __SSE2__
  // Larger copies bypass the caches. The C library's do too, but they access several pages in turn, which is
  // slow with the small pages of a memory file.
  constexpr uint64_t large = 4 << 20, line = 64;
  const uint64_t distance = static_cast<uint64_t>(std::abs(to - from));
  if (bytes >= large && distance >= bytes) {
    const uint64_t before = -reinterpret_cast<uintptr_t>(to) % line;
    std::memcpy(to, from, before);
    uint64_t done = before;
    for (; bytes - done >= line; done += line) {
      const auto* source = reinterpret_cast<const __m128i*>(from + done);
      auto* target = reinterpret_cast<__m128i*>(to + done);
      const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1),
                    c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
      _mm_stream_si128(target, a);
      _mm_stream_si128(target + 1, b);
      _mm_stream_si128(target + 2, c);
      _mm_stream_si128(target + 3, d);
    }
    _mm_sfence();
    std::memcpy(to + done, from + done, bytes - done);
    return;
  }
#endif
  std::memmove(to, from, bytes);
}

void copy_rows(const Copy& c) {
  for (uint64_t z = 0; z < c.depth; ++z) {
    std::byte* to = reinterpret_cast<std::byte*>(c.to.address + z * c.to.slice);
    const std::byte* from = reinterpret_cast<const std::byte*>(c.from.address + z * c.from.slice);
    const bool dense = c.height == 1 || (c.to.pitch == c.width && c.from.pitch == c.width);
    if (dense) {
      copy_dense(to, from, c.width * c.height);
      continue;
    }
    for (uint64_t y = 0; y < c.height; ++y)
      std::memmove(to + y * c.to.pitch, from + y * c.from.pitch, c.width);
  }
}

void fill_rows(const Fill& f) {
  for (uint64_t y = 0; y < f.height; ++y) {
    std::byte* row = reinterpret_cast<std::byte*>(f.address + y * f.pitch);
    if (f.element == 1) {
      std::memset(row, static_cast<int>(f.value), f.width);
      continue;
    }
    for (uint64_t x = 0; x < f.width; ++x) std::memcpy(row + x * f.element, &f.value, f.element);
  }
}

/// The device, not this one, that holds an address; nullptr if there is none.
Device* other_device(const Device& own, uint64_t address) {
  Device* const device = Process::get().device_of(address);
  return device == &own ? nullptr : device;
}

void wait_for_other(const Device& own, uint64_t address) {
  if (Device* const device = other_device(own, address)) synchronize(*device);
}

/// What a copy occupies of a device.
Link link_of(Device& own, const Copy& c) {
  // In memory of a device, not in the host's memory that a device holds.
  const auto is_on_any = [](uint64_t address) {
    Device* const device = Process::get().device_of(address);
    return device && device->on_device(address);
  };
  const bool to = is_on_any(c.to.address), from = is_on_any(c.from.address);
  if (!to && !from) return Link::none;
  if (!from) return Link::host_to_device;
  if (!to) return Link::device_to_host;
  if (!own.on_device(c.to.address)) return Link::device_to_peer;
  return own.on_device(c.from.address) ? Link::device : Link::peer_to_device;
}

CopySide side_of(const Copy::Side& side) {
  return {.address = side.address, .pitch = side.pitch, .slice = side.slice};
}

/// moved: the program has already copied. staged: from memory allocated for this copy.
void send_copy(Stream& stream, const Copy& c, Link link, bool moved, bool staged) {
  Device& device = stream.context->device;
  device.connection.send(CopyRequest{.stream = stream.id,
                                     .moved = moved,
                                     .staged = staged,
                                     .link = link,
                                     .to = side_of(c.to),
                                     .source = side_of(c.from),
                                     .width = c.width,
                                     .height = c.height,
                                     .depth = c.depth});
  if (!moved) device.submitted();
}

/// Executes stream-ordered work of one kind.
struct Executor {
  Stream& stream;
  Device& device = stream.context->device;

  void operator()(const Nothing&) const {}

  void operator()(const Launch& l) const {
    const Function& f = *l.function;
    const LaunchConfiguration configuration{.stream = stream.id,
                                            .module = f.module.id,
                                            .kernel = f.name,
                                            .grid = l.grid,
                                            .block = l.block,
                                            .cluster = l.cluster,
                                            .shared_bytes = l.shared_bytes,
                                            .cooperative = l.cooperative,
                                            .window = {.address = l.window.address,
                                                       .size = l.window.bytes,
                                                       .hit_ratio = l.window.hit_ratio,
                                                       .hit = l.window.hit,
                                                       .miss = l.window.miss}};
    device.submitted();
    if (!device.synchronous)
      return device.connection.send(
          LaunchRequest{.configuration = configuration, .parameters = l.parameters});
    // Until the point of a checkpoint; then work is timed.
    const LaunchMode mode = device.connection.call(
        AnsweredLaunchRequest{.configuration = configuration, .parameters = l.parameters});
    device.synchronous = mode.synchronous;
    device.functional = mode.functional;
  }

  void operator()(const Copy& c) const {
    if (c.bytes() == 0) return;
    wait_for_others(device, c);
    if (is_now()) return copy_now(stream, c);
    const Link link = link_of(device, c);
    if (device.holds(c.to.address) && device.holds(c.from.address))
      return send_copy(stream, c, link, false, false);
    if (!device.holds(c.to.address) || !device.host_calls.empty()) {
      // simt cannot access the program's own memory: wait until the data has been copied, as CUDA may do as
      // well. Data that a host function has yet to write cannot be staged.
      synchronize(stream);
      return copy_now(stream, c);
    }
    // The source may change as soon as this returns.
    Copy staged = c;
    staged.from.address = device.connection.call(
        AllocateRequest{.size = c.bytes(), .label = "staged copy", .everywhere = false});
    require(staged.from.address != 0, CUDA_ERROR_OUT_OF_MEMORY);
    staged.from.pitch = c.width;
    staged.from.slice = c.width * c.height;
    Copy to_stage = c;
    to_stage.to = staged.from;
    copy_rows(to_stage);
    send_copy(stream, staged, link, false, true);
  }

  void operator()(const Fill& f) const {
    if (f.width * f.height == 0) return;
    const bool elsewhere = !device.holds(f.address);
    if (elsewhere) {
      wait_for_other(device, f.address);
      synchronize(stream);
    }
    const bool filled = elsewhere || is_now();
    if (filled) fill_rows(f);
    if (elsewhere) return;
    if (filled && device.functional) return;
    device.connection.send(FillRequest{.stream = stream.id,
                                       .filled = filled,
                                       .address = f.address,
                                       .pitch = f.pitch,
                                       .value = f.value,
                                       .element = f.element,
                                       .width = f.width,
                                       .height = f.height});
    if (!filled) device.submitted();
  }

  void operator()(const HostCall& call) const {
    if (can_call())
      call.function(call.argument);
    else
      ask_for(call);
  }

  void operator()(const StreamCallback& call) const {
    if (can_call())
      call.function(call.stream, CUDA_SUCCESS, call.argument);
    else
      ask_for(call);
  }

  void operator()(const Record& r) const {
    if (r.event->id != 0) device.connection.send(ForgetRequest{.event = r.event->id});
    r.event->id = Process::get().next_id++;
    r.event->capture = nullptr;
    device.connection.send(RecordRequest{.stream = stream.id, .event = r.event->id});
    device.submitted();
  }

  void operator()(const Wait& w) const {
    if (w.event->id == 0) return;
    if (&w.event->context->device != &device) return synchronize(*w.event);  // it has a time of its own
    device.connection.send(WaitRequest{.stream = stream.id, .event = w.event->id});
  }

  void operator()(const Release& r) const {
    if (free_graph_memory(r.address)) return;
    device.forget(r.address);
    device.connection.send(ReleaseRequest{.stream = stream.id, .address = r.address});
    device.submitted();
  }

 private:
  /// Whether the program itself does what is submitted: nothing precedes it.
  bool is_now() const { return !device.pending && !device.checked; }
  /// Whether the stream's work has been done: without timing, most has by now.
  bool can_call() const { return !device.pending || (device.functional && is_done(stream)); }
  void ask_for(const Work& call) const {
    const uint64_t number = Process::get().next_id++;
    device.host_calls[number] = call;
    device.connection.send(CallRequest{.stream = stream.id, .number = number});
    device.submitted();
  }
};

void make_host_call(Device& device, uint64_t number) {
  const auto node = device.host_calls.extract(number);
  if (node.empty()) return;
  if (const auto* host = std::get_if<HostCall>(&node.mapped()))
    host->function(host->argument);
  else if (const auto* callback = std::get_if<StreamCallback>(&node.mapped()))
    callback->function(callback->stream, CUDA_SUCCESS, callback->argument);
}

/// The reply to a request that waits for work, after the host functions that it waits for: a stream continues
/// when its function has returned.
template <class Request>
auto awaited(Device& device, const Request& request) {
  return device.connection.call(request, [&](uint64_t number) { make_host_call(device, number); });
}

/// How long work is waited for before calls of other threads have their turn, and if some did, until they
/// have it again.
constexpr uint64_t longest_ms = 1000, shortest_ms = 20;

/// Whether this is the program's only thread.
bool is_alone() {
  DIR* const tasks = opendir("/proc/self/task");
  if (!tasks) return false;
  size_t threads = 0;
  while (const dirent* const task = readdir(tasks)) threads += task->d_name[0] != '.';
  closedir(tasks);
  return threads == (runs_ahead() ? 2 : 1);
}

/// Waits for a device's work: all of it, or that of a stream or before an event, by number.
void wait(Device& device, Awaited what, uint64_t which) {
  Process& process = Process::get();
  const struct Waiting {
    explicit Waiting(std::atomic<unsigned>& calls) : count(calls) { ++count; }
    ~Waiting() { --count; }
    std::atomic<unsigned>& count;
  } waiting(process.waiting);
  std::vector<uint64_t> numbers;
  bool is_shared = process.lock.contended();
  for (;;) {
    ++process.activity;
    WaitResult result =
        awaited(device, SynchronizeRequest{.what = what,
                                           .which = which,
                                           .numbers = numbers,
                                           .milliseconds = is_shared ? shortest_ms : longest_ms,
                                           .alone = !numbers.empty() && is_alone()});
    if (!result.printed.empty()) {
      std::fwrite(result.printed.data(), 1, result.printed.size(), stdout);
      std::fflush(stdout);
    }
    if (const auto code = static_cast<CUresult>(result.fault); code != CUDA_SUCCESS) {
      device.pending = false;
      device.fault = code;
      fail(code);
    }
    if (result.left.empty()) return;
    what = Awaited::numbers;
    numbers = std::move(result.left);
    is_shared = process.lock.yield();
  }
}

bool is_done(Device& device, Queried what, uint64_t which) {
  if (!device.pending) return true;
  const QueryResult result = awaited(device, QueryRequest{.what = what, .which = which});
  if (result.ran) ++Process::get().activity;
  if (!result.done) return false;
  wait(device, what == Queried::stream ? Awaited::stream : Awaited::event, which);
  return true;
}

}  // namespace

void wait_for_others(const Device& own, const Copy& copy) {
  wait_for_other(own, copy.to.address);
  wait_for_other(own, copy.from.address);
}

void copy_now(Stream& stream, const Copy& copy) {
  copy_rows(copy);
  Device& device = stream.context->device;
  if (!device.functional) send_copy(stream, copy, link_of(device, copy), true, false);
}

void execute(Stream& stream, Work work) {
  std::visit(Executor{stream}, work);
}

void synchronize(Device& device) {
  if (!device.pending) return;
  const uint64_t submissions = device.submissions;
  wait(device, Awaited::all, 0);
  if (device.submissions != submissions) return;  // other threads have submitted more
  device.pending = false;
  device.idle = true;
}

void synchronize(Stream& stream) {
  if (stream.context->device.pending) wait(stream.context->device, Awaited::stream, stream.id);
}

void synchronize(Event& event) {
  if (event.context->device.pending && event.id != 0) wait(event.context->device, Awaited::event, event.id);
}

bool is_done(Stream& stream) {
  return is_done(stream.context->device, Queried::stream, stream.id);
}

bool is_done(Event& event) {
  return event.id == 0 || is_done(event.context->device, Queried::event, event.id);
}

bool advance(Device& device) {
  device.idle = awaited(device, RunAheadRequest{});
  return device.idle;
}

}  // namespace simt::driver
