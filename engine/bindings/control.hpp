#pragma once
#include <nanobind/nanobind.h>

#include <memory>

#include "timing/gpu.hpp"

/// The controller of one launch, from a Python object (simt.control.launch.LaunchControl); nullptr for None.
std::shared_ptr<simt::Controller> controller_of(nanobind::object control);
nanobind::dict dict_of(const simt::Sampled& sampled);
