/// System functions for device code: printf, assert, malloc and free.
#include "operations/builtins.hpp"

#include <locale.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "machine/access.hpp"
#include "machine/calls.hpp"
#include "machine/fault.hpp"

namespace simt::functional {
namespace {

// --- arguments and memory -----------------------------------------------------------------------------

template <class T>
T argument(const Context& c, const Op& op, size_t index, int lane) {
  const StackSlot& slot = op.details<CallSite>().arguments[index];
  if (op.details<CallSite>().in_registers) {
    const uint32_t* rows = c.lanes<const uint32_t>(slot.offset) + lane;
    const uint64_t bits = rows[0] | (slot.bytes > 4 ? uint64_t{rows[warp_lanes]} << 32 : 0);
    return static_cast<T>(bits);
  }
  const std::byte* local = c.cta->local(c.warp->number(), static_cast<uint32_t>(lane));
  T value{};
  std::memcpy(&value, local + c.stack + slot.offset, std::min<size_t>(sizeof value, slot.bytes));
  return value;
}

template <class T>
void set_result(const Context& c, const Op& op, int lane, T value) {
  const StackSlot& slot = op.details<CallSite>().results[0];
  if (op.details<CallSite>().in_registers) {
    uint32_t* rows = c.lanes<uint32_t>(slot.offset) + lane;
    const auto bits = static_cast<uint64_t>(value);
    rows[0] = static_cast<uint32_t>(bits);
    if (slot.bytes > 4) rows[warp_lanes] = static_cast<uint32_t>(bits >> 32);
    return;
  }
  std::byte* local = c.cta->local(c.warp->number(), static_cast<uint32_t>(lane));
  std::memcpy(local + c.stack + slot.offset, &value, std::min<size_t>(sizeof value, slot.bytes));
}

template <class T>
T read(Context& c, uint64_t address, int lane) {
  T value;
  std::memcpy(&value, c.generic(address, sizeof value, lane), sizeof value);
  return value;
}

std::string read_string(Context& c, uint64_t address, int lane) {
  if (address == 0) return "(null)";
  std::string text;
  while (const char next = read<char>(c, address++, lane)) text += next;
  return text;
}

// --- printf -------------------------------------------------------------------------------------------

constexpr int widest = 1 << 20;  ///< characters per conversion: the total size of CUDA's buffer

/// A conversion specification: %[flags][width][.precision][length]type.
struct Conversion {
  std::string flags;
  int width = -1, precision = -1;  ///< -1: not given
  std::string length;
  char type = 0;
};

template <class T>
void convert(std::string& out, const Conversion& conversion, const char* length, T value) {
  // Numbers are printed as in C, regardless of the host program's locale.
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  std::string format = "%" + conversion.flags;
  if (conversion.width >= 0) format += std::to_string(conversion.width);
  if (conversion.precision >= 0) format += "." + std::to_string(conversion.precision);
  format += length;
  format += conversion.type;
  const locale_t before = uselocale(plain);
  const int count = std::snprintf(nullptr, 0, format.c_str(), value);
  const size_t at = out.size();
  out.resize(at + static_cast<size_t>(std::max(0, count)) + 1);
  std::snprintf(&out[at], out.size() - at, format.c_str(), value);
  out.pop_back();
  uselocale(before);
}

/// A printf's arguments in memory, each aligned to its size.
class PrintArguments {
 public:
  PrintArguments(Context& context, uint64_t address, int lane)
      : context_(context), address_(address), lane_(lane) {}

  template <class T>
  T take() {
    address_ = (address_ + sizeof(T) - 1) & ~(sizeof(T) - 1);
    const T value = read<T>(context_, address_, lane_);
    address_ += sizeof(T);
    ++taken;
    return value;
  }
  std::string take_string() { return read_string(context_, take<uint64_t>(), lane_); }

  int32_t taken = 0;

 private:
  Context& context_;
  uint64_t address_;
  int lane_;
};

/// A number, or * for the next argument. -1 if there is neither.
int number(const std::string& format, size_t& at, PrintArguments& arguments) {
  if (at < format.size() && format[at] == '*') {
    ++at;
    return std::clamp(arguments.take<int32_t>(), -widest, widest);
  }
  int value = -1;
  while (at < format.size() && format[at] >= '0' && format[at] <= '9')
    value = std::min(widest, std::max(0, value) * 10 + (format[at++] - '0'));
  return value;
}

/// Formats as C's printf does. Text outside conversions is copied.
std::string formatted(const std::string& format, PrintArguments& arguments) {
  std::string out;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    const size_t begin = at++;
    Conversion c;
    while (at < format.size() && std::string_view("-+ #0").find(format[at]) != std::string_view::npos)
      c.flags += format[at++];
    c.width = number(format, at, arguments);
    if (c.width < -1) {
      c.flags += '-';
      c.width = -c.width;
    }
    if (at < format.size() && format[at] == '.') {
      ++at;
      const bool given = at < format.size() && format[at] == '*';
      c.precision = number(format, at, arguments);
      if (!given) c.precision = std::max(0, c.precision);  // "." alone means 0, a negative * no precision
    }
    while (at < format.size() && std::string_view("hlLqjzt").find(format[at]) != std::string_view::npos)
      c.length += format[at++];
    c.type = at < format.size() ? format[at++] : '\0';
    const bool is_long = !c.length.empty() && c.length[0] != 'h' && c.length[0] != 'L';
    switch (c.type) {
      case '%':
        out += '%';
        break;
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        if (is_long)
          convert(out, c, "ll", arguments.take<long long>());
        else
          convert(out, c, c.length == "h" ? "h" : c.length == "hh" ? "hh" : "", arguments.take<int>());
        break;
      case 'c':
        convert(out, c, "", arguments.take<int>());
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        convert(out, c, "", arguments.take<double>());
        break;
      case 's':
        convert(out, c, "", arguments.take_string().c_str());
        break;
      case 'p':
        convert(out, c, "", reinterpret_cast<void*>(arguments.take<uint64_t>()));
        break;
      default:
        out.append(format, begin, at - begin);
    }
  }
  return out;
}

void run_vprintf(Context& c, const Op& op) {
  std::string all;
  each_lane(c, [&](int lane) {
    const auto format = argument<uint64_t>(c, op, 0, lane);
    if (format == 0) {
      set_result<int32_t>(c, op, lane, -1);
      return;
    }
    PrintArguments arguments(c, argument<uint64_t>(c, op, 1, lane), lane);
    all += formatted(read_string(c, format, lane), arguments);
    set_result<int32_t>(c, op, lane, arguments.taken);
  });
  c.grid->print(c, all);
}

// --- assert -------------------------------------------------------------------------------------------

/// void __assertfail(const char* message, const char* file, unsigned line, const char* function, size_t)
void run_assertion_failure(Context& c, const Op& op) {
  const int lane = c.first_lane();
  const auto text = [&](size_t index) {
    return read_string(c, argument<uint64_t>(c, op, index, lane), lane);
  };
  throw Fault("assert",
              "assertion `" + text(0) + "` failed in `" + text(3) + "`, " + text(1) + ":" +
                  std::to_string(argument<uint32_t>(c, op, 2, lane)),
              lane);
}

// --- malloc and free ----------------------------------------------------------------------------------

void perform_malloc(Context& c, DeferredAccess& access) {
  each_lane(c, [&](int lane) {
    const uint64_t address =
        c.memory->allocate(access.value[0][lane], "malloc in " + c.grid->kernel().name, Owner::Kernel);
    set_result(c, *access.op, lane, address);
  });
}

void perform_free(Context& c, DeferredAccess& access) {
  each_lane(c, [&](int lane) {
    const uint64_t address = access.value[0][lane];
    if (c.observer)
      if (const Allocation* gone = c.memory->find(address, 1); gone && gone->address == address)
        c.observer->touches(c, address, gone->size, lane, true);
    if (address == 0 || c.memory->free(address, Owner::Kernel)) return;
    Fault fault("invalid free",
                "free of " + hex(address) + ", which no malloc in a kernel has returned, or which is free: " +
                    c.memory->describe(address),
                lane);
    fault.address = address;
    fault.has_address = true;
    throw fault;
  });
}

/// All threads share one heap, and use it one at a time, as if each performed an atomic operation on it.
template <void (*perform)(Context&, DeferredAccess&)>
void run_on_heap(Context& c, const Op& op) {
  alignas(64) uint64_t head[warp_lanes];
  std::fill(head, head + warp_lanes, c.memory->base() + c.memory->capacity());
  record_access(c, AccessSpace::Global, head);
  DeferredAccess now;
  DeferredAccess& access = c.deferred ? defer(c, op, c.mask, head, perform) : now;
  access.op = &op;
  each_lane(c, [&](int lane) { access.value[0][lane] = argument<uint64_t>(c, op, 0, lane); });
  if (!c.deferred) perform(c, access);
}

// --- alloca -------------------------------------------------------------------------------------------

}  // namespace

const Builtin* find_builtin(std::string_view name) {
  static constexpr std::pair<std::string_view, Builtin> builtins[] = {
      {"vprintf", {run_vprintf, 2, 1, false}},
      {"__assertfail", {run_assertion_failure, 5, 0, false}},
      {"__assert_fail", {run_assertion_failure, 4, 0, false}},
      {"malloc", {run_on_heap<perform_malloc>, 1, 1, true}},
      {"free", {run_on_heap<perform_free>, 1, 0, true}},
  };
  for (const auto& [known, builtin] : builtins)
    if (known == name) return &builtin;
  return nullptr;
}

}  // namespace simt::functional
