#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

#include "python_types.hpp"
#include "timing/launch/launch_record.hpp"

/// A finished launch. Its counts are packed: LaunchCode.parts() makes dicts and lists of them.
/// priorities: whether the GPU has eviction priorities.
simt::python::RawLaunch dict_of(const simt::LaunchRecord& record, uint64_t clock_khz, bool priorities);
