"""Photon (Liu, Sun, Carlson, MICRO 2023): its tables and figures on simt. See papers.py for the arguments."""

from __future__ import annotations

from papers import Item, Paper, Part, main
from photon_observations import measure_clusters, measure_observations, show_clusters, show_observations
from photon_offline import measure_offline, show_offline
from photon_runs import (
    measure_kernels,
    measure_large,
    measure_layers,
    measure_mi100,
    measure_networks,
    show_kernels,
    show_large,
    show_layers,
    show_mi100,
    show_networks,
)

PHOTON = Paper(
    name="photon",
    title="Photon, table by table",
    about="""
Liu, Sun, Carlson, "Photon: A Fine-grained Sampled Simulation Methodology for GPU Workloads", MICRO 2023.
The method is described in [Photon](../control/photon.md), the programs in [workloads](../workloads.md): the
paper's are OpenCL for GCN, these are CUDA C++ for the same work. `r9nano` and `mi100` are AMD's machines as
the paper describes them (64 lanes, caches, memory); they execute CUDA kernels, not AMD's instruction set.
Sizes are the smaller ones of the paper and below; [the record](../records/photon-and-pka.md) has larger
ones.
""",
    items=(
        Item("Figure 1", "IPC over time", "the same", "observations"),
        Item("Figures 2, 3", "times of the dominating block", "the same", "observations"),
        Item("Figure 4", "begin and end of warps", "the same", "observations"),
        Item("Figures 5, 7, 9, 10, 12", "drawings of the method", "[Photon](../control/photon.md)"),
        Item("Figure 6", "IPC of VGG-16's kernels by cluster", "the same", "clusters"),
        Item("Figures 8, 11", "blocks and types of warps: all, and a sample", "the same", "observations"),
        Item("Table 1", "R9 Nano and MI100", "`simt gpus show r9nano --sources`, [GPUs](../gpus.md)"),
        Item("Table 2", "workloads", "[workloads](../workloads.md)"),
        Item(
            "Figures 13, 14",
            "full, PKA and Photon; R9 Nano and MI100",
            "the same, with TBPoint, Photon as published, and V100; [MI100](#mi100)",
            "kernels",
        ),
        Item("Figure 15", "levels apart", "the same", "kernels"),
        Item(
            "Figure 16", "VGG and ResNet", "the same, small images; [one at 224 pixels](#large)", "networks"
        ),
        Item("Figure 17", "VGG-16 by layer", "the same, small images", "layers"),
        Item("Offline mode", "the analysis is kept", "a sweep", "offline"),
    ),
    parts=(
        Part("kernels", "Single kernels: methods and levels", measure_kernels, show_kernels, 14),
        Part("mi100", "MI100: methods and levels", measure_mi100, show_mi100, 14),
        Part("networks", "Networks", measure_networks, show_networks, 12),
        Part("layers", "VGG-16 by layer", measure_layers, show_layers, 5),
        Part("large", "A network at the paper's size", measure_large, show_large, 8),
        Part("observations", "What Photon observes", measure_observations, show_observations, 2),
        Part("clusters", "Clusters of kernels", measure_clusters, show_clusters, 2),
        Part("offline", "Offline mode", measure_offline, show_offline, 8),
    ),
)

if __name__ == "__main__":
    main(PHOTON)
