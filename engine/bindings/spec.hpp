#pragma once
#include <nanobind/nanobind.h>

#include "python_types.hpp"
#include "timing/base/spec.hpp"

/// Makes the engine's specification from the result of `simt.spec.Spec.native()`. Throws
/// std::invalid_argument (ValueError in Python), with the path of the key, if a key is missing, unknown or of
/// the wrong type; simt.spec checks ranges.
simt::Spec spec_from_dict(simt::python::NativeSpec values);
