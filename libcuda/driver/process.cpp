#include "process.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "ranges.hpp"
#include "run_ahead.hpp"

namespace simt::driver {
namespace {

/// The name of this program, for simt's messages and Result.
std::string program_name() {
  std::string name(4096, '\0');
  const ssize_t size = readlink("/proc/self/exe", name.data(), name.size());
  name.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return name;
}

/// Maps device memory into this process, at its device addresses.
void map_memory(Device& device) {
  const int file = device.connection.take_file();
  if (file < 0) fail(CUDA_ERROR_SYSTEM_NOT_READY, "simt has sent no device memory");
  void* const wanted = reinterpret_cast<void*>(device.arena);
  void* const got = mmap(wanted, device.arena_bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
  close(file);
  if (got != wanted) {
    if (got != MAP_FAILED) munmap(got, device.arena_bytes);
    fail(CUDA_ERROR_OUT_OF_MEMORY,
         "the addresses of device memory are taken in this program, or its address space is limited (ulimit "
         "-v)");
  }
}

/// Deletes what a thread has when it ends, but not for the first thread: destructors of a program's static
/// objects run after those of its variables, and may still call.
struct Ending {
  Thread** current;
  ~Ending() {
    if (syscall(SYS_gettid) == getpid()) return;
    delete *current;
    *current = nullptr;
  }
};

}  // namespace

void say(const std::string& text) {
  std::fprintf(stderr, "simt: %s\n", text.c_str());
}

void say_once(const std::string& text) {
  static std::set<std::string> said;
  static std::mutex lock;
  const std::lock_guard guard(lock);
  if (said.insert(text).second) say(text);
}

void note_without_effect(Device& device, const std::string& what) {
  if (!device.functional && device.notes.insert(what).second)
    device.connection.send(NoteRequest{.what = what});
}

Process& Process::get() {
  static Process* process = [] {
    // CUDA does not survive a fork: the child would share its parent's connection.
    pthread_atfork(nullptr, nullptr, [] {
      get().initialised = false;
      get().lock.after_fork();
    });
    return new Process;  // never destroyed: other libraries' destructors may still call
  }();
  return *process;
}

Thread& Thread::get() {
  thread_local Thread* current = nullptr;
  if (!current) {
    current = new Thread;
    thread_local const Ending ending{&current};
  }
  return *current;
}

Device& Process::device(CUdevice ordinal) {
  require(ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size(), CUDA_ERROR_INVALID_DEVICE);
  auto& device = devices[static_cast<size_t>(ordinal)];
  if (!device) {
    device = std::make_unique<Device>(ordinal);
    announce_ranges(*device);
  }
  return *device;
}

Device* Process::device_of(uint64_t address) {
  for (const auto& device : devices)
    if (device && device->holds(address)) return device.get();
  return nullptr;
}

std::pair<Device*, std::map<uint64_t, Allocation>::iterator> Process::allocation_of(uint64_t address) {
  for (const auto& device : devices) {
    if (!device) continue;
    auto& all = device->allocations;
    if (const auto found = device->find(address); found != all.end()) return {device.get(), found};
    for (auto it = all.begin(); it != all.end(); ++it)
      if (it->second.origin == Origin::Registered && address - it->second.host < it->second.size)
        return {device.get(), it};
  }
  return {nullptr, {}};
}

Device::Device(int number) : ordinal(number) {
  DeviceFacts facts = connection.call(HelloRequest{.process = static_cast<uint64_t>(getpid()),
                                                   .ordinal = static_cast<uint64_t>(number),
                                                   .program = program_name()});
  name = std::move(facts.name);
  attributes = std::move(facts.attributes);
  std::memcpy(uuid.data(), facts.uuid.data(), std::min(uuid.size(), facts.uuid.size()));
  memory = facts.memory;
  functional = facts.functional;
  synchronous = facts.synchronous;
  checked = facts.checked;
  joined = facts.joined;
}

Context::Context(Device& of, unsigned given)
    : Handle(tag), device(of), flags(given), legacy(*this, 0, CU_STREAM_DEFAULT, 0) {
  if (of.arena_bytes > 0) return;
  const Arena arena = of.connection.call(OpenRequest{});
  of.arena = arena.address;
  of.arena_bytes = arena.size;
  try {
    map_memory(of);
  } catch (...) {
    of.arena_bytes = 0;
    throw;
  }
}

void Device::submitted() {
  Process& process = Process::get();
  pending = true;
  ++submissions;
  idle = false;
  ++process.activity;
  if (process.shares_memory || !host_calls.empty()) run_ahead_when_idle();
}

int Device::attribute(CUdevice_attribute which) const {
  const auto found = attributes.find(which);
  return found == attributes.end() ? 0 : found->second;
}

std::map<uint64_t, Allocation>::iterator Device::find(uint64_t address) {
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin()) return allocations.end();
  --next;
  return address - next->first < next->second.size ? next : allocations.end();
}

bool Device::on_device(uint64_t address) {
  const auto found = find(address);
  return found != allocations.end() && found->second.origin != Origin::Pinned &&
         found->second.origin != Origin::Registered;
}

uint64_t Device::allocate(uint64_t size, Origin origin, unsigned flags, const char* label) {
  require(size > 0);
  const bool counts = origin == Origin::Device || origin == Origin::Managed;
  require(!counts || size <= memory - used, CUDA_ERROR_OUT_OF_MEMORY);
  const bool everywhere =  // whatever device a kernel runs on, it may access the host's memory
      origin == Origin::Managed || origin == Origin::Pinned || origin == Origin::Registered;
  const uint64_t address =
      connection.call(AllocateRequest{.size = size, .label = label, .everywhere = everywhere});
  require(address != 0, CUDA_ERROR_OUT_OF_MEMORY);
  if (everywhere) Process::get().shares_memory = true;
  allocations[address] = Allocation{size, origin, flags, 0, 0, Process::get().next_id++, nullptr};
  if (counts) used += size;
  return address;
}

void Device::forget(uint64_t address) {
  const auto found = allocations.find(address);
  require(found != allocations.end() && found->second.origin != Origin::Variable &&
          found->second.origin != Origin::Mapped);
  if (found->second.origin == Origin::Device || found->second.origin == Origin::Managed)
    used -= found->second.size;
  const auto [size, pool] = std::pair(found->second.size, found->second.pool);
  allocations.erase(found);
  if (pool) pool_freed(pool, size);
}

void Device::free(uint64_t address) {
  if (free_graph_memory(address)) return;
  forget(address);
  connection.send(FreeRequest{.address = address});
}

Context& current_context() {
  const auto& stack = Thread::get().stack;
  require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
  Context* const context = stack.back().get();
  require(context != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  require(context->device.fault == CUDA_SUCCESS, context->device.fault);
  return *context;
}

Stream& stream_of(CUstream handle) {
  Context& context = current_context();
  if (handle == nullptr && Thread::get().own_default) handle = CU_STREAM_PER_THREAD;
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return context.legacy;
  if (handle != CU_STREAM_PER_THREAD) return object_of<Stream>(handle);
  Ref<Stream>& own = Thread::get().default_streams[context.serial()];
  if (!own.get()) {
    own = all<Stream>().make(context, Process::get().next_id++, CU_STREAM_DEFAULT, 0);
    context.device.connection.send(StreamRequest{.stream = own->id, .blocking = true});
  }
  return *own;
}

}  // namespace simt::driver
