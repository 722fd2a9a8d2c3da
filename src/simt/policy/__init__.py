"""Policies that are not part of simt: warp schedulers, cache replacement, write policies, hashes, DRAM
schedulers.

One written in Python is a function, or a class that keeps state, which Numba compiles (`pip install
'simt[policies]'`); one written in C++ is a file that is compiled against simt's headers. Both are named in
specifications: `sm.scheduler.policy=my.py:TwoLevel`, `l2.slice.replacement=my.cpp:srrip`, or by name alone
after `simt policy build my.cpp`. In a program, `simulate` and `GPU` also take Python policies directly:

    @simt.policy.scheduler
    def oldest(ready, age, last, cycle):
        best = -1
        for w in range(len(ready)):
            if ready[w] and (best < 0 or age[w] < age[best]):
                best = w
        return best

    simt.simulate(path, policies={"scheduler": oldest})
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
