#pragma once
#include <set>

#include "process.hpp"

// Capture of streams into graphs.

namespace simt::driver {

struct Graph;

/// A sequence of work that goes into a graph instead of to the device.
struct Capture {
  Graph* graph = nullptr;
  bool owns = true;  ///< the graph: it was not given
  Stream* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const Thread* thread = nullptr;  ///< that began it
  uint64_t id = 0;
  bool invalid = false, ended = false;
  /// Of each stream that takes part or took part, by the stream's number: only the origin may have work at
  /// the end that no other work follows.
  std::map<uint64_t, Frontier> frontiers;
  std::vector<Stream*> streams;
};

/// Throws Failure for the legacy default stream while a blocking stream of its context is captured.
void require_no_implicit_capture(const Stream& stream);
/// Throw Failure for what cannot be waited for or asked about because it is being captured.
void require_not_captured(const Stream& stream);
void require_not_captured(const Event& event);
void require_not_captured(const Context& context);
/// Before a stream is destroyed.
void leave_capture(Stream& stream);
/// Makes an allocation node. Returns the address.
uint64_t capture_allocation(Stream& stream, uint64_t bytes);

}  // namespace simt::driver
