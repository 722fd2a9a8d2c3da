#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "call_lock.hpp"
#include "connection.hpp"
#include "objects.hpp"

// Per-process state: devices, their contexts and memory; and per-thread state.

namespace simt::driver {

/// The origin of allocated memory, as visible to the program.
enum class Origin : uint8_t { Device, Pinned, Managed, Registered, Variable, Mapped };

struct Allocation {
  uint64_t size = 0;
  Origin origin = Origin::Device;
  unsigned flags = 0;
  uint64_t host = 0;  ///< for registered memory: its address in the program
  uint64_t base = 0;  ///< for registered memory: the start of simt's allocation for it
  uint64_t id = 0;    ///< CU_POINTER_ATTRIBUTE_BUFFER_ID
  CUmemoryPool pool = nullptr;
};

/// One simulated GPU: its properties, its memory as seen by this program, and the connection to it.
struct Device {
  explicit Device(int number);

  int ordinal;
  Connection connection;
  std::string name;
  std::map<int, int> attributes;  ///< CUdevice_attribute
  std::array<char, 16> uuid{};
  uint64_t memory = 0;                  ///< bytes visible to the program
  bool functional = false;              ///< simt executes work as it arrives, without timing
  bool synchronous = false;             ///< launches are answered, as with CUDA_LAUNCH_BLOCKING
  bool checked = false;                 ///< simt must see copies and fills in their order
  bool joined = false;                  ///< kernels can access memory of the process's other devices
  std::set<int> peers;                  ///< devices of which kernels may access all memory
  uint64_t arena = 0, arena_bytes = 0;  ///< where its memory is mapped: at the device addresses
  std::map<uint64_t, Allocation> allocations;
  std::set<std::string> notes;    ///< as sent by note_without_effect()
  uint64_t used = 0;              ///< bytes of device memory
  bool pending = false;           ///< whether work has been sent since the last synchronisation
  uint64_t submissions = 0;       ///< work sent so far
  bool idle = true;               ///< whether simt is known to have nothing left to run
  CUresult fault = CUDA_SUCCESS;  ///< sticky: set when a launch fails
  std::unique_ptr<Context> primary;
  unsigned primary_flags = 0;
  int primary_uses = 0;
  std::map<uint64_t, Work> host_calls;  ///< that simt will request, by number

  /// Work has been sent that simt has not answered.
  void submitted();
  int attribute(CUdevice_attribute which) const;
  /// Whether the address is in device or managed memory rather than the host's.
  bool on_device(uint64_t address);
  bool holds(uint64_t address) const { return address - arena < arena_bytes; }
  /// The allocation that contains the address; end() if there is none.
  std::map<uint64_t, Allocation>::iterator find(uint64_t address);
  uint64_t allocate(uint64_t size, Origin origin, unsigned flags, const char* label);
  void free(uint64_t address);
  /// As `free`, for memory that simt frees later.
  void forget(uint64_t address);
};

/// All state of the library. Its lock is held by every API function that accesses it.
struct Process {
  CallLock lock;
  bool initialised = false;
  bool shares_memory = false;         ///< whether there has been memory that kernels and the program access
  std::atomic<uint64_t> activity{0};  ///< counts what is submitted, and what runs because it is waited for
  std::atomic<unsigned> waiting{0};   ///< calls that wait for work
  std::vector<std::unique_ptr<Device>> devices;
  uint64_t next_id = 1;  ///< for streams, events, host calls and allocations

  static Process& get();
  /// Throws Failure if there is no such device.
  Device& device(CUdevice ordinal);
  /// The device whose memory contains the address; nullptr for the program's own memory.
  Device* device_of(uint64_t address);
  /// The allocation that contains an address, by its address on the device or, for registered memory, in the
  /// program; its device is nullptr if there is none.
  std::pair<Device*, std::map<uint64_t, Allocation>::iterator> allocation_of(uint64_t address);
};

/// State of the current thread: its stack of contexts, and its default stream if it has its own.
struct Thread {
  std::vector<Ref<Context>> stack;
  std::map<uint64_t, Ref<Stream>> default_streams;  ///< by context, by its serial number
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool own_default = false;  ///< stream 0 is the thread's own default stream in the current call
  static Thread& get();
};

/// The current context of this thread. Throws Failure if there is none, or if a fault has broken it.
Context& current_context();
/// The object of a handle. Throws Failure if the handle is invalid.
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

/// Runs the body of an API function while holding the process's lock, and converts failures to return values.
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

/// Submits work to a stream, or to its graph while the stream is captured.
void submit(Stream& stream, Work work);
/// The device's memory has been released, including everything in it.
void forget_mappings(Device& device);
void forget_pools(Device& device);
void forget_textures(Device& device);
void forget_arrays(Device& device);
void forget_graph_memory(Device& device);
/// Destroys the streams and events that executable graphs have made in a context.
void forget_lanes(Context& context);
/// Tells a pool that one of its allocations has been freed.
void pool_freed(CUmemoryPool pool, uint64_t size);
/// Returns memory of an allocation node to its graph. Returns whether the address belongs to such memory.
bool free_graph_memory(uint64_t address);
/// Sends work to simt, or performs it immediately if nothing is pending.
void execute(Stream& stream, Work work);
/// Waits for all work of the other devices whose memory a copy accesses: each device has a time of its own.
void wait_for_others(const Device& own, const Copy& copy);
/// Copies immediately. Earlier work in the stream must have completed.
void copy_now(Stream& stream, const Copy& copy);
/// Waits until all work of a device or stream, or the work an event stands for, has completed. Throws Failure
/// for a fault of a kernel.
void synchronize(Device& device);
void synchronize(Stream& stream);
void synchronize(Event& event);
/// Whether that work has completed; if not, simt runs a part of it. Throws Failure for a fault of a kernel.
bool is_done(Stream& stream);
bool is_done(Event& event);
/// Runs a part of a device's work for which no call waits. True if nothing is left.
bool advance(Device& device);
/// Throws Failure if the function must not be called now because of a captured stream.
void require_no_capture();

/// Something of which timing takes no account; the Result's warnings name it once.
void note_without_effect(Device& device, const std::string& what);

}  // namespace simt::driver
