"""Engine features used for replaying: positions of instructions in the text, memory at given addresses."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simt import _engine
from support.debug_programs import AXPY

BASE = 16 << 32


def test_where_instructions_stand_in_the_text() -> None:
    text = (
        ".version 8.0 .target sm_70 // é: bytes, not characters\n"
        ".entry k() { .reg .pred %p; .reg .b32 %r<3>;\n"
        "  L: @!%p /* why */ add.u32 %r1, // one\n %r1, 1 ;ret; { mov \t.u32 %r2, 0; } bra L; }\n"
    )
    raw = text.encode()
    (function,) = _engine.PtxModule(raw).dump()["functions"]
    found = [raw[i["begin"] : i["end"]].decode() for i in function["instructions"]]
    assert found == ["@!%p /* why */ add.u32 %r1, // one\n %r1, 1 ;", "ret;", "mov \t.u32 %r2, 0;", "bra L;"]
    body = raw[function["body_begin"] : function["body_end"]].decode()
    assert (body.split()[0], body.split()[-1]) == (".reg", "L;")


def test_memory_at_an_address() -> None:
    memory = _engine.functional.DeviceMemory(1 << 20)
    assert memory.allocate_at(BASE + 4096, 100, "here")
    assert not memory.allocate_at(BASE + 4096, 1, "again")
    assert not memory.allocate_at(BASE + 4096 + 256, 1, "in what belongs to nobody")
    assert not memory.allocate_at(BASE + 4096 - 256, 1, "without space behind it")
    assert not memory.allocate_at(BASE + 100, 1, "not a multiple of 256")
    assert not memory.allocate_at(BASE - 256, 1, "before the memory")
    assert not memory.allocate_at(BASE + (1 << 20), 1, "behind it")
    assert memory.allocate_at(BASE + 4096 + 512, 1, "next", True)
    assert memory.allocations() == [
        (BASE + 4096, 100, "here", False),
        (BASE + 4096 + 512, 1, "next", True),
    ]
    assert memory.used == 101
    assert memory.free(BASE + 4096)
    assert not memory.free(BASE + 4096 + 512), "a kernel's"
    assert memory.allocate(8192, "does not fit before") == BASE + 4096 + 1024


@given(sizes=st.lists(st.integers(1, 5000), max_size=20), freed=st.sets(st.integers(0, 19)))
def test_a_memory_can_be_made_again(sizes: list[int], freed: set[int]) -> None:
    """After any sequence of allocations and frees, the allocations can be recreated at the same addresses."""
    memory = _engine.functional.DeviceMemory(1 << 20)
    addresses = [memory.allocate(n, f"a{n}") for n in sizes]
    for k in freed:
        if k < len(addresses):
            assert memory.free(addresses[k])
    again = _engine.functional.DeviceMemory(1 << 20)
    for address, size, label, by_kernel in reversed(memory.allocations()):
        assert again.allocate_at(address, size, label, by_kernel)
    assert again.allocations() == memory.allocations()
    assert again.allocate(100, "next") == memory.allocate(100, "next")


def test_variables_at_given_places() -> None:
    text = AXPY.replace(".visible .entry", ".global .u32 first = 5; .const .u32 second = 6;\n.visible .entry")
    memory = _engine.functional.DeviceMemory(1 << 20)
    module = _engine.functional.load(text, "a.ptx", memory, {"second": BASE + 8192})
    assert module.variables == {"first": (BASE, 4), "second": (BASE + 8192, 4)}
    assert np.frombuffer(memory.read(BASE + 8192, 4), np.uint32)[0] == 6
    del module
    assert memory.allocations() == []
