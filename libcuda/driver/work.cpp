#include "work.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "process.hpp"

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

/// What a copy occupies of a device, as simt names it. Other devices are reached over the link to the host.
const char* link_of(Device& device, const Copy& c) {
  const bool to = device.on_device(c.to.address), from = device.on_device(c.from.address);
  if (to && from) return "device";
  if (to || from) return to ? "host_to_device" : "device_to_host";
  return other_device(device, c.to.address) || other_device(device, c.from.address) ? "device_to_host"
                                                                                    : "none";
}

/// moved: the program has already copied. staged: from memory allocated for this copy.
void send_copy(Stream& stream, const Copy& c, bool moved, bool staged) {
  Device& device = stream.context->device;
  device.connection.send("copy", stream.id, moved, staged, link_of(device, c), c.to.address, c.to.pitch,
                         c.to.slice, c.from.address, c.from.pitch, c.from.slice, c.width, c.height, c.depth);
  if (!moved) device.pending = true;
}

/// Executes stream-ordered work of one kind.
struct Executor {
  Stream& stream;
  Device& device = stream.context->device;

  void operator()(const Nothing&) const {}

  void operator()(const Launch& l) const {
    const Function& f = *l.function;
    // Encoded by itself, because simt keeps what it has made of it for the next launches.
    const Bytes configuration =
        array_of(stream.id, f.module.id, f.name, l.grid, l.block, l.cluster, l.shared_bytes, l.cooperative,
                 l.window.address, l.window.bytes, l.window.hit_ratio, l.window.hit, l.window.miss);
    device.pending = true;
    if (!device.synchronous) return device.connection.send("launch", configuration, l.parameters);
    // Until the point of a checkpoint; then work is timed.
    const Value mode = device.connection.call("launch", configuration, l.parameters);
    device.synchronous = mode.at("synchronous").number() != 0;
    device.functional = mode.at("functional").number() != 0;
  }

  void operator()(const Copy& c) const {
    if (c.bytes() == 0) return;
    wait_for_others(device, c);
    if (!device.pending) return copy_now(stream, c);
    if (device.holds(c.to.address) && device.holds(c.from.address)) return send_copy(stream, c, false, false);
    if (!device.holds(c.to.address) || !device.host_calls.empty()) {
      // simt cannot access the program's own memory: wait until the data has been copied, as CUDA may do as
      // well. Data that a host function has yet to write cannot be staged.
      synchronize(stream);
      return copy_now(stream, c);
    }
    // The source may change as soon as this returns.
    Copy staged = c;
    staged.from.address = device.connection.call("allocate", c.bytes(), "staged copy", false).number();
    require(staged.from.address != 0, CUDA_ERROR_OUT_OF_MEMORY);
    staged.from.pitch = c.width;
    staged.from.slice = c.width * c.height;
    Copy to_stage = c;
    to_stage.to = staged.from;
    copy_rows(to_stage);
    send_copy(stream, staged, false, true);
  }

  void operator()(const Fill& f) const {
    if (f.width * f.height == 0) return;
    const bool elsewhere = !device.holds(f.address);
    if (elsewhere) {
      wait_for_other(device, f.address);
      synchronize(stream);
    }
    const bool filled = elsewhere || !device.pending;
    if (filled) fill_rows(f);
    if (elsewhere) return;
    if (filled && device.functional) return;
    device.connection.send("fill", stream.id, filled, f.address, f.pitch, f.value, f.element, f.width,
                           f.height);
    if (!filled) device.pending = true;
  }

  void operator()(const HostCall& call) const {
    if (device.functional || !device.pending) {
      synchronize(device);
      call.function(call.argument);
    } else {
      ask_for(call);
    }
  }

  void operator()(const StreamCallback& call) const {
    if (device.functional || !device.pending) {
      synchronize(device);
      call.function(call.stream, CUDA_SUCCESS, call.argument);
    } else {
      ask_for(call);
    }
  }

  void operator()(const Record& r) const {
    if (r.event->id != 0) device.connection.send("forget", r.event->id);
    r.event->id = Process::get().next_id++;
    r.event->capture = nullptr;
    device.connection.send("record", stream.id, r.event->id);
    device.pending = true;
  }

  void operator()(const Wait& w) const {
    if (w.event->id == 0) return;
    if (&w.event->context->device != &device) return synchronize(*w.event);  // it has a time of its own
    device.connection.send("wait", stream.id, w.event->id);
  }

  void operator()(const Release& r) const {
    if (free_graph_memory(r.address)) return;
    device.forget(r.address);
    device.connection.send("release", stream.id, r.address);
    device.pending = true;
  }

 private:
  void ask_for(const Work& call) const {
    const uint64_t number = Process::get().next_id++;
    device.host_calls[number] = call;
    device.connection.send("call", stream.id, number);
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

/// Waits for a device's work: "all" of it, or that of a stream or before an event, by number.
void wait(Device& device, const char* what, uint64_t which) {
  Value reply = device.connection.call("synchronize", what, which);
  // simt requests a host function: its stream continues when the function has returned.
  while (reply.kind == Value::Kind::Integer) {
    make_host_call(device, reply.number());
    reply = device.connection.call("called");
  }
  if (const std::string& printed = reply.at("printed").string(); !printed.empty()) {
    std::fwrite(printed.data(), 1, printed.size(), stdout);
    std::fflush(stdout);
  }
  const auto code = static_cast<CUresult>(reply.at("fault").number());
  if (code == CUDA_SUCCESS) return;
  device.pending = false;
  device.fault = code;
  fail(code);
}

}  // namespace

void wait_for_others(const Device& own, const Copy& copy) {
  wait_for_other(own, copy.to.address);
  wait_for_other(own, copy.from.address);
}

void copy_now(Stream& stream, const Copy& copy) {
  copy_rows(copy);
  if (!stream.context->device.functional) send_copy(stream, copy, true, false);
}

void execute(Stream& stream, Work work) {
  std::visit(Executor{stream}, work);
}

void synchronize(Device& device) {
  if (!device.pending) return;
  wait(device, "all", 0);
  device.pending = false;
}

void synchronize(Stream& stream) {
  if (stream.context->device.pending) wait(stream.context->device, "stream", stream.id);
}

void synchronize(Event& event) {
  if (event.context->device.pending && event.id != 0) wait(event.context->device, "event", event.id);
}

}  // namespace simt::driver
