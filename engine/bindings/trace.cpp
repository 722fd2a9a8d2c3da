#include "bindings.hpp"

void bind_trace(nanobind::module_& m) { (void)m; }
