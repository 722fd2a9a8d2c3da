"""A language model's time on a GPU that one need not have: `predict`."""

from .architecture import KNOWN, Architecture, architecture
from .chakra import Node, read_trace
from .predict import predict
from .prediction import Amount, OperatorTime, Prediction

__all__ = [
    "KNOWN",
    "Amount",
    "Architecture",
    "Node",
    "OperatorTime",
    "Prediction",
    "architecture",
    "predict",
    "read_trace",
]
