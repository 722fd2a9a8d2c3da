#include "driver.hpp"

// The times of copies of 64 MiB between two devices, by each function that makes them, in both directions and
// at once, in microseconds.

namespace {

constexpr size_t bytes = 64 << 20, pitch = 1 << 20;
CUcontext contexts[2];
CUdeviceptr memory[2], second[2];
CUevent begin, end;

template <class Work>
void timed(const char* what, const Work& work) {
  float milliseconds = 0;
  OK(cuEventRecord(begin, nullptr));
  work();
  OK(cuEventRecord(end, nullptr));
  OK(cuEventSynchronize(end));
  OK(cuEventElapsedTime(&milliseconds, begin, end));
  std::printf("%s %.3f\n", what, 1e3 * milliseconds);
}

void out(CUstream s) {
  OK(cuMemcpyPeerAsync(second[1], contexts[1], memory[0], contexts[0], bytes, s));
}

void in(CUstream s) {
  OK(cuMemcpyPeerAsync(second[0], contexts[0], memory[1], contexts[1], bytes, s));
}

/// All of `from` as rows.
template <class Parameters>
Parameters rows(CUdeviceptr to, CUdeviceptr from) {
  Parameters p{};
  p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  p.srcDevice = from, p.dstDevice = to;
  p.srcPitch = p.dstPitch = p.WidthInBytes = pitch;
  p.Height = bytes / pitch;
  return p;
}

unsigned first_word(CUdeviceptr at) {
  unsigned found = 0;
  OK(cuMemcpyDtoH(&found, at, 4));
  return found;
}

}  // namespace

int main() {
  OK(cuInit(0));
  for (int i = 0; i < 2; ++i) {
    CUdevice device;
    OK(cuDeviceGet(&device, i));
    OK(cuDevicePrimaryCtxRetain(&contexts[i], device));
    OK(cuCtxSetCurrent(contexts[i]));
    OK(cuMemAlloc(&memory[i], bytes));
    OK(cuMemAlloc(&second[i], bytes));
    OK(cuMemsetD8(memory[i], static_cast<unsigned char>(i + 1), bytes));
  }
  OK(cuCtxSetCurrent(contexts[0]));
  void* pinned = nullptr;
  OK(cuMemAllocHost(&pinned, bytes));
  OK(cuEventCreate(&begin, 0));
  OK(cuEventCreate(&end, 0));
  CUstream streams[2];
  for (CUstream& stream : streams) OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));

  timed("out", [] { out(nullptr); });
  timed("in", [] { in(nullptr); });
  timed("out_at_once", [] { OK(cuMemcpyPeer(second[1], contexts[1], memory[0], contexts[0], bytes)); });
  timed("in_at_once", [] { OK(cuMemcpyPeer(second[0], contexts[0], memory[1], contexts[1], bytes)); });
  timed("in_default", [] { OK(cuMemcpyAsync(second[0], memory[1], bytes, nullptr)); });
  timed("in_between_devices", [] { OK(cuMemcpyDtoDAsync(second[0], memory[1], bytes, nullptr)); });
  timed("in_rows", [] {
    const auto p = rows<CUDA_MEMCPY2D>(second[0], memory[1]);
    OK(cuMemcpy2DAsync(&p, nullptr));
  });
  timed("in_peer_rows", [] {
    auto p = rows<CUDA_MEMCPY3D_PEER>(second[0], memory[1]);
    p.Depth = 1;
    p.srcContext = contexts[1], p.dstContext = contexts[0];
    OK(cuMemcpy3DPeerAsync(&p, nullptr));
  });
  timed("both", [&] { out(streams[0]), in(streams[1]); });
  timed("twice_out", [&] { out(streams[0]), out(streams[1]); });
  timed("twice_in", [&] { in(streams[0]), in(streams[1]); });
  timed("short_in", [] { OK(cuMemcpyDtoDAsync(second[0], memory[1], 4, nullptr)); });
  timed("host", [&] { OK(cuMemcpyHtoDAsync(memory[0], pinned, bytes, nullptr)); });
  timed("host_to_other", [&] { OK(cuMemcpyHtoDAsync(memory[1], pinned, bytes, nullptr)); });
  timed("other_to_host", [&] { OK(cuMemcpyDtoHAsync(pinned, second[1], bytes, nullptr)); });
  timed("host_and_in", [&] {
    OK(cuMemcpyHtoDAsync(memory[0], pinned, bytes, streams[0]));
    in(streams[1]);
  });
  CHECK(first_word(second[1]) == 0x01010101);
  std::puts("passed");
}
