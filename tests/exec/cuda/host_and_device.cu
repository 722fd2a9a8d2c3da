// The host and a kernel that runs talk with each other: each case by its name, or all.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "check.h"

constexpr int rounds = 20;

// Answers requests 1 to `rounds` of the host with their squares.
__global__ void answer(volatile int* request, volatile int* reply, volatile int* value) {
  for (int k = 1; k <= rounds; ++k) {
    while (*request != k) {
    }
    *value = k * k;
    __threadfence_system();
    *reply = k;
  }
}

// Adds up what the host puts into a queue, until it is told to stop: *stop is how much that was.
__global__ void consume(const volatile int* queue, const volatile int* filled, const volatile int* stop,
                        volatile int* taken, int* sums) {
  int next = 0, sum = 0;
  for (;;) {
    const int end = *filled;
    __threadfence_system();
    for (; next < end; ++next)
      if (next % gridDim.x == blockIdx.x) sum += queue[next];
    if (threadIdx.x == 0) taken[blockIdx.x] = next;
    const int last = *stop;
    if (last >= 0 && next == last) break;
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void wait_for(const volatile int* flag, int* seen) {
  int value;
  while ((value = *flag) == 0) {
  }
  if (seen) *seen = value;
}

__global__ void count_down(int* x, int n) {
  int value = *x;
  for (int k = 0; k < n; ++k) value = value * 3 + 1;
  *x = value;
}

__global__ void echo(const volatile char* from, volatile char* to, const volatile int* ready, volatile int* done,
                     int n) {
  while (*ready == 0) {
  }
  __threadfence_system();
  for (int k = 0; k < n; ++k) to[k] = from[k] + 1;
  __threadfence_system();
  *done = 1;
}

void play(int* words) {
  volatile int *request = words, *reply = words + 1, *value = words + 2;
  *request = *reply = *value = 0;
  answer<<<1, 1>>>(request, reply, value);
  CUDA(cudaGetLastError());
  for (int k = 1; k <= rounds; ++k) {
    *request = k;
    while (*reply != k) {
    }
    CHECK(*value == k * k);
  }
  CUDA(cudaDeviceSynchronize());
}

void mapped() {
  int *words, *seen_by_device;
  CUDA(cudaHostAlloc(&words, 4096, cudaHostAllocMapped));
  CUDA(cudaHostGetDevicePointer(&seen_by_device, words, 0));
  CHECK(seen_by_device == words);
  play(words);
  CUDA(cudaFreeHost(words));
}

void managed() {
  int* words;
  CUDA(cudaMallocManaged(&words, 4096));
  play(words);
  CUDA(cudaFree(words));
}

// The host sleeps between its looks.
void sleeping() {
  int* words;
  CUDA(cudaMallocHost(&words, 4096));
  std::memset(words, 0, 4096);
  answer<<<1, 1>>>(words, words + 1, words + 2);
  for (int k = 1; k <= 3; ++k) {
    *const_cast<volatile int*>(words) = k;
    while (const_cast<volatile int*>(words)[1] != k) usleep(10000);
  }
  for (int k = 4; k <= rounds; ++k) {
    *const_cast<volatile int*>(words) = k;
    while (const_cast<volatile int*>(words)[1] != k) {
    }
  }
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaFreeHost(words));
}

void queue() {
  constexpr int items = 200, blocks = 3;
  int *queue, *control, *sums;
  CUDA(cudaHostAlloc(&queue, items * sizeof(int), cudaHostAllocMapped));
  CUDA(cudaHostAlloc(&control, 64 * sizeof(int), cudaHostAllocMapped));
  CUDA(cudaMalloc(&sums, blocks * sizeof(int)));
  volatile int *filled = control, *stop = control + 1, *taken = control + 2;
  std::memset(control, 0, 64 * sizeof(int));
  *stop = -1;
  consume<<<blocks, 32>>>(queue, filled, stop, taken, sums);
  int expected = 0;
  for (int k = 0; k < items; ++k) {
    expected += k * 7;
    queue[k] = k * 7;
    *filled = k + 1;
    if (k % 50 == 49)  // the queue is full until all blocks have taken what is in it
      for (int b = 0; b < blocks; ++b)
        while (taken[b] != k + 1) {
        }
  }
  *stop = items;
  CUDA(cudaDeviceSynchronize());
  int found[blocks], all = 0;
  CUDA(cudaMemcpy(found, sums, sizeof found, cudaMemcpyDeviceToHost));
  for (int sum : found) all += sum;
  CHECK(all == expected);
  CUDA(cudaFreeHost(queue));
  CUDA(cudaFreeHost(control));
  CUDA(cudaFree(sums));
}

// Asks while a long kernel runs, and works in between.
void queries() {
  int* x;
  CUDA(cudaMalloc(&x, sizeof *x));
  CUDA(cudaMemset(x, 0, sizeof *x));
  cudaStream_t stream;
  cudaEvent_t event;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaEventCreate(&event));
  int not_ready[2] = {};
  for (int with_event = 0; with_event < 2; ++with_event) {
    count_down<<<1, 1, 0, stream>>>(x, 20000);
    CUDA(cudaEventRecord(event, stream));
    for (;;) {
      const cudaError_t found = with_event ? cudaEventQuery(event) : cudaStreamQuery(stream);
      if (found == cudaSuccess) break;
      CHECK(found == cudaErrorNotReady);
      cudaGetLastError();
      ++not_ready[with_event];
    }
  }
  std::printf("not ready: %d and %d times\n", not_ready[0], not_ready[1]);
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaEventDestroy(event));
  CUDA(cudaFree(x));
}

// A kernel that waits for the host, which only asks for the kernel's stream.
void served_in_queries() {
  int* words;
  CUDA(cudaMallocHost(&words, 4096));
  std::memset(words, 0, 4096);
  volatile int *request = words, *reply = words + 1;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  answer<<<1, 1, 0, stream>>>(request, reply, words + 2);
  int answered = 0;
  *request = 1;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    cudaGetLastError();
    if (*reply == *request && *request < rounds) {
      ++answered;
      *request = *request + 1;
    }
  }
  CHECK(answered == rounds - 1 && words[2] == rounds * rounds);
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFreeHost(words));
}

// A flag in device memory, which a copy in another stream sets, and a result that one reads again and again.
void stopped_by_a_copy() {
  int *flag, *seen, *host;
  CUDA(cudaMalloc(&flag, sizeof *flag));
  CUDA(cudaMalloc(&seen, sizeof *seen));
  CUDA(cudaMallocHost(&host, 2 * sizeof *host));
  CUDA(cudaMemset(flag, 0, sizeof *flag));
  CUDA(cudaMemset(seen, 0, sizeof *seen));
  cudaStream_t first, second;
  CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  CUDA(cudaDeviceSynchronize());
  wait_for<<<2, 32, 0, first>>>(flag, seen);
  CHECK(cudaStreamQuery(first) == cudaErrorNotReady);
  cudaGetLastError();
  host[0] = 17;
  host[1] = 0;
  CUDA(cudaMemcpyAsync(flag, host, sizeof *flag, cudaMemcpyHostToDevice, second));
  while (host[1] != 17) {
    CUDA(cudaMemcpyAsync(host + 1, seen, sizeof *seen, cudaMemcpyDeviceToHost, second));
    CUDA(cudaStreamSynchronize(second));
  }
  CUDA(cudaStreamSynchronize(first));
  CUDA(cudaStreamDestroy(first));
  CUDA(cudaStreamDestroy(second));
  CUDA(cudaFree(flag));
  CUDA(cudaFree(seen));
  CUDA(cudaFreeHost(host));
}

// One thread waits for a kernel that another thread stops.
void threads() {
  int *flag, *seen, *device_flag;
  CUDA(cudaMallocHost(&flag, sizeof *flag));
  CUDA(cudaMalloc(&device_flag, sizeof *flag));
  CUDA(cudaMemset(device_flag, 0, sizeof *flag));
  CUDA(cudaMallocManaged(&seen, sizeof *seen));
  for (const bool by_copy : {false, true}) {
    *flag = *seen = 0;
    cudaStream_t first, second;
    CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CUDA(cudaDeviceSynchronize());
    wait_for<<<1, 32, 0, first>>>(by_copy ? device_flag : flag, seen);
    std::thread waiting([&] { CUDA(cudaStreamSynchronize(first)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (by_copy) {
      const int value = 5;
      CUDA(cudaMemcpyAsync(device_flag, &value, sizeof value, cudaMemcpyHostToDevice, second));
      CUDA(cudaStreamSynchronize(second));
    } else {
      *const_cast<volatile int*>(flag) = 5;
    }
    waiting.join();
    CHECK(*seen == 5);
    CUDA(cudaStreamDestroy(first));
    CUDA(cudaStreamDestroy(second));
  }
  CUDA(cudaFreeHost(flag));
  CUDA(cudaFree(device_flag));
  CUDA(cudaFree(seen));
}

// The host waits for a host function, without any call.
void host_function() {
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
  } gate;
  int* x;
  CUDA(cudaMalloc(&x, sizeof *x));
  CUDA(cudaMemset(x, 0, sizeof *x));
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  count_down<<<1, 1, 0, stream>>>(x, 100);
  CUDA(cudaLaunchHostFunc(
      stream,
      [](void* data) {
        Gate& of = *static_cast<Gate*>(data);
        const std::lock_guard<std::mutex> lock(of.mutex);
        of.open = true;
        of.opened.notify_all();
      },
      &gate));
  std::unique_lock<std::mutex> lock(gate.mutex);
  gate.opened.wait(lock, [&] { return gate.open; });
  lock.unlock();
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(x));
}

// What the kernel is sent and answers passes through system calls.
void system_calls() {
  constexpr int n = 100;
  char* memory;
  CUDA(cudaHostAlloc(&memory, 3 * 4096, cudaHostAllocMapped));
  std::memset(memory, 0, 3 * 4096);
  volatile int *ready = reinterpret_cast<int*>(memory), *done = ready + 1;
  char *from = memory + 4096, *to = memory + 8192;
  echo<<<1, 1>>>(from, to, ready, done, n);
  int ends[2];
  CHECK(pipe(ends) == 0);
  char text[n];
  for (int k = 0; k < n; ++k) text[k] = static_cast<char>(k);
  CHECK(write(ends[1], text, n) == n);
  CHECK(read(ends[0], from, n) == n);
  *ready = 1;
  while (*done == 0) {
    CHECK(write(ends[1], const_cast<int*>(done), sizeof(int)) == sizeof(int));
    int copy;
    CHECK(read(ends[0], &copy, sizeof copy) == sizeof copy);
  }
  CHECK(write(ends[1], to, n) == n);
  CHECK(read(ends[0], text, n) == n);
  for (int k = 0; k < n; ++k) CHECK(text[k] == static_cast<char>(k + 1));
  close(ends[0]);
  close(ends[1]);
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaFreeHost(memory));
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)();
  } cases[] = {{"mapped", mapped},
               {"managed", managed},
               {"sleeping", sleeping},
               {"queue", queue},
               {"queries", queries},
               {"served_in_queries", served_in_queries},
               {"stopped_by_a_copy", stopped_by_a_copy},
               {"threads", threads},
               {"host_function", host_function},
               {"system_calls", system_calls}};
  for (const auto& one : cases)
    if (argc < 2 || std::strcmp(argv[1], "timed") == 0 || std::strcmp(argv[1], one.name) == 0) {
      one.run();
      std::printf("%s\n", one.name);
    }
  std::puts("ok");
}
