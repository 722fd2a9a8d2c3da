"""Principal Kernel Analysis (Baddouh et al., MICRO 2021): its tables and figures on simt.

See papers.py for the arguments.
"""

from __future__ import annotations

from papers import Item, Paper, Part, main
from pka_deepbench import measure_deepbench, show_deepbench
from pka_groups import measure_groups, measure_levels, show_groups, show_levels
from pka_methods import measure_methods, show_generations, show_methods
from pka_programs import measure_generations, measure_launches, show_launches
from pka_sizes import measure_sizes, show_sizes
from pka_stops import measure_stops, show_stops

PKA = Paper(
    name="pka",
    title="PKA: Principal Kernel Analysis",
    about="""
C. Avalos Baddouh et al., "Principal Kernel Analysis: A Tractable Methodology to Simulate Scaled GPU
Workloads", MICRO 2021, table by table. The methods are described in [PKS](../sampling/pks.md),
[two-level](../sampling/two-level.md), [PKP](../control/pkp.md), [PKA](../control/pka.md),
[TBPoint](../sampling/tbpoint.md), [first-N](../sampling/first-n.md) and [single
iteration](../sampling/single-iteration.md). The programs are those of [the V100's
recipes](../whole-programs.md), some in smaller sizes.
""",
    items=(
        Item(
            "Figure 1",
            "hours to simulate, to profile and to run",
            "seconds of the processor and of the simulated GPU by program; nothing is profiled in silicon",
            "launches",
        ),
        Item("Table 1", "literature", "nothing to measure"),
        Item(
            "Figures 2, 3",
            "drawings of the method",
            "[PKA](../control/pka.md), [two-level](../sampling/two-level.md)",
        ),
        Item("Table 2", "the twelve counters", "[PKS](../sampling/pks.md): `simt.sampling.features.PAPER`"),
        Item("Table 3", "groups of some programs", "groups of all programs", "methods"),
        Item(
            "Figure 4",
            "kernels in the groups of ResNet",
            "the same of ResNet-50, and two-level profiling",
            "groups",
        ),
        Item(
            "Figure 5",
            "where PKP stops, for three thresholds",
            "the same, and two of simt's workloads",
            "stops",
        ),
        Item("Figure 6", "simulation time in full, with PKS, with PKA", "the same", "methods"),
        Item(
            "Figures 7, 8",
            "speedup and error of PKA, TBPoint and the first billion instructions",
            "the same",
            "methods",
        ),
        Item(
            "Table 4, silicon",
            "PKS on V100, RTX 2060, RTX 3070",
            "the same, on simulated GPUs: no silicon here",
            "generations",
        ),
        Item(
            "Table 4, simulation",
            "error and time of PKS and PKA, DRAM utilisation",
            "with TBPoint, first-N and one iteration beside them; [some of PolyBench and CUTLASS at full "
            "size](#sizes)",
            "methods",
        ),
        Item(
            "Table 4, DeepBench",
            "matrix products, convolutions and recurrent layers, inference and training",
            "the same operations, smaller, from CUTLASS, simt and PyTorch; cuDNN and cuBLAS cannot be had as "
            "sources",
            "deepbench",
        ),
        Item(
            "Table 4, MLPerf",
            "scaled workloads",
            "cannot be had: programs, data sets and profiles need a GPU; in their place ResNet-50, whose "
            "launches are all in detail ([below](#groups)), and a real profile of PyTorch's with two levels",
            "levels",
        ),
        Item("Figures 9, 10", "V100 over RTX 2060; 80 over 40 SMs", "the same, full and PKA", "generations"),
    ),
    parts=(
        Part("launches", "Programs and their launches", measure_launches, show_launches, 25),
        Part(
            "generations", "Volta, Turing, Ampere; 80 and 40 SMs", measure_generations, show_generations, 15
        ),
        Part("methods", "Error and simulated time", measure_methods, show_methods),
        Part("sizes", "PolyBench and CUTLASS at full size", measure_sizes, show_sizes, 12),
        Part("deepbench", "DeepBench's operations", measure_deepbench, show_deepbench, 8),
        Part("stops", "Where PKP stops", measure_stops, show_stops),
        Part("groups", "Groups of a network, and two-level profiling", measure_groups, show_groups),
        Part("levels", "Two-level profiling with tensors", measure_levels, show_levels),
    ),
)

if __name__ == "__main__":
    main(PKA)
