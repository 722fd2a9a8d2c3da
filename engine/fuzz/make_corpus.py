"""Writes starting points for the fuzzers, a directory for each: make_corpus.py DIRECTORY"""

import itertools
import struct
import sys
from pathlib import Path

HEADER = """-kernel name = k
-kernel id = 1
-grid dim = (4,1,1)
-block dim = (64,1,1)
-shmem = 0
-nregs = 16
-binary version = 80
-cuda stream id = 0
-shmem base_addr = 0x00007f0000000000
-local mem base_addr = 0x00007f0001000000
-accelsim tracer version = {version}
-enable lineinfo = {lines}

#format
"""
V5 = [
    "0010 ffffffff 1 R4 LDG.E 1 R4 4 1 0x7fb0fc430e00 4 0 ",
    "0020 ffffffff 1 R4 FFMA 3 R4 R5 R255 0 0 ",
    "0030 0000000f 0 STS.128 2 R10 R24 16 2 0x40 16 -16 4096 0 ",
    "0040 00000007 1 R4 LDG.E 1 R4 4 0 0x0000000000000010 0x0000000000000030 0xffffffffffffff00 0 ",
    "0050 00000001 0 UTMALDG.2D 0 16 4 0x1000 4 128 128 256 0 ",
    "0060 00000000 0 EXIT 0 0 0 ",
]
V6 = [
    "0030 00000001 0 UTMALDG.2D 1 UR8 0 0x3f0 1 0xff 16384 0 4 0x7f0000001000 3 64 64 0 0 NoVal",
    "0010 ffffffff 1 R24 HGMMA.64x128x16.F32 2 R24 UR8 1 0 0 0 Val 1 0xff 1 0x7 1 0x123456",
    "0020 ffffffff 2 R1 P0 IADD3.X 3 R2 UR4 UP1 0 5 6 NoVal",
]


def cta(position: str, *warps: list[str]) -> str:
    text = f"#BEGIN_TB\n\nthread block = {position}\n"
    for number, lines in enumerate(warps):
        text += f"\nwarp = {number}\ninsts = {len(lines)}\n" + "".join(f"{line}\n" for line in lines)
    return text + "\n#END_TB\n"


def main() -> None:
    folder = Path(sys.argv[1])
    texts = [
        HEADER.format(version=5, lines=0) + cta("0,0,0", V5, V5 + V5) + cta("2,0,0", V5),
        HEADER.format(version=6, lines=0) + cta("0,0,0", V6, V6),
        HEADER.format(version=2, lines=0) + cta("0,0,0", ["0 0 0 0 0008 ffffffff 1 R1 MOV 0 0"]),
        HEADER.format(version=4, lines=1) + cta("0,0,0", ["17 0008 ffffffff 1 R1 MOV 0 0 "] * 3, []),
        HEADER.format(version=5, lines=0) + "".join(f"0 0 0 {w} {line}\n" for line in V5 for w in (0, 1)),
    ]
    (folder / "fuzz_text_parser").mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        for piece in (0, 255):
            (folder / "fuzz_text_parser" / f"{number}-{piece}").write_bytes(bytes([piece]) + text.encode())
    (folder / "fuzz_store_block").mkdir(parents=True, exist_ok=True)
    from simt import _engine

    for number, (text, repeat) in enumerate(itertools.product(texts[:4], (1, 3))):
        converter = _engine.TraceConverter()
        converter.feed((text + cta("3,0,0", V5[:2] * repeat) * ("version = 5" in text)).encode())
        converter.finish()
        ((_, block),) = converter.take_blocks()
        table = converter.instructions
        (folder / "fuzz_store_block" / str(number)).write_bytes(struct.pack("<H", len(table)) + table + block)
    (folder / "fuzz_ptx").mkdir(parents=True, exist_ok=True)
    for path in (Path(__file__).parents[2] / "tests" / "ptx").glob("*.ptx"):
        (folder / "fuzz_ptx" / path.name).write_bytes(path.read_bytes())


main()
