#pragma once
#include <cstdint>
#include <string>

#include "ptx/module.hpp"

namespace simt::functional {

/// Throws a TranslationError that points to a line of the module.
[[noreturn]] void refuse(const ptx::Module& module, uint32_t line, const std::string& why);

}  // namespace simt::functional
