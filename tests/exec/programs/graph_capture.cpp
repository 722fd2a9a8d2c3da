#include <thread>

#include "driver.hpp"

// Capture of streams: what gets into the graph, and what is refused.

namespace {

constexpr unsigned n = 64;
CUstream main_stream, side, blocking;
CUevent fork_event, join_event;

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status;
  OK(cuStreamIsCapturing(stream, &status));
  return status;
}

void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  OK(cuStreamBeginCapture(main_stream, mode));
}

/// Ends a capture that failed.
#define INVALIDATED()                                                                  \
  do {                                                                                 \
    CHECK(status_of(main_stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);             \
    CUgraph none;                                                                      \
    FAILS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(main_stream, &none));         \
    CHECK(none == nullptr && status_of(main_stream) == CU_STREAM_CAPTURE_STATUS_NONE); \
  } while (0)

void diamond(const Gpu& gpu) {
  const CUdeviceptr a = allocate(n), b = allocate(n);
  unsigned host[n] = {};
  begin();
  CHECK(status_of(main_stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE &&
        status_of(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cuMemsetD32Async(a, 1, n, main_stream));
  OK(cuEventRecord(fork_event, main_stream));
  OK(cuStreamWaitEvent(side, fork_event, 0));
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  Affine left(a, n, 3, 2), right(b, n, 2, 1);
  OK(left.launch(gpu, main_stream));
  OK(right.launch(gpu, side));
  OK(cuEventRecord(join_event, side));
  OK(cuStreamWaitEvent(main_stream, join_event, 0));
  OK(cuMemcpyDtoHAsync(host, a, n * 4, main_stream));
  CUstreamCaptureStatus status;
  cuuint64_t id = 0;
  CUgraph graph, ended;
  const CUgraphNode* dependencies;
  size_t count = 0;
  OK(cuStreamGetCaptureInfo(main_stream, &status, &id, &graph, &dependencies, &count));
  CHECK(id != 0 && count == 1);
  FAILS(INVALID_VALUE, cuGraphDestroy(graph));
  OK(cuStreamEndCapture(main_stream, &ended));
  CHECK(ended == graph && status_of(side) == CU_STREAM_CAPTURE_STATUS_NONE && host[0] == 0);
  CUgraphNode nodes[4];
  count = 4;
  OK(cuGraphGetNodes(graph, nodes, &count));
  CHECK(count == 4);
  const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_KERNEL,
                                   CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY};
  const size_t before[] = {0, 1, 1, 2};
  for (size_t k = 0; k < 4; ++k) {
    CUgraphNodeType type;
    OK(cuGraphNodeGetType(nodes[k], &type));
    OK(cuGraphNodeGetDependencies(nodes[k], nullptr, &count));
    CHECK(type == types[k] && count == before[k]);
  }
  CUDA_MEMCPY3D copy;
  OK(cuGraphMemcpyNodeGetParams(nodes[3], &copy));
  CHECK(copy.srcMemoryType == CU_MEMORYTYPE_DEVICE && copy.srcDevice == a &&
        copy.dstMemoryType == CU_MEMORYTYPE_HOST && copy.dstHost == host && copy.WidthInBytes == n * 4);
  FAILS(CAPTURED_EVENT, cuEventQuery(fork_event));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  for (int k = 0; k < 2; ++k) OK(cuGraphLaunch(exec, main_stream));
  OK(cuStreamSynchronize(main_stream));
  CHECK(host[0] == 5 && host[n - 1] == 5 && word(b) == 3);
  // The work of one capture becomes that of another graph's child.
  begin();
  OK(cuGraphLaunch(exec, main_stream));
  OK(cuStreamEndCapture(main_stream, &ended));
  CUgraphExec nested;
  OK(cuGraphInstantiate(&nested, ended, 0));
  OK(cuGraphLaunch(nested, main_stream));
  OK(cuStreamSynchronize(main_stream));
  CHECK(word(b) == 7);
  OK(cuEventRecord(fork_event, main_stream));
  OK(cuEventQuery(fork_event));
  std::printf("diamond\n");
}

void refusals(const Gpu& gpu) {
  const CUdeviceptr a = allocate(n);
  Affine affine(a, n, 1, 1);
  CUgraph graph;
  FAILS(STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
  FAILS(ILLEGAL_STATE, cuStreamEndCapture(main_stream, &graph));
  begin();
  FAILS(ILLEGAL_STATE, cuStreamBeginCapture(main_stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  FAILS(STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(main_stream));
  FAILS(STREAM_CAPTURE_INVALIDATED, affine.launch(gpu, main_stream));
  INVALIDATED();

  // Work of another stream that nothing joins.
  begin();
  OK(cuEventRecord(fork_event, main_stream));
  OK(cuStreamWaitEvent(side, fork_event, 0));
  FAILS(ILLEGAL_STATE, cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(affine.launch(gpu, side));
  FAILS(STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(main_stream, &graph));
  CHECK(graph == nullptr && status_of(side) == CU_STREAM_CAPTURE_STATUS_NONE);

  // The stream in which it began has to end it.
  begin();
  OK(cuEventRecord(fork_event, main_stream));
  OK(cuStreamWaitEvent(side, fork_event, 0));
  FAILS(STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(side, &graph));
  INVALIDATED();

  // Two captures cannot become one.
  begin();
  OK(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(affine.launch(gpu, side));
  OK(cuEventRecord(fork_event, side));
  FAILS(STREAM_CAPTURE_MERGE, cuStreamWaitEvent(main_stream, fork_event, 0));
  FAILS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(side, &graph));
  INVALIDATED();

  // Nor can captured work wait for work that is not captured.
  OK(cuEventRecord(fork_event, side));
  begin();
  FAILS(STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(main_stream, fork_event, 0));
  INVALIDATED();

  begin();
  OK(cuEventRecord(fork_event, main_stream));
  FAILS(CAPTURED_EVENT, cuEventSynchronize(fork_event));
  INVALIDATED();

  // The legacy stream would have to wait for a blocking stream that is captured.
  OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureStatus status;
  FAILS(STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(nullptr, &status));
  CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  FAILS(STREAM_CAPTURE_IMPLICIT, affine.launch(gpu, nullptr));
  FAILS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));
  OK(cuStreamBeginCapture(main_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(affine.launch(gpu, nullptr));
  OK(cuStreamEndCapture(main_stream, &graph));
  CHECK(word(a) == 1);
  std::printf("refusals\n");
}

void modes() {
  CUdeviceptr address;
  CUgraph graph;
  begin();
  FAILS(STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&address, 4));
  INVALIDATED();
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cuMemAlloc(&address, 4));
  OK(cuStreamEndCapture(main_stream, &graph));
  begin();
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuMemFree(address));
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  OK(cuStreamEndCapture(main_stream, &graph));

  CUcontext context;
  OK(cuCtxGetCurrent(&context));
  for (const auto own : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    begin(own);
    CUresult allocated, ended;
    std::thread([&] {
      cuCtxSetCurrent(context);
      CUdeviceptr mine;
      allocated = cuMemAlloc(&mine, 4);
      ended = cuStreamEndCapture(main_stream, &graph);
    }).join();
    FAILS(STREAM_CAPTURE_WRONG_THREAD, ended);
    if (own == CU_STREAM_CAPTURE_MODE_GLOBAL) {
      FAILS(STREAM_CAPTURE_UNSUPPORTED, allocated);
      INVALIDATED();
    } else {
      OK(allocated);
      OK(cuStreamEndCapture(main_stream, &graph));
    }
  }
  std::printf("modes\n");
}

/// Capture into a graph that is there, dependencies set by hand, external events, and memory.
void more(const Gpu& gpu) {
  const CUdeviceptr a = allocate(n);
  CUgraph graph, same;
  CUgraphNode fill;
  OK(cuGraphCreate(&graph, 0));
  const CUDA_MEMSET_NODE_PARAMS filled{a, 0, 2, 4, n, 1};
  OK(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &filled, gpu.context));
  OK(cuStreamBeginCaptureToGraph(main_stream, graph, &fill, nullptr, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUgraphExec exec;
  FAILS(INVALID_VALUE, cuGraphInstantiate(&exec, graph, 0));
  Affine affine(a, n, 5, 0);
  OK(affine.launch(gpu, main_stream));
  CUdeviceptr scratch;
  OK(cuMemAllocAsync(&scratch, n * 4, main_stream));
  OK(cuMemcpyDtoDAsync(scratch, a, n * 4, main_stream));
  OK(cuMemcpyDtoDAsync(a + 4, scratch, 4, main_stream));
  OK(cuMemFreeAsync(scratch, main_stream));
  OK(cuEventRecordWithFlags(join_event, main_stream, CU_EVENT_RECORD_EXTERNAL));
  OK(cuStreamEndCapture(main_stream, &same));
  CHECK(same == graph);
  OK(cuGraphInstantiate(&exec, graph, 0));
  for (int k = 0; k < 2; ++k) OK(cuGraphLaunch(exec, main_stream));
  OK(cuEventSynchronize(join_event));
  CHECK(word(a) == 10);
  FAILS(INVALID_VALUE, cuEventRecordWithFlags(join_event, main_stream, CU_EVENT_RECORD_EXTERNAL));

  // Work that is dropped from the dependencies needs no join.
  begin();
  FAILS(ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(side, nullptr, 0, 0));
  OK(affine.launch(gpu, main_stream));
  OK(cuStreamUpdateCaptureDependencies(main_stream, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  OK(affine.launch(gpu, main_stream));
  OK(cuStreamEndCapture(main_stream, &same));
  size_t roots = 0;
  OK(cuGraphGetRootNodes(same, nullptr, &roots));
  CHECK(roots == 2);
  std::printf("more\n");
}

}  // namespace

int main() {
  const Gpu gpu;
  OK(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  OK(cuEventCreate(&fork_event, 0));
  OK(cuEventCreate(&join_event, 0));
  diamond(gpu);
  refusals(gpu);
  modes();
  more(gpu);
}
