#include "timing/memory/replacement.hpp"

namespace simt {
namespace {

const Registered<ReplacementPolicy> registered_oldest_quarter{
    {{"oldest_quarter", "One of the least recently used quarter of a set's lines, by a hash of addresses.",
      "simt"},
     /*renewed_by_use=*/true,
     /*make=*/{},
     /*part=*/4}};

}  // namespace
}  // namespace simt
