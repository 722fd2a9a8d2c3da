#include "trace/regrouper.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "isa/opcode.hpp"
#include "trace/text_format.hpp"
#include "trace/trace_error.hpp"

namespace simt {
namespace {

constexpr size_t max_header_bytes = 1 << 20;
constexpr uint32_t first_with_clusters = 6;
constexpr int short_prefix = 4;     // CTA, warp
constexpr int core_prefix = 6;      // and the SM and warp slot that it ran on
constexpr int cluster_prefix = 11;  // and its place in a cluster
constexpr size_t mask_digits = 8;

std::string_view next_token(std::string_view& text) {
  const size_t start = text.find_first_not_of(" \t\r");
  if (start == std::string_view::npos) {
    text = {};
    return {};
  }
  const size_t end = std::min(text.find_first_of(" \t\r", start), text.size());
  const std::string_view token = text.substr(start, end - start);
  text.remove_prefix(end);
  return token;
}

bool is_hex(std::string_view token) {
  return token.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

}  // namespace

TraceLayout trace_layout(std::string_view beginning) {
  bool in_header = true;
  while (true) {
    const size_t end = beginning.find('\n');
    if (end == std::string_view::npos) return TraceLayout::Unknown;
    std::string_view line = beginning.substr(0, end);
    beginning.remove_prefix(end + 1);
    const std::string_view token = next_token(line);
    if (token == "#BEGIN_TB") return TraceLayout::Grouped;
    if (token.empty()) continue;
    if (token[0] == '#')
      in_header = false;
    else if (!in_header)
      return token[0] >= '0' && token[0] <= '9' ? TraceLayout::Ungrouped : TraceLayout::Grouped;
    else if (token[0] != '-')
      return TraceLayout::Grouped;  // not a trace; the parser reports the error
  }
}

void Regrouper::fail(const std::string& reason) const {
  throw TraceError(line_number_, reason);
}

void Regrouper::feed(std::string_view text) {
  while (!text.empty()) {
    const auto* newline = static_cast<const char*>(std::memchr(text.data(), '\n', text.size()));
    const size_t length = newline ? static_cast<size_t>(newline - text.data()) : text.size();
    if (partial_.size() + length > max_line_bytes) fail("the line is too long; this is not a kernel trace");
    partial_.append(text.substr(0, length));
    if (!newline) return;
    ++line_number_;
    line(partial_);
    partial_.clear();
    text.remove_prefix(length + 1);
  }
}

void Regrouper::finish() {
  if (!partial_.empty()) {
    ++line_number_;
    line(partial_);
    partial_.clear();
  }
  for (auto& [key, warp] : warps_) {
    if (warp.held.empty()) continue;
    warp.piece.lines += warp.held;
    ++warp.piece.instructions;
    warp.held.clear();
  }
}

void Regrouper::header_line(std::string_view text) {
  if (header_.size() + text.size() > max_header_bytes)
    fail("the header is too long; this is not a kernel trace");
  header_.append(text).push_back('\n');
  if (text[0] == '#') {
    in_header_ = false;
    return;
  }
  const size_t equals = text.find("= ");
  if (equals == std::string_view::npos) return;
  std::string_view value = text.substr(equals + 1);
  const std::string_view number = next_token(value);
  if (text.substr(0, equals).find("accelsim tracer version") != std::string_view::npos)
    std::from_chars(number.data(), number.data() + number.size(), version_);
  if (text.substr(0, equals).find("enable lineinfo") != std::string_view::npos) line_info_ = number == "1";
}

void Regrouper::line(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r");
  if (start == std::string_view::npos) return;
  if (in_header_) {
    header_line(text.substr(start));
    return;
  }
  if (text[start] == '#') return;

  std::string_view rest = text;
  std::array<uint32_t, cluster_prefix> prefix{};
  if (prefix_ == 0) {
    // If the tracer also writes the SM, the mask of eight digits comes two positions later.
    prefix_ = version_ >= first_with_clusters ? cluster_prefix : short_prefix;
    if (prefix_ == short_prefix) {
      std::string_view ahead = text;
      std::string_view token;
      for (int i = 0; i < short_prefix + line_info_ + 2; ++i) token = next_token(ahead);
      if (token.size() != mask_digits || !is_hex(token)) prefix_ = core_prefix;
    }
  }
  for (int i = 0; i < prefix_; ++i) {
    const std::string_view token = next_token(rest);
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), prefix[i]);
    if (token.empty() || error != std::errc{} || end != token.data() + token.size())
      fail("a line of this un-grouped trace does not begin with thread block and warp");
  }

  std::string kept;
  if (version_ < first_without_prefix)
    for (int i = 0; i < short_prefix; ++i) kept += std::to_string(prefix[i]) + " ";
  kept.append(rest.substr(std::min(rest.find_first_not_of(" \t"), rest.size())));
  kept.push_back('\n');

  // The opcode follows the PC, the mask and the destination registers.
  std::string_view ahead = rest;
  for (int i = 0; i < line_info_ + 2; ++i) next_token(ahead);
  uint32_t destinations = 0;
  const std::string_view count = next_token(ahead);
  std::from_chars(count.data(), count.data() + count.size(), destinations);
  for (uint32_t i = 0; i < destinations && !ahead.empty(); ++i) next_token(ahead);
  const std::string_view opcode = next_token(ahead);
  const bool pairs = opcode_row(opcode).classes.newest().operation == Operation::AsyncCopy;

  Warp& warp = warps_[{prefix[2], prefix[1], prefix[0], prefix[3]}];
  Piece& piece = warp.piece;
  piece.cta = {prefix[0], prefix[1], prefix[2]};
  piece.warp = prefix[3];
  if (prefix_ == cluster_prefix)
    for (size_t i = 0; i < piece.cluster.size(); ++i) piece.cluster[i] = prefix[i + 4];
  if (pairs && warp.held.empty()) {
    buffered_ += kept.size();
    warp.held = std::move(kept);
    return;
  }
  if (!pairs && !warp.held.empty()) {
    piece.lines += warp.held;
    ++piece.instructions;
  }
  warp.held.clear();
  buffered_ += kept.size();
  piece.lines += kept;
  ++piece.instructions;
}

std::vector<Regrouper::Piece> Regrouper::take_pieces() {
  std::vector<Piece> pieces;
  buffered_ = 0;
  for (auto it = warps_.begin(); it != warps_.end();) {
    Warp& warp = it->second;
    if (warp.piece.instructions > 0) {
      pieces.push_back(std::move(warp.piece));
      warp.piece = {};
    }
    buffered_ += warp.held.size();
    it = warp.held.empty() ? warps_.erase(it) : std::next(it);
  }
  return pieces;
}

}  // namespace simt
