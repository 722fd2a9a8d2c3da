#pragma once
#include "instructions/sass.hpp"
#include "sass/instructions.hpp"

/// Integers and bits, on general registers and, with a U before the name, on uniform ones.
namespace simt::instructions {

inline constexpr SassRow sass_integer_rows[] = {
    {"IADD3", "[.X] d[,p[,p]],a,b,c[,p,p]", sass::translate_iadd3},
    {"UIADD3", "[.X,.64] d[,p[,p]],a,b,c[,p,p]", sass::translate_iadd3},
    {"IMAD", "[.MOV,.SHL,.IADD,.HI,.WIDE][.U32][.X] d[,p],a,b,c[,p]", sass::translate_imad},
    {"UIMAD", "[.WIDE,.HI][.U32][.X] d[,p],a,b,c[,p]", sass::translate_imad},
    {"LEA", "[.HI][.X][.SX32] d[,p],a,b[,c],n[,p]", sass::translate_lea},
    {"ULEA", "[.HI][.X][.SX32] d[,p],a,b[,c],n[,p]", sass::translate_lea},
    {"SHF", ".{L,R}[.W].{U32,S32,U64,S64}[.HI] d,a,n,c", sass::translate_shf},
    {"USHF", ".{L,R}[.W].{U32,S32,U64,S64}[.HI] d,a,n,c", sass::translate_shf},
    {"LOP3", ".LUT[.PAND] [p,]d,a,b,c,n,p", sass::translate_lop3},
    {"ULOP3", ".LUT[.PAND] [p,]d,a,b,c,n,p", sass::translate_lop3},
    {"ISETP", ".{LT,EQ,LE,GT,NE,GE}[.U32].{AND,OR,XOR}[.EX] p,p,a,b,p[,p]", sass::translate_isetp},
    {"UISETP", ".{LT,EQ,LE,GT,NE,GE}[.U32].{AND,OR,XOR}[.EX] p,p,a,b,p[,p]", sass::translate_isetp},
    {"IMNMX", "[.U32] d,a,b,p", sass::translate_imnmx},
    {"IABS", " d,a", sass::translate_iabs},
    {"SEL", " d,a,b,p", sass::translate_sel},
    {"USEL", " d,a,b,p", sass::translate_sel},
    {"PRMT", "[.F4E,.B4E,.RC8,.ECL,.ECR,.RC16] d,a,n,b", sass::translate_prmt},
    {"UPRMT", " d,a,n,b", sass::translate_prmt},
    {"POPC", " d,a", sass::translate_popc},
    {"UPOPC", " d,a", sass::translate_popc},
    {"FLO", "[.U32][.SH] d,a", sass::translate_flo},
    {"UFLO", "[.U32][.SH] d,a", sass::translate_flo},
    {"BREV", " d,a", sass::translate_brev},
    {"UBREV", " d,a", sass::translate_brev},
    {"BMSK", "[.C,.W] d,a,b", sass::translate_bmsk},
    {"UBMSK", "[.C,.W] d,a,b", sass::translate_bmsk},
    {"SGXT", "[.U32][.W] d,a,b", sass::translate_sgxt},
    {"USGXT", "[.U32][.W] d,a,b", sass::translate_sgxt},
    {"IDP", ".{4A,2A.LO,2A.HI}.{U8,S8,U16,S16}.{U8,S8} d,a,b,c", sass::translate_idp},
    {"VIADD", " d,a,b", sass::translate_viadd},
    {"VIMNMX", "[.U32] d,a,b,p", sass::translate_imnmx},
    {"VIMNMX3", "[.U32,.S16x2,.U16x2][.RELU] d,a,b,c,p", sass::translate_vimnmx3},
    {"VIADDMNMX", "[.U32,.S16x2,.U16x2][.RELU][.RELU] d,a,b,c,p", sass::translate_viaddmnmx},
    {"VABSDIFF", "[.U32] d,a,b,c", sass::translate_vabsdiff},
    {"VABSDIFF4", "[.U8][.ACC] d,a,b,c", sass::translate_vabsdiff4},
};

}  // namespace simt::instructions
