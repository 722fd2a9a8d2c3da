#include "bindings.hpp"

void bind_gpu(nanobind::module_& m) { (void)m; }
