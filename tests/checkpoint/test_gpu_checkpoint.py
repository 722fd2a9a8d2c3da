"""Checkpoints of a GPU between launches: what continues there equals what was never interrupted."""

from __future__ import annotations

import hashlib
import json
import os
import random
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simt
from simt.checkpoint.folder import HEADER, STATE
from simt.errors import CheckpointError, ProgramFault, SimtError
from support.hostile import attempts, damaged, mutant

PTX = """.version 7.0
.target sm_70
.address_size 64
.const .align 4 .f32 factor = 0f40000000;
.global .align 8 .u64 last;
.global .texref image;
.visible .entry scale(.param .u64 x, .param .u32 n)
{
  .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  st.global.u64 [last], %rd1;
  setp.ge.u32 %p, %r5, %r1; @%p bra DONE;
  mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
  ld.const.f32 %f2, [factor]; ld.global.f32 %f3, [%rd3]; fma.rn.f32 %f3, %f3, %f2, 0f3F800000;
  st.global.f32 [%rd3], %f3;
DONE:
  ret;
}
.visible .entry sample(.param .u64 out)
{
  .reg .f32 %f<5>; .reg .b32 %r; .reg .b64 %rd<3>;
  mov.u32 %r, %tid.x; ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r, 4; add.u64 %rd0, %rd0, %rd1;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r}]; st.global.f32 [%rd0], %f1;
  ret;
}
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with one of each object."""
    gpu = simt.GPU("qv100", functional=True)
    module = gpu.load(PTX)
    x = gpu.array(np.arange(64, dtype=np.float32))
    texture = gpu.texture(gpu.array(np.arange(32, dtype=np.float32)))
    module.bind_texture("image", texture)
    module.scale[2, 32](x, 64)
    path = tmp_path_factory.mktemp("checkpoint") / "whole"
    gpu.checkpoint(
        path,
        {
            "x": x,
            "middle": x[8:16],
            "pairs": gpu.array(np.zeros(3, np.dtype([("a", "f4"), ("b", "i4", (2,))]))),
            "module": module,
            "last": module.variable("last", np.uint64),
            "texture": texture,
            "surface": gpu.surface(np.ones((4, 4), np.float32)),
            "stream": gpu.stream(),
        },
    )
    return path


def test_objects_are_restored(whole: Path) -> None:
    gpu = simt.GPU.from_checkpoint(whole, functional=True)
    x, module, texture = (gpu.objects[name] for name in ("x", "module", "texture"))
    assert x.tolist() == [2 * i + 1 for i in range(64)]
    assert gpu.objects["middle"].base is x and gpu.objects["middle"].tolist() == x.tolist()[8:16]
    assert gpu.objects["last"].item() == x.address
    assert gpu.objects["pairs"].dtype == np.dtype([("a", "f4"), ("b", "i4", (2,))])
    assert gpu.objects["surface"].numpy().tolist() == [[1] * 4] * 4
    module.scale[2, 32, 0, gpu.objects["stream"]](x, 64)
    assert x.tolist() == [4 * i + 3 for i in range(64)]
    out = gpu.zeros(32)
    module.sample[1, 32](out)
    assert out.tolist() == list(range(32)) and module.bound["image"] is texture
    assert gpu.stream().number == gpu.objects["stream"].number + 1
    x.free()  # and the memory is free again
    with pytest.raises(ProgramFault, match="freed"):
        module.scale[1, 32](x, 32)


def test_resumed_timing_is_that_of_cold_caches(tmp_path: Path) -> None:
    """All counters, on any specification and any number of times; the launch keeps its id."""

    def program(gpu: simt.GPU) -> tuple[Any, Any]:
        module, x = gpu.load(PTX), gpu.empty(4096)
        gpu.memory.native.write(x.address, np.arange(4096, dtype=np.float32).tobytes())  # not through the L2
        module.scale[16, 256](x, 4096)
        return module, x

    gpu = simt.GPU("qv100")
    module, x = program(gpu)
    gpu.checkpoint(tmp_path / "one", {"x": x, "module": module})
    for name in ("qv100", "rtx2060"):
        cold = simt.GPU(name)
        cold.functional = True  # the first launch is executed without timing, and leaves the caches alone
        module, x = program(cold)
        cold.functional = False
        expected = module.scale[16, 256](x, 4096)
        assert expected is not None
        for _ in range(2):
            again = simt.GPU.from_checkpoint(tmp_path / "one", name)
            launch = again.objects["module"].scale[16, 256](again.objects["x"], 4096)
            assert launch.to_json(detail=True) == expected.to_json(detail=True) and launch.id == 2
            assert again.objects["x"].tolist() == x.tolist()
    assert simt.GPU.from_checkpoint(tmp_path / "one").spec.values() == gpu.spec.values()


class Program:
    """Allocates, frees, writes and launches, as the steps say. Observes memory, addresses and values."""

    def __init__(self, gpu: simt.GPU) -> None:
        self.gpu = gpu
        self.arrays: list[Any] = []
        self.module = gpu.load(PTX)

    def step(self, kind: int, number: int) -> None:
        if kind == 0 or not self.arrays:
            self.arrays.append(self.gpu.array(np.arange(1 + 37 * number, dtype=np.float32)))
        elif kind == 1:
            self.arrays.pop(number % len(self.arrays))
        else:
            array = self.arrays[number % len(self.arrays)]
            self.module.scale[-(-array.size // 64), 64](array, array.size)

    def seen(self) -> Any:
        memory = self.gpu.memory
        return [(a, memory.read(a[0], a[1])) for a in memory.allocations()]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 200)), max_size=24),
    st.integers(0, 24),
    st.sampled_from(["qv100", "h100"]),
)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_program_interrupted_anywhere_equals_one_that_was_not(
    tmp_path: Path, steps: list[tuple[int, int]], at: int, other: str
) -> None:
    whole = Program(simt.GPU("qv100", functional=True))
    first = Program(simt.GPU("qv100", functional=True))
    path = tmp_path / f"checkpoint-{time.monotonic_ns()}"
    for step in steps:
        whole.step(*step)
    for step in steps[:at]:
        first.step(*step)
    names = {str(i): array for i, array in enumerate(first.arrays)}
    first.gpu.checkpoint(path, {**names, "module": first.module})
    second = Program.__new__(Program)
    second.gpu = simt.GPU.from_checkpoint(path, other, functional=True)
    second.module = second.gpu.objects.pop("module")
    second.arrays = [second.gpu.objects.pop(str(i)) for i in range(len(first.arrays))]
    assert second.seen() == first.seen()
    for step in steps[at:]:
        second.step(*step)
    assert second.seen() == whole.seen()


def test_untouched_memory_takes_no_space(tmp_path: Path) -> None:
    gpu = simt.GPU("qv100", functional=True)
    gpu.memory.allocate(8 << 30)
    gpu.write(gpu.memory.allocate(1 << 30) + (1 << 29), np.ones(1, np.uint8))
    gpu.checkpoint(tmp_path / "sparse")
    assert sum(file.stat().st_size for file in (tmp_path / "sparse").iterdir()) < 4096
    again = simt.GPU.from_checkpoint(tmp_path / "sparse", functional=True)
    pages = os.stat(again.memory.native.file).st_blocks * 512
    assert again.memory.allocations() == gpu.memory.allocations() and pages <= 1 << 20


def test_refusals(whole: Path, tmp_path: Path) -> None:
    gpu = simt.GPU("qv100", functional=True)
    with pytest.raises(CheckpointError, match="exists already"):
        gpu.checkpoint(whole)
    with pytest.raises(CheckpointError, match="object 'x' is ndarray, which a checkpoint cannot keep"):
        gpu.checkpoint(tmp_path / "no", {"x": np.zeros(3)})
    with pytest.raises(CheckpointError, match="another GPU"):
        gpu.checkpoint(tmp_path / "no", {"x": simt.GPU("qv100", functional=True).zeros(3)})
    freed = gpu.zeros(3)
    freed.free()
    with pytest.raises(CheckpointError, match="was freed"):
        gpu.checkpoint(tmp_path / "no", {"x": freed})
    assert list(tmp_path.iterdir()) == []  # no partly written file is left
    with pytest.raises(CheckpointError, match="no such directory"):
        simt.GPU.from_checkpoint(tmp_path / "no")
    with pytest.raises(CheckpointError, match=r"needs [\d,]+ bytes, and qv100 has 4,096"):
        simt.GPU.from_checkpoint(whole, memory=1024)
    header = json.loads((whole / HEADER).read_text())
    for changed, message in (
        ({"version": 1}, "a checkpoint of version 1, made by simt"),
        ({"format": "other"}, "not a checkpoint"),
        ({"kind": "program"}, "a checkpoint of a program, expected one of a GPU"),
        ({"sha256": "0" * 64}, "damaged: state.json.zst does not match its checksum"),
    ):
        folder = _copy(whole, tmp_path / "changed")
        (folder / HEADER).write_text(json.dumps({**header, **changed}))
        with pytest.raises(CheckpointError, match=message):
            simt.GPU.from_checkpoint(folder)
    older = simt.GPU("h100", functional=True)
    module = older.load(PTX.replace("sm_70", "sm_90"))
    older.checkpoint(tmp_path / "hopper", {"module": module})
    with pytest.raises(CheckpointError, match=r"PTX for sm_90, which does not run on qv100 \(sm_70\)"):
        simt.GPU.from_checkpoint(tmp_path / "hopper", "qv100")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(CheckpointError, match="cannot write"):
        simt.GPU("qv100", functional=True).checkpoint(tmp_path / "one")


def _copy(whole: Path, to: Path) -> Path:
    to.mkdir(exist_ok=True)
    for file in whole.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def _same(path: Path, whole: Path) -> bool:
    gpu, expected = (simt.GPU.from_checkpoint(p, functional=True) for p in (path, whole))
    return all(
        gpu.memory.read(a[0], a[1]) == expected.memory.read(a[0], a[1]) for a in expected.memory.allocations()
    )


def test_every_truncation_and_flipped_bit_is_noticed(whole: Path, tmp_path: Path) -> None:
    """Only the header's version of simt, which is for people, may change unnoticed."""
    chance, folder = random.Random(16), _copy(whole, tmp_path / "damaged")
    for file in whole.iterdir():
        good = file.read_bytes()
        for at in sorted({0, 1, len(good) - 1, *(chance.randrange(len(good)) for _ in range(3))}):
            for data in (
                good[:at],
                good[:at] + bytes([good[at] ^ 1 << chance.randrange(8)]) + good[at + 1 :],
            ):
                (folder / file.name).write_bytes(data)
                try:
                    simt.GPU.from_checkpoint(folder, functional=True)
                except CheckpointError as error:
                    assert str(folder) in str(error)
                else:
                    assert file.name == HEADER and _same(folder, whole)
        (folder / file.name).unlink()
        with pytest.raises(CheckpointError, match="damaged"):
            simt.GPU.from_checkpoint(folder, functional=True)
        (folder / file.name).write_bytes(good)


@pytest.fixture(scope="module")
def within(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint within a launch, with the contents of the L2."""
    gpu = simt.GPU("qv100")
    module, x = gpu.load(PTX), gpu.array(np.arange(64, dtype=np.float32))
    path = tmp_path_factory.mktemp("checkpoint") / "within"
    with gpu.checkpoint_at(path, {"x": x}, launch=2, cta=1, instruction=5, warm=True):
        for _ in range(2):
            module.scale[4, 32](x, 64)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("form", ["state", "bytes", "within"])
def test_hostile_checkpoints(whole: Path, within: Path, tmp_path: Path, form: str) -> None:
    """Checkpoints whose checksums are right, and whose contents nobody has written so."""
    if form == "within":
        whole = within
    header = json.loads((whole / HEADER).read_text())
    raw = zstandard.ZstdDecompressor().decompress((whole / STATE).read_bytes(), max_output_size=1 << 24)
    chance, folder = random.Random(form), _copy(whole, tmp_path / "hostile")
    refused, taken = 0, 0
    for _ in attempts(300):
        made = (
            damaged(raw, chance) if form == "bytes" else json.dumps(mutant(json.loads(raw), chance)).encode()
        )
        compressed = zstandard.ZstdCompressor().compress(made)
        (folder / STATE).write_bytes(compressed)
        header["sha256"] = hashlib.sha256(compressed).hexdigest()
        (folder / HEADER).write_text(json.dumps(header))
        try:
            gpu = simt.GPU.from_checkpoint(folder, functional=form != "within")
            repr((gpu.objects, gpu.interrupted))
            taken += 1
        except SimtError:
            refused += 1
    assert refused and taken
