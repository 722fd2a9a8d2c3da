"""Runs an instrumented launch for another version of simt: `python -m simt.debug.replay FOLDER`.

The folder holds `launch`, a recording with the launch; `instrumented.ptx`; `header` and `scratch`, the first
contents of the instrumentation's memory; `result` is what is in that memory then.
"""

from __future__ import annotations

import sys
from pathlib import Path

from simt.cache import write_whole
from simt.errors import SimtError

from .executors import Ours, Scratch
from .recording import Recording


def replay(folder: Path) -> None:
    launch, _ = Recording(folder / "launch").launch(1)
    scratch = Scratch((folder / "header").read_bytes(), (folder / "scratch").read_bytes())
    text = (folder / "instrumented.ptx").read_text(encoding="utf-8")
    write_whole(folder / "result", Ours().run_instrumented(launch, text, scratch))


if __name__ == "__main__":
    try:
        replay(Path(sys.argv[1]))
    except SimtError as error:
        sys.exit(f"error: {error}")
