"""Nsight Systems' SQLite exports."""

from pathlib import Path

import pytest

from simt.profile import read_profile


@pytest.mark.parametrize(
    ("name", "launches", "gpu"),
    [("a100_cloverleaf", 1312, "NVIDIA A100-SXM4-80GB"), ("h100_2gpu_llm_training", 4010, None)],
)
def test_real_exports(shared_data: Path, name: str, launches: int, gpu: str | None) -> None:
    profile = read_profile(shared_data / "profiles" / f"{name}.nsys.sqlite.gz")
    assert len(profile) == launches
    assert profile.gpu == gpu
