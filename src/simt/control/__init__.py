"""Sampling within a launch: continue, stop and project the rest, or predict it."""

from simt.control.checks import check_controller
from simt.control.controller import (
    GO_ON,
    Contention,
    Controller,
    Decision,
    GoOn,
    Interval,
    LaunchView,
    Predict,
    RunningGpu,
    Skip,
    Stop,
)
from simt.control.first_instructions import FirstInstructions
from simt.control.photon import Photon, PublishedPhoton
from simt.control.pkp import PKP
from simt.control.projection import Projection
from simt.control.scale_model import ScaleModel
from simt.control.systematic import Systematic
from simt.control.tbpoint_regions import TBPointRegions
from simt.control.what_if import WhatIf, sweep, what_if

__all__ = [
    "GO_ON",
    "PKP",
    "Contention",
    "Controller",
    "Decision",
    "FirstInstructions",
    "GoOn",
    "Interval",
    "LaunchView",
    "Photon",
    "Predict",
    "Projection",
    "PublishedPhoton",
    "RunningGpu",
    "ScaleModel",
    "Skip",
    "Stop",
    "Systematic",
    "TBPointRegions",
    "WhatIf",
    "check_controller",
    "sweep",
    "what_if",
]
