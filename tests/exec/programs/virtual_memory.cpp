#include <cstdint>

#include "check.hpp"

// Virtual memory management: a range that grows, memory that moves, and what is refused.

namespace {

const char* const ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry number(.param .u64 out) {
  .reg .b64 %o, %i; .reg .b32 %n;
  ld.param.u64 %o, [out]; mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 4; add.u64 %o, %o, %i;
  st.global.u32 [%o], %n;
  ret; }
)";

}  // namespace

int main() {
  const CUdevice device = start();
  const CUfunction number = function(load(ptx), "number");
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t size, before, after, total;
  OK(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  OK(cuMemGetInfo(&before, &total));
  CUdeviceptr range;
  OK(cuMemAddressReserve(&range, 3 * size, 0, 0, 0));
  CHECK(range % size == 0);
  CUmemGenericAllocationHandle first, second;
  RETURNS(cuMemCreate(&first, size + 1, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemCreate(&first, size, &properties, 0));
  OK(cuMemCreate(&second, size, &properties, 0));
  OK(cuMemGetInfo(&after, &total));
  CHECK(after == before - 2 * size);

  // Two memories side by side are one range; none can be used before there is access.
  OK(cuMemMap(range, size, 0, first, 0));
  uint32_t value = 7;
  RETURNS(cuMemcpyHtoD(range, &value, 4), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemMap(range + size, size, 0, second, 0));
  RETURNS(cuMemMap(range + size, size, 0, first, 0), CUDA_ERROR_NOT_SUPPORTED);
  OK(cuMemSetAccess(range, 2 * size, &access, 1));
  const CUdeviceptr middle = range + size - 64;
  launch(number, 32, middle);
  const auto found = download<uint32_t>(middle, 32);
  for (uint32_t k = 0; k < 32; ++k) CHECK(found[k] == k);
  RETURNS(cuMemcpyHtoD(range + 2 * size - 2, &value, 4), CUDA_ERROR_INVALID_VALUE);
  RETURNS(cuMemFree(range), CUDA_ERROR_INVALID_VALUE);
  unsigned long long flags;
  OK(cuMemGetAccess(&flags, &properties.location, range + 5));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

  // Memory keeps what it holds when it goes to other addresses.
  RETURNS(cuMemAddressFree(range, 3 * size), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(range, 2 * size));
  RETURNS(cuMemcpyDtoH(&value, range, 4), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemMap(range + 2 * size, size, 0, second, 0));
  OK(cuMemSetAccess(range + 2 * size, size, &access, 1));
  CHECK(download<uint32_t>(range + 2 * size, 1)[0] == 16);
  CUmemGenericAllocationHandle same;
  OK(cuMemRetainAllocationHandle(&same, reinterpret_cast<void*>(range + 2 * size + 100)));
  CHECK(same == second);
  CUmemAllocationProp asked;
  OK(cuMemGetAllocationPropertiesFromHandle(&asked, same));
  CHECK(asked.location.id == device);

  // It goes when it is neither mapped nor held, and the next finds zeros.
  OK(cuMemRelease(same));
  OK(cuMemRelease(second));
  OK(cuMemRelease(first));
  CHECK(download<uint32_t>(range + 2 * size, 1)[0] == 16);
  OK(cuMemUnmap(range + 2 * size, size));
  OK(cuMemGetInfo(&after, &total));
  CHECK(after == before);
  OK(cuMemCreate(&first, size, &properties, 0));
  OK(cuMemMap(range + 2 * size, size, 0, first, 0));
  OK(cuMemSetAccess(range + 2 * size, size, &access, 1));
  CHECK(download<uint32_t>(range + 2 * size, 1)[0] == 0);
  OK(cuMemUnmap(range + 2 * size, size));
  OK(cuMemRelease(first));
  OK(cuMemAddressFree(range, 3 * size));
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  RETURNS(cuMemCreate(&first, size, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
  std::puts("passed");
}
