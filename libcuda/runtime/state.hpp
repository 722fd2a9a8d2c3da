// The state behind device management: the thread's device and errors that stay until the device is reset.
#pragma once

#include "runtime.hpp"

namespace runtime {

cudaError_t select_device(int device);  // for this thread
cudaError_t prefer_device(int device);  // for threads that do not select one
cudaError_t reset_device();
void forget_sticky_error();

}  // namespace runtime
