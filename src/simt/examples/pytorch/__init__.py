"""PyTorch models on a simulated GPU: `python -m simt.examples.pytorch.lenet` and `.gpt2`."""

from pathlib import Path

from simt.result import Result, perfetto


def report(result: Result, folder: Path) -> None:
    """Prints what the operators took, and writes the Result, a Chrome trace and a plot into a folder."""
    table = result.operators()
    print(f"\n{len(result.launches)} launches, {table['cycles'].sum():,} cycles\n")
    print(f"{'cycles':>12}  {'share':>6}  operator")
    for row in table.sort("cycles", descending=True).head(20).iter_rows(named=True):
        print(f"{row['cycles']:>12,}  {row['share']:>6.1%}  {row['operator']}")
    result.save(folder / "result")
    perfetto.write(result, folder / "trace.json")
    plot(result, folder / "operators.png")
    print(f"\n{folder}/result, trace.json (for ui.perfetto.dev) and operators.png are written")


def plot(result: Result, path: Path) -> None:
    """A bar for each of the 20 longest operators, in the order of the program."""
    from matplotlib.figure import Figure

    from simt import plots

    table = result.operators()
    shown = table.filter(table["cycles"].rank("ordinal", descending=True) <= 20)
    figure = Figure(figsize=(9, 0.5 + 0.28 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    names = [name if len(name) < 60 else name[:57] + "..." for name in shown["operator"]]
    axes.barh(range(len(shown)), shown["cycles"] / 1000, color=plots.SERIES["blue"])
    axes.set_yticks(range(len(shown)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("thousand core cycles")
    axes.set_title(f"Operators on {result.machine.name}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    plots.save(figure, path)
