#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "isa/instruction.hpp"
#include "timing/base/registry.hpp"
#include "timing/base/spec_fields.hpp"

/// The GPU specification as used by the engine: plain values, constant during a run. Its fields are those of
/// `timing/base/spec_fields.hpp`; the TOML files in `simt/spec/gpus` give the source of each value.
namespace simt {

struct SchedulerPolicy;
struct ReplacementPolicy;
struct WritePolicy;
struct SetIndex;
struct SliceHash;
struct DramSchedulerPolicy;

struct Frequency {
  uint64_t khz = 0;  // so that 3500.5 MHz is exact
};

#define SIMT_ENUMERATOR(enumerator, name, meaning) enumerator,
#define SIMT_DEFINE(Enum, NAMES) enum class Enum : uint8_t { NAMES(SIMT_ENUMERATOR) };
SIMT_ENUMS(SIMT_DEFINE)
#undef SIMT_DEFINE
#undef SIMT_ENUMERATOR

#define SIMT_MEMBER(type, name, unit, range, meaning) type name{};
#define SIMT_DEFINE(Section, FIELDS, meaning) \
  struct Section##Spec {                      \
    FIELDS(SIMT_MEMBER)                       \
  };
SIMT_INNER_SECTIONS(SIMT_DEFINE)
/// By name, whose order is that of Unit::Special and what follows it.
using SpecialUnitsSpec = std::map<std::string, SpecialUnitSpec>;
/// By Unit. Special ones follow from SpecialUnitsSpec. DecodedKernel defines the fallback for missing units.
using UnitsSpec = std::array<UnitSpec, static_cast<size_t>(Unit::Count)>;
SIMT_OUTER_SECTIONS(SIMT_DEFINE)
#undef SIMT_DEFINE

struct Spec {
  SIMT_SPEC_FIELDS(SIMT_MEMBER)
};
#undef SIMT_MEMBER

}  // namespace simt
