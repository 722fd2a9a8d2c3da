#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/trace_sink.hpp"

namespace simt {

/// Reads one kernel's trace, grouped by CTA and warp, of tracer versions 0 to 6. The text is fed in pieces of
/// any size; memory is bounded by the number of distinct instructions and by one line. docs/trace-format.md
/// gives the grammar. Throws TraceError with the line and the reason; the parser cannot be used after that.
class TextParser {
 public:
  explicit TextParser(TraceSink& sink);
  ~TextParser();
  TextParser(const TextParser&) = delete;
  TextParser& operator=(const TextParser&) = delete;

  void feed(std::string_view text);
  /// Call after the last piece. Throws if the trace is incomplete.
  void finish();

  struct Counts {
    uint64_t lines = 0, ctas = 0, empty_ctas = 0, warps = 0, empty_warps = 0, instructions = 0;
  };
  const Counts& counts() const { return counts_; }
  const LaunchInfo& launch() const { return launch_; }
  uint32_t tracer_version() const { return version_; }
  const std::vector<RawInstruction>& instructions() const { return instructions_; }
  const std::vector<std::string>& opcodes() const { return opcodes_; }
  /// By static instruction, executions whose first address lies below `first_data_address`.
  const std::map<uint32_t, uint64_t>& null_accesses() const { return null_accesses_; }

 private:
  enum class State { Header, BetweenCtas, InCta, InWarp };
  struct KnownLine;
  class Scanner;

  void line(std::string_view text);
  void header_line(std::string_view text);
  void begin_kernel();
  void cta_line(std::string_view text);
  void open_cta();
  void close_cta();
  // text_instruction.cpp
  void instruction_line(std::string_view text);
  /// Whether the rest of the line equals the known one except for its addresses, which are then read.
  bool repeats(const KnownLine& known, Scanner& in, uint64_t pc, uint32_t source_line);
  /// Reads the rest of a line that does not repeat the known one, which it replaces.
  void other_instruction(KnownLine& known, Scanner& in, uint64_t pc, uint32_t source_line);
  void addresses(Scanner& in, AddressKind kind, uint32_t mode);
  void bulk_access(Scanner& in);
  void register_values(Scanner& in, uint32_t registers);
  uint32_t intern(const RawInstruction& instruction);
  uint32_t intern_opcode(std::string_view opcode);
  [[noreturn]] void fail(const std::string& reason) const;

  TraceSink& sink_;
  State state_ = State::Header;
  std::string partial_;  ///< the beginning of a line whose end has not been fed yet
  bool header_seen_ = false;
  bool position_seen_ = false;
  bool cta_open_ = false;
  LaunchInfo launch_;
  uint32_t version_ = 0;
  bool line_info_ = false;
  CtaPosition position_;
  int64_t warp_ = -1;
  bool warp_announced_ = false;
  uint64_t idle_lines_ = 0;
  uint64_t left_ = 0;  ///< instructions of this warp still to come
  Counts counts_;
  std::map<uint32_t, uint64_t> null_accesses_;
  TraceRecord record_;
  std::vector<RawInstruction> instructions_;
  std::vector<std::string> opcodes_;
  std::unordered_map<std::string, uint32_t> opcode_index_;
  std::unordered_multimap<uint64_t, uint32_t> instruction_index_;
  std::vector<KnownLine> known_;
};

}  // namespace simt
