"""The Python of README and of the page on running programs runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simt.cuda import toolkit

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/gpu.md"])
def test_code_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    result = names["gpu"].result()  # type: ignore[attr-defined]
    assert result.launches[0].name == "saxpy"
    assert names["y"][1] == 3  # type: ignore[index]
