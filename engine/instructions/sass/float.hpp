#pragma once
#include "instructions/sass.hpp"
#include "sass/instructions.hpp"

/// Floating-point numbers: arithmetic, comparison, special functions, conversion.
namespace simt::instructions {

inline constexpr SassRow sass_float_rows[] = {
    {"FADD", "[.FTZ][.RM,.RP,.RZ][.SAT] d,a,b", sass::translate_fadd},
    {"FMUL", "[.D2,.D4,.D8,.M2,.M4,.M8][.FTZ][.RM,.RP,.RZ][.SAT] d,a,b", sass::translate_fmul},
    {"FFMA", "[.FTZ][.RM,.RP,.RZ][.SAT] d,a,b,c", sass::translate_ffma},
    {"FSETP", ".compare[.FTZ].{AND,OR,XOR} p,p,a,b,p", sass::translate_fsetp},
    {"FSET", "[.BF].compare[.FTZ].{AND,OR,XOR} d,a,b,p", sass::translate_fset},
    {"FSEL", "[.FTZ] d,a,b,p", sass::translate_fsel},
    {"FMNMX", "[.FTZ][.NAN][.XORSIGN] d,a,b,p", sass::translate_fmnmx},
    {"MUFU", ".{RCP,RSQ,SQRT,EX2,LG2,SIN,COS,TANH,RCP64H,RSQ64H}[.F16,.BF16] d,a", sass::translate_mufu},
    {"FCHK", " p,a,b", sass::translate_fchk},
    {"I2F", "[.F16,.F64][.from][.RM,.RP,.RZ] d,a", sass::translate_i2f},
    {"I2FP", ".F32.{S32,U32}[.RM,.RP,.RZ] d,a", sass::translate_i2f},
    {"F2I", "[.FTZ][.to][.F16,.F64][.TRUNC,.FLOOR,.CEIL][.NTZ] d,a", sass::translate_f2i},
    {"F2IP", "[.FTZ].{U8,S8}.F32[.TRUNC,.FLOOR,.CEIL].NTZ d,a,b,c", sass::translate_f2ip},
    {"FRND", "[.FTZ][.F16,.F64][.TRUNC,.FLOOR,.CEIL] d,a", sass::translate_frnd},
    {"F2F", "[.FTZ].to.from[.RM,.RP,.RZ] d,a", sass::translate_f2f},
    {"I2I", ".to.from[.SAT] d,a", sass::translate_i2i},
    {"F2FP",
     "[.SATFINITE][.RELU].{F16,BF16,TF32,E4M3,E5M2}[.F32,.F16,.E4M3,.E5M2].{PACK_AB,MERGE_C,...}[.RZ] "
     "d,a[,b][,c]",
     sass::translate_f2fp},
    {"HADD2", "[.F32][.BF16_V2][.FTZ][.SAT] d,a,b", sass::translate_hadd2},
    {"HMUL2", "[.BF16_V2][.FTZ][.SAT] d,a,b", sass::translate_hmul2},
    {"HFMA2", "[.OOB][.MMA][.BF16_V2][.FTZ][.SAT,.RELU] d,a,b,c", sass::translate_hfma2},
    {"HMNMX2", "[.NAN][.XORSIGN][.BF16_V2][.FTZ] d,a,b,p", sass::translate_hmnmx2},
    {"VHMNMX", "[.NAN][.BF16_V2][.FTZ] d,a,b,c,p", sass::translate_hmnmx2},
    {"HSETP2", "[.BF16_V2].compare.{AND,OR,XOR} p,p,a,b,p", sass::translate_hsetp2},
    {"HSET2", "[.BF16_V2][.BF].compare.{AND,OR,XOR} d,a,b,p", sass::translate_hset2},
    {"DADD", "[.RM,.RP,.RZ] d,a,b", sass::translate_dadd},
    {"DMUL", "[.RM,.RP,.RZ] d,a,b", sass::translate_dmul},
    {"DFMA", "[.RM,.RP,.RZ] d,a,b,c", sass::translate_dfma},
    {"DSETP", ".compare.{AND,OR,XOR} p,p,a,b,p", sass::translate_dsetp},
    {"DMNMX", " d,a,b,p", sass::translate_dmnmx},
};

}  // namespace simt::instructions
