#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trace/trace_source.hpp"

namespace simt {

/// Writes a stored kernel back as tracer version 5 text, piece by piece. Data that version 5 cannot represent
/// is omitted: predicate and uniform registers, second immediates, clusters, and the data of TMA instructions
/// other than addresses.
class TextWriter {
 public:
  explicit TextWriter(std::shared_ptr<TraceSource> source);

  /// The next few megabytes of text; empty at the end.
  std::string next_piece();

 private:
  void header(std::string& out) const;
  void begin_cta(std::string& out);
  void begin_warp(std::string& out);
  void instruction(const DynamicRecord& record, std::string& out);
  void addresses(const RawInstruction& raw, const DynamicRecord& record, std::string& out);

  std::shared_ptr<TraceSource> source_;
  bool header_written_ = false;
  bool line_info_ = false;
  std::vector<std::string> heads_;  ///< for each static instruction, the text between mask and addresses
  uint64_t ordinal_ = 0;
  std::unique_ptr<CtaStream> stream_;
  std::vector<uint64_t> counts_;  ///< instructions of each warp of the open CTA
  uint32_t warp_ = 0;
  bool in_warp_ = false;
  std::vector<uint64_t> lanes_;
};

}  // namespace simt
