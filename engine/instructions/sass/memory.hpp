#pragma once
#include "instructions/sass.hpp"
#include "sass/instructions.hpp"

/// Memory.
namespace simt::instructions {

inline constexpr SassRow sass_memory_rows[] = {
    {"LD", ".E[.width][.STRONG.scope] d,address", sass::translate_load},
    {"LDG", ".E[.width][.CONSTANT][.STRONG.scope] d,address", sass::translate_load},
    {"LDS", "[.width] d,address", sass::translate_load},
    {"LDL", "[.width] d,address", sass::translate_load},
    {"ST", ".E[.width][.STRONG.scope] address,a", sass::translate_store},
    {"STG", ".E[.width][.STRONG.scope] address,a", sass::translate_store},
    {"STS", "[.width] address,a", sass::translate_store},
    {"STL", "[.width] address,a", sass::translate_store},
    {"LDC", "[.width] d,constant", sass::translate_load_constant},
    {"ULDC", "[.width] d,constant", sass::translate_load_constant},
    {"ATOM", ".E.operation[.type][.STRONG.scope] p,d,address,a[,b]", sass::translate_atomic},
    {"ATOMG", ".E.operation[.type][.STRONG.scope] p,d,address,a[,b]", sass::translate_atomic},
    {"ATOMS", ".operation[.type] d,address[,a][,b]", sass::translate_atomic},
    {"RED", ".E.operation[.type][.STRONG.scope] address,a", sass::translate_atomic},
    {"REDG", ".E.operation[.type][.STRONG.scope] address,a", sass::translate_atomic},
    {"QSPC", ".E.{S,D,L,G} p,RZ,address", sass::translate_query_space},
    {"LDGSTS", ".E[.BYPASS][.width][.ZFILL] address,address[,p]", sass::translate_copy_async},
    {"UBLKCP", ".{S,G}.{S,G}[.MULTICAST] [to],[from],a", sass::translate_bulk_copy},
    {"UBLKRED", ".{S,G}.S.operation[.type] [to],[from],a", sass::translate_bulk_reduction},
    {"UBLKPF", ".L2 [from],a", sass::translate_bulk_prefetch},
    {"UTMALDG", ".rank[.IM2COL][.MULTICAST] [to],[map][,a]", sass::translate_tensor_copy},
    {"UTMASTG", ".rank[.IM2COL] [from],[map]", sass::translate_tensor_copy},
    {"UTMAREDG", ".rank[.IM2COL].operation [from],[map]", sass::translate_tensor_copy},
    {"UTMAPF", ".L2.rank[.IM2COL] [coordinates],[map][,a]", sass::translate_tensor_copy},
    {"UTMACCTL", ".{PF,IV} address", sass::translate_nothing},
    {"UTMACMDFLUSH", "", sass::translate_nothing},
    {"STAS", "[.64,.128] address,a", sass::translate_store_async},
    {"REDAS", ".operation[.S32][.64] address,a", sass::translate_store_async},
    {"SYNCS",
     ".EXCH.64 d,address,a | .ARRIVE.TRANS64[.RED][.A1T0,.ART0,.A0TR,.A0TX,.A0T1][.OPTOUT][.TMASK] "
     "d,address,a"
     " | .PHASECHK.TRANS64[.TRYWAIT] p,address,a | .CCTL.IV address",
     sass::translate_syncs},
    {"ARRIVES", ".LDGSTSBAR.64[.ARVCNT,.TRANSCNT] address", sass::translate_arrives},
    {"RPCMOV", ".32 Rpc.{LO,HI},a | d,Rpc.{LO,HI}", sass::translate_rpcmov},
    {"FENCE", ".VIEW.ASYNC[.S,.G,.T]", sass::translate_fence},
    {"LDGDEPBAR", "", sass::translate_nothing},
    {"TEX", "[.SCR].{LL,LZ}[.AOFFI] [p,]d,d,a,a,handle,geometry[,n]", sass::translate_fetch},
    {"TLD", "[.SCR].{LL,LZ}[.CL][.AOFFI] [p,]d,d,a[,a],handle,geometry[,n]", sass::translate_fetch},
    {"TLD4", "[.SCR].{R,G,B,A}[.AOFFI] [p,]d,d,a[,a],handle,geometry[,n]", sass::translate_fetch},
    {"TXD", "[.AOFFI] [p,]d,d,a,a,handle,geometry[,n]", sass::translate_fetch},
    {"TXQ", " d,d,a,TEX_HEADER_DIMENSION,handle,n", sass::translate_texture_query},
    {"SULD", ".D.BA.geometry[.width][.STRONG.scope][.TRAP,.IGN] d,address,handle", sass::translate_surface},
    {"SUST", ".{D.BA,P}.geometry[.width][.STRONG.scope][.TRAP,.IGN] address,a,handle",
     sass::translate_surface},
    {"SURED", ".D[.BA].geometry.operation[.type][.STRONG.scope][.TRAP,.IGN] address,a,handle",
     sass::translate_surface},
    {"MEMBAR", ".{SC,ALL}.scope", sass::translate_fence},
    {"ERRBAR", "", sass::translate_nothing},
    {"CGAERRBAR", "", sass::translate_nothing},
    {"CCTL", ".operation [address]", sass::translate_nothing},
    {"CCTLL", ".operation [address]", sass::translate_nothing},
};

}  // namespace simt::instructions
