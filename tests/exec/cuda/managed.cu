// Memory that the program and the kernels use by the same pointer: managed, mapped, registered; managed variables.
#include <vector>

#include "check.h"

__managed__ int counter = 3;
__managed__ int table[4];

struct Node {
  int value;
  Node* next;
};

__global__ void sum(const Node* node, int* result) {
  for (*result = 0; node; node = node->next) *result += node->value;
  counter += 1;
  table[2] = counter;
}

__global__ void twice(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

int main() {
  Node* head = nullptr;
  for (int i = 1; i <= 10; ++i) {
    Node* node;
    CUDA(cudaMallocManaged(&node, sizeof(Node)));
    node->value = i;
    node->next = head;
    head = node;
  }
  int* result;
  CUDA(cudaHostAlloc(&result, sizeof(int), cudaHostAllocMapped));
  counter = 41;
  int* on_device;
  CUDA(cudaHostGetDevicePointer(&on_device, result, 0));
  sum<<<1, 1>>>(head, on_device);
  CUDA(cudaDeviceSynchronize());
  CHECK(*result == 55 && counter == 42 && table[2] == 42);

  std::vector<int> own(3000, 21);
  CUDA(cudaHostRegister(own.data(), own.size() * sizeof(int), cudaHostRegisterMapped));
  int* registered;
  CUDA(cudaHostGetDevicePointer(&registered, own.data(), 0));
  twice<<<12, 256>>>(registered, 3000);
  CUDA(cudaDeviceSynchronize());
  for (int x : own) CHECK(x == 42);
  CUDA(cudaHostUnregister(own.data()));
  for (int x : own) CHECK(x == 42);
  own.resize(100000, 1);

  cudaPointerAttributes attributes;
  CUDA(cudaPointerGetAttributes(&attributes, head));
  CHECK(attributes.type == cudaMemoryTypeManaged);
  CUDA(cudaPointerGetAttributes(&attributes, result));
  CHECK(attributes.type == cudaMemoryTypeHost);
  CUDA(cudaPointerGetAttributes(&attributes, own.data()));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  std::puts("ok");
}
