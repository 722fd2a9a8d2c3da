"""Workloads for studying sampling: those of Photon's evaluation (MICRO'23, table 2), written anew.

Sizes are those of its figures; its problem sizes count warps of 64 lanes.
"""

from .aes import AES
from .convolution import CONVOLUTION
from .fir import FIR
from .matmul import MATMUL
from .pagerank import PAGERANK
from .relu import RELU
from .resnet import RESNETS
from .spmv import SPMV
from .vgg import VGGS
from .workload import Outputs, Workload

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (AES, CONVOLUTION, FIR, MATMUL, PAGERANK, RELU, SPMV, *VGGS, *RESNETS)
}
"""All workloads by name."""

__all__ = ["WORKLOADS", "Outputs", "Workload"]
