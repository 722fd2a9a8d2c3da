#include "spec.hpp"

#include <nanobind/stl/string.h>

#include <cmath>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings.hpp"
#include "timing/memory/dram_scheduler.hpp"
#include "timing/memory/hash.hpp"
#include "timing/memory/replacement.hpp"
#include "timing/memory/write_policy.hpp"
#include "timing/schedulers/warp_scheduler.hpp"

namespace nb = nanobind;
using namespace simt;

namespace {

struct FieldText {
  const char* name;
  const char* unit;
  Range range;
  const char* meaning;
};

template <class E>
struct EnumName {
  E value;
  const char* name;
  const char* meaning;
};

// The names and meanings that names_of() and kind_of() return for enums and kinds of policies.
#define SIMT_NAME(enumerator, name, meaning) {E::enumerator, name, meaning},
#define SIMT_DEFINE(Enum, NAMES)                                                  \
  constexpr const char* kind_of(Enum) {                                           \
    return #Enum;                                                                 \
  }                                                                               \
  std::initializer_list<EnumName<Enum>> names_of(Enum) {                          \
    using E = Enum;                                                               \
    static constexpr std::initializer_list<EnumName<E>> all = {NAMES(SIMT_NAME)}; \
    return all;                                                                   \
  }
SIMT_ENUMS(SIMT_DEFINE)
#undef SIMT_DEFINE
#undef SIMT_NAME

template <class Policy>
constexpr const char* kind_of(Choice<Policy>) {
  return Policy::kind;
}

template <class T>
constexpr bool is_choice = false;
template <class Policy>
constexpr bool is_choice<Choice<Policy>> = true;

template <class T>
constexpr bool is_list =
    std::is_same_v<T, std::vector<uint32_t>> || std::is_same_v<T, std::vector<std::string>>;

// visit(v, section) calls v(FieldText, field) for each field of a section; section_of() returns its name.
#define SIMT_VISIT(type, name, unit, range, meaning) v(FieldText{#name, unit, range, meaning}, s.name);
#define SIMT_DEFINE(Section, FIELDS, meaning)              \
  constexpr const char* section_of(const Section##Spec&) { \
    return #Section;                                       \
  }                                                        \
  template <class V>                                       \
  void visit(V& v, Section##Spec& s) {                     \
    FIELDS(SIMT_VISIT)                                     \
  }
SIMT_INNER_SECTIONS(SIMT_DEFINE)
constexpr const char* section_of(const UnitsSpec&) {
  return "Units";
}
template <class V>
void visit(V& v, UnitsSpec& units) {
#define SIMT_UNIT(enumerator, name, meaning) \
  v(FieldText{name, "", ranges::none, meaning}, units[static_cast<size_t>(Unit::enumerator)]);
  SIMT_EXECUTION_UNITS(SIMT_UNIT)
#undef SIMT_UNIT
}
SIMT_OUTER_SECTIONS(SIMT_DEFINE)
template <class V>
void visit(V& v, Spec& s) {
  SIMT_SPEC_FIELDS(SIMT_VISIT)
}
#undef SIMT_DEFINE
#undef SIMT_VISIT
/// Whether a registered policy is not part of simt: those are called name@hash.
bool is_outside(std::string_view name) {
  return name.find('@') != std::string_view::npos;
}

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw std::invalid_argument("specification: " + path + ": " + reason);
}

std::string text_of(const Range& range) {
  return (range.power_of_two ? "a power of two, " : "") + std::to_string(range.least) + " to " +
         std::to_string(range.most);
}

/// Fills a struct's fields from a dict with exactly their names as keys.
class Reader {
 public:
  Reader(nb::dict values, std::string prefix) : values_(std::move(values)), prefix_(std::move(prefix)) {}

  template <class T>
  void operator()(const FieldText& text, T& field) {
    known_.emplace_back(text.name);
    const nb::str key(text.name);
    if (!values_.contains(key)) refuse(prefix_ + text.name, "missing");
    read(prefix_ + text.name, values_[key], text.range, field);
  }

  void finish() const {
    for (auto [key, value] : values_) {
      const std::string name = nb::cast<std::string>(nb::str(key));
      bool found = false;
      for (const auto& k : known_) found = found || k == name;
      if (!found) refuse(prefix_ + name, "unknown");
    }
  }

  template <class T>
  static void read(const std::string& path, nb::handle value, const Range& range, T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!nb::isinstance<nb::bool_>(value)) refuse(path, "expected a bool");
      field = nb::cast<bool>(value);
    } else if constexpr (std::is_integral_v<T>) {
      if (nb::isinstance<nb::bool_>(value) || !nb::try_cast(value, field, false) || !range.has(field))
        refuse(path, "expected an integer, " + text_of(range));
    } else if constexpr (std::is_same_v<T, Frequency>) {
      double mhz = 0;
      if (!nb::try_cast(value, mhz) || !(mhz >= static_cast<double>(range.least)) ||
          mhz > static_cast<double>(range.most))
        refuse(path, "expected a number, " + text_of(range));
      field.khz = static_cast<uint64_t>(std::llround(mhz * 1000));
    } else if constexpr (std::is_enum_v<T>) {
      std::string expected;
      const std::string found = text(path, value);
      for (const auto& one : names_of(T{})) {
        if (found == one.name) {
          field = one.value;
          return;
        }
        expected += (expected.empty() ? "" : ", ") + std::string(one.name);
      }
      refuse(path, "found '" + found + "', expected one of " + expected);
    } else if constexpr (is_choice<T>) {
      const std::string found = text(path, value);
      field = T::named(found);
      if (field) return;
      std::string expected;
      for (const auto& [name, policy] : T::Registry::all())
        if (!is_outside(name)) expected += (expected.empty() ? "" : ", ") + std::string(name);
      refuse(path, "found '" + found + "', expected one of " + expected);
    } else if constexpr (std::is_same_v<T, std::string>) {
      field = text(path, value);
    } else if constexpr (is_list<T>) {
      if (!nb::isinstance<nb::list>(value)) refuse(path, "expected a list");
      field.clear();
      for (nb::handle item : nb::cast<nb::list>(value))
        read(path + "[" + std::to_string(field.size()) + "]", item, range, field.emplace_back());
    } else if constexpr (std::is_same_v<T, SpecialUnitsSpec>) {
      if (!nb::isinstance<nb::dict>(value)) refuse(path, "expected a dict");
      field.clear();
      for (auto [name, unit] : nb::cast<nb::dict>(value))
        read(path + "." + text(path, name), unit, range, field[text(path, name)]);
      if (field.size() > special_units)
        refuse(path, "found " + std::to_string(field.size()) + " units, expected at most " +
                         std::to_string(special_units));
    } else {
      if (!nb::isinstance<nb::dict>(value)) refuse(path, "expected a dict");
      Reader reader(nb::cast<nb::dict>(value), path + ".");
      visit(reader, field);
      reader.finish();
    }
  }

 private:
  static std::string text(const std::string& path, nb::handle value) {
    std::string found;
    if (!nb::try_cast(value, found)) refuse(path, "expected a string");
    return found;
  }

  nb::dict values_;
  std::string prefix_;
  std::vector<std::string> known_;
};

/// Makes the dict that Reader reads.
class Writer {
 public:
  template <class T>
  void operator()(const FieldText& text, T& field) {
    const char* name = text.name;
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      values[name] = field;
    } else if constexpr (std::is_same_v<T, Frequency>) {
      values[name] = static_cast<double>(field.khz) / 1000;
    } else if constexpr (std::is_enum_v<T>) {
      for (const auto& one : names_of(T{}))
        if (one.value == field) values[name] = one.name;
    } else if constexpr (is_choice<T>) {
      values[name] = std::string(field->name);
    } else if constexpr (is_list<T>) {
      nb::list list;
      for (const auto& item : field) list.append(item);
      values[name] = list;
    } else if constexpr (std::is_same_v<T, SpecialUnitsSpec>) {
      nb::dict units;
      for (auto& [unit_name, unit] : field) {
        Writer inner;
        visit(inner, unit);
        units[unit_name.c_str()] = inner.values;
      }
      values[name] = units;
    } else {
      Writer inner;
      visit(inner, field);
      values[name] = inner.values;
    }
  }

  nb::dict values;
};

/// Lists a section's fields, as spec_schema() returns them.
class Describer {
 public:
  template <class T>
  void operator()(const FieldText& text, T&) {
    nb::dict field;
    field["name"] = text.name;
    field["unit"] = text.unit;
    field["meaning"] = text.meaning;
    const auto has_type = [&](const char* type, const char* of = nullptr) {
      field["type"] = type;
      if (of) field["of"] = of;
    };
    if constexpr (std::is_same_v<T, bool>)
      has_type("flag");
    else if constexpr (std::is_integral_v<T>)
      has_type("integer");
    else if constexpr (std::is_same_v<T, Frequency>)
      has_type("frequency");
    else if constexpr (std::is_enum_v<T>)
      has_type("enum", kind_of(T{}));
    else if constexpr (is_choice<T>)
      has_type("policy", kind_of(T{}));
    else if constexpr (std::is_same_v<T, std::string>)
      has_type("text");
    else if constexpr (std::is_same_v<T, std::vector<uint32_t>>)
      has_type("integers");
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
      has_type("opcodes");
    else if constexpr (std::is_same_v<T, SpecialUnitsSpec>)
      has_type("sections", section_of(SpecialUnitSpec{}));
    else
      has_type("section", section_of(T{}));
    if (text.range.most > 0) {
      field["least"] = text.range.least;
      field["most"] = text.range.most;
      field["power_of_two"] = text.range.power_of_two;
    }
    if (text.range.may_be_absent) field["absent"] = text.range.absent;
    fields.append(field);
  }

  nb::list fields;
};

template <class Section>
nb::dict described(const char* name, const char* meaning) {
  Describer describer;
  Section section{};
  visit(describer, section);
  nb::dict result;
  result["name"] = name;
  result["meaning"] = meaning;
  result["fields"] = describer.fields;
  return result;
}

python::SpecSchema schema() {
  nb::list sections;
#define SIMT_DESCRIBE(Section, FIELDS, meaning) sections.append(described<Section##Spec>(#Section, meaning));
  SIMT_INNER_SECTIONS(SIMT_DESCRIBE)
  sections.append(described<UnitsSpec>("Units", "Execution units of an SM."));
  SIMT_OUTER_SECTIONS(SIMT_DESCRIBE)
#undef SIMT_DESCRIBE
  sections.append(described<Spec>("Spec", "One GPU."));
  nb::dict enums;
#define SIMT_DESCRIBE(Enum, NAMES)                                             \
  {                                                                            \
    nb::dict meanings;                                                         \
    for (const auto& one : names_of(Enum{})) meanings[one.name] = one.meaning; \
    enums[#Enum] = meanings;                                                   \
  }
  SIMT_ENUMS(SIMT_DESCRIBE)
#undef SIMT_DESCRIBE
  python::SpecSchema result;
  result["sections"] = sections;
  result["enums"] = enums;
  return result;
}

template <class Policy, class More>
void add_policies(nb::dict& kinds, bool outside, More more) {
  nb::dict all;
  for (const auto& [name, policy] : Registered<Policy>::all()) {
    if (is_outside(name) != outside) continue;
    nb::dict text;
    text["meaning"] = std::string(policy->meaning);
    text["source"] = std::string(policy->source);
    more(*policy, text);
    all[nb::str(name.data(), name.size())] = text;
  }
  kinds[Policy::kind] = all;
}

/// By kind and name.
using Policies = nb::typed<nb::dict, nb::str, nb::typed<nb::dict, nb::str, python::PolicyFacts>>;

Policies policies(bool outside) {
  const auto nothing = [](const auto&, nb::dict&) {};
  Policies kinds;
  add_policies<SchedulerPolicy>(kinds, outside, nothing);
  add_policies<ReplacementPolicy>(kinds, outside, nothing);
  add_policies<WritePolicy>(kinds, outside, nothing);
  add_policies<SetIndex>(kinds, outside,
                         [](const SetIndex& p, nb::dict& text) { text["most_sets"] = p.most_sets; });
  add_policies<SliceHash>(kinds, outside, [](const SliceHash& p, nb::dict& text) {
    text["power_of_two_channels"] = p.power_of_two_channels;
    text["exact_slices"] = p.exact_slices;
    text["most_slices"] = p.most_slices;
  });
  add_policies<DramSchedulerPolicy>(kinds, outside, nothing);
  return kinds;
}

}  // namespace

Spec spec_from_dict(python::NativeSpec values) {
  Spec spec;
  Reader reader(std::move(values), "");
  visit(reader, spec);
  reader.finish();
  auto next = static_cast<size_t>(Unit::Special);
  for (const auto& [name, unit] : spec.sm.special_units)
    spec.sm.units[next++] = {unit.count, unit.latency, unit.initiation_interval};
  return spec;
}

void bind_spec(nb::module_& m) {
  m.def(
      "spec_roundtrip",
      [](python::NativeSpec values) {
        Spec spec = spec_from_dict(std::move(values));
        Writer writer;
        visit(writer, spec);
        return python::NativeSpec(std::move(writer.values));
      },
      nb::arg("values"), "For tests: the dict, read into the engine's specification and written out again.");
  m.def("spec_schema", &schema,
        "The sections of a specification, each after those that it contains, with their fields; and the\n"
        "meaning of each enum's names (engine/timing/base/spec_fields.hpp).");
  m.def("policies", &policies, nb::arg("outside") = false,
        "The policies that a specification can choose by name, by kind: meaning, source, limits. outside:\n"
        "those that are not part of simt, which are called name@hash.");
}
