"""The study as a command: `python -m simt.examples.convolution --help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simt.errors import SimtError
from simt.extras import explained

from . import ALGORITHMS, DIRECTIONS
from .problem import Convolution
from .study import LAYERS, printed, runs, save, summary


def _arguments() -> argparse.Namespace:
    listed = [f"  {name:<20}{kind.summary}; {kind.supports}" for name, kind in ALGORITHMS.items()]
    layers = [f"  {name:<20}{layer}" for name, layer in LAYERS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m simt.examples.convolution",
        description="Runs convolution algorithms on a simulated GPU: cycles, IPC, stalls, DRAM over time.",
        epilog="\n".join(["algorithms:", *listed, "", "layers:", *layers]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--gpu", default="titanx", help="GPU specification (default: titanx)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="change the specification"
    )
    parser.add_argument("--layer", choices=LAYERS, default="layer", help="the convolution (default: layer)")
    parser.add_argument(
        "--sizes",
        metavar="n,c,h,w,k,r,s[,padding[,stride]]",
        help="a convolution of these sizes instead: images, channels, rows, columns; filters, rows, columns",
    )
    parser.add_argument("--algorithm", action="append", choices=ALGORITHMS, help="only this; may be repeated")
    parser.add_argument("--direction", action="append", choices=DIRECTIONS, help="only this; may be repeated")
    parser.add_argument("--timeline", type=int, default=1000, metavar="CYCLES", help="default: 1000")
    parser.add_argument("--threads", type=int, default=2, help="host threads; no result depends on them")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("convolution"),
        help="folder of tables and plots (default: convolution)",
    )
    return parser.parse_args()


def _problem(given: argparse.Namespace) -> Convolution:
    if given.sizes is None:
        return LAYERS[given.layer]
    try:
        sizes = [int(text) for text in given.sizes.split(",")]
        n, c, h, w, k, r, s, padding, stride = sizes + [0, 1][len(sizes) - 7 :]
    except ValueError:
        raise SimtError(
            f"--sizes {given.sizes}: expected n,c,h,w,k,r,s[,padding[,stride]], whole numbers"
        ) from None
    return Convolution(n, c, h, w, k, r, s, padding, padding, stride)


def main() -> None:
    given = _arguments()
    problem = _problem(given)
    try:
        from simt.plots import save as save_plot

        from . import plots
    except ModuleNotFoundError as error:
        raise explained(error, "the study") from error
    print(f"{problem}; {problem.multiplications / 1e6:,.1f} million multiplications; {given.gpu}")
    done = list(
        runs(
            given.gpu,
            problem,
            given.algorithm or ALGORITHMS,
            given.direction or DIRECTIONS,
            set=given.set,
            timeline=given.timeline,
            threads=given.threads,
            announce=lambda text: print(text, file=sys.stderr, flush=True),
        )
    )
    if not done:
        raise SimtError("none of the algorithms can compute this convolution")
    print(printed(summary(done)))
    save(done, given.output)
    save_plot(plots.cycles_figure(done), given.output / "cycles.png")
    save_plot(plots.ipc_figure(done), given.output / "ipc.png")
    for run in done:
        save_plot(plots.run_figure(run), given.output / f"{run.algorithm}-{run.direction}.png")
    seconds = sum(run.seconds for run in done)
    print(f"tables and plots: {given.output} ({seconds:,.0f} s of simulation)")


if __name__ == "__main__":
    try:
        main()
    except SimtError as error:
        sys.exit(f"error: {error}")
