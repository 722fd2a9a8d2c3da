"""Where local memory lies."""

from __future__ import annotations

from pathlib import Path

from simt.trace.writer import Warp
from support.tiny import run, write_kernel

ACCEL_SIM = 0x1F880000
"""GPGPU-Sim's LOCAL_GENERIC_START, for 80 SMs of 2,048 threads with 16 KB each."""


def test_twins_of_accel_sim_have_its_base(tmp_path: Path) -> None:
    """A global and a local load of the same sectors: the second finds them. Elsewhere, no global address is
    one of local memory."""

    def sectors(gpu: str, global_address: int, local_address: int) -> int:
        warp = Warp()
        warp.memory("LDG.E", [global_address + 4 * lane for lane in range(32)], 4, 8, (2,))
        warp.op("IADD3", 9, (8, 8, 8))
        warp.memory("LDL", [local_address] * 32, 4, 10, (9,))
        folder = write_kernel(tmp_path / f"{gpu}-{global_address:x}-{local_address}", [[warp]])
        (record,) = run(folder, gpu, {"sm.front_end.instruction_cache.perfect": True})
        return sum(sum(row.values()) for row in record["l2"].values())

    threads = 32 * 80  # concurrent ones: of a CTA on each SM
    assert sectors("qv100-accelsim", ACCEL_SIM, 0) == 4
    assert sectors("qv100-accelsim", ACCEL_SIM + 4 * threads, 4) == 4
    assert sectors("qv100-accelsim", ACCEL_SIM + 4096, 0) == 8
    assert sectors("qv100", ACCEL_SIM, 0) == 8
