// Operators of PyTorch 2.1 on float32, written for simt after their names and grids in NeuSight's tables:
// elementwise ones in CTAs of 128 threads, each with four adjacent elements; softmax with a warp for each row
// of up to 1,024.
//
//     neusight OPERATOR ROWS COLUMNS
//
// Three launches: all rows, which leaves the caches as an operator does that is repeated; one CTA; and all
// rows again.

#include <cstdlib>
#include <cstring>
#include <vector>

constexpr int THREADS = 128, VECTOR = 4, WARP = 32, LANE_ELEMENTS = 32;

struct Add {
  float alpha;
  __device__ float operator()(float a, float b) const { return a + alpha * b; }
};
struct Multiply {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Divide {
  __device__ float operator()(float a, float b) const { return a / b; }
};
struct Power {
  __device__ float operator()(float a, float b) const { return powf(a, b); }
};
struct Scale {  // division by a number, which PyTorch inverts
  float factor;
  __device__ float operator()(float a) const { return a * factor; }
};
struct Relu {
  __device__ float operator()(float a) const { return a <= 0 ? 0 : a; }
};
struct Gelu {
  __device__ float operator()(float a) const { return a * 0.5f * (1 + erff(a * 0.70710678f)); }
};
struct Tanh {
  __device__ float operator()(float a) const { return tanhf(a); }
};

template <typename Operator, typename... Inputs>
__global__ void __launch_bounds__(THREADS)
    elementwise(int count, Operator of, float* result, Inputs... inputs) {
  const int start = blockIdx.x * THREADS * VECTOR;
  if (start + THREADS * VECTOR <= count) {
    const int at = start / VECTOR + threadIdx.x;
    const auto apply = [&](auto... x) {
      reinterpret_cast<float4*>(result)[at] = {of(x.x...), of(x.y...), of(x.z...), of(x.w...)};
    };
    apply(reinterpret_cast<const float4*>(inputs)[at]...);
  } else {
    for (int at = start + threadIdx.x; at < count; at += THREADS) result[at] = of(inputs[at]...);
  }
}

template <typename Reduction>
__device__ float over_warp(float value, Reduction of) {
  for (int distance = WARP / 2; distance; distance /= 2)
    value = of(value, __shfl_xor_sync(0xffffffff, value, distance));
  return value;
}

__global__ void softmax(int rows, int columns, float* result, const float* input) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const float* from = input + size_t(row) * columns + threadIdx.x;
  float* to = result + size_t(row) * columns + threadIdx.x;
  const int left = columns - threadIdx.x;
  float x[LANE_ELEMENTS];
#pragma unroll
  for (int i = 0; i < LANE_ELEMENTS; ++i) x[i] = i * WARP < left ? from[i * WARP] : -INFINITY;
  float most = x[0];
#pragma unroll
  for (int i = 1; i < LANE_ELEMENTS; ++i) most = fmaxf(most, x[i]);
  most = over_warp(most, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
#pragma unroll
  for (int i = 0; i < LANE_ELEMENTS; ++i) sum += x[i] = expf(x[i] - most);
  sum = over_warp(sum, [](float a, float b) { return a + b; });
#pragma unroll
  for (int i = 0; i < LANE_ELEMENTS; ++i)
    if (i * WARP < left) to[i * WARP] = x[i] / sum;
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const char* name = arguments[1];
  const int rows = atoi(arguments[2]), columns = atoi(arguments[3]);
  if (rows < 4 || columns < THREADS || columns > WARP * LANE_ELEMENTS) return 2;
  std::vector<float> values(size_t(rows) * columns);
  unsigned state = 1;  // uniform in (0, 1]
  for (float& value : values) value = ((state = state * 1664525u + 1013904223u) / 256 + 1) / 16777216.0f;
  float *a, *b, *result;
  for (float** array : {&a, &b, &result})
    if (cudaMalloc(array, values.size() * sizeof(float)) != cudaSuccess) return 1;
  for (float* array : {a, b})
    cudaMemcpy(array, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);

  const auto elements = [&](auto of, auto... inputs) {
    for (int n : {rows * columns, THREADS * VECTOR, rows * columns})
      elementwise<<<(n + THREADS * VECTOR - 1) / (THREADS * VECTOR), THREADS>>>(n, of, result, inputs...);
  };
  using Input = const float*;
  const auto is = [&](const char* other) { return !strcmp(name, other); };
  if (is("add"))
    elements(Add{1}, Input(a), Input(b));
  else if (is("mul"))
    elements(Multiply{}, Input(a), Input(b));
  else if (is("div"))
    elements(Divide{}, Input(a), Input(b));
  else if (is("pow"))
    elements(Power{}, Input(a), Input(b));
  else if (is("divu"))
    elements(Scale{0.7f}, Input(a));
  else if (is("relu"))
    elements(Relu{}, Input(a));
  else if (is("gelu"))
    elements(Gelu{}, Input(a));
  else if (is("tanh"))
    elements(Tanh{}, Input(a));
  else if (is("softmax"))
    for (int n : {rows, 4, rows}) softmax<<<(n + 3) / 4, dim3(WARP, 4)>>>(n, columns, result, a);
  else
    return 2;
  return cudaDeviceSynchronize() != cudaSuccess;
}
