"""Systematic sampling along the grid: detailed windows, and CTAs executed without timing between them.

`controller` decides what is simulated, `projection` estimates the launch from it. Both ask `observations`,
which has the windows and the gaps (`windows`) and hands their numbers to the parts, each a few functions of
numbers:

    constants   what the method takes as given, with sources
    beginning   the first waves: they swing, or decay from a cold beginning
    settling    windows that a gap still disturbs, or that drift
    dram        how far DRAM sets the pace
    phases      CTAs left out that are of another phase than what was seen
    courses     how the launch goes over from one window into the next
    rates       rates of counters, scaled to other traffic to DRAM
    plan        how many windows, and how much is left out before the next one
    spread      the spread of windows, and the interval that follows
    shares      what was left out, divided among the windows
"""

from simt.control.systematic.controller import Systematic

__all__ = ["Systematic"]
