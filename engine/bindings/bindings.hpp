#pragma once
#include <nanobind/nanobind.h>

/// Each function adds one part of the engine to the Python module `simt._engine`.
void bind_isa(nanobind::module_& m);
void bind_trace(nanobind::module_& m);
void bind_spec(nanobind::module_& m);
void bind_policies(nanobind::module_& m);
void bind_testing(nanobind::module_& m);
void bind_testing_dispatch(nanobind::module_& testing);
void bind_ptx(nanobind::module_& m);
void bind_gpu(nanobind::module_& m);
void bind_launch_record(nanobind::module_& m);
void bind_functional(nanobind::module_& m);
void bind_device_memory(nanobind::module_& functional);
void bind_memory_operations(nanobind::module_& functional);
void bind_modules(nanobind::module_& functional);
void bind_machine_code(nanobind::module_& functional);
void bind_checker(nanobind::module_& functional);
void bind_launches(nanobind::module_& functional);
void bind_recorder(nanobind::module_& functional);
void bind_tensor_maps(nanobind::module_& functional);
void bind_textures(nanobind::module_& functional);
void bind_control(nanobind::module_& m);
