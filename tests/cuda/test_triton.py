"""Triton kernels, compiled ahead of time."""

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simt.cuda.triton import Specialisation, compile_triton, scalar, specialise
from simt.errors import CompileError

triton = pytest.importorskip("triton", reason="Triton is not installed")

from support import triton_kernels as kernels  # noqa: E402

_ALIGNED = [["tt.divisibility", 16]]


@pytest.fixture(autouse=True)
def own_triton_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))


def _device_array(dtype: Any, address: int = 4096) -> Any:
    return SimpleNamespace(dtype=dtype, data_ptr=lambda: address)


_HALVES = _device_array(np.dtype(np.float16))
_FLOATS = np.zeros(8, np.float32)


def _names(kernel: Any) -> list[str]:
    return [parameter.name for parameter in kernel.parameters if not parameter.name.endswith("_scratch")]


class TestSpecialise:
    def test_arrays_and_numbers(self) -> None:
        found = specialise(
            kernels.add, (_FLOATS, _device_array("torch.bfloat16", 8), _HALVES, 1000), {"BLOCK": 64}
        )
        assert found == Specialisation(
            signature={"x": "*fp32", "y": "*bf16", "out": "*fp16", "n": "i32", "BLOCK": "constexpr"},
            constexprs={(4,): 64},
            attributes={(0,): _ALIGNED, (2,): _ALIGNED},
            arguments=found.arguments,
        )
        assert found.arguments[0] is _FLOATS and found.arguments[3] == 1000

    @pytest.mark.parametrize(
        ("value", "kind", "aligned"),
        [
            (0, "i32", True),
            (1, "constexpr", False),
            (np.int64(1), "constexpr", False),
            (15, "i32", False),
            (48, "i32", True),
            (-32, "i32", True),
            (2**31 - 1, "i32", False),
            (2**31, "i64", True),
            (-(2**31) - 1, "i64", False),
            (2**63 - 1, "i64", False),
            (2**63, "u64", True),
            (True, "u1", False),
            (1.0, "fp32", False),
            (None, "constexpr", False),
            (_device_array(np.dtype(np.uint8), 24), "*u8", False),
            (_device_array(np.dtype(np.bool_), 32), "*i1", True),
        ],
    )
    def test_each_kind(self, value: Any, kind: str, aligned: bool) -> None:
        found = specialise(kernels.add, (_FLOATS, _FLOATS, _FLOATS, value), {"BLOCK": 64})
        assert found.signature["n"] == kind
        assert ((3,) in found.attributes) is aligned
        assert ((3,) in found.constexprs) is (kind == "constexpr")

    def test_annotations_and_refusals_to_specialise(self) -> None:
        found = specialise(kernels.kinds, (_FLOATS, 1, 32, 1, 1.0, (16, 5), 16))
        assert found.signature == {
            "pointer": "*fp32",
            "free": "i32",
            "unaligned": "i32",
            "wide": "i64",
            "real": "fp32",
            "pair": ("i32", "i32"),
            "plain": "i32",
            "CHOICE": "constexpr",
        }
        assert found.attributes == {(0,): _ALIGNED, (5, 0): _ALIGNED, (6,): _ALIGNED}
        assert found.constexprs == {(7,): 3}
        assert found.arguments[1:] == (1, 32, 1, 1.0, 16, 5, 16)

    @pytest.mark.parametrize(
        "arguments",
        [
            (_HALVES, 1, 1, 16, 16.0, (1, 16), 1),
            (_device_array(np.dtype(np.int8), 1), 2**40, 2**33, 2**33, 2.5, (2**40, -16), None),
            (_HALVES, -(2**31), 16, 0, 1.0, (True, 0.5), 1.5),
            (_HALVES, None, None, 3, 0.0, (None, 1), True),
        ],
    )
    def test_agrees_with_triton(self, arguments: tuple[Any, ...]) -> None:
        """Triton's own binder, for a GPU that is not present."""
        jit = pytest.importorskip("triton.runtime.jit")
        if not hasattr(jit, "native_specialize_impl"):
            pytest.skip("this Triton has its rules elsewhere")
        from triton.backends.compiler import BaseBackend

        bind = jit.create_function_from_signature(kernels.kinds.signature, kernels.kinds.params, BaseBackend)
        _, expected, _ = bind(*arguments)
        found = specialise(kernels.kinds, arguments)
        assert list(found.signature.values()) == [kind for kind, _ in expected]
        marked = {
            (index, *rest): "D"
            for index, (kind, attribute) in enumerate(expected)
            for rest, mark in (
                [((inner,), value) for inner, value in enumerate(attribute)]
                if isinstance(kind, tuple)
                else [((), attribute)]
            )
            if kind != "constexpr" and mark == "D"
        }
        assert set(found.attributes) == set(marked)

    def test_what_is_refused(self) -> None:
        with pytest.raises(CompileError, match=r"^add: missing a required argument: 'BLOCK'"):
            specialise(kernels.add, (_FLOATS, _FLOATS, _FLOATS, 3))
        with pytest.raises(CompileError, match="add: parameter n: Triton has no type for list"):
            specialise(kernels.add, (_FLOATS, _FLOATS, _FLOATS, []), {"BLOCK": 64})
        with pytest.raises(CompileError, match="add: parameter x: no elements of type 'complex64'"):
            specialise(kernels.add, (np.zeros(2, np.complex64), _FLOATS, _FLOATS, 3), {"BLOCK": 64})
        with pytest.raises(
            CompileError, match=r"function is not a Triton kernel: decorate it with @triton\.jit"
        ):
            specialise(lambda x: x, (1,))
        wrapped = SimpleNamespace(fn=kernels.add, __name__="tuned")  # as autotune and heuristics wrap it
        with pytest.raises(
            CompileError, match=r"tuned: .* is not a Triton kernel: pass the function inside it"
        ):
            specialise(wrapped, (1,))


@pytest.mark.slow
class TestCompile:
    @pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90"])
    def test_add(self, arch: str) -> None:
        kernel = compile_triton(
            kernels.add,
            specialise(kernels.add, (_FLOATS, _FLOATS, _FLOATS, 1024), {"BLOCK": 1024}),
            arch=arch,
            num_warps=8,
        )
        assert kernel.module.arch.startswith(arch)
        assert (kernel.name, kernel.num_warps, kernel.num_ctas) == ("add", 8, 1)
        assert kernel.module.kernel("add") == "add"
        assert re.search(r"\.(?:reqntid|maxntid)\s+256\b", kernel.module.text)
        assert [parameter.type for parameter in kernel.parameters[:4]] == ["*fp32", "*fp32", "*fp32", "i32"]
        assert len(kernel.parameters) == kernel.module.parameters("add").count(".param")
        assert kernel.scratch == {}
        assert "ld.global.v4.b32" in kernel.module.text  # divisible by 16: four elements at a time

    def test_unaligned_pointers(self) -> None:
        types = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
        kernel = compile_triton(kernels.add, types, {"BLOCK": 1024}, arch="sm_80")
        assert "ld.global.v4" not in kernel.module.text
        aligned = {name: f"{kind}:16" for name, kind in types.items()}
        assert (
            "ld.global.v4" in compile_triton(kernels.add, aligned, {"BLOCK": 1024}, arch="sm_80").module.text
        )

    @pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
    def test_softmax(self, arch: str) -> None:
        arguments = (_FLOATS, _FLOATS, 1024, 1000)
        kernel = compile_triton(
            kernels.softmax, specialise(kernels.softmax, arguments, {"BLOCK": 1024}), arch=arch
        )
        assert kernel.shared_bytes >= 4 * kernel.num_warps  # a number for each warp
        assert "ex2.approx" in kernel.module.text and "shfl.sync.bfly" in kernel.module.text

    @pytest.mark.parametrize(
        ("arch", "expected"),
        [("sm_80", ("mma.sync.aligned.m16n8k16", "cp.async.")), ("sm_90", ("wgmma.mma_async.sync.aligned",))],
    )
    def test_matmul(self, arch: str, expected: tuple[str, ...]) -> None:
        arguments = (_HALVES, _HALVES, _HALVES, 256, 256, 256, 256)
        found = specialise(kernels.matmul, arguments, {"BM": 64, "BN": 64, "BK": 32})
        kernel = compile_triton(kernels.matmul, found, arch=arch, num_stages=2)
        assert _names(kernel) == ["a", "b", "c", "K", "sa", "sb", "sc"]
        assert kernel.shared_bytes >= 2 * (64 * 32 + 32 * 64)  # at least one tile of each
        for instruction in expected:
            assert instruction in kernel.module.text

    @pytest.mark.parametrize(
        ("arch", "expected"), [("sm_80", "mma.sync.aligned"), ("sm_90", "wgmma.mma_async.sync.aligned")]
    )
    def test_flash_attention(self, arch: str, expected: str) -> None:
        arguments = (_HALVES, _HALVES, _HALVES, _HALVES, 0.125, 256)
        found = specialise(kernels.attention, arguments, {"BM": 64, "BN": 64, "D": 64})
        kernel = compile_triton(kernels.attention, found, arch=arch)
        assert expected in kernel.module.text
        assert [parameter.type for parameter in kernel.parameters[4:6]] == ["fp32", "i32"]

    def test_descriptors_of_the_host(self) -> None:
        """On Hopper, a tensor map with shape and strides, preceded by its pointer with both, twice."""
        tensor = SimpleNamespace(
            dtype=np.dtype(np.float16), data_ptr=lambda: 4096, shape=[128, 128], stride=lambda: [128, 1]
        )
        tile = pytest.importorskip("triton.tools.tensor_descriptor").TensorDescriptor.from_tensor(
            tensor, [64, 64]
        )
        found = specialise(kernels.copy_tile, (tile, tile), {"BM": 64, "BN": 64})
        assert found.signature["source"] == "tensordesc<fp16[64,64]>"
        kernel = compile_triton(kernels.copy_tile, found, arch="sm_90")
        types = [parameter.type for parameter in kernel.parameters]
        assert types[:10] == ["tensormap", "i32", "i32", "i64", "i64"] * 2
        assert [tile["block_size"] for tile in kernel.tensor_maps] == [[64, 64], [64, 64]]
        assert "cp.async.bulk.tensor.2d" in kernel.module.text
        older = compile_triton(kernels.copy_tile, found, arch="sm_80")
        assert [parameter.type for parameter in older.parameters[:5]] == ["*fp16", "i64", "i64", "i64", "i64"]
        assert older.tensor_maps == ()

    def test_descriptors_of_the_kernel(self) -> None:
        if not hasattr(triton.language, "make_tensor_descriptor"):
            pytest.skip("this Triton has no such descriptors")
        found = specialise(
            kernels.matmul_by_maps, (_HALVES, _HALVES, _HALVES, 256, 256, 256), {"BM": 64, "BN": 64, "BK": 64}
        )
        kernel = compile_triton(kernels.matmul_by_maps, found, arch="sm_90")
        size, alignment = kernel.scratch["global_scratch"]
        assert size % alignment == 0 and size >= 3 * 128  # three tensor maps
        assert "global_scratch" in [parameter.name for parameter in kernel.parameters]

    def test_tuples_lie_flat(self) -> None:
        found = specialise(kernels.kinds, (_FLOATS, 1, 32, 1, 1.0, (16, 5), 16))
        kernel = compile_triton(kernels.kinds, found, arch="sm_80")
        assert _names(kernel) == ["pointer", "free", "unaligned", "wide", "real", "pair", "pair", "plain"]

    def test_what_is_refused(self) -> None:
        with pytest.raises(
            CompileError, match=r"(?s)^wrong: Triton does not compile it for sm_80.*no_such_name"
        ):
            compile_triton(kernels.wrong, {"x": "*fp32"}, arch="sm_80")
        with pytest.raises(CompileError, match="add: no parameters z; there are x, y, out, n, BLOCK"):
            compile_triton(kernels.add, {"z": "i32"}, arch="sm_80")
        with pytest.raises(CompileError, match="add: parameter y needs a type"):
            compile_triton(kernels.add, {"x": "*fp32"}, {"BLOCK": 64}, arch="sm_80")
        with pytest.raises(CompileError, match="parameter x: only multiples of 16 are known, found '8'"):
            compile_triton(kernels.add, {"x": "*fp32:8"}, arch="sm_80")


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (-1, "i32", np.int32(-1)),
        (2**63, "u64", np.uint64(2**63)),
        (True, "u1", np.uint8(1)),
        (0.1, "fp32", np.float32(0.1)),
        (1.0, "bf16", np.uint16(0x3F80)),
    ],
)
def test_scalars(value: Any, kind: str, expected: np.generic) -> None:
    assert scalar(value, kind) == expected and scalar(value, kind).dtype == expected.dtype


def test_scalars_that_do_not_fit() -> None:
    with pytest.raises(CompileError, match="a parameter of type 'i32' cannot take 'x'"):
        scalar("x", "i32")
    with pytest.raises(CompileError, match=r"a parameter of type '\*fp32' does not accept a number"):
        scalar(1, "*fp32")
