// The part of the library that differs between the versions of the interface.
#include "runtime.hpp"

const int runtime::version = SIMT_RUNTIME_VERSION;
