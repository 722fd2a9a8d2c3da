#pragma once
#include <nanobind/nanobind.h>

#include "timing/spec.hpp"

/// Makes the engine's specification from what `simt.spec.Spec.native()` returns. Throws std::invalid_argument
/// (ValueError in Python) that names the path of a key that is missing, unknown or of the wrong type; ranges
/// are checked by simt.spec.
simt::Spec spec_from_dict(nanobind::dict values);
