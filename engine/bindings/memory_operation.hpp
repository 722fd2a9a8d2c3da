#pragma once
#include <functional>

/// A copy or fill of device memory that can be performed later, without Python.
struct MemoryOperation {
  std::function<void()> perform;
};
