#include "capture.hpp"

#include <algorithm>
#include <set>

#include "graph.hpp"

// Capture of streams into graphs.

namespace simt::driver {
namespace {

auto& captures = *new std::vector<std::shared_ptr<Capture>>;  // active ones

[[noreturn]] void invalidate(Capture& capture, CUresult code) {
  capture.invalid = true;
  fail(code);
}

/// Captures in blocking streams of the context, for which the legacy default stream would have to wait.
std::vector<Capture*> implied_by_legacy(const Stream& stream) {
  std::vector<Capture*> implied;
  if (stream.id != 0) return implied;
  for (const auto& capture : captures)
    if (std::ranges::any_of(capture->streams, [&](const Stream* s) {
          return s->context == stream.context && s->flags != CU_STREAM_NON_BLOCKING;
        }))
      implied.push_back(capture.get());
  return implied;
}

void join(Frontier& frontier, const Frontier& other) {
  for (size_t k = 0; k < other.nodes.size(); ++k) {
    if (std::ranges::find(frontier.nodes, other.nodes[k]) != frontier.nodes.end()) continue;
    frontier.nodes.push_back(other.nodes[k]);
    frontier.edges.push_back(other.edges[k]);
  }
}

void capture_wait(Stream& stream, const Event& event) {
  Capture& capture = *stream.capture;
  if (!event.capture) {
    if (event.id == 0) return;  // never recorded: nothing to wait for
    fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  require(!event.capture->ended, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (event.capture != stream.capture) invalidate(*event.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  join(capture.frontiers[stream.id], event.captured_after);
}

/// A stream that is not captured joins the capture in which an event was recorded.
void fork(Stream& stream, const Event& event) {
  Capture& capture = *event.capture;
  require(!capture.ended, CUDA_ERROR_CAPTURED_EVENT);
  require(!capture.invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (stream.id == 0) invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  stream.capture = event.capture;
  capture.streams.push_back(&stream);
  join(capture.frontiers[stream.id], event.captured_after);
}

/// Work that becomes a node's task unchanged.
template <class T>
concept PlainTask = std::same_as<T, Fill> || std::same_as<T, HostCall>;

/// Adds stream-ordered work of one kind to the graph.
struct Taker {
  Stream& stream;

  void operator()(const Nothing&) const {}
  void operator()(const PlainTask auto& work) const { capture_task(stream, work); }
  void operator()(const Launch& launch) const {
    KernelTask task;
    task.launch = launch;
    CUlaunchAttributeValue priority{};
    priority.priority = stream.priority;
    if (stream.priority != 0) task.attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY] = priority;
    constexpr int window = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    if (const auto found = stream.attributes.find(window); found != stream.attributes.end())
      task.attributes[window] = found->second;
    capture_task(stream, std::move(task));
  }
  void operator()(const Copy& copy) const { capture_task(stream, CopyTask{copy, parameters_of(copy)}); }
  void operator()(const StreamCallback&) const { fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); }
  void operator()(const Record& record) const {
    if (record.external) return capture_task(stream, Record{record.event});
    record.event->capture = stream.capture;
    record.event->captured_after = stream.capture->frontiers[stream.id];
  }
  void operator()(const Wait& wait) const {
    if (wait.external)
      capture_task(stream, Wait{wait.event});
    else
      capture_wait(stream, *wait.event);
  }
  void operator()(const Release& release) const {
    capture_task(stream, task_of_free(*stream.capture->graph, release.address));
  }
};

void end(const std::shared_ptr<Capture>& capture) {
  for (Stream* stream : capture->streams) stream->capture.reset();
  capture->ended = true;
  --capture->graph->captures;
  std::erase(captures, capture);
}

/// Ends a capture that has failed.
void abandon(const std::shared_ptr<Capture>& capture) {
  end(capture);
  if (capture->owns) destroy_graph(*capture->graph);
}

/// Whether the origin's next work would follow all work of the other streams.
bool joined(const Capture& capture) {
  std::set<const Node*> before;
  std::vector<const Node*> open;
  const auto reach = [&](const Node* node) {
    if (before.insert(node).second) open.push_back(node);
  };
  for (const CUgraphNode node : capture.frontiers.at(capture.origin->id).nodes) reach(&node_of(node));
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Dependency& d : node->dependencies) reach(d.node);
  }
  return std::ranges::all_of(capture.frontiers, [&](const auto& entry) {
    return std::ranges::all_of(entry.second.nodes,
                               [&](CUgraphNode node) { return before.contains(&node_of(node)); });
  });
}

}  // namespace

void submit(Stream& stream, Work work) {
  if (stream.capture) {
    try {
      require(!stream.capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
      std::visit(Taker{stream}, std::move(work));
    } catch (const Failure& failure) {
      invalidate(*stream.capture, failure.code);
    }
    return;
  }
  require_no_implicit_capture(stream);
  if (const auto* wait = std::get_if<Wait>(&work)) {
    require(!wait->external);
    if (wait->event->capture) return fork(stream, *wait->event);
  } else if (const auto* record = std::get_if<Record>(&work)) {
    require(!record->external);
  }
  execute(stream, std::move(work));
}

void capture_task(Stream& stream, Task task) {
  Capture& capture = *stream.capture;
  require(!capture.invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  Frontier& frontier = capture.frontiers[stream.id];
  const auto dependencies =
      dependencies_of(*capture.graph, frontier.nodes.data(), frontier.edges.data(), frontier.nodes.size());
  Node& node = add_node(*capture.graph, dependencies, std::move(task));
  frontier.nodes = {handle_of<CUgraphNode>(&node)};
  frontier.edges = {CUgraphEdgeData{}};
}

uint64_t capture_allocation(Stream& stream, uint64_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {stream.context->device.ordinal}};
  parameters.bytesize = bytes;
  AllocationTask task = task_of_allocation(*stream.capture->graph, parameters);
  const uint64_t address = task.memory->address;
  capture_task(stream, std::move(task));
  return address;
}

void require_no_capture() {
  if (captures.empty()) return;
  const Thread* const self = &Thread::get();
  if (self->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  bool forbidden = false;
  for (const auto& capture : captures) {
    const bool own = capture->thread == self && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool others = self->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->thread != self &&
                        capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !others) continue;
    forbidden = capture->invalid = true;
  }
  require(!forbidden, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void require_no_implicit_capture(const Stream& stream) {
  if (captures.empty()) return;
  const auto implied = implied_by_legacy(stream);
  for (Capture* capture : implied) capture->invalid = true;
  require(implied.empty(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void require_not_captured(const Stream& stream) {
  if (stream.capture) invalidate(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void require_not_captured(const Event& event) {
  if (event.capture) invalidate(*event.capture, CUDA_ERROR_CAPTURED_EVENT);
}

void require_not_captured(const Context& context) {
  for (const auto& capture : captures)
    for (const Stream* stream : capture->streams)
      if (stream->context == &context) invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void leave_capture(Stream& stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture) return;
  if (capture->origin == &stream) return abandon(capture);
  std::erase(capture->streams, &stream);
  stream.capture.reset();
}

}  // namespace simt::driver

using namespace simt::driver;

namespace {

void begin(CUstream handle, CUstreamCaptureMode mode, Graph& graph, bool owns, Frontier frontier) {
  Stream& stream = stream_of(handle);
  auto capture = std::make_shared<Capture>();
  capture->graph = &graph;
  capture->owns = owns;
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = &Thread::get();
  capture->id = Process::get().next_id++;
  capture->frontiers[stream.id] = std::move(frontier);
  capture->streams = {&stream};
  stream.capture = capture;
  ++graph.captures;
  captures.push_back(std::move(capture));
}

/// Throws Failure if the stream cannot begin a capture.
void check_begin(CUstream handle, CUstreamCaptureMode mode) {
  const Stream& stream = stream_of(handle);
  require(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
  require(stream.id != 0, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  require(!stream.capture, CUDA_ERROR_ILLEGAL_STATE);
}

CUstreamCaptureStatus status_of(const Stream& stream) {
  require(implied_by_legacy(stream).empty(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (!stream.capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

Frontier frontier_of(const std::vector<Dependency>& dependencies) {
  Frontier frontier;
  for (const Dependency& d : dependencies) {
    frontier.nodes.push_back(handle_of<CUgraphNode>(d.node));
    frontier.edges.push_back(d.edge);
  }
  return frontier;
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return guarded([&] {
    check_begin(stream, mode);
    begin(stream, mode, make_graph(), true, {});
  });
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  return guarded([&] {
    check_begin(stream, mode);
    Graph& g = graph_of(graph);
    begin(stream, mode, g, false, frontier_of(dependencies_of(g, dependencies, edges, count)));
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return guarded([&] {
    require(mode != nullptr && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL &&
            *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    std::swap(*mode, Thread::get().capture_mode);
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return guarded([&] {
    require(graph != nullptr);
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream_of(stream).capture;
    require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == &Thread::get(),
            CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    if (capture->origin != &stream_of(stream)) invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    const bool whole = joined(*capture);
    if (capture->invalid || !whole) {
      abandon(capture);
      fail(capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    }
    end(capture);
    *graph = handle_of<CUgraph>(capture->graph);
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return guarded([&] {
    require(status != nullptr);
    *status = status_of(stream_of(stream));
  });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  return guarded([&] {
    require(status != nullptr && (edges == nullptr || dependencies != nullptr));
    const Stream& stream = stream_of(handle);
    *status = status_of(stream);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return;
    const Frontier& frontier = stream.capture->frontiers[stream.id];
    if (dependencies && !edges)
      require(std::ranges::all_of(frontier.edges,
                                  [](const CUgraphEdgeData& e) { return e.type == 0 && e.from_port == 0; }),
              CUDA_ERROR_LOSSY_QUERY);
    if (id) *id = stream.capture->id;
    if (graph) *graph = handle_of<CUgraph>(stream.capture->graph);
    if (dependencies) *dependencies = frontier.nodes.data();
    if (edges) *edges = frontier.edges.data();
    if (count) *count = frontier.nodes.size();
  });
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* nodes,
                                              const CUgraphEdgeData* edges, size_t count, unsigned flags) {
  return guarded([&] {
    require(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    const Stream& stream = stream_of(handle);
    require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(!stream.capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    const Frontier given = frontier_of(dependencies_of(*stream.capture->graph, nodes, edges, count));
    Frontier& frontier = stream.capture->frontiers[stream.id];
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) frontier = {};
    join(frontier, given);
  });
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, size_t count,
                                           unsigned flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, nodes, nullptr, count, flags);
}

// Earlier versions of functions.

#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
extern "C" {
__attribute__((visibility("default"))) CUresult cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

__attribute__((visibility("default"))) CUresult cuStreamGetCaptureInfo(CUstream stream,
                                                                       CUstreamCaptureStatus* status,
                                                                       cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
}
