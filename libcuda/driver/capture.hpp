#pragma once
#include <set>

#include "process.hpp"

// Capture of streams into graphs.

namespace simt::driver {

struct Graph;

/// A sequence of work added to a graph instead of being executed.
struct Capture {
  Graph* graph = nullptr;
  bool owns = true;  ///< whether it created the graph
  Stream* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const Thread* thread = nullptr;  ///< the one that began it
  uint64_t id = 0;
  bool invalid = false, ended = false;
  /// By number, for each stream that takes or took part. At the end, only the origin may have work that no
  /// other work follows.
  std::map<uint64_t, Frontier> frontiers;
  std::vector<Stream*> streams;
};

/// Throws Failure for the legacy default stream while a blocking stream of its context is captured.
void require_no_implicit_capture(const Stream& stream);
/// Throw Failure for streams and events that cannot be waited for or queried because they are being captured.
void require_not_captured(const Stream& stream);
void require_not_captured(const Event& event);
void require_not_captured(const Context& context);
/// Called before a stream is destroyed.
void leave_capture(Stream& stream);
/// Makes an allocation node. Returns the address.
uint64_t capture_allocation(Stream& stream, uint64_t bytes);

}  // namespace simt::driver
