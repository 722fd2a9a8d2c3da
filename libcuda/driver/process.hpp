#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "connection.hpp"
#include "objects.hpp"

// What a process has once: devices, their contexts and memory; and what each thread has.

namespace simt::driver {

/// Where allocated memory comes from, as far as the program can tell.
enum class Origin : uint8_t { Device, Pinned, Managed, Registered, Variable, Mapped };

struct Allocation {
  uint64_t size = 0;
  Origin origin = Origin::Device;
  unsigned flags = 0;
  uint64_t host = 0;  ///< of registered memory: where the program has it
  uint64_t base = 0;  ///< of registered memory: what simt has allocated for it
  uint64_t id = 0;    ///< CU_POINTER_ATTRIBUTE_BUFFER_ID
  CUmemoryPool pool = nullptr;
};

/// One simulated GPU: its facts, its memory as this program sees it, and the way to it.
struct Device {
  explicit Device(int number);

  int ordinal;
  Connection connection;
  std::string name;
  std::map<int, int> attributes;  ///< CUdevice_attribute
  std::array<char, 16> uuid{};
  uint64_t memory = 0;  ///< bytes that the program can see
  bool functional = false;
  uint64_t arena = 0, arena_bytes = 0;  ///< where its memory is mapped: at the device's addresses
  std::map<uint64_t, Allocation> allocations;
  uint64_t used = 0;              ///< bytes of device memory
  bool pending = false;           ///< work was sent since the last synchronisation
  CUresult fault = CUDA_SUCCESS;  ///< sticky: a launch has failed
  std::unique_ptr<Context> primary;
  unsigned primary_flags = 0;
  int primary_uses = 0;
  std::map<uint64_t, Work> host_calls;  ///< that simt will ask for, by number

  int attribute(CUdevice_attribute which) const;
  /// Whether the address is in device or managed memory, not in the host's.
  bool on_device(uint64_t address);
  bool holds(uint64_t address) const { return address - arena < arena_bytes; }
  /// The allocation that holds the address; end() if there is none.
  std::map<uint64_t, Allocation>::iterator find(uint64_t address);
  uint64_t allocate(uint64_t size, Origin origin, unsigned flags, const char* label);
  void free(uint64_t address);
  /// As `free`, for memory that simt frees later.
  void forget(uint64_t address);
};

/// All state of the library. Its lock is held by every API function that uses it.
struct Process {
  std::recursive_mutex lock;
  bool initialised = false;
  std::vector<std::unique_ptr<Device>> devices;
  Pool<Context> contexts;
  Pool<Module> modules;
  Pool<Function> functions;
  Pool<Stream> streams;
  Pool<Event> events;
  uint64_t next_id = 1;  ///< of streams, events, host calls, allocations

  static Process& get();
  /// Throws Failure for one that does not exist.
  Device& device(CUdevice ordinal);
  /// The device whose memory holds the address; nullptr for memory of the program.
  Device* device_of(uint64_t address);
};

/// What the current thread has: its stack of contexts, and its default stream if that is its own.
struct Thread {
  std::vector<Context*> stack;
  std::map<Context*, Stream*> default_streams;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool own_default = false;  ///< stream 0 is its own default stream in the function that it calls now
  static Thread& get();
};

/// The current context of this thread. Throws Failure: none, or one that a fault has broken.
Context& current_context();
/// The object of a handle. Throws Failure unless it is one.
template <class T, class H>
T& object_of(H handle, CUresult otherwise = CUDA_ERROR_INVALID_HANDLE) {
  auto* object = reinterpret_cast<T*>(handle);
  require(object != nullptr && object->is(T::tag), otherwise);
  return *object;
}
template <class H, class T>
H handle_of(T* object) {
  return reinterpret_cast<H>(object);
}
/// The stream of a handle: a stream, or one of the default streams (0, CU_STREAM_LEGACY,
/// CU_STREAM_PER_THREAD).
Stream& stream_of(CUstream handle);

/// Runs the body of an API function: with the process's lock, and with failures as return values.
template <class Body>
CUresult guarded(const Body& body) noexcept {
  Process& process = Process::get();
  const std::lock_guard guard(process.lock);
  try {
    if (!process.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    body();
    return CUDA_SUCCESS;
  } catch (const Failure& failure) {
    return failure.code;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    say(error.what());
    return CUDA_ERROR_UNKNOWN;
  }
}

/// Puts work into a stream; into its graph while the stream is captured.
void submit(Stream& stream, Work work);
/// The memory of a device has gone, and so has what lay in it.
void forget_mappings(Device& device);
void forget_pools(Device& device);
void forget_textures(Device& device);
/// Tells a pool that one of its allocations has gone.
void pool_freed(CUmemoryPool pool, uint64_t size);
/// Gives memory of an allocation node back to its graph. Returns whether the address is of such memory.
bool free_graph_memory(uint64_t address);
/// Sends work to simt, or does it at once where nothing is pending.
void execute(Stream& stream, Work work);
/// Copies at once. What comes before it in the stream must have been done.
void copy_now(Stream& stream, const Copy& copy);
/// Waits until everything has been done that a device or a stream was given, or that an event stands for.
/// Throws Failure for a fault of a kernel.
void synchronize(Device& device);
void synchronize(Stream& stream);
void synchronize(Event& event);
/// Whether a function may not be called now because a stream is captured that forbids it. Throws Failure.
void require_no_capture();

}  // namespace simt::driver
