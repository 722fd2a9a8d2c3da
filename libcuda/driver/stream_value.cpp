#include <cstring>

#include "process.hpp"

// Stream operations that write values to memory, and wait for values in memory.

using namespace simt::driver;

namespace {

/// The program's address of a value that a stream accesses. Throws Failure.
template <class T>
const T* place_of(CUdeviceptr address) {
  require(address % sizeof(T) == 0 && Process::get().allocation_of(address).first != nullptr);
  return reinterpret_cast<const T*>(address);
}

void refuse_capture(const Stream& stream) {
  if (!stream.capture) return;
  say_once("values that a captured stream writes or waits for are not supported");
  fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

template <class T>
void write(Stream& stream, CUdeviceptr address, T value, unsigned flags) {
  place_of<T>(address);
  require(flags <= CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
  refuse_capture(stream);
  if constexpr (sizeof(T) == 4) {
    submit(stream, Fill{address, 0, value, 4, 1, 1});
  } else {
    Copy copy;  // of the current value
    copy.to.address = address;
    copy.from.address = reinterpret_cast<uint64_t>(&value);
    copy.width = sizeof value;
    submit(stream, copy);
  }
}

template <class T>
bool satisfied(T found, T value, unsigned how) {
  switch (how) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(found - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return found == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (found & value) != 0;
    default:
      return static_cast<T>(~(found | value)) != 0;
  }
}

/// simt does not suspend streams: the value must be present once all earlier work of the device has
/// completed.
template <class T>
void wait(Stream& stream, CUdeviceptr address, T value, unsigned flags) {
  const volatile T* place = place_of<T>(address);
  const unsigned how = flags & ~unsigned{CU_STREAM_WAIT_VALUE_FLUSH};
  require(how <= CU_STREAM_WAIT_VALUE_NOR);
  refuse_capture(stream);
  synchronize(stream.context->device);
  if (satisfied<T>(*place, value, how)) return;
  say_once(
      "a stream waits for a value that no work before it has written: a deadlock, unless later work writes "
      "it, which simt does not support");
  fail(CUDA_ERROR_NOT_SUPPORTED);
}

void operate(Stream& stream, const CUstreamBatchMemOpParams& p) {
  switch (p.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return wait<cuuint32_t>(stream, p.waitValue.address, p.waitValue.value, p.waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return wait<cuuint64_t>(stream, p.waitValue.address, p.waitValue.value64, p.waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return write<cuuint32_t>(stream, p.writeValue.address, p.writeValue.value, p.writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return write<cuuint64_t>(stream, p.writeValue.address, p.writeValue.value64, p.writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return;  // work in a stream is ordered, and all memory is coherent
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return guarded([&] { write<cuuint32_t>(stream_of(stream), address, value, flags); });
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return guarded([&] { write<cuuint64_t>(stream_of(stream), address, value, flags); });
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return guarded([&] { wait<cuuint32_t>(stream_of(stream), address, value, flags); });
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return guarded([&] { wait<cuuint64_t>(stream_of(stream), address, value, flags); });
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations,
                            unsigned flags) {
  return guarded([&] {
    require(operations != nullptr && count <= 256 && flags == 0);
    Stream& s = stream_of(stream);
    for (unsigned k = 0; k < count; ++k) operate(s, operations[k]);
  });
}
