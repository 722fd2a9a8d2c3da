#pragma once
#include "instructions/sass.hpp"
#include "sass/instructions.hpp"

/// Tensor cores.
namespace simt::instructions {

inline constexpr SassRow sass_tensor_rows[] = {
    {"HMMA",
     "[.SP].{16832,16816,1688,1684}.{F32,F16}[.BF16,.TF32] d,a,b,c[,e,n] | "
     ".884.{F32,F16}.{F32,F16}.STEPn d,a,b,c",
     sass::translate_hmma},
    {"QMMA", "[.SP].{16816,16832,16864}.{F32,F16}.type.type d,a,b,c[,e,n]", sass::translate_qmma},
    {"IMMA", "[.SP].{8816,16816,16832,8832,16864,168128}.type.type[.SAT] d,a,b,c[,e,n]",
     sass::translate_imma},
    {"BMMA", ".{88128,168128,168256}.{AND,XOR}.POPC d,a,b,c", sass::translate_bmma},
    {"DMMA", ".{8x8x4,16x8x4,16x8x8,16x8x16} d,a,b,c", sass::translate_dmma},
    {"HGMMA", ".64xNxK.{F32,F16}[.BF16,.TF32] d,[a,]descriptors,c[,p][,gsb0]", sass::translate_group_product},
    {"QGMMA", ".64xNx32.{F32,F16}.type.type d,[a,]descriptors,c[,p][,gsb0]", sass::translate_group_product},
    {"IGMMA", ".64xNx32.type.type[.SAT] d,[a,]descriptors,c[,p][,gsb0]", sass::translate_group_product},
    {"WARPGROUP", ".ARRIVE | .DEPBAR.LE gsb0,n", sass::translate_warpgroup},
    {"LDSM", ".16.{M88,MT88}[.2,.4] d,address", sass::translate_ldsm},
    {"STSM", ".16.{M88,MT88}[.2,.4] address,a", sass::translate_stsm},
    {"MOVM", ".16.MT88 d,a", sass::translate_movm},
};

}  // namespace simt::instructions
