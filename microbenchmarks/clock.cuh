// The SM's clock, read when a value is there: instructions issue in order, and one before it needs the value.
#pragma once

__device__ __forceinline__ long long clock_after(const void* value) {
  long long now;
  asm volatile("{\n .reg .pred p;\n setp.eq.u64 p, %1, 1;\n @p exit;\n mov.u64 %0, %%clock64;\n}"
               : "=l"(now)
               : "l"(value)
               : "memory");
  return now;
}
__device__ __forceinline__ long long clock_after(unsigned value) {
  return clock_after(reinterpret_cast<const void*>(static_cast<unsigned long long>(value) << 1));
}
