// Functions of the host in a stream: they see what kernels before them have done.
#include "check.h"

__global__ void put(int* x, int value) { *x = value; }

struct Seen {
  int* memory;
  int values[3];
  int count;
};

void CUDART_CB look(void* argument) {
  Seen* seen = static_cast<Seen*>(argument);
  seen->values[seen->count++] = *seen->memory;
}

void CUDART_CB look_again(cudaStream_t, cudaError_t status, void* argument) {
  if (status == cudaSuccess) look(argument);
}

int main() {
  Seen seen{};
  CUDA(cudaMallocHost(&seen.memory, sizeof(int)));
  cudaStream_t s;
  CUDA(cudaStreamCreate(&s));
  put<<<1, 1, 0, s>>>(seen.memory, 1);
  CUDA(cudaLaunchHostFunc(s, look, &seen));
  put<<<1, 1, 0, s>>>(seen.memory, 2);
  CUDA(cudaStreamAddCallback(s, look_again, &seen, 0));
  put<<<1, 1, 0, s>>>(seen.memory, 3);
  CUDA(cudaStreamSynchronize(s));
  look(&seen);
  CHECK(seen.count == 3 && seen.values[0] == 1 && seen.values[1] == 2 && seen.values[2] == 3);
  std::puts("ok");
}
