#pragma once
#include "isa/opcode.hpp"
#include "sass/instructions.hpp"

/// Textures and surfaces.
namespace simt::instructions {

using enum Generation;
using enum Class;

inline constexpr OpcodeRow sass_texture_rows[] = {
    {"TEX",
     {{Kepler, Texture}},
     Energy::Texture,
     "[.SCR][.LL,.LZ][.AOFFI] [p,]d,d,a,a,handle,geometry[,n]",
     sass::translate_sample},
    {"TLD",
     {{Kepler, Texture}},
     Energy::Texture,
     "[.SCR].{LL,LZ}[.CL][.AOFFI] [p,]d,d,a[,a],handle,geometry[,n]",
     sass::translate_texel},
    {"TLD4",
     {{Kepler, Texture}},
     Energy::Texture,
     "[.SCR].{R,G,B,A}[.AOFFI] [p,]d,d,a[,a],handle,geometry[,n]",
     sass::translate_gather},
    {"TXD",
     {{Kepler, Texture}},
     Energy::Texture,
     "[.AOFFI] [p,]d,d,a,a,handle,geometry[,n]",
     sass::translate_sample_gradients},
    {"TXQ",
     {{Kepler, Texture}},
     Energy::Texture,
     " d,d,a,TEX_HEADER_DIMENSION,handle,n",
     sass::translate_texture_query},
    {"SULD",
     {{Pascal, SurfaceLoad}},
     Energy::Texture,
     ".D.BA.geometry[.width][.STRONG.scope][.TRAP,.IGN] d,address,handle",
     sass::translate_surface},
    {"SUST",
     {{Pascal, SurfaceStore}},
     Energy::Texture,
     ".{D.BA,P}.geometry[.width][.STRONG.scope][.TRAP,.IGN] address,a,handle",
     sass::translate_surface},
    {"SURED",
     {{Pascal, SurfaceReduction}},
     Energy::Texture,
     ".D[.BA].geometry.operation[.type][.STRONG.scope][.TRAP,.IGN] address,a,handle",
     sass::translate_surface},
    // Known in traces only.
    {"SUATOM", {{Pascal, Integer}}, Energy::Texture, "", not_executed},
    {"SULDGA", {{Kepler, GlobalLoad}, {Pascal, Gone}}, Energy::Texture, "", not_executed},
    {"SUQUERY", {{Turing, Integer}}, Energy::Texture, "", not_executed},
    {"SUSTGA", {{Kepler, GlobalStore}, {Pascal, Gone}}, Energy::Texture, "", not_executed},
    {"TEXS", {{Pascal, Texture}, {Volta, Gone}}, Energy::Texture, "", not_executed},
    {"TLD4S", {{Pascal, Texture}, {Volta, Gone}}, Energy::Texture, "", not_executed},
    {"TLDS", {{Kepler, Texture}, {Volta, Gone}}, Energy::Texture, "", not_executed},
    {"TMML", {{Pascal, Texture}}, Energy::Texture, "", not_executed},
    {"TXA", {{Kepler, Texture}, {Pascal, Gone}}, Energy::Texture, "", not_executed},
};

}  // namespace simt::instructions
