#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Messages between a program and simt: the subset of MessagePack (https://msgpack.org) that they use.

namespace simt::driver {

using Bytes = std::vector<std::byte>;

class Writer;
class Reader;
/// A message that is sent, and one that is received (requests.hpp).
template <class T>
concept Sent = requires(const T& message, Writer& writer) { message.write(writer); };
template <class T>
concept Received = requires(T& message, Reader& reader) { message.read(reader); };
/// A value of an enumeration, sent as text.
template <class T>
concept Named = std::is_enum_v<T> && requires(T value) { text_of(value); };

/// Appends values to a message.
class Writer {
 public:
  template <std::integral T>
  void add(T value) {
    if constexpr (std::same_as<T, bool>) {
      byte(value ? 0xc3 : 0xc2);
    } else if (value < 0) {
      byte(0xd3);
      big(static_cast<uint64_t>(static_cast<int64_t>(value)), 8);
    } else if (static_cast<uint64_t>(value) < 128) {
      byte(static_cast<uint8_t>(value));
    } else {
      byte(0xcf);
      big(static_cast<uint64_t>(value), 8);
    }
  }
  void add(double value) {
    byte(0xcb);
    big(std::bit_cast<uint64_t>(value), 8);
  }
  void add(std::string_view text) {
    byte(0xdb);
    big(text.size(), 4);
    raw(text.data(), text.size());
  }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(std::span<const std::byte> bytes) {
    byte(0xc6);
    big(bytes.size(), 4);
    raw(bytes.data(), bytes.size());
  }
  void add(const Bytes& bytes) { add(std::span<const std::byte>(bytes)); }
  void add(Named auto value) { add(text_of(value)); }
  template <class T, size_t N>
  void add(const std::array<T, N>& values) {
    add(std::span<const T>(values));
  }
  template <class T>
  void add(std::span<const T> values) {
    array(values.size());
    for (const T& value : values) add(value);
  }
  template <class T>
  void add(const std::optional<T>& value) {
    if (value)
      add(*value);
    else
      byte(0xc0);
  }
  void add(const Sent auto& message) { message.write(*this); }

  /// An array of these values.
  template <class... Values>
  void values(const Values&... values) {
    array(sizeof...(values));
    (add(values), ...);
  }

  Bytes& bytes() { return bytes_; }

 private:
  void array(size_t count) {
    if (count < 16) return byte(static_cast<uint8_t>(0x90 + count));
    byte(0xdd);
    big(count, 4);
  }
  void byte(uint8_t value) { bytes_.push_back(std::byte{value}); }
  void big(uint64_t value, int bytes) {
    while (bytes--) byte(static_cast<uint8_t>(value >> (8 * bytes)));
  }
  void raw(const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }

  Bytes bytes_;
};

Bytes encoded(const Sent auto& message) {
  Writer writer;
  message.write(writer);
  return std::move(writer.bytes());
}

/// Decodes a message. Throws std::runtime_error if it is truncated, or not what is expected.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  /// Whether a number of 0 or more follows.
  bool at_number() const {
    if (left_.empty()) return false;
    const auto head = static_cast<uint8_t>(left_[0]);
    return head < 0x80 || (head >= 0xcc && head <= 0xcf);
  }

  void read(bool& value) {
    const uint8_t head = next();
    expect(head == 0xc2 || head == 0xc3);
    value = head == 0xc3;
  }
  template <std::integral T>
  void read(T& value) {
    const uint8_t head = next();
    if (head < 0x80) return store(value, head);
    if (head >= 0xe0) return store(value, static_cast<int8_t>(head));
    if (head >= 0xcc && head <= 0xcf) return store(value, big(1 << (head - 0xcc)));
    expect(head >= 0xd0 && head <= 0xd3);
    const int bits = 8 << (head - 0xd0);
    store(value, static_cast<int64_t>(big(bits / 8) << (64 - bits)) >> (64 - bits));
  }
  void read(double& value) {
    expect(next() == 0xcb);
    value = std::bit_cast<double>(big(8));
  }
  void read(std::string& text) {
    const auto found = take(length(0xa0, 32, 0xd9));
    text.assign(reinterpret_cast<const char*>(found.data()), found.size());
  }
  void read(Bytes& bytes) {
    const auto found = take(length(0, 0, 0xc4));
    bytes.assign(found.begin(), found.end());
  }
  template <class T, size_t N>
  void read(std::array<T, N>& values) {
    expect(array() == N);
    for (T& value : values) read(value);
  }
  template <class T>
  void read(std::vector<T>& values) {
    values.clear();
    for (size_t left = array(); left > 0; --left) read(values.emplace_back());
  }
  template <class Key, class T>
  void read(std::map<Key, T>& values) {
    values.clear();
    for (size_t left = length(0x80, 16, 0xde, 2); left > 0; --left) {
      Key key{};
      read(key);
      read(values[key]);
    }
  }
  template <class T>
  void read(std::optional<T>& value) {
    value.reset();
    if (!left_.empty() && left_[0] == std::byte{0xc0})
      next();
    else
      read(value.emplace());
  }
  void read(Received auto& message) { message.read(*this); }

  /// The array of these values.
  template <class... Values>
  void values(Values&... values) {
    expect(array() == sizeof...(values));
    (read(values), ...);
  }

 private:
  static void expect(bool holds) {
    if (!holds) throw std::runtime_error("simt's message is not the expected one");
  }
  template <class T, class Found>
  static void store(T& value, Found found) {
    expect(std::in_range<T>(found));
    value = static_cast<T>(found);
  }
  std::span<const std::byte> take(size_t size) {
    if (size > left_.size()) throw std::runtime_error("simt's message ends too early");
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  uint8_t next() { return static_cast<uint8_t>(take(1)[0]); }
  uint64_t big(int bytes) {
    uint64_t value = 0;
    for (const std::byte b : take(static_cast<size_t>(bytes))) value = value << 8 | static_cast<uint8_t>(b);
    return value;
  }
  size_t array() { return length(0x90, 16, 0xdc, 2); }
  /// small: the first of the heads that are for less than `end`. large: the first of those that a length
  /// follows, of `bytes` bytes and then of twice as many.
  size_t length(uint8_t small, uint8_t end, uint8_t large, int bytes = 1) {
    const uint8_t head = next();
    if (head >= small && head < small + end) return head - small;
    expect(head >= large && (bytes << (head - large)) <= 4);
    return big(bytes << (head - large));
  }

  std::span<const std::byte> left_;
};

}  // namespace simt::driver
