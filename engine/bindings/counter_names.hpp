#pragma once
#include <iterator>

#include "stats/counters.hpp"
#include "timing/core/activity.hpp"

// Python's names for what the engine counts.

inline constexpr const char* counter_names[] = {
#define SIMT_COUNTER(name, text) #name,
    SIMT_COUNTERS(SIMT_COUNTER)
#undef SIMT_COUNTER
};
inline constexpr const char* kind_names[] = {
    "global_read",      "global_write", "local_read",   "local_write",  "constant_read", "texture_read",
    "instruction_read", "atomic",       "l1_writeback", "l2_writeback", "l2_fill"};
inline constexpr const char* outcome_names[] = {"hit", "hit_reserved", "miss", "sector_miss",
                                                "reservation_fail"};
inline constexpr const char* reason_names[] = {
    "selected", "not_selected",       "no_instruction",  "barrier",
    "membar",   "async_copy",         "long_scoreboard", "short_scoreboard",
    "wait",     "math_pipe_throttle", "lg_throttle",     "mio_throttle",
    "sleeping", "imc_miss",           "drain",           "warpgroup_arrive"};
static_assert(std::size(kind_names) == simt::Counters::kinds);
static_assert(std::size(outcome_names) == simt::Counters::outcomes);
static_assert(std::size(reason_names) == simt::LaunchActivity::reasons);
