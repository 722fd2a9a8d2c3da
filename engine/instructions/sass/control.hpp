#pragma once
#include "instructions/sass.hpp"
#include "sass/instructions.hpp"

/// Control flow and synchronisation.
namespace simt::instructions {

inline constexpr SassRow sass_control_rows[] = {
    {"BRA", "[.U,.DIV,.CONV] [p,]target", sass::translate_bra},
    {"BRX", " a,n", sass::translate_brx},
    {"BRXU", " u,n", sass::translate_brx},
    {"CALL", ".{REL,ABS}.NOINC target | a", sass::translate_call},
    {"RET", ".{REL,ABS}.NODEC a[,target]", sass::translate_ret},
    {"EXIT", " [p]", sass::translate_exit},
    {"BSSY", "[.RELIABLE,.RECONVERGENT] b,target", sass::translate_bssy},
    {"BSYNC", "[.RELIABLE,.RECONVERGENT] b", sass::translate_bsync},
    {"BREAK", "[.RELIABLE] b", sass::translate_break},
    {"WARPSYNC", "[.ALL] a | .COLLECTIVE a,target", sass::translate_warpsync},
    {"ENDCOLLECTIVE", "", sass::translate_end_collective},
    {"ELECT", " p,d,p", sass::translate_elect},
    {"BAR", ".{SYNC,ARV,RED.POPC,RED.AND,RED.OR}[.DEFER_BLOCKING] a[,a][,p]", sass::translate_bar},
    {"B2R", ".RESULT d[,p]", sass::translate_b2r},
    {"BPT", ".TRAP n", sass::translate_trap},
    {"YIELD", "", sass::translate_yield},
    {"NANOSLEEP", " a", sass::translate_nanosleep},
    {"UCGABAR_ARV", "", sass::translate_cluster_barrier},
    {"UCGABAR_WAIT", "", sass::translate_cluster_barrier},
    {"PREEXIT", "", sass::translate_nothing},
    {"ACQBULK", "", sass::translate_nothing},
    {"USETMAXREG", ".DEALLOC[.CTAPOOL] n | .TRY_ALLOC[.CTAPOOL] p,n", sass::translate_set_registers},
    {"NOP", "", sass::translate_nothing},
    {"DEPBAR", ".LE b,n", sass::translate_depbar},
};

}  // namespace simt::instructions
