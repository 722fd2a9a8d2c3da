// A warp that stays for a number of cycles, by both clocks: the core's frequency; and what keeps the GPU busy
// while the host queues a launch that is to be timed.
//
// elapsed[0], elapsed[1]: cycles of the core, and nanoseconds of the global timer.
extern "C" __global__ void spin(long long cycles, long long* elapsed) {
  long long before, after;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(before));
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
#if __CUDA_ARCH__ >= 700
    __nanosleep(1000);
#endif
  }
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(after));
  elapsed[0] = clock64() - begin;
  elapsed[1] = after - before;
}
