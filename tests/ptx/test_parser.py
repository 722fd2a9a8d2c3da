"""Parsed PTX: every directive and form of operand, and the errors for text that is not PTX."""

from __future__ import annotations

import struct

import pytest

from simt import _engine
from simt.errors import PtxError
from support.ptx_dump import HEADER, body, dump, shown


def global_variable(declaration: str) -> dict:
    (variable,) = dump(declaration)["variables"]
    return variable


# --- the module ---------------------------------------------------------------------------------------------


def test_header():
    module = dump("")
    assert (module["version"], module["target"], module["target_suffix"]) == (83, 90, "a")
    assert module["address_size"] == 64
    text = b"// a comment\n.version 10.2 .target sm_120f, debug, texmode_independent /* . */ .address_size 32"
    module = _engine.PtxModule(text).dump()
    assert (module["version"], module["target"], module["target_suffix"]) == (102, 120, "f")
    assert module["address_size"] == 32


def test_files_sections_pragmas_and_line_marks_are_passed():
    module = dump(
        '.file 1 "/a b/k.cu", 1700000000, 77\n.file 2 "x\\"y.h"\n.pragma "nounroll";\n# 1 "k.cu" 2\n'
        "@@DWARF .byte 0x12, {\n"
        ".section .debug_info { .b32 12 // }\n .b8 1,2 $L__x: .b64 $L__x { } /* } */ }\n"
        ".section .debug_str\n{\n}\n.global .u32 after;"
    )
    assert module["files"] == [(1, "/a b/k.cu"), (2, 'x\\"y.h')]
    assert [v["name"] for v in module["variables"]] == ["after"]
    assert module["variables"][0]["line"] == 12


def test_locations_belong_to_instructions():
    function = body(
        "ret;\n.loc 1 10 5\nmov.u32 %r1, 1; mov.u32 %r2, 2;\n"
        ".loc 2 11 7, function_name $L__info_string0, inlined_at 1 20 3\nret;\n"
        ".loc 1 12 1, function_name .debug_str+16, inlined_at 1 21 3 ret;"
    )
    assert [i["location"] for i in function["instructions"]] == [
        None, (1, 10, 5), (1, 10, 5), (2, 11, 7), (1, 12, 1)
    ]  # fmt: skip
    assert [i["line"] for i in function["instructions"]] == [5, 7, 7, 9, 10]


def test_aliases():
    assert dump(".func f; .func g {ret;} .alias f, g;")["aliases"] == [("f", "g")]


# --- variables ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        (".global .u32 x;", ("global", "u32", "internal", 4, 4)),
        (".visible .global .align 16 .b8 x[3][5];", ("global", "b8", "visible", 16, 15)),
        (".weak .const .v4 .f32 x[2];", ("const", "f32", "weak", 16, 32)),
        (".common .global .v2 .align 32 .f64 x;", ("global", "f64", "common", 32, 16)),
        (".extern .shared .align 128 .b8 x[];", ("shared", "b8", "extern", 128, 0)),
        (".const[3] .s16 x[0x10];", ("const", "s16", "internal", 2, 32)),
        (".shared .b128 x[2*(3-1)];", ("shared", "b128", "internal", 16, 64)),
        (".local .b64 x[WARP_SZ/4];", ("local", "b64", "internal", 8, 64)),
        (".global .texref x;", ("global", "texref", "internal", 8, 8)),
        (".global .surfref x[3];", ("global", "surfref", "internal", 8, 24)),
        (".tex .u32 x;", ("global", "texref", "internal", 8, 8)),
    ],
)
def test_variables(declaration, expected):
    v = global_variable(declaration)
    assert v["name"] == "x"
    assert (v["space"], v["type"], v["linkage"], v["alignment"], v["size"]) == expected
    assert v["initial"] == b"" and v["relocations"] == [] and not v["managed"]


def test_attributes_and_lists():
    module = dump(
        ".global .attribute(.managed) .u32 a, b[3] = {7}, c;.global .attribute(.unified(19,95)) .f32 f;"
    )
    variables = {v["name"]: v for v in module["variables"]}
    assert list(variables) == ["a", "b", "c", "f"]
    assert [v["managed"] for v in variables.values()] == [True, True, True, False]
    assert variables["b"]["initial"] == struct.pack("<3I", 7, 0, 0)


@pytest.mark.parametrize(
    ("declaration", "layout", "values"),
    [
        ("u32 x = 5", "<I", [5]),
        ("s16 x[4] = {-1, 2, 0x7fff}", "<4h", [-1, 2, 32767, 0]),
        ("u64 x[2] = {0xffffffffffffffff, 18446744073709551615U}", "<2Q", [2**64 - 1, 2**64 - 1]),
        ("s32 x[2][3] = {{1,2},{4,5,6}}", "<6i", [1, 2, 0, 4, 5, 6]),
        ("s32 x[2][3] = {1,2,3,4,{5,6,}}", "<6i", None),
        ("s32 x[2][3] = {1,{4,5}}", "<6i", [1, 0, 0, 4, 5, 0]),
        ("s32 x[2][3] = {1,2,3,4}", "<6i", [1, 2, 3, 4, 0, 0]),
        ("b8 x[2][2][2] = {{{1,2},{3}},{{5},{7,8}}}", "<8B", [1, 2, 3, 0, 5, 0, 7, 8]),
        ("u16 x[] = {1,2,3}", "<3H", [1, 2, 3]),
        ("u16 x[][2] = {{1},{2,3},4}", "<6H", [1, 0, 2, 3, 4, 0]),
        (".v2 .f32 x = {1.5, 0f40000000}", "<2f", [1.5, 2.0]),
        (".v4 .u8 x[2] = {{1,2,3,4},{5}}", "<8B", [1, 2, 3, 4, 5, 0, 0, 0]),
        ("f32 x[4] = {1, -2.5, 0F3f800000, -0f3f800000}", "<4f", [1, -2.5, 1, -1]),
        ("f64 x[4] = {1, 0d3FF8000000000000, 0f40000000, -1e-3}", "<4d", [1, 1.5, 2, -1e-3]),
        ("b32 x[] = {010, 0b101, 'A'}", "<", None),
        ("b32 x[3] = {010, 0b101, 1 ? 2 : 3}", "<3I", [8, 5, 2]),
        ("b128 x = -2", "<2q", [-2, -1]),
        ("b8 x[3] = {(1+2)*3, ~0, 1<<7}", "<3B", [9, 255, 128]),
        ("u32 x[2] = {{3},{4}}", "<2I", [3, 4]),
        ("u32 x = {3}", "<I", [3]),
    ],
)
def test_initialisers(declaration, layout, values):
    dotted = declaration if declaration.startswith(".") else "." + declaration
    if values is None:
        with pytest.raises(PtxError):
            dump(f".global {dotted};")
        return
    v = global_variable(f".global {dotted};")
    assert v["initial"] == struct.pack(layout, *values)
    assert v["size"] == len(v["initial"])


def test_zeros_need_no_bytes():
    v = global_variable(".global .b8 x[1000] = {0, 0, 0};")
    assert (v["size"], v["initial"]) == (1000, b"")


def test_relocations():
    v = global_variable(
        ".global .u64 x[5] = {a, generic(b)+8, generic(c-4), d+4*2-1, 7};",
    )
    assert v["relocations"] == [
        (0, 8, False, 0, "a", 0),
        (8, 8, True, 0, "b", 8),
        (16, 8, True, 0, "c", -4),
        (24, 8, False, 0, "d", 7),
    ]
    assert v["initial"] == struct.pack("<5Q", 0, 0, 0, 0, 7)
    v = global_variable(".global .b8 x[4] = {0xFF(f), 0xFF00(generic(f)), 0xFF0000(f+1), 9};")
    assert v["relocations"] == [
        (0, 1, False, 0, "f", 0),
        (1, 1, True, 8, "f", 0),
        (2, 1, False, 16, "f", 1),
    ]
    assert global_variable(".global .b16 x = 0xFFFF00000000(f);")["relocations"] == [
        (0, 2, False, 32, "f", 0)
    ]


def test_properties_of_samplers():
    v = global_variable(
        ".global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = linear, n = 3 };"
    )
    assert v["properties"] == {"addr_mode_0": "clamp_to_border", "filter_mode": "linear", "n": "3"}


def test_a_definition_replaces_its_declaration():
    module = dump(
        ".extern .global .align 16 .u32 x; .global .u32 x = 4; .extern .global .u32 x;"
        ".extern .shared .align 4 .b8 s[]; .extern .shared .align 16 .b8 s[];"
        ".extern .func (.param .b32 r) f (.param .b64 a);"
        ".func (.param .b32 r) f (.param .b64 a) .noreturn {ret;} .func (.param .b32 r) f (.param .b64 a);"
    )
    (x, s), (f,) = module["variables"], module["functions"]
    assert (x["linkage"], x["alignment"], x["initial"]) == ("internal", 16, b"\4\0\0\0")
    assert (s["alignment"], s["size"]) == (16, 0)
    assert f["defined"] and f["noreturn"] and len(f["instructions"]) == 1


# --- functions ----------------------------------------------------------------------------------------------


def test_kernel_signature():
    text = """.visible .entry k (
        .param .u64 .ptr .global .align 16 a, .param .b8 b, .param .align 64 .b8 c[100],
        .param .f64 d, .param .u64 .texref e, .param .u64 .ptr .shared .align 4 f)
        .maxntid 128, 2 .minnctapersm 3 .reqntid 64 .maxnreg 40 .reqnctapercluster 2, 1, 1
        .explicitcluster .blocksareclusters .maxclusterrank 8 .pragma "x"; { ret; }
        .entry n { exit; }"""
    k, n = _engine.PtxModule((HEADER + text).encode()).kernels()
    assert k["parameters"] == [
        ("a", "u64", 8, 8, 0), ("b", "b8", 1, 1, 8), ("c", "b8", 100, 64, 64), ("d", "f64", 8, 8, 168),
        ("e", "texref", 8, 8, 176), ("f", "u64", 8, 8, 184),
    ]  # fmt: skip
    assert (k["max_threads"], k["required_threads"], k["cluster"]) == ((128, 2, 1), (64, 1, 1), (2, 1, 1))
    assert (k["min_ctas"], k["max_registers"]) == (3, 40)
    assert k["explicit_cluster"] and k["blocks_are_clusters"]
    assert n["parameters"] == [] and n["max_threads"] == (0, 0, 0) and not n["explicit_cluster"]


def test_functions():
    module = dump(
        ".extern .func vprintf;"
        ".visible .func (.param .align 8 .b8 r[16]) f (.param .b32 a, .param .b8 v[])"
        " .abi_preserve 3 { ret; }"
        ".weak .func (.reg .u32 r, .reg .f64 q) g (.reg .pred a) { add.u32 r, r, 1; @a ret; }"
        ".func .attribute(.unified(1,2)) h () .noreturn;"
    )
    vprintf, f, g, h = module["functions"]
    assert not vprintf["defined"] and vprintf["linkage"] == "extern"
    assert [(v["name"], v["size"], v["space"]) for v in f["variables"]] == [
        ("r", 16, "param"), ("a", 4, "param"), ("v", 0, "param")
    ]  # fmt: skip
    assert [v["name"] for v in f["results"]] == ["r"] and [v["name"] for v in f["parameters"]] == ["a", "v"]
    assert g["registers"] == [("r", "u32", 1), ("q", "f64", 1), ("a", "pred", 1)]
    assert [v["space"] for v in g["variables"]] == ["reg", "reg", "reg"]
    assert shown(g) == ["add.u32 r, r, 1", "@a ret"]
    assert h["noreturn"] and not h["defined"]


def test_registers():
    (f,) = dump(
        ".func f { .reg .pred %p<2>, q; .reg .b64 a, %r<3>, b; .reg .v4 .f32 v; .reg .v2 .b16 w<2>;"
        ".reg .b32 none<0>; }"
    )["functions"]
    assert f["registers"] == [
        ("%p0", "pred", 1), ("%p1", "pred", 1), ("q", "pred", 1), ("a", "b64", 1), ("%r0", "b64", 1),
        ("%r1", "b64", 1), ("%r2", "b64", 1), ("b", "b64", 1), 
        *[("v", "f32", 4)] * 4, *[("w0", "b16", 2)] * 2, *[("w1", "b16", 2)] * 2,  # one for each component
    ]  # fmt: skip


def test_families_and_single_names_that_look_alike():
    function = body(
        "{ .reg .b32 t1<13>; .reg .b32 t<3>; .reg .b32 t7, %r01;\n"
        "add.s32 t112, t1, t7; add.s32 t10, t2, %r01;\n"
        "{ .reg .b64 %r<3>; .reg .b64 t7; add.s64 %r2, %r3, t7; } }"
    )
    add = [[o["index"] for o in i["operands"]] for i in function["instructions"]]
    names = [r[0] for r in function["registers"]]
    assert [[names[k] for k in row] for row in add] == [
        ["t112", "t1", "t7"], ["t10", "t2", "%r01"], ["%r2", "%r3", "t7"]
    ]  # fmt: skip
    types = [[function["registers"][k][1] for k in row] for row in add]
    assert types[2] == ["b64", "b32", "b64"]
    assert types[0] == ["b32"] * 3


# --- instructions and operands ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ret;", "ret"),
        ("add.s32 %r1, %r2, -3;", "add.s32 %r1, %r2, -3"),
        ("mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tid.x"),
        ("mov.u32 %r1, %envreg31;", "mov.u32 %r1, %envreg31"),
        ("mov.u64 %rd1, %pm3_64;", "mov.u64 %rd1, %pm3_64"),
        ("mov.v4.u32 {%r1,%r2,%r3,_}, %ctaid;", "mov.v4.u32 {%r1, %r2, %r3, _}, %ctaid"),
        ("@%p1 bra X; X:", "@%p1 bra X@1"),
        ("@ ! %p1 bra.uni X; X :", "@!%p1 bra.uni X@1"),
        ("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;", "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3"),
        ("setp.eq.u32 _|%p2, %r1, 0;", "setp.eq.u32 _|%p2, %r1, 0"),
        ("shfl.sync.bfly.b32 %r1 | %p1, %r2, 1|2, 31, -1;", "shfl.sync.bfly.b32 %r1|%p1, %r2, 3, 31, -1"),
        ("ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+-16];", "ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+-16]"),
        ("ld.param.u64 %rd1, [a];", "ld.param.u64 %rd1, [local a]"),
        ("ld.param.u32 %r1, [ a + 4 ];", "ld.param.u32 %r1, [local a+4]"),
        ("ld.shared.u32 %r1, [16+8*2];", "ld.shared.u32 %r1, [32]"),
        ("ld.global.u32 %r1, [%rd1-4+16];", "ld.global.u32 %r1, [%rd1+12]"),
        ("ld.global.u32 %r1, [%rd1].unified, %rd2;", "ld.global.u32 %r1, [%rd1], %rd2"),
        ("st.global.u32 [later+8], 1;", "st.global.u32 [later+8], 1"),
        ("mov.u64 %rd1, later+8;", "mov.u64 %rd1, later+8"),
        ("mov.u64 %rd1, later;", "mov.u64 %rd1, later"),
        ("mov.u64 %rd1, array[3];", "mov.u64 %rd1, array+48"),
        ("ld.global.f32 %f1, array[2];", "ld.global.f32 %f1, [array+32]"),
        ("mov.f32 %f1, 0f3F800000;", "mov.f32 %f1, f3f800000"),
        ("mov.f64 %rd1, 0D3ff0000000000000;", "mov.f64 %rd1, d3ff0000000000000"),
        ("mov.f32 %f1, -1.0;", "mov.f32 %f1, dbff0000000000000"),
        ("mov.f32 %f1, 2.5e0 - 0.5*2.;", "mov.f32 %f1, d3ff8000000000000"),
        ("mov.b64 {%r1, _}, %rd1;", "mov.b64 {%r1, _}, %rd1"),
        ("mov.u32 %r1, WARP_SZ-1;", "mov.u32 %r1, 31"),
        ("mov.u32 %r1, -WARP_SZ;", "mov.u32 %r1, -32"),
        ("neg.f32 %f1, -%f2;", "neg.f32 %f1, !%f2"),
        ("vadd.u32.s32.s32.sat %r1, %r2.b0, -%r3.h1, %r4;", "vadd.u32.s32.s32.sat %r1, %r2.8, !%r3.17, %r4"),
        ("vadd4.u32.u32.u32 %r1.b310, %r2.b7654, %r3, %r4;", "vadd4.u32.u32.u32 %r1.24, %r2.24, %r3, %r4"),
        ("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}|%p1, [tx, smp, {%f5,%f6}];",
         "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [tx, smp, {%f5, %f6}]"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
         " [%r1], [%rd1, {%r2, 0}], [%r3];",
         "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
         " [%r1], [%rd1, {%r2, 0}], [%r3]"),
        ("call (%r1), f, (%r2, 3);", "call (%r1), f, (%r2, 3)"),
        ("call.uni f, (%r2);", "call.uni f, (%r2)"),
        ("call f;", "call f"),
        ("{ .param .b32 p; .param .b32 q; P: .callprototype (.param .b32 _) _ (.param .b32 _); "
         "call (p), %rd1, (q), P; }", "call (local p), %rd1, (local q), local P"),
        ("call (), f, ();", "call (), f, ()"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, "
         "{%f1,%f2,%f3,%f4};",
         "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, "
         "{%f1, %f2, %f3, %f4}"),
        ("ld .global\n.u32 %r1, [%rd1];", "ld.global.u32 %r1, [%rd1]"),
        ("elect.sync _|%p1, 0xffffffff;", "elect.sync _|%p1, 4294967295"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1];", "mbarrier.arrive.shared::cta.b64 _, [%r1]"),
        ("mov.u32 %r1, (5);", "mov.u32 %r1, 5"),
        ("mov.u32 %r1, %clock;;", "mov.u32 %r1, %clock"),
    ],
)  # fmt: skip
def test_instructions(text, expected):
    registers = ".reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<8>;"
    module = dump(
        ".global .v4 .f32 array[4]; .global .texref tx; .global .samplerref smp;"
        f".entry k(.param .u64 a) {{ {registers}\n{text}\n}} .global .u32 later; .func f;"
    )
    assert shown(module["functions"][0]) == [expected]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1+2*3", 7), ("(1+2)*3", 9), ("7/2", 3), ("-7/2", -3), ("-7%3", -1), ("7-2-1", 4), ("1<<4>>2", 4),
        ("-16>>2", -4), ("0xFFFFFFFFFFFFFFFF>>60", 15), ("(.s64)0xFFFFFFFFFFFFFFFF>>60", -1),
        ("(.u64)-1/2", 2**63 - 1), ("1<2", 1), ("-1<0U", 0), ("3>=3", 1), ("3!=3", 0), ("3==3", 1),
        ("6&3|8", 10),
        ("6^3", 5), ("!0", 1), ("!5", 0), ("~5", -6), ("+5", 5), ("- -5", 5), ("1?2:3", 2), ("0?2:0?3:4", 4),
        ("1&&0||1", 1), ("5>4>3", 0), ("0b11", 3), ("017", 15), ("0", 0), ("00", 0),
        ("0xAU", 10), ("12U", 12),
        ("1<<63", -(2**63)), ("1<<64", 0), ("-1>>70", -1), ("(.s64)0x8000000000000000/-1", -(2**63)),
        ("-9223372036854775808/-1", 0), ("1.5<2", 1),
        ("4|1", 5), ("((((((((((1))))))))))", 1),
    ],
)  # fmt: skip
def test_constant_expressions(expression, value):
    (instruction,) = body(f"mov.b64 %rd1, {expression};")["instructions"]
    assert instruction["operands"][1] == {"kind": "integer", "value": value}


def test_mnemonics_are_split():
    (i,) = body("ld.global.L1::no_allocate.L2::128B.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];")["instructions"]
    assert i["opcode"] == "ld"
    assert i["modifiers"] == ["global", "L1::no_allocate", "L2::128B", "v4", "f32"]


def test_mnemonic_with_spaces_leaves_the_lines_as_they_are():
    with pytest.raises(PtxError, match=r"t\.ptx:10:1: "):
        dump(".func f { .reg .b32 a;\nld\n .global /* \n */ .u32 a, [a];\nret;\n}\n%")


# --- scopes -------------------------------------------------------------------------------------------------


def test_names_in_nested_scopes():
    function = body(
        """L: mov.u32 %r1, 1;
        { .reg .pred p; .reg .b32 t; .shared .b32 s[4];
          setp.eq.u32 p, %r1, 0; mov.u32 t, s; @p bra L; mov.u32 %r2, 3; L: }
        { .reg .b64 t; .reg .pred p; .shared .b64 s;
          mov.u64 t, s; @p bra L; @p bra M; { bra M; bra N; N: } M: }
        bra L;"""
    )
    lines = shown(function)
    assert [line for line in lines if "bra" in line] == [
        "@p bra L@5", "@p bra L@0", "@p bra M@10", "bra M@10", "bra N@10", "bra L@0"
    ]  # fmt: skip
    types = [function["registers"][i["operands"][0]["index"]][1] for i in function["instructions"][:7]
             if i["mnemonic"].startswith("mov")]  # fmt: skip
    assert types == ["b32", "b32", "b32", "b64"]
    assert [v["size"] for v in function["variables"]] == [8, 16, 8]
    with pytest.raises(PtxError, match=r'found "%q", expected a declared or a special register'):
        body("{ .reg .b32 %q; } mov.u32 %q, 1;")


def test_a_label_may_bear_a_variables_name():
    (function,) = dump(
        ".global .u32 done; .func f { bra done; { bra done; } st.global.u32 [done], 1; done: }"
    )["functions"]
    assert shown(function) == ["bra done@3", "bra done@3", "st.global.u32 [done], 1"]


def test_targets():
    function = body(
        """brx.idx %r1, T; { T: .branchtargets A, B, A; brx.idx.uni %r1, T; B: }
        A: ret; T: .branchtargets A; C: .calltargets f, g; call (%r1), %rd1, (%r2), C; call f, C; """
    )
    assert shown(function) == [
        "brx.idx %r1, local T", "brx.idx.uni %r1, local T", "ret", "call (%r1), %rd1, (%r2), local C",
        "call f, local C",
    ]  # fmt: skip
    outer, inner = (i["operands"][1] for i in function["instructions"][:2])
    assert (outer["index"], outer["component"], inner["index"]) == (1, 1, 0)
    named = [(name, [function["labels"][k] for k in labels], calls)
             for name, labels, calls in function["targets"]]  # fmt: skip
    assert named == [
        ("T", [("A", 2), ("B", 2), ("A", 2)], []), ("T", [("A", 2)], []), ("C", [], ["f", "g"])
    ]  # fmt: skip


def test_prototypes():
    function = body(
        "P: .callprototype ()_ (.param .b64 _, .param .align 8 .b8 _[16]) .noreturn;\n"
        "Q: .callprototype (.param .f32 _) _; call (%f1), %rd1, Q;"
    )
    (p, results, parameters), (q, q_results, q_parameters) = function["prototypes"]
    assert (p, results, [v["size"] for v in parameters]) == ("P", [], [8, 16])
    assert (q, [v["type"] for v in q_results], q_parameters) == ("Q", ["f32"], [])
    target = function["instructions"][0]["operands"][2]
    assert (target["index"], target["component"]) == (1, 2)


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r'1:1: found the end of the text, expected \.version'),
        (".target sm_80", r'1:1: found ".target", expected .version'),
        (".version 8.0", r"1:13: found the end of the text, expected \.target"),
        (".version 8.0 .target gm_80", r"1:27: found the end of the text, expected \.target"),
        (".version 0.5", r'1:10: found no version, expected such as 8\.3'),
    ],
)  # fmt: skip
def test_errors_in_the_header(text, message):
    with pytest.raises(PtxError, match=message):
        _engine.PtxModule(text.encode(), "t.ptx")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo", '4:1: found "foo", expected a directive'),
        (".blob x;", '4:1: found ".blob", expected a directive of a module'),
        (".reg .b32 x;", '4:1: found ".reg", expected a directive of a module'),
        (".global x;", '4:9: found "x", expected a type'),
        (".global .u33 x;", '4:9: found ".u33", expected a type'),
        (".global .align 3 .u32 x;", '4:16: found "3", expected a power of two'),
        (".global .pred x;", "4:16: found a variable of type .pred"),
        (".global .u32 x[2][];", '4:19: found "]", expected a size'),
        (".global .u32 x[281474976710657];", "expected a size below 2\\^48 bytes"),
        (".global .u32 x[20000000][20000000];", "expected a size below 2\\^48 bytes"),
        (".global .u32 x[99999999999] = {1};", "expected less than 256 MiB of initialised data"),
        (".global .u32 x[2] = {1,2,3};", '4:26: found "3", expected } after as many values'),
        (".global .u32 x[2] = 1;", '4:21: found "1", expected {'),
        (".global .u32 x = 1.5;", '4:18: found "1.5", expected an integer, for a variable of type .u32'),
        (".global .u64 x = 0x7F(y);", "4:18: found \"0x7F\", expected a mask of adjoining bytes"),
        (".global .u32 x; .global .f32 x;", '4:30: found "x", expected a name that is not yet declared'),
        (".func f { ret; } .func f { ret; }", '4:24: found "f", expected a name that is not yet declared'),
        (".func f {\n  add.s32 %r1, 2;\n}", '5:11: found "%r1", expected a declared or a special register'),
        (".func f {\n ret\n}", '6:1: found "}", expected an operand'),
        (".func f {\n bra X;\n}", '5:6: found "X", expected a label of this function'),
        (".func f {\n T: .branchtargets A, B; A:\n}", '5:23: found "B", expected a label of this function'),
        (".func f {\n A: A:\n}", '5:5: found "A:", expected a name that is not yet declared'),
        (".func f {\n .reg .b32 a; @b ret;\n}", '5:16: found "b", expected a predicate register'),
        (".func f {\n .reg .b32 a; .reg .b64 a;\n}", '5:25: found "a", expected a name that is not'),
        (".func f {\n .reg .b32 %r<99999999>;\n}", '5:12: found "%r<99999999>", expected fewer registers'),
        (".func f {\n .reg .b4 a;\n}", '5:7: found ".b4", expected a type'),
        (".func f {\n mov.u32 %tid.q, 1;\n}", '5:14: found ".q", expected a component'),
        (".func f {\n .reg .b32 a; mov.u32 a.xx, 1;\n}", '5:24: found ".xx", expected a component'),
        (".func f {\n mov.u32 1 2;\n}", '5:12: found "2", expected ; or ,'),
        (".func f {\n mov.u32 1/0;\n}", "5:11: found an operation without a value"),
        (".func f {\n mov.u32 [1;\n}", '5:12: found ";", expected ] or ,'),
        (".func f {\n mov.u32 {1;\n}", '5:12: found ";", expected } or ,'),
        (".func f {\n mov.u32 0f12;\n}", '5:10: found "0f12", expected 8 hexadecimal digits'),
        (".func f {\n mov.u32 0f123456789;\n}", "5:10: found \"0f123456789\", expected a number"),
        (".func f {\n mov.u32 99999999999999999999;\n}", "5:10: .*expected a number of at most 64 bits"),
        (".func f {\n mov.u32 1e999;\n}", "5:10: .*expected a number within the range of a double"),
        (".func f {\n mov.u32 12ab;\n}", '5:10: found "12ab", expected a number'),
        (".func f {\n mov.u32 \x01;\n}", r'5:10: found "\\x01", expected an operand'),
        (".func f {\n", "5:1: found the end of the text, expected }"),
        ("/* x", "4:1: found a comment without end, expected \\*/"),
        ('.file 1 "x\n"', '4:9: found a string without end, expected "'),
        (".section .x { { }", "4:13: found a block without end, expected }"),
        (".entry k .maxntid 0 {}", '4:19: found "0", expected up to three numbers above 0'),
        (".entry k .maxntid 1,1,1,1 {}", '4:25: found "1", expected up to three numbers above 0'),
        (".entry k .what 0 {}", '4:10: found ".what", expected a directive of a function'),
        (".func f {" + "{" * 300, "4:265: .*expected at most 256 nested scopes"),
        (".func f { mov.u32 " + "(" * 1000, "nested too deeply"),
        (".func f { mov.u32 " + "-" * 1000, "nested too deeply"),
        (".func f { mov.u32 " + "{" * 1000, "expected operands nested less deeply"),
    ],
)  # fmt: skip
def test_errors(text, message):
    with pytest.raises(PtxError, match=message) as error:
        dump(text)
    assert str(error.value).startswith("t.ptx:")
    assert "expected" in str(error.value)
