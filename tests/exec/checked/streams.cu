// Work of several streams, as programs with a main() order it. `streams CASE` is right, `streams CASE fault` leaves
// out one order.
#include <cstdio>
#include <cstring>

static bool fault;

#define CHECK(call)                                                             \
  do {                                                                          \
    const cudaError_t error = call;                                             \
    if (error != cudaSuccess) {                                                 \
      printf("%s: %s\n", #call, cudaGetErrorString(error));                     \
      return 1;                                                                 \
    }                                                                           \
  } while (0)

__global__ void fill(int *to, int value) {
  to[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void add(const int *a, const int *b, int *sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] = a[i] + b[i];
}

__global__ void count(int *bins) {
  atomicAdd(&bins[threadIdx.x % 16], 1);
}

constexpr int blocks = 2, threads = 256, n = blocks * threads, bytes = n * sizeof(int);

// A kernel of one stream reads what one of the other has written.
int event(cudaStream_t a, cudaStream_t b) {
  int *x, *y, got[n];
  cudaEvent_t written;
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&y, bytes));
  CHECK(cudaEventCreate(&written));
  fill<<<blocks, threads, 0, a>>>(x, 3);
  CHECK(cudaEventRecord(written, a));
  if (!fault) CHECK(cudaStreamWaitEvent(b, written, 0));
  add<<<blocks, threads, 0, b>>>(x, x, y);
  CHECK(cudaMemcpyAsync(got, y, bytes, cudaMemcpyDeviceToHost, b));
  CHECK(cudaStreamSynchronize(b));
  CHECK(cudaEventDestroy(written));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  return fault || got[n - 1] == 6 ? 0 : 1;
}

// Two buffers, each copied to the host while the other one is filled.
int buffers(cudaStream_t work, cudaStream_t copies) {
  int *buffer[2], *got;
  cudaEvent_t full[2], empty[2];
  CHECK(cudaMallocHost(&got, 6 * bytes));
  for (int k = 0; k < 2; ++k) {
    CHECK(cudaMalloc(&buffer[k], bytes));
    CHECK(cudaEventCreateWithFlags(&full[k], cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&empty[k], cudaEventDisableTiming));
  }
  for (int step = 0; step < 6; ++step) {
    const int k = step % 2;
    if (!fault) CHECK(cudaStreamWaitEvent(work, empty[k], 0));
    fill<<<blocks, threads, 0, work>>>(buffer[k], step);
    CHECK(cudaEventRecord(full[k], work));
    CHECK(cudaStreamWaitEvent(copies, full[k], 0));
    CHECK(cudaMemcpyAsync(got + step * n, buffer[k], bytes, cudaMemcpyDeviceToHost, copies));
    CHECK(cudaEventRecord(empty[k], copies));
  }
  CHECK(cudaStreamSynchronize(copies));
  const bool right = got[0] == 0 && got[6 * n - 1] == 5;
  for (int k = 0; k < 2; ++k) {
    CHECK(cudaFree(buffer[k]));
    CHECK(cudaEventDestroy(full[k]));
    CHECK(cudaEventDestroy(empty[k]));
  }
  CHECK(cudaFreeHost(got));
  return fault || right ? 0 : 1;
}

// The default stream clears what a stream counts in: a stream that does not wait for it is not ordered after it.
int legacy(cudaStream_t, cudaStream_t) {
  int *bins, got;
  cudaStream_t stream;
  CHECK(cudaMalloc(&bins, 16 * sizeof(int)));
  CHECK(cudaStreamCreateWithFlags(&stream, fault ? cudaStreamNonBlocking : cudaStreamDefault));
  CHECK(cudaMemsetAsync(bins, 0, 16 * sizeof(int)));
  count<<<blocks, threads, 0, stream>>>(bins);
  CHECK(cudaMemcpyAsync(&got, bins, sizeof got, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(bins));
  return fault || got == n / 16 ? 0 : 1;
}

// Memory from a pool, which one stream frees while the other one may still use it.
int pool(cudaStream_t a, cudaStream_t b) {
  int *x;
  cudaEvent_t made, used;
  CHECK(cudaEventCreate(&made));
  CHECK(cudaEventCreate(&used));
  CHECK(cudaMallocAsync(&x, bytes, a));
  CHECK(cudaEventRecord(made, a));
  CHECK(cudaStreamWaitEvent(b, made, 0));
  fill<<<blocks, threads, 0, b>>>(x, 1);
  CHECK(cudaEventRecord(used, b));
  if (!fault) CHECK(cudaStreamWaitEvent(a, used, 0));
  fill<<<blocks, threads, 0, a>>>(x, 2);
  CHECK(cudaFreeAsync(x, a));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaEventDestroy(made));
  CHECK(cudaEventDestroy(used));
  return 0;
}

// A graph from captured streams, which fork and join.
int graph(cudaStream_t a, cudaStream_t b) {
  int *x, *y, *sum, got[n];
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  for (int **each : {&x, &y, &sum}) CHECK(cudaMalloc(each, bytes));
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, a));
  CHECK(cudaStreamWaitEvent(b, fork, 0));
  fill<<<blocks, threads, 0, a>>>(x, 1);
  fill<<<blocks, threads, 0, b>>>(y, 2);
  if (fault) add<<<blocks, threads, 0, a>>>(x, y, sum);
  CHECK(cudaEventRecord(join, b));
  CHECK(cudaStreamWaitEvent(a, join, 0));
  if (!fault) add<<<blocks, threads, 0, a>>>(x, y, sum);
  CHECK(cudaStreamEndCapture(a, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  for (int k = 0; k < 2; ++k) CHECK(cudaGraphLaunch(ready, a));
  CHECK(cudaMemcpyAsync(got, sum, bytes, cudaMemcpyDeviceToHost, a));
  CHECK(cudaStreamSynchronize(a));
  CHECK(cudaGraphExecDestroy(ready));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  for (int *each : {x, y, sum}) CHECK(cudaFree(each));
  return fault || got[0] == 3 ? 0 : 1;
}

int main(int count, char **arguments) {
  const struct {
    const char *name;
    int (*run)(cudaStream_t, cudaStream_t);
  } cases[] = {{"event", event}, {"buffers", buffers}, {"legacy", legacy}, {"pool", pool}, {"graph", graph}};
  fault = count > 2;
  cudaStream_t a, b;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  for (const auto &each : cases)
    if (count > 1 && strcmp(arguments[1], each.name) == 0)
      if (const int status = each.run(a, b)) return status;
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  return 0;
}
