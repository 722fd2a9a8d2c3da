#pragma once
#include <stdexcept>
#include <string>

#include "ptx/module.hpp"

namespace simt::ptx {

/// Text that is not valid PTX. what(): "NAME:LINE:COLUMN: found ..., expected ...".
struct ParseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Parses one PTX translation unit. `name` is used in messages. Throws ParseError.
Module parse(std::string text, std::string name);

}  // namespace simt::ptx
