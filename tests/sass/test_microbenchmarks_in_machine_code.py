"""The machine code of the microbenchmarks is executed: none of its opcodes is refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from itertools import count

import numpy as np
import pytest

import simt
from simt.cuda import PtxModule, compile_cuda, machine_code
from simt.errors import SimtError
from simt.sass import Cubin, disassemble
from simt.sass.disassembler import is_installed
from simt.validate import device
from simt.validate.microbenchmark import microbenchmarks

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="nvdisasm is not installed: pip install 'simt[cuda]'"
)


NAMED = re.compile(
    r"^(?:\.\w+\s+)*\.(?:entry|func|global|const|shared)\b[^({;=\n]*?([A-Za-z_$][\w$]*)\s*(?:\[|\(|;|=)",
    re.MULTILINE,
)
"""The names of kernels, functions and variables in PTX, at the beginning of a line."""
CONSTANT = re.compile(r"^(?:\.\w+\s+)*\.const\b", re.MULTILINE)


class Compiling(device.SimulatedDevice):
    """Compiles kernels to PTX, and launches none: each launch takes longer than the one before."""

    def __init__(self, gpu: str) -> None:
        super().__init__(gpu)
        self._launches = count(1)
        self.texts: dict[str, str] = {}
        """PTX by what it was compiled from."""
        self._of_shape: Counter[Hashable] = Counter()

    def kernel(
        self, source: str, name: str, defines: Mapping[str, str | int] | None = None
    ) -> Callable[..., float]:
        # Searches compile one kernel with many numbers; the first two have all its opcodes.
        shape = source, name, tuple((k, v) for k, v in (defines or {}).items() if not isinstance(v, int))
        self._of_shape[shape] += 1
        if self._of_shape[shape] <= 2:
            text = (device.SOURCES / source).read_text()
            options = {"name": source, "defines": defines, "include": [device.SOURCES]}
            ptx = compile_cuda(text, arch=self._gpu.arch, **options).text
            self.texts.setdefault(f"{source} {defines}", ptx)
        return lambda *_, **__: 1000.0 * next(self._launches)

    def programs(self) -> list[PtxModule]:
        """Those with constants, of which a program has at most 64 KiB, and the others as one with numbers
        behind their names: nvdisasm needs half a second to start.
        """
        with_constants = [text for text in self.texts.values() if CONSTANT.search(text)]
        head, parts = "", []
        for number, text in enumerate(text for text in self.texts.values() if text not in with_constants):
            head, middle, body = text.partition(".address_size 64\n")
            head += middle
            body = body.partition("\t.section\t.debug_")[0]
            body = re.sub(r"^\s*\.(loc|file)\b.*\n", "", body, flags=re.MULTILINE)
            for name in set(NAMED.findall(body)):
                body = re.sub(rf"(?<![\w$%]){re.escape(name)}(?![\w$.])", f"{name}_{number}", body)
            parts.append(body)
        return [
            PtxModule.from_text(text, "microbenchmarks.ptx")
            for text in (head + "".join(parts), *with_constants)
        ]

    def period(self, source: str, name: str, launches: int) -> float:
        self.kernel(source, name)
        return 1000.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of what the times that are made up lead to
@pytest.mark.parametrize("gpu", ["qv100", "h100"])
def test_no_opcode_is_refused(gpu: str) -> None:
    compiling = Compiling(gpu)
    for benchmark in microbenchmarks().values():
        if compiling.sm_version < benchmark.sm_version:
            continue
        with suppress(ArithmeticError, ValueError, SimtError):  # the times that are made up give no answer
            benchmark.measure(compiling)
    assert len(compiling.texts) > 40
    programs = compiling.programs()
    assert sum(len(each.kernels) for each in programs) > 60
    for program in programs:
        loaded = simt.GPU(gpu, code="sass").load(program)  # raises SassError for what it does not execute
        assert set(loaded.kernels) == set(program.kernels)


def test_a_jump_by_a_uniform_register_goes_where_the_index_says() -> None:
    """BRXU: brx.idx whose index is the same for all lanes."""
    text = r"""
    .version 8.7
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 out, .param .u32 which) {
      .reg .b64 %a; .reg .b32 %w, %v;
      ld.param.u64 %a, [out]; ld.param.u32 %w, [which];
      mov.u32 %v, 7;
      TARGETS: .branchtargets ZERO, ONE, TWO, THREE, FOUR, FIVE;
      brx.idx.uni %w, TARGETS;
    ZERO: mov.u32 %v, %tid.x; bra DONE;
    ONE: mov.u32 %v, %ctaid.x; bra DONE;
    TWO: mov.u32 %v, %ntid.x; bra DONE;
    THREE: mov.u32 %v, %laneid; add.u32 %v, %v, 1; bra DONE;
    FOUR: mov.u32 %v, %nctaid.x; bra DONE;
    FIVE: mov.u32 %v, 99;
    DONE: st.global.u32 [%a], %v; ret;
    }"""
    module = PtxModule.from_text(text, "k.ptx")
    code = disassemble(Cubin.parse(machine_code(module, "sm_80"), "k"))["k"]
    assert "BRXU" in {x.opcode for x in code}
    kernel = simt.GPU("a100", code="sass", functional=True).load(module).k
    found = []
    for which in range(6):
        out = np.zeros(1, np.uint32)
        kernel[5, 1](out, which)
        found.append(int(out[0]))
    assert found[0] == 0 and found[2:] == [1, 1, 5, 99]
    assert 0 <= found[1] < 5
