#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "trace/store_encoder.hpp"

/// First CTA, CTAs, first warp, last warp and instructions of a block of a trace store.
using BlockNumbers = std::tuple<uint64_t, uint64_t, uint32_t, uint32_t, uint64_t>;

/// Blocks with their uncompressed bytes, for Python.
inline std::vector<std::pair<BlockNumbers, nanobind::bytes>> blocks_of(
    const std::vector<simt::StoreEncoder::Block>& blocks) {
  std::vector<std::pair<BlockNumbers, nanobind::bytes>> out;
  for (const auto& b : blocks)
    out.emplace_back(BlockNumbers{b.summary.first_cta, b.summary.cta_count, b.summary.first_warp,
                                  b.summary.last_warp, b.summary.instructions},
                     nanobind::bytes(b.bytes.data(), b.bytes.size()));
  return out;
}
