#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "process.hpp"
#include "ranges.hpp"

// NVTX, version 3: a program's copy of it loads the library that NVTX_INJECTION64_PATH names, which is this
// one, and calls InitializeInjectionNvtx2. The names, numbers and layouts are those of NVIDIA's headers
// (nvtx3/nvToolsExt.h and nvtx3/nvtxDetail/nvtxTypes.h). Marks, categories and names of threads and streams
// are left to NVTX, which ignores them.

namespace simt::driver::nvtx {
namespace {

struct Attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  union {
    const char* bytes;
    const wchar_t* wide;
    const std::string* registered;
  } message;
};
static_assert(sizeof(Attributes) == 48);
enum MessageType : int32_t { message_bytes = 1, message_wide = 2, message_registered = 3 };

/// What a handle of NVTX points to. Handles stay valid to the end of the process.
using Domain = std::string;

std::string utf8(const wchar_t* text) {
  std::string out;
  for (; text && *text; ++text) {
    const auto code = static_cast<uint32_t>(*text);
    const auto follow = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xc0 | code >> 6);
      follow(0);
    } else if (code < 0x10000) {
      out += static_cast<char>(0xe0 | code >> 12);
      follow(6);
      follow(0);
    } else {
      out += static_cast<char>(0xf0 | (code >> 18 & 7));
      follow(12);
      follow(6);
      follow(0);
    }
  }
  return out;
}

std::string text_of(const char* text) {
  return text ? text : "";
}
std::string text_of(const wchar_t* text) {
  return utf8(text);
}
std::string text_of(const Attributes* event) {
  if (!event) return "";
  switch (event->message_type) {
    case message_bytes:
      return text_of(event->message.bytes);
    case message_wide:
      return text_of(event->message.wide);
    case message_registered:
      return event->message.registered ? *event->message.registered : "";
    default:
      return "";
  }
}

const std::string* interned(const std::string& text) {
  static std::set<std::string> known;
  return &*known.insert(text).first;
}

std::map<uint64_t, std::string> started;  // by the number that the program was given
thread_local std::map<const Domain*, std::vector<std::string>> pushed;

/// Runs it with the process's lock. Without simt, which has said so, the program goes on.
template <class Body>
auto locked(const Body& body) noexcept -> decltype(body()) {
  const std::lock_guard guard(Process::get().lock);
  try {
    return body();
  } catch (const Failure&) {
    return decltype(body())();
  }
}

uint64_t start(const std::string& name) {
  static uint64_t last = 0;
  return locked([&] {
    started[++last] = name;
    open_range(name);
    return last;
  });
}

void end(uint64_t number) {
  locked([&] {
    const auto found = started.find(number);
    if (found == started.end()) return;
    const std::string name = found->second;
    started.erase(found);
    close_range(name);
  });
}

/// Returns the number of ranges around it.
int push(const Domain* domain, const std::string& name) {
  return locked([&] {
    auto& stack = pushed[domain];
    stack.push_back(name);
    open_range(name);
    return static_cast<int>(stack.size()) - 1;
  });
}

int pop(const Domain* domain) {
  return locked([&] {
    auto& stack = pushed[domain];
    if (stack.empty()) return -1;
    const std::string name = stack.back();
    stack.pop_back();
    close_range(name);
    return static_cast<int>(stack.size());
  });
}

template <class T>
uint64_t range_start(T text) {
  return start(text_of(text));
}
template <class T>
int range_push(T text) {
  return push(nullptr, text_of(text));
}
int range_pop() {
  return pop(nullptr);
}
uint64_t domain_range_start(const Domain*, const Attributes* event) {
  return start(text_of(event));
}
void domain_range_end(const Domain*, uint64_t number) {
  end(number);
}
int domain_range_push(const Domain* domain, const Attributes* event) {
  return push(domain, text_of(event));
}
template <class T>
const std::string* register_string(const Domain*, T text) {
  return locked([&] { return interned(text_of(text)); });
}
template <class T>
const Domain* create_domain(T name) {
  return locked([&] { return static_cast<const Domain*>(interned(text_of(name))); });
}

using Function = void (*)();
using Table = Function**;  // pointers to NVTX's pointers to its functions
struct ExportedCallbacks {
  size_t size;
  int (*table_of)(int module, Table* table, unsigned* count);
};
using ExportedTable = const void* (*)(uint32_t number);
constexpr uint32_t callbacks_number = 1;
constexpr int core_module = 1, domain_module = 5;

template <class F>
void set(Table table, unsigned count, unsigned number, F* function) {
  if (number < count && table[number]) *table[number] = reinterpret_cast<Function>(function);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(ExportedTable exported) {
  const auto* callbacks = static_cast<const ExportedCallbacks*>(exported(callbacks_number));
  Table table = nullptr;
  unsigned count = 0;
  if (!callbacks || callbacks->size < sizeof *callbacks) return 0;
  if (callbacks->table_of(core_module, &table, &count)) {
    set(table, count, 4, range_start<const Attributes*>);
    set(table, count, 5, range_start<const char*>);
    set(table, count, 6, range_start<const wchar_t*>);
    set(table, count, 7, end);
    set(table, count, 8, range_push<const Attributes*>);
    set(table, count, 9, range_push<const char*>);
    set(table, count, 10, range_push<const wchar_t*>);
    set(table, count, 11, range_pop);
  }
  if (callbacks->table_of(domain_module, &table, &count)) {
    set(table, count, 2, domain_range_start);
    set(table, count, 3, domain_range_end);
    set(table, count, 4, domain_range_push);
    set(table, count, 5, pop);
    set(table, count, 10, register_string<const char*>);
    set(table, count, 11, register_string<const wchar_t*>);
    set(table, count, 12, create_domain<const char*>);
    set(table, count, 13, create_domain<const wchar_t*>);
  }
  return 1;
}

}  // namespace simt::driver::nvtx
