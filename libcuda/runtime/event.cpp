// Events.
#include "runtime.hpp"

using runtime::call;

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return call(cuEventCreate, event, static_cast<unsigned int>(CU_EVENT_DEFAULT));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return call(cuEventCreate, event, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call(cuEventDestroy, event);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call(cuEventRecord, event, stream);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return call(cuEventRecordWithFlags, event, stream, flags);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call(cuEventQuery, event);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call(cuEventSynchronize, event);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call(cuEventElapsedTime, milliseconds, start, end);
}
cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call(cuEventElapsedTime, milliseconds, start, end);
}

}  // extern "C"
