#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "isa/instruction_source.hpp"
#include "isa/raw_instruction.hpp"
#include "trace/address_list.hpp"

namespace simt {

/// The position of a CTA. Cluster values are 0 before tracer version 6.
struct CtaPosition {
  std::array<uint32_t, 3> cta{};
  std::array<uint32_t, 3> cluster{};
  std::array<uint32_t, 3> cta_in_cluster{};
  uint32_t rank_in_cluster = 0;

  bool in_cluster() const {
    return cluster != std::array<uint32_t, 3>{} || cta_in_cluster != std::array<uint32_t, 3>{} ||
           rank_in_cluster;
  }
  friend bool operator==(const CtaPosition&, const CtaPosition&) = default;
};

/// The data of a bulk copy (TMA) other than its addresses; version 6.
struct BulkAccess {
  uint64_t mbarrier = 0;
  uint64_t bytes = 0;
  uint64_t out_of_bounds_bytes = 0;
  uint64_t multicast_mask = 0;
};

/// One execution of static instruction `static_index`.
struct TraceRecord {
  uint32_t static_index = 0;
  uint64_t mask = 0;
  uint32_t address_count = 0;
  AddressList addresses;
  BulkAccess bulk;
};

/// Receives a kernel trace in file order. `instructions` and `opcodes` are the parser's own and only grow.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void begin_kernel(const LaunchInfo& launch, const std::vector<RawInstruction>& instructions,
                            const std::vector<std::string>& opcodes) = 0;
  virtual void begin_cta(const CtaPosition& position) = 0;
  virtual void begin_warp(uint32_t warp, uint64_t instructions) = 0;
  virtual void record(const TraceRecord& record) = 0;
  virtual void end_cta() = 0;
};

}  // namespace simt
