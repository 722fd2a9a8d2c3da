#include "ptx/module.hpp"

#include <cctype>

namespace simt::ptx {

namespace {

struct TypeFacts {
  std::string_view name;
  uint8_t bytes;
  bool is_float;
  bool is_signed;
};

constexpr TypeFacts type_facts[] = {
    {"", 0, false, false},        {"b1", 0, false, false},     {"b8", 1, false, false},
    {"b16", 2, false, false},     {"b32", 4, false, false},    {"b64", 8, false, false},
    {"b128", 16, false, false},   {"u8", 1, false, false},     {"u16", 2, false, false},
    {"u32", 4, false, false},     {"u64", 8, false, false},    {"s8", 1, false, true},
    {"s16", 2, false, true},      {"s32", 4, false, true},     {"s64", 8, false, true},
    {"f16", 2, true, true},       {"f16x2", 4, true, true},    {"bf16", 2, true, true},
    {"bf16x2", 4, true, true},    {"tf32", 4, true, true},     {"f32", 4, true, true},
    {"f32x2", 8, true, true},     {"f64", 8, true, true},      {"e4m3", 1, true, true},
    {"e5m2", 1, true, true},      {"e3m2", 1, true, true},     {"e2m3", 1, true, true},
    {"e2m1", 1, true, true},      {"e4m3x2", 2, true, true},   {"e5m2x2", 2, true, true},
    {"u16x2", 4, false, false},   {"s16x2", 4, false, true},   {"u8x4", 4, false, false},
    {"s8x4", 4, false, true},     {"u4", 0, false, false},     {"s4", 0, false, true},
    {"pred", 0, false, false},    {"texref", 8, false, false}, {"samplerref", 8, false, false},
    {"surfref", 8, false, false},
};
constexpr size_t type_count = static_cast<size_t>(Type::Surfref) + 1;
static_assert(std::size(type_facts) == type_count);

const TypeFacts& facts_of(Type type) {
  return type_facts[static_cast<size_t>(type)];
}

}  // namespace

uint32_t bytes(Type type) {
  return facts_of(type).bytes;
}
bool is_float(Type type) {
  return facts_of(type).is_float;
}
bool is_signed(Type type) {
  return facts_of(type).is_signed;
}
bool is_opaque(Type type) {
  return type == Type::Texref || type == Type::Samplerref || type == Type::Surfref;
}
std::string_view name(Type type) {
  return facts_of(type).name;
}

Type type_named(std::string_view modifier) {
  if (modifier.empty()) return Type::None;
  for (size_t i = 1; i < type_count; ++i)
    if (type_facts[i].name == modifier) return static_cast<Type>(i);
  return Type::None;
}

Mnemonic::Mnemonic(std::string_view whole) : text(whole), opcode(whole.substr(0, whole.find('.'))) {
  for (size_t at = opcode.size(); at < text.size();) {
    const size_t stop = std::min(text.find('.', at + 1), text.size());
    modifiers.push_back(text.substr(at + 1, stop - at - 1));
    at = stop;
  }
  row = &instructions::find_ptx(text, modifiers);
}

std::vector<uint64_t> parameter_offsets(const std::vector<Variable>& parameters) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const Variable& parameter : parameters) {
    const uint64_t start = (end + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    offsets.push_back(start);
    end = start + parameter.size;
  }
  return offsets;
}

std::string_view Module::file(uint32_t number) const {
  for (const auto& [known, path] : files)
    if (known == number) return path;
  return {};
}

const Location& Module::own_location(uint32_t location) const {
  uint32_t at = location;
  while (at && is_library(file(locations[at].file))) at = locations[at].call;
  return locations[at ? at : location];
}

bool is_library(std::string_view path) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/", "/cuda/include/"})
    if (path.find(folder) != std::string_view::npos) return true;
  // /usr/local/cuda-13.0/targets/x86_64-linux/include/, .../nvidia/cu13/bin/../include/
  const size_t cuda = std::min(path.find("/cuda-"), path.find("/nvidia/cu"));
  return cuda != std::string_view::npos && path.find("/include/", cuda) != std::string_view::npos;
}

std::string line_text(const Module& module, uint32_t line) {
  const std::string& text = *module.text;
  size_t begin = 0;
  for (uint32_t l = 1; l < line; ++l) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return {};
    ++begin;
  }
  size_t end = std::min(text.find('\n', begin), text.size());
  while (begin < end && std::isspace(static_cast<unsigned char>(text[begin]))) ++begin;
  while (end > begin && std::isspace(static_cast<unsigned char>(text[end - 1]))) --end;
  return text.substr(begin, end - begin);
}

}  // namespace simt::ptx
