"""Policies in C++: built against the installed headers, named, and refused with one clear error."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simt
from simt import _engine
from simt.errors import SimtError, SpecError
from simt.policy import PolicyError, build, built, library, remove
from simt.spec import load_spec
from simt.trace.generate import generate

ENGINE = Path(__file__).parents[2] / "engine"
BUILTIN = {
    ("schedulers", "scheduler", "sm.scheduler.policy"),
    ("memory/replacement", "replacement", "l1.cache.replacement"),
    ("memory/write_policies", "write_policy", "l1.cache.write_policy"),
    ("memory/dram_schedulers", "dram_scheduler", "dram.scheduler"),
    ("memory/hashes", "slice_hash", "address_map.hash"),
    ("memory/hashes", "set_index", "l1.cache.set_index"),
}
YOUNGEST = """
#include "timing/schedulers/warp_scheduler.hpp"

namespace simt {
namespace {

class Youngest final : public WarpScheduler {
 public:
  using WarpScheduler::WarpScheduler;
  int32_t choose(uint64_t candidates, uint64_t /*cycle*/) override { BODY }
};

const Registered<SchedulerPolicy> registered_youngest{
    {{"youngest", "The youngest ready warp.", "test"}, make_scheduler<Youngest>}};

}  // namespace
}  // namespace simt
"""
GPU = "qv100-accelsim"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of built policies that is empty at first."""
    monkeypatch.setenv("SIMT_POLICIES", str(tmp_path / "policies"))
    return tmp_path / "policies"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(
        body: str = "return youngest(candidates);", name: str = "youngest.cpp", called: str = "youngest"
    ) -> Path:
        text = YOUNGEST.replace("BODY", body)
        text = text.replace('"youngest"', f'"{called}"')
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("t") / "t"
    return generate(["gemm", "gather"], folder, sm=70, size=64, compression="none")


def counters(trace: Path, **how: Any) -> list[Any]:
    return [(x.cycles, x.counters) for x in simt.simulate(trace, GPU, **how).launches]


def test_headers_are_complete_and_are_what_is_installed() -> None:
    """Those of the interfaces and what they include, and no hot loop."""
    found = set(library.headers())
    of_memory = {f"timing/memory/{name}.hpp" for name in ("hash", "replacement")}
    assert {"timing/schedulers/warp_scheduler.hpp", *of_memory} < found
    assert len(found) <= 20
    assert not {each for each in found if each.startswith(("machine/", "timing/core/", "bindings/"))}
    folder = Path(sysconfig.get_path("purelib")) / "simt" / "include"
    if folder.is_dir():
        assert {str(each.relative_to(folder)) for each in folder.rglob("*.hpp")} == found


def test_a_file_is_built_and_its_name_known_everywhere(
    write: Callable[..., Path], trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = build(write())
    assert (found.kind, found.name, found.file) == ("scheduler", "youngest", str(tmp_path / "youngest.cpp"))
    monkeypatch.chdir("/")
    spec = load_spec(GPU, {"sm.scheduler.policy": "youngest"})
    name, _, suffix = spec.sm.scheduler.policy.partition("@")
    assert (name, len(suffix)) == ("youngest", 12)
    result = simt.simulate(trace, GPU, set={"sm.scheduler.policy": "youngest"})
    assert result.provenance.overrides == {"sm.scheduler.policy": spec.sm.scheduler.policy}
    assert result.provenance.spec_hash == spec.hash
    by_file = f"{tmp_path}/youngest.cpp:youngest"
    assert load_spec(GPU, {"sm.scheduler.policy": by_file}).hash == spec.hash
    assert counters(trace, set={"sm.scheduler.policy": "youngest"}) != counters(
        trace, set={"sm.scheduler.policy": "oldest"}
    )


def test_an_edited_file_is_another_policy(write: Callable[..., Path], trace: Path) -> None:
    """Both are known in the same process, and a run that was made with one is not resumed with the other."""
    file = write("return youngest(candidates);")
    setting = {"sm.scheduler.policy": f"{file}:youngest"}
    young, first = counters(trace, set=setting), load_spec(GPU, setting)
    write("return oldest(candidates);")
    assert counters(trace, set=setting) == counters(trace, set={"sm.scheduler.policy": "oldest"}) != young
    assert load_spec(GPU, setting).hash != first.hash
    assert counters(trace, set={"sm.scheduler.policy": first.sm.scheduler.policy}) == young


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A file with simt's own policies of a folder, as they are."""
    place = tmp_path_factory.mktemp("outside")

    def joined(folder: str) -> Path:
        file = place / f"{Path(folder).name}.cpp"
        sources = sorted((ENGINE / "timing" / folder).glob("*.cpp"))
        file.write_text("".join(f'#line 1 "{each}"\n{each.read_text()}' for each in sources))
        return file

    return joined


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "kind", "setting"), [pytest.param(*each, id=each[1]) for each in sorted(BUILTIN)]
)
def test_builtin_files_can_be_built_outside_unchanged(
    folder: str, kind: str, setting: str, outside: Callable[[str], Path], trace: Path
) -> None:
    """And then give the same results."""
    file, alike = outside(folder), 0
    for name in [name for a_kind, name in library.load(file.read_bytes(), str(file)) if a_kind == kind]:
        more: dict[str, Any] = {"two_level": {"sm.scheduler.active_warps": 4}, "pae": {}}.get(name, {})
        try:
            expected = counters(trace, set={**more, setting: name})
        except SpecError:  # not for this GPU
            continue
        assert counters(trace, set={**more, setting: f"{file}:{name}"}) == expected, name
        alike += 1
    assert alike > 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "return 63;",
            r"scheduler youngest: choose\(\) returned 63, expected a position among the candidates",
        ),
        ("return -2;", r"choose\(\) returned -2"),
        ('throw std::runtime_error("no idea");', "scheduler youngest: no idea"),
        ("throw 3;", r"scheduler youngest: it throws something that is no std::exception"),
    ],
)
def test_what_a_policy_must_not_do_ends_the_simulation(
    body: str, message: str, write: Callable[..., Path], trace: Path
) -> None:
    setting = {"sm.scheduler.policy": f"{write(body)}:youngest"}
    for threads in (1, 2):
        with pytest.raises(SimtError, match=message):
            simt.simulate(trace, GPU, set=setting, threads=threads)


def test_one_that_never_chooses_is_a_deadlock(write: Callable[..., Path], trace: Path) -> None:
    setting = {"sm.count": 2, "sm.scheduler.policy": f"{write('return -1;')}:youngest"}
    with pytest.raises(SimtError, match="deadlock"):
        simt.simulate(trace, GPU, set=setting)


def test_what_does_not_compile_shows_the_compilers_words(write: Callable[..., Path]) -> None:
    file = write("return yungest(candidates);")
    with pytest.raises(PolicyError, match=r"cannot compile it:\n") as error:
        build(file)
    assert f"{file}:10:" in str(error.value)
    assert "yungest" in str(error.value)
    assert built() == []


def test_a_header_beside_the_file_is_not_found(write: Callable[..., Path], tmp_path: Path) -> None:
    """It would be no part of the policy's identity."""
    (tmp_path / "mine.hpp").write_text("")
    file = write("return -1;")
    file.write_text('#include "mine.hpp"\n' + file.read_text())
    with pytest.raises(PolicyError, match=r"mine\.hpp: No such file"):
        build(file)


def test_names_that_are_taken_and_files_without_policies(write: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="gto: simt has a scheduler of this name; choose another"):
        build(write(called="gto"))
    build(write())
    build(write("return oldest(candidates);"))  # the same file, edited
    other = write(name="other.cpp")
    with pytest.raises(PolicyError, match=r"a scheduler of this name was built from .*youngest\.cpp; choose"):
        build(other)
    (tmp_path / "empty.cpp").write_text("int x;\n")
    with pytest.raises(PolicyError, match=r"empty\.cpp: it registers no policy; expected, for example"):
        build(tmp_path / "empty.cpp")
    with pytest.raises(PolicyError, match=r"none\.cpp: cannot be read: No such file"):
        build(tmp_path / "none.cpp")
    with pytest.raises(PolicyError, match=r"expected a C\+\+ file; policies in Python need no building"):
        build("policies.py")
    with pytest.raises(PolicyError, match="expected letters, digits and underscores"):
        build(write(called="a b", name="odd.cpp"))
    assert [each.name for each in built()] == ["youngest"]
    assert [each.name for each in remove("youngest")] == ["youngest"]
    assert built() == []
    with pytest.raises(PolicyError, match="no policy 'youngest' has been built; there is none"):
        remove("youngest")
    with pytest.raises(SpecError, match="found 'youngest', expected one of cggty, gto"):
        load_spec(GPU, {"sm.scheduler.policy": "youngest"})


def test_without_a_compiler(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(write().parent / "cache"))
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(PolicyError, match=r"need a compiler for C\+\+20, found none \(\$CXX = no-such-comp"):
        build(write())
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PolicyError, match=r"found none \(c\+\+, g\+\+ or clang\+\+\); install one"):
        build(write())


def test_another_version_of_simt(
    write: Callable[..., Path], trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of other headers is not loaded; a policy that is named is compiled again."""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))
    build(write())
    (first,) = (tmp_path / "cache" / "policies").iterdir()
    with pytest.raises(_engine.PolicyFault, match="built for another version of simt"):
        _engine.load_policies(str(first), "other headers", "x")
    monkeypatch.setattr(library, "interface", lambda: "other headers")
    load_spec(GPU, {"sm.scheduler.policy": "youngest"})
    (second,) = {*(tmp_path / "cache" / "policies").iterdir()} - {first}
    assert _engine.load_policies(str(second), "other headers", "x") == [("scheduler", "youngest")]
    with pytest.raises(_engine.PolicyFault, match="not a library of policies"):
        _engine.load_policies(_engine.__file__, "other headers", "x")


def test_a_damaged_folder_is_named(own_folder: Path) -> None:
    own_folder.mkdir()
    (own_folder / "x.cpp.json").write_text("{")
    with pytest.raises(PolicyError, match=r"x\.cpp\.json: not as `simt policy build` writes it .*delete it"):
        built()


def changed(file: str, *pairs: tuple[str, str]) -> str:
    """A file of the engine with other text in places."""
    text = (ENGINE / "timing" / file).read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


HASHES = """#include "timing/memory/hash.hpp"
namespace simt {
const Registered<SliceHash> not_linear{{{"product", "", ""},
    [](const SliceCount& n, const SliceAddress& a) {
      return static_cast<uint32_t>((a.whole >> 5) * 2654435761u % n.slices);
    }, false, 0, 0, /*linear=*/true}};
const Registered<SliceHash> beyond{{{"beyond", "", ""},
    [](const SliceCount& n, const SliceAddress& a) {
      return n.slices * 5 + (a.channel * n.slices_per_channel + a.low);
    }}};
const Registered<SetIndex> sets_beyond{{{"sets_beyond", "", ""},
    [](uint64_t, uint64_t line, uint32_t sets) { return static_cast<uint32_t>(line + 3 * sets); }}};
const Registered<SetIndex> sets_product{{{"sets_product", "", ""},
    [](uint64_t, uint64_t line, uint32_t) { return static_cast<uint32_t>(line * 2654435761u >> 7); }}};
}  // namespace simt
"""


@pytest.mark.parametrize(
    ("text", "setting", "message"),
    [
        (
            changed("memory/dram_schedulers/fcfs.cpp", ('"fcfs"', '"own"'), ("    --pending_;\n", "")),
            "dram.scheduler",
            r"dram_scheduler own: after next\(\) its pending_ is \d+, expected \d+, the number of requests",
        ),
        (
            changed(
                "memory/dram_schedulers/fcfs.cpp",
                ('"fcfs"', '"own"'),
                ("    if (busy >> requests_.front().bank & 1) return false;\n", "    (void)busy;\n"),
            ),
            "dram.scheduler",
            r"dram_scheduler own: next\(\) chose a request for bank \d+, expected one that is free",
        ),
        (
            HASHES.replace('"product"', '"own"'),
            "address_map.hash",
            r"address_map\.hash: 'own@\w+' is called linear, but its bits are not parities",
        ),
        (
            HASHES.replace('"sets_product"', '"own"'),
            "l2.slice.set_index",
            r"l2\.slice\.set_index: found 'own@\w+', expected one whose bits are parities",
        ),
    ],
    ids=["forgets", "busy", "hash", "sets"],
)
def test_other_kinds_are_checked_too(
    text: str, setting: str, message: str, tmp_path: Path, trace: Path
) -> None:
    (tmp_path / "own.cpp").write_text(text)
    with pytest.raises(SimtError, match=message):
        simt.simulate(trace, GPU, set={setting: f"{tmp_path}/own.cpp:own", "dram.scheduler_queue": 16})


def test_hashes_are_taken_modulo(tmp_path: Path, trace: Path) -> None:
    (tmp_path / "own.cpp").write_text(HASHES)
    for setting, own, same in (
        ("address_map.hash", "beyond", "linear"),
        ("l1.cache.set_index", "sets_beyond", "linear"),
    ):
        expected = counters(trace, set={setting: same})
        assert counters(trace, set={setting: f"{tmp_path}/own.cpp:{own}"}) == expected


def test_a_way_that_cannot_be_evicted(tmp_path: Path, trace: Path) -> None:
    page = (ENGINE.parent / "docs" / "policies.md").read_text()
    text = page.partition("```cpp\n// most_recent.cpp")[2].partition("```")[0]
    (tmp_path / "own.cpp").write_text("//" + text.replace("return best;", "return best + 1000;"))
    small = {"l1.adaptive": False, "l1.cache.sets": 1, "l1.cache.ways": 4}
    with pytest.raises(SimtError, match=r"replacement most_recent: victim\(\) returned \d+, expected an"):
        simt.simulate(trace, GPU, set={**small, "l1.cache.replacement": f"{tmp_path}/own.cpp:most_recent"})
