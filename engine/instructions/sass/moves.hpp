#pragma once
#include "instructions/sass.hpp"
#include "sass/instructions.hpp"

/// Moves between registers of all kinds, special registers and lanes.
namespace simt::instructions {

inline constexpr SassRow sass_move_rows[] = {
    {"MOV", " d,a", sass::translate_mov},
    {"UMOV", " d,a", sass::translate_mov},
    {"S2R", " d,special", sass::translate_s2r},
    {"S2UR", " d,special", sass::translate_s2r},
    {"CS2R", "[.32] d,special", sass::translate_cs2r},
    {"R2UR", "[.FILL] d,a", sass::translate_r2ur},
    {"PLOP3", ".LUT p,p,p,p,p,n,n", sass::translate_plop3},
    {"UPLOP3", ".LUT p,p,p,p,p,n,n", sass::translate_plop3},
    {"P2R", "[.B1,.B2,.B3] d,PR,a,n", sass::translate_p2r},
    {"UP2UR", "[.B1,.B2,.B3] d,UPR,a,n", sass::translate_p2r},
    {"R2P", " PR,a,n", sass::translate_r2p},
    {"UR2UP", " UPR,a,n", sass::translate_r2p},
    {"SHFL", ".{UP,DOWN,BFLY,IDX} p,d,a,b,c", sass::translate_shfl},
    {"VOTE", ".{ALL,ANY,EQ} [d,]p,p", sass::translate_vote},
    {"VOTEU", ".{ALL,ANY,EQ} [d,]p,p", sass::translate_vote},
    {"MATCH", ".{ANY,ALL}[.U64] [p,]d,a", sass::translate_match},
    {"REDUX", "[.SUM,.MIN,.MAX,.OR,.XOR][.S32] d,a", sass::translate_redux},
    {"LEPC", " d[,target]", sass::translate_lepc},
    {"BMOV", ".32[.CLEAR] d,b | b,a", sass::translate_bmov},
};

}  // namespace simt::instructions
