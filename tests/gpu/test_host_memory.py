"""What a process with one GPU takes of the host's memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.kills import PTX

PROGRAM = f'''
import sys
from pathlib import Path
import numpy as np, simt

gpu = simt.GPU(sys.argv[1])
kernel, x = gpu.load("""{PTX}""").work, gpu.zeros(64, np.uint32)
for _ in range(200):
    kernel[1, 64](x, 3)
status = Path("/proc/self/status").read_text()  # rusage has the peak of the process that forked this one
print(status.split("VmHWM:")[1].split()[0])
'''
MOST = 150 << 10  # KiB


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("gpu", ["b200", "rtx5090"])
def test_small_launches_take_little_memory_on_large_gpus(gpu: str) -> None:
    command = [sys.executable, "-c", PROGRAM, gpu]
    used = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert used <= MOST
