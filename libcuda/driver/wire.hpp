#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

// Messages between a program and simt: the subset of MessagePack (https://msgpack.org) that they use.

namespace simt::driver {

using Bytes = std::vector<std::byte>;

/// Appends values to a message.
class Writer {
 public:
  void array(size_t count) { head(0x90, 15, 0xdc, count); }
  void map(size_t count) { head(0x80, 15, 0xde, count); }
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
  void add(const char* text) { add(std::string_view(text)); }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(std::span<const std::byte> bytes) {
    byte(0xc6);
    big(bytes.size(), 4);
    raw(bytes.data(), bytes.size());
  }
  void add(const Bytes& bytes) { add(std::span<const std::byte>(bytes)); }
  template <class T, size_t N>
  void add(const std::array<T, N>& values) {
    array(N);
    for (const T& value : values) add(value);
  }
  template <class T>
  void add(const std::vector<T>& values) {
    array(values.size());
    for (const T& value : values) add(value);
  }

  template <class... Values>
  void add(const std::tuple<Values...>& values) {
    array(sizeof...(Values));
    std::apply([this](const auto&... each) { (add(each), ...); }, values);
  }

  Bytes& bytes() { return bytes_; }

 private:
  void byte(uint8_t value) { bytes_.push_back(std::byte{value}); }
  void big(uint64_t value, int bytes) {
    while (bytes--) byte(static_cast<uint8_t>(value >> (8 * bytes)));
  }
  void raw(const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }
  void head(uint8_t small, size_t most, uint8_t large, size_t count) {
    if (count <= most) {
      byte(static_cast<uint8_t>(small + count));
    } else {
      byte(static_cast<uint8_t>(large + 1));
      big(count, 4);
    }
  }

  Bytes bytes_;
};

/// An encoded array of these values.
template <class... Values>
Bytes array_of(const Values&... values) {
  Writer writer;
  writer.array(sizeof...(values));
  (writer.add(values), ...);
  return std::move(writer.bytes());
}

/// A received value: a number, text or bytes, an array, or a map from numbers or text.
struct Value {
  enum class Kind : uint8_t { Nothing, Integer, Real, Text, Array, Map };
  Kind kind = Kind::Nothing;
  uint64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Value> items;  ///< for a map: key, value, key, value, ...

  uint64_t number() const { return expect(Kind::Integer).integer; }
  const std::string& string() const { return expect(Kind::Text).text; }
  const Value& operator[](size_t i) const { return expect(Kind::Array).items.at(i); }
  size_t size() const { return items.size(); }
  /// The value of a key of a map; nullptr if it is missing.
  const Value* find(std::string_view key) const {
    for (size_t i = 0; i + 1 < items.size(); i += 2)
      if (items[i].text == key) return &items[i + 1];
    return nullptr;
  }
  const Value& at(std::string_view key) const {
    const Value* found = find(key);
    if (!found) throw std::runtime_error("simt's message lacks `" + std::string(key) + "`");
    return *found;
  }

 private:
  const Value& expect(Kind wanted) const {
    if (kind != wanted) throw std::runtime_error("simt's message has a value of another kind");
    return *this;
  }
};

/// Decodes a message. Throws std::runtime_error if it is truncated or malformed.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  Value read() {
    const uint8_t head = static_cast<uint8_t>(take(1)[0]);
    Value value;
    if (head < 0x80) return integer(head);
    if (head >= 0xe0) return integer(static_cast<uint64_t>(static_cast<int8_t>(head)));
    if (head < 0x90) return sequence(Value::Kind::Map, 2 * size_t{head & 15u});
    if (head < 0xa0) return sequence(Value::Kind::Array, head & 15u);
    if (head < 0xc0) return text(head & 31u);
    switch (head) {
      case 0xc0:
        return value;
      case 0xc2:
      case 0xc3:
        return integer(head & 1u);
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return text(big(1 << (head - 0xc4)));
      case 0xcb:
        value.kind = Value::Kind::Real;
        value.real = std::bit_cast<double>(big(8));
        return value;
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return integer(big(1 << (head - 0xcc)));
      case 0xd0:
        return integer(static_cast<uint64_t>(static_cast<int8_t>(big(1))));
      case 0xd1:
        return integer(static_cast<uint64_t>(static_cast<int16_t>(big(2))));
      case 0xd2:
        return integer(static_cast<uint64_t>(static_cast<int32_t>(big(4))));
      case 0xd3:
        return integer(big(8));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return text(big(1 << (head - 0xd9)));
      case 0xdc:
      case 0xdd:
        return sequence(Value::Kind::Array, big(2 << (head - 0xdc)));
      case 0xde:
      case 0xdf:
        return sequence(Value::Kind::Map, 2 * big(2 << (head - 0xde)));
      default:
        throw std::runtime_error("simt's message has an unknown value");
    }
  }

 private:
  std::span<const std::byte> take(size_t size) {
    if (size > left_.size()) throw std::runtime_error("simt's message ends too early");
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  uint64_t big(int bytes) {
    uint64_t value = 0;
    for (const std::byte b : take(static_cast<size_t>(bytes))) value = value << 8 | static_cast<uint8_t>(b);
    return value;
  }
  static Value integer(uint64_t number) {
    Value value;
    value.kind = Value::Kind::Integer;
    value.integer = number;
    return value;
  }
  Value text(size_t size) {
    Value value;
    value.kind = Value::Kind::Text;
    const auto bytes = take(size);
    value.text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return value;
  }
  Value sequence(Value::Kind kind, size_t count) {
    Value value;
    value.kind = kind;
    value.items.reserve(std::min(count, left_.size()));
    while (count--) value.items.push_back(read());
    return value;
  }

  std::span<const std::byte> left_;
};

}  // namespace simt::driver
