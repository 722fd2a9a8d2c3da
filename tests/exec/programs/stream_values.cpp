#include <cstdint>
#include <cstring>

#include "check.hpp"

// Values that streams write and wait for, forms of functions with a default stream for each thread, copies in
// batches, and what is said of managed memory.

namespace {

const char* const ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry raise(.param .u64 flag, .param .u32 value) {
  .reg .b64 %f; .reg .b32 %v;
  ld.param.u64 %f, [flag]; ld.param.u32 %v, [value];
  st.global.u32 [%f], %v;
  ret; }
)";

void values(CUfunction raise) {
  CUstream writer, waiter;
  OK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&waiter, CU_STREAM_NON_BLOCKING));
  CUdeviceptr flag = upload(std::vector<uint64_t>(2));
  unsigned value = 5;
  void* arguments[] = {&flag, &value};
  OK(cuLaunchKernel(raise, 1, 1, 1, 1, 1, 1, 0, writer, arguments, nullptr));
  OK(cuStreamWaitValue32(waiter, flag, 4, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cuStreamWaitValue32(waiter, flag, 5, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamWriteValue64(waiter, flag + 8, 0x123456789abcdef0, 0));
  OK(cuStreamWaitValue64(writer, flag + 8, 0x10, CU_STREAM_WAIT_VALUE_AND));
  RETURNS(cuStreamWaitValue32(waiter, flag, 6, CU_STREAM_WAIT_VALUE_EQ), CUDA_ERROR_NOT_SUPPORTED);
  RETURNS(cuStreamWaitValue32(waiter, flag + 2, 6, CU_STREAM_WAIT_VALUE_EQ), CUDA_ERROR_INVALID_VALUE);
  CUstreamBatchMemOpParams operations[2]{};
  operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[0].writeValue.address = flag;
  operations[0].writeValue.value = 9;
  operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[1].waitValue.address = flag;
  operations[1].waitValue.value = 9;
  operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  OK(cuStreamBatchMemOp(writer, 2, operations, 0));
  const auto found = download<uint64_t>(flag, 2);
  CHECK(found[0] == 9 && found[1] == 0x123456789abcdef0);
}

void batch() {
  std::vector<uint32_t> from{1, 2, 3, 4}, to(4);
  const CUdeviceptr memory = upload(std::vector<uint32_t>(4));
  const auto host = reinterpret_cast<CUdeviceptr>(from.data()),
             back = reinterpret_cast<CUdeviceptr>(to.data());
  CUdeviceptr targets[] = {memory, memory + 8, back}, sources[] = {host + 8, host, memory};
  size_t sizes[] = {8, 8, 16}, failed = 99;
  CUstream stream;
  OK(cuStreamCreate(&stream, 0));
  OK(cuMemcpyBatchAsync(targets, sources, sizes, 3, nullptr, nullptr, 0, &failed, stream));
  OK(cuStreamSynchronize(stream));
  CHECK((to == std::vector<uint32_t>{3, 4, 1, 2}));
  sizes[1] = 16;
  RETURNS(cuMemcpyBatchAsync(targets, sources, sizes, 3, nullptr, nullptr, 0, &failed, stream),
          CUDA_ERROR_INVALID_VALUE);
  CHECK(failed == 1);
}

void managed(CUdevice device) {
  CUdeviceptr memory;
  OK(cuMemAllocManaged(&memory, 4096, CU_MEM_ATTACH_GLOBAL));
  int mostly = 9, users[2] = {9, 9};
  OK(cuMemRangeGetAttribute(&mostly, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 4096));
  CHECK(mostly == 0);
  OK(cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
  OK(cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
  OK(cuMemPrefetchAsync(memory, 4096, device, nullptr));
  int last;
  void* data[] = {&mostly, users, &last};
  size_t sizes[] = {4, 8, 4};
  CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                   CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION};
  OK(cuMemRangeGetAttributes(data, sizes, which, 3, memory, 4096));
  CHECK(mostly == 1 && users[0] == CU_DEVICE_CPU && users[1] == CU_DEVICE_INVALID && last == device);
  RETURNS(cuMemAdvise(upload(std::vector<int>(4)), 16, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
          CUDA_ERROR_INVALID_VALUE);
}

template <class Function>
Function* per_thread(const char* name) {
  void* found = nullptr;
  OK(cuGetProcAddress(name, &found, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  CHECK(found != nullptr);
  return reinterpret_cast<Function*>(found);
}

void own_default_streams() {
  unsigned long long own, legacy, asked;
  OK(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
  OK(cuStreamGetId(nullptr, &legacy));
  OK(per_thread<decltype(cuStreamGetId)>("cuStreamGetId")(nullptr, &asked));
  CHECK(asked == own && own != legacy);
  uint32_t value = 3, back = 0;
  const CUdeviceptr memory = upload(std::vector<uint32_t>(1));
  OK(per_thread<decltype(cuMemcpyHtoD)>("cuMemcpyHtoD")(memory, &value, 4));
  OK(per_thread<decltype(cuMemcpyDtoHAsync)>("cuMemcpyDtoHAsync")(&back, memory, 4, nullptr));
  OK(per_thread<decltype(cuStreamSynchronize)>("cuStreamSynchronize")(nullptr));
  CHECK(back == 3);
}

void tensor_maps() {
  alignas(64) CUtensorMap map, moved;
  const CUdeviceptr memory = upload(std::vector<float>(64));
  const cuuint64_t dims[] = {8, 8}, strides[] = {32};
  const cuuint32_t box[] = {4, 4}, steps[] = {1, 1};
  const auto encode = [&](CUtensorMap* to, CUdeviceptr at) {
    return cuTensorMapEncodeTiled(to, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(at), dims,
                                  strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                  CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  OK(encode(&map, memory));
  OK(encode(&moved, memory + 256));
  CHECK(std::memcmp(&map, &moved, sizeof map) != 0);
  OK(cuTensorMapReplaceAddress(&moved, reinterpret_cast<void*>(memory)));
  CHECK(std::memcmp(&map, &moved, sizeof map) == 0);
  RETURNS(encode(&map, memory + 4), CUDA_ERROR_INVALID_VALUE);
  const cuuint64_t image[] = {8, 8, 8, 1}, pitches[] = {32, 256, 2048};
  const cuuint32_t ones[] = {1, 1, 1, 1};
  const int lower[] = {-1, -1}, upper[] = {-1, -1};
  OK(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, reinterpret_cast<void*>(memory), image,
                             pitches, lower, upper, 8, 16, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                             CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  CHECK(std::memcmp(&map, &memory, sizeof memory) == 0);  // the address comes first
  const auto wide = [&](CUtensorMap* to, CUtensorMapIm2ColWideMode mode, int corner) {
    return cuTensorMapEncodeIm2colWide(to, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4,
                                       reinterpret_cast<void*>(memory), image, pitches, corner, -1, 8, 16,
                                       ones, CU_TENSOR_MAP_INTERLEAVE_NONE, mode, CU_TENSOR_MAP_SWIZZLE_NONE,
                                       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  OK(wide(&moved, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, -1));
  CHECK(std::memcmp(&map, &moved, sizeof map) != 0);
  OK(wide(&map, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128, -1));
  CHECK(std::memcmp(&map, &moved, sizeof map) != 0);
  RETURNS(wide(&map, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, 1 << 20), CUDA_ERROR_INVALID_VALUE);
  RETURNS(wide(&map, static_cast<CUtensorMapIm2ColWideMode>(2), -1), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

int main() {
  const CUdevice device = start();
  values(function(load(ptx), "raise"));
  batch();
  managed(device);
  own_default_streams();
  tensor_maps();
  std::puts("passed");
}
