#pragma once
#include "isa/opcode.hpp"
#include "sass/instructions.hpp"

/// Moves between registers of all kinds, special registers and lanes.
namespace simt::instructions {

using enum Generation;
using enum Class;

inline constexpr OpcodeRow sass_move_rows[] = {
    {"MOV", {{Kepler, Integer}}, Energy::Move, " d,a", sass::translate_mov},
    {"UMOV",
     {{Turing, Uniform}},
     Energy::Uniform,
     " d,a",
     sass::translate_mov,
     {.result = ResultTime::UniformMove, .reads_uniform_late = true}},
    {"S2R", {{Kepler, Integer}}, Energy::Move, " d,special", sass::translate_s2r},
    {"S2UR", {{Turing, Uniform}}, Energy::Uniform, " d,special", sass::translate_s2r},
    {"CS2R",
     {{Pascal, Integer}},
     Energy::Move,
     "[.32] d,special",
     sass::translate_cs2r,
     {.widths = Widths::Pair}},
    {"R2UR",
     {{Turing, Uniform}},
     Energy::Uniform,
     "[.FILL] d,a",
     sass::translate_r2ur,
     {.result = ResultTime::Transfer}},
    {"PLOP3", {{Pascal, Integer}}, Energy::IntLogic, ".LUT p,p,p,p,p,n,n", sass::translate_plop3},
    {"UPLOP3", {{Turing, Uniform}}, Energy::Uniform, ".LUT p,p,p,p,p,n,n", sass::translate_plop3},
    {"P2R", {{Kepler, Integer}}, Energy::IntLogic, "[.B1,.B2,.B3] d,PR,a,n", sass::translate_p2r},
    {"UP2UR", {{Turing, Uniform}}, Energy::Uniform, "[.B1,.B2,.B3] d,UPR,a,n", sass::translate_p2r},
    {"R2P", {{Kepler, Integer}}, Energy::IntLogic, " PR,a,n", sass::translate_r2p},
    {"UR2UP", {{Turing, Uniform}}, Energy::Uniform, " UPR,a,n", sass::translate_r2p},
    {"SHFL", {{Kepler, Integer}}, Energy::Shuffle, ".{UP,DOWN,BFLY,IDX} p,d,a,b,c", sass::translate_shfl},
    {"VOTE", {{Kepler, Integer}}, Energy::Vote, ".{ALL,ANY,EQ} [d,]p,p", sass::translate_vote},
    {"VOTEU",
     {{Turing, Uniform}},
     Energy::Vote,
     ".{ALL,ANY,EQ} [d,]p,p",
     sass::translate_vote,
     {.result = ResultTime::UniformMove}},
    {"MATCH", {{Pascal, Integer}}, Energy::Vote, ".{ANY,ALL}[.U64] [p,]d,a", sass::translate_match},
    {"REDUX",
     {{Ampere, Uniform}},
     Energy::Vote,
     "[.SUM,.MIN,.MAX,.OR,.XOR][.S32] d,a",
     sass::translate_redux},
    {"LEPC", {{Kepler, Integer}}, Energy::Move, " d[,target]", sass::translate_lepc},
    {"BMOV",
     {{Pascal, BranchOnAlu}, {Volta, Branch}},
     Energy::Move,
     ".32[.CLEAR] d,b | b,a",
     sass::translate_bmov},
    // Known in traces only.
    {"CREDUX", {{Blackwell, Integer}}, Energy::Vote, "", not_executed},
    {"CS2UR", {{Blackwell, Integer}}, Energy::Move, "", not_executed},
    {"GETLMEMBASE", {{Pascal, Integer}}, Energy::Move, "", not_executed},
    {"LDCU", {{Blackwell, Uniform}}, Energy::Move, "", not_executed},
    {"MOV32I", {{Kepler, Integer}}, Energy::Move, "", not_executed},
    {"R2B", {{Pascal, Integer}}, Energy::Move, "", not_executed},
    {"UREDUX", {{Blackwell, Uniform}}, Energy::Uniform, "", not_executed},
    {"SETCTAID", {{Pascal, Integer}}, Energy::Move, "", not_executed},
    {"SETLMEMBASE", {{Pascal, Integer}}, Energy::Move, "", not_executed},
    {"VOTE_VTG", {{Pascal, Integer}}, Energy::Vote, "", not_executed},
};

}  // namespace simt::instructions
