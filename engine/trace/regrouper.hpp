#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace simt {

enum class TraceLayout { Unknown, Grouped, Ungrouped };

/// Whether a trace's lines are grouped by warp, judged by its beginning; Unknown if the beginning is too
/// short.
TraceLayout trace_layout(std::string_view beginning);

/// Sorts the lines of an ungrouped trace, as the tracer itself writes it, by CTA and warp. The caller takes
/// the buffered lines whenever there are many; the pieces of a warp then follow each other in the order in
/// which they are taken.
class Regrouper {
 public:
  /// For LDGSTS, the tracer writes two lines; only the second (the global access) is kept.
  struct Piece {
    std::array<uint32_t, 3> cta{};
    uint32_t warp = 0;
    std::array<uint32_t, 7> cluster{};  ///< cluster, CTA in the cluster, rank; version 6
    uint64_t instructions = 0;
    std::string lines;
  };

  /// Throws TraceError if a line does not begin with a CTA and a warp.
  void feed(std::string_view text);
  void finish();
  /// The header's lines.
  const std::string& header() const { return header_; }
  uint64_t buffered_bytes() const { return buffered_; }
  /// The buffered lines, in the order of CTAs and warps.
  std::vector<Piece> take_pieces();

 private:
  struct Key {
    uint32_t z, y, x, warp;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Warp {
    Piece piece;
    std::string held;  ///< the first line of an LDGSTS pair
  };

  void line(std::string_view text);
  void header_line(std::string_view text);
  [[noreturn]] void fail(const std::string& reason) const;

  std::string header_;
  bool in_header_ = true;
  uint32_t version_ = 0;
  bool line_info_ = false;
  int prefix_ = 0;  ///< integers before each instruction; 0 before the first one
  uint64_t line_number_ = 0;
  std::string partial_;
  std::map<Key, Warp> warps_;
  uint64_t buffered_ = 0;
};

}  // namespace simt
