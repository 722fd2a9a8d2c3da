#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <optional>

#include "python_types.hpp"
#include "timing/gpu/gpu.hpp"

/// The controller of one launch, from Python's; nullptr for None.
std::shared_ptr<simt::Controller> controller_of(std::optional<simt::python::LaunchControl> control);
simt::python::RawSampling dict_of(const simt::Sampled& sampled);
