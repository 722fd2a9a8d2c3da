"""Energy classes of machine instructions: the key in an Energies file that an opcode's energy has."""

from __future__ import annotations

from functools import lru_cache

from simt._engine import tensor_multiply_adds

# By the name before the first dot. Names with several classes are in `_by_modifier`.
_NAMES = {
    "int_add": "IADD IADD3 IADD32I ISUB VIADD VADD ISAD VABSDIFF VABSDIFF4 IDP IDP4A",
    "int_logic": "LOP LOP3 LOP32I SEL PRMT BMSK SGXT BFE BFI PLOP3 PSETP PSET CSET CSETP P2R R2P SUCLAMP "
    "SUBFM "
    "SUEAU",
    "int_shift": "SHF SHL SHR LEA ISCADD ISCADD32I VSHL VSHR",
    "int_mad": "IMAD IMUL IMUL32I IMADSP XMAD VMAD",
    "int_compare": "ISETP ISET ICMP IMNMX IABS VIMNMX VIMNMX3 VIADDMNMX VHMNMX VMNMX VSET",
    "int_bits": "POPC FLO BREV",
    "move": "MOV MOV32I S2R CS2R CS2UR LDC LDCU GETLMEMBASE SETLMEMBASE LEPC B2R R2B RPCMOV BMOV QSPC MOVM "
    "SETCTAID",
    "convert": "F2F F2I I2F I2I I2IP FRND F2FP I2FP F2IP RRO",
    "fp32_add": "FADD FADD2 FADD32I FSWZADD FSWZ",
    "fp32_mul": "FMUL FMUL2 FMUL32I",
    "fp32_fma": "FFMA FFMA2 FFMA32I",
    "fp32_compare": "FMNMX FMNMX3 FSET FSETP FSEL FCMP FCHK",
    "fp16_add": "HADD2 HADD2_32I FHADD HMNMX2 HSET2 HSETP2",
    "fp16_mul": "HMUL2 HMUL2_32I",
    "fp16_fma": "HFMA2 HFMA2_32I FHFMA",
    "fp64_add": "DADD",
    "fp64_mul": "DMUL",
    "fp64_fma": "DFMA",
    "fp64_compare": "DSETP DSET DMNMX",
    "sfu": "MUFU",
    "shuffle": "SHFL",
    "vote": "VOTE VOTE_VTG VOTEU MATCH REDUX CREDUX ELECT",
    "branch": "BRA BRX BRXU JMP JMX JMXU CALL CAL JCAL RET BRK BREAK CONT SSY PBK PCNT PRET LONGJMP PLONGJMP "
    "PEXIT SYNC BSSY BSYNC BPT KIL KILL RTT WARPSYNC YIELD ENDCOLLECTIVE",
    "barrier": "BAR MEMBAR FENCE ERRBAR CGAERRBAR UCGABAR_ARV UCGABAR_WAIT DEPBAR LDGDEPBAR NANOSLEEP "
    "WARPGROUP "
    "WARPGROUPSET ACQBULK ACQSHMINIT CCTL CCTLL CCTLT UTMACCTL UTMACMDFLUSH",
    "nop": "NOP EXIT PMTRIG CSMTEST PREEXIT USETMAXREG USETSHMSZ REPLAY_START REPLAY_END",
    "texture": "TEX TEXS TLD TLD4 TLD4S TLDS TMML TXD TXQ TXA SULD SUST SURED SUATOM SUQUERY SULDGA SUSTGA",
    "load_store": "LD LDG LDGMC LDL LDT LDTM LDS LDSM LDGSTS LDSLK ST STG STL STS STSM STAS STSCUL STT STTM "
    "ATOM ATOMG ATOMS RED REDG REDAS SYNCS ARRIVES UBLKCP UBLKPF UBLKRED UTMALDG UTMAPF UTMASTG UTMAREDG "
    "UMEMSETS",
}
_CLASS = {name: key for key, names in _NAMES.items() for name in names.split()}
_FP8 = frozenset({"E4M3", "E5M2"})
_SHARED = frozenset(["LDS", "LDSM", "LDSLK", "STS", "STSM", "STSCUL", "STAS", "ATOMS", "REDAS"])


@lru_cache(maxsize=8192)
def energy_class(opcode: str) -> tuple[str, float]:
    """The key of an opcode's energy, and its multiply-adds per warp (0 unless it is a tensor instruction).

    Opcodes that are not known count as integer addition, the commonest class; `is_known` tells them.
    """
    name, *modifiers = opcode.split(".")
    if _is_tensor(name):
        return f"tensor.{_tensor_type(name, modifiers)}", tensor_multiply_adds(opcode)
    return f"instructions.{_by_modifier(name, modifiers)}", 0.0


@lru_cache(maxsize=8192)
def is_known(opcode: str) -> bool:
    """Whether there is an energy for it: of a tensor instruction, whether the opcode has its shape."""
    name = opcode.partition(".")[0]
    if _is_tensor(name):
        return tensor_multiply_adds(opcode) > 0
    return name in _CLASS or _is_uniform(name)


def _is_tensor(name: str) -> bool:
    return name.endswith("MMA") and name not in ("FFMA", "DFMA")


def _is_uniform(name: str) -> bool:
    return name.startswith("U") or name in ("R2UR", "S2UR")


def _by_modifier(name: str, modifiers: list[str]) -> str:
    if name == "IMAD":
        if "MOV" in modifiers:
            return "move"
        if "IADD" in modifiers:
            return "int_add"
        if "SHL" in modifiers:
            return "int_shift"
        if "WIDE" in modifiers or "HI" in modifiers:
            return "int_mul_wide"
    if name == "IMUL" and ("WIDE" in modifiers or "HI" in modifiers):
        return "int_mul_wide"
    found = _CLASS.get(name)
    if found is None:
        return "uniform" if _is_uniform(name) else "int_add"
    return found


def _tensor_type(name: str, modifiers: list[str]) -> str:
    name = name.removeprefix("UTC").removeprefix("MX")  # of data-centre Blackwell
    if name.startswith("D"):
        return "fp64"
    if name.startswith("B"):
        return "binary"
    if name.startswith("I"):
        return "int4" if {"S4", "U4"} & set(modifiers) else "int8"
    if name.startswith(("Q", "O")) or _FP8 & set(modifiers):
        return "fp8"  # OMMA's FP4 has no energy of its own
    if "TF32" in modifiers:
        return "tf32"
    if "BF16" in modifiers:
        return "bf16"
    return "fp16_fp32" if "F32" in modifiers else "fp16"


def shared_memory(opcode: str) -> bool:
    """Whether the instruction accesses shared memory."""
    return opcode.partition(".")[0] in _SHARED


@lru_cache(maxsize=8192)
def access_bytes(opcode: str) -> int:
    """Bytes per lane of a memory instruction, by its modifiers."""
    for token in opcode.split(".")[1:]:
        digits = token.lstrip("USFB")
        if digits in ("8", "16", "64", "128"):
            return int(digits) // 8
    return 4
