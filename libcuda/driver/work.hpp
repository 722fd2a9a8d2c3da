#pragma once
#include <array>
#include <cstdint>
#include <variant>

#include "handle.hpp"
#include "wire.hpp"

// Work that can be submitted to a stream or be a node of a graph.

namespace simt::driver {

struct Function;
struct Event;

/// A range of memory whose accesses by a launch have properties of their own in the L2
/// (CUaccessPolicyWindow).
struct AccessWindow {
  uint64_t address = 0, bytes = 0;  ///< 0 bytes: none
  double hit_ratio = 0;
  uint32_t hit = 0, miss = 0;  ///< CUaccessProperty
};

struct Launch {
  Ref<Function> function;
  CUfunction handle = nullptr;  ///< the function's handle used by the program
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::array<uint32_t, 3> cluster{};  ///< 0: as fixed at compile time
  uint32_t shared_bytes = 0;          ///< dynamic
  bool cooperative = false;
  AccessWindow window;
  Bytes parameters;
};

/// Rows of bytes: `height` of them in each of `depth` slices. Device, managed and pinned memory are in the
/// program's address space, so an address identifies the memory.
struct Copy {
  struct Side {
    uint64_t address = 0, pitch = 0, slice = 0;  ///< bytes between rows and between slices
  };
  Side to, from;
  uint64_t width = 0, height = 1, depth = 1;
  uint64_t bytes() const { return width * height * depth; }
};

struct Fill {
  uint64_t address = 0, pitch = 0;
  uint32_t value = 0, element = 1;  ///< bytes of an element: 1, 2 or 4
  uint64_t width = 0, height = 1;   ///< elements in a row, rows
};

struct HostCall {
  CUhostFn function = nullptr;
  void* argument = nullptr;
};

/// Called as cuStreamAddCallback requires.
struct StreamCallback {
  CUstreamCallback function = nullptr;
  CUstream stream = nullptr;
  void* argument = nullptr;
};

struct Record {
  Ref<Event> event;
  bool external = false;  ///< captured as a separate node
};

struct Wait {
  Ref<Event> event;
  bool external = false;
};

struct Nothing {};

struct Release {
  uint64_t address = 0;  ///< memory of cuMemAllocAsync
};

using Work = std::variant<Nothing, Launch, Copy, Fill, HostCall, StreamCallback, Record, Wait, Release>;

}  // namespace simt::driver
