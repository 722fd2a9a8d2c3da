#pragma once
#include <nanobind/nanobind.h>

// Python types that signatures of the module name, so that its stub is exact. Dicts are as fast to make and
// to read as any other dict; their keys are listed in Python, where type checkers find them.

#define SIMT_PYTHON_TYPE(Type, Base, name, check)  \
  struct Type : nanobind::Base {                   \
    NB_OBJECT_DEFAULT(Type, Base, name, check)     \
    Type(const Base& other) : Base(other) {}       \
    Type(Base&& other) : Base(std::move(other)) {} \
  };

namespace simt::python {

using nanobind::dict;
using nanobind::object;

inline bool is_any(PyObject*) {
  return true;
}

/// A specification as `simt.spec.Spec.native()` gives it; src/simt/spec/native.py.
SIMT_PYTHON_TYPE(NativeSpec, dict, "simt.spec.native.NativeSpec", PyDict_Check)

// src/simt/engine_types.py
#define SIMT_ENGINE_DICT(Type) SIMT_PYTHON_TYPE(Type, dict, "simt.engine_types." #Type, PyDict_Check)
SIMT_ENGINE_DICT(DecodedInstruction)
SIMT_ENGINE_DICT(EngineProgress)
SIMT_ENGINE_DICT(LoadableCode)
SIMT_ENGINE_DICT(LoadedKernel)
SIMT_ENGINE_DICT(MachineFacts)
SIMT_ENGINE_DICT(PolicyFacts)
SIMT_ENGINE_DICT(PtxAllocation)
SIMT_ENGINE_DICT(PtxDump)
SIMT_ENGINE_DICT(PtxKernelFacts)
SIMT_ENGINE_DICT(PtxTableRow)
SIMT_ENGINE_DICT(RawAccess)
SIMT_ENGINE_DICT(RawFinding)
SIMT_ENGINE_DICT(RawLaunch)
SIMT_ENGINE_DICT(RawLaunchParts)
SIMT_ENGINE_DICT(RawSampling)
SIMT_ENGINE_DICT(SpecSchema)
SIMT_ENGINE_DICT(TextureFields)
#undef SIMT_ENGINE_DICT

/// The controller of a launch.
SIMT_PYTHON_TYPE(LaunchControl, object, "simt.control.launch.LaunchControl", is_any)
/// Where an operation finds its bytes: a device address, or memory of the host.
SIMT_PYTHON_TYPE(AddressOrBuffer, object, "int | typing_extensions.Buffer", is_any)
/// Writable memory.
SIMT_PYTHON_TYPE(MemoryView, object, "memoryview", PyMemoryView_Check)

}  // namespace simt::python

#undef SIMT_PYTHON_TYPE
