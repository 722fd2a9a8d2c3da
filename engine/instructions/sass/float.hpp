#pragma once
#include "instructions/sass.hpp"
#include "sass/instructions.hpp"

/// f32 arithmetic, comparison, special functions.
namespace simt::instructions {

inline constexpr SassRow sass_float_rows[] = {
    {"FADD", "[.FTZ][.RM,.RP,.RZ][.SAT] d,a,b", sass::translate_fadd},
    {"FMUL", "[.FTZ][.RM,.RP,.RZ][.SAT] d,a,b", sass::translate_fmul},
    {"FFMA", "[.FTZ][.RM,.RP,.RZ][.SAT] d,a,b,c", sass::translate_ffma},
    {"FSETP", ".compare[.FTZ].{AND,OR,XOR} p,p,a,b,p", sass::translate_fsetp},
    {"FSET", "[.BF].compare[.FTZ].{AND,OR,XOR} d,a,b,p", sass::translate_fset},
    {"FSEL", "[.FTZ] d,a,b,p", sass::translate_fsel},
    {"FMNMX", "[.FTZ][.NAN][.XORSIGN] d,a,b,p", sass::translate_fmnmx},
    {"MUFU", ".{RCP,RSQ,SQRT,EX2,LG2,SIN,COS,TANH,RCP64H,RSQ64H} d,a", sass::translate_mufu},
    {"FCHK", " p,a,b", sass::translate_fchk},
};

}  // namespace simt::instructions
