"""Whether the grader's walls can be had, on machines that have them and that lack them."""

import platform

import pytest

from mpedu.probes import Answer, walls


@pytest.fixture
def linux(monkeypatch):
    """A Linux whose programs are those that it is called with, for someone who is not root."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    def has(*programs):
        monkeypatch.setattr(
            walls, "which", lambda name: f"/bin/{name}" * (name in programs) or None
        )

    return has


YES, NO = Answer(0, ""), Answer(1, "bwrap: No permissions\n")
BOTH = ("bwrap", "unshare")


@pytest.mark.parametrize(
    ("programs", "answers", "mark", "found"),
    [
        (BOTH, [YES, YES], "ok", "bubblewrap (/bin/bwrap); only instructors need it"),
        (("bwrap",), [YES], "ok", "bubblewrap (/bin/bwrap); only instructors need it"),
        (BOTH, [YES, NO], "note", "bubblewrap-per-exercise, which is slow: what it starts may"),
        (BOTH, [NO, YES], "note", "namespaces (bubblewrap cannot start: bwrap: No permissions)"),
        (BOTH, [NO, NO], "note", "none (bubblewrap cannot start: bwrap: No permissions)"),
        (BOTH, [Answer(None, ""), NO], "note", "none (bubblewrap cannot start: no answer in"),
        (("unshare",), [YES], "note", "namespaces (no bubblewrap)"),
        ((), [], "note", "none (no bubblewrap)"),
    ],
)
def test_the_walls_that_can_be_had_are_named(linux, programs, answers, mark, found):
    linux(*programs)
    left = list(answers)
    asked = []
    finding = walls.walls(lambda words: (asked.append(list(words)), left.pop(0))[1])
    assert (finding.mark, left) == (mark, [])
    assert finding.found.startswith(found)
    assert ("only instructors need it" in finding.advice) == (mark == "note")
    if "bwrap" in programs:
        assert asked[0][0] == "/bin/bwrap" and "--unshare-all" in asked[0]


def test_without_bubblewrap_the_way_to_it_is_told(linux):
    linux("apt-get")
    found = walls.walls(None)
    assert found.mark == "note"
    assert found.advice == "only instructors need it. For walls: sudo apt-get install -y bubblewrap"


def test_other_systems_have_no_walls(linux, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert walls.walls(None).found == "none on this system"


@pytest.mark.parametrize(
    ("system", "there", "way"),
    [
        ("Linux", "dnf", "sudo dnf install -y bubblewrap"),
        ("Linux", "", "Install bubblewrap"),
        ("Darwin", "bwrap", "Walls need Linux"),
    ],
)
def test_the_way_to_walls_fits_the_machine(linux, monkeypatch, system, there, way):
    linux(there)
    monkeypatch.setattr(platform, "system", lambda: system)
    assert way in walls.way_to_walls()


@pytest.mark.parametrize(
    ("name", "value", "way"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
        ("user/max_user_namespaces", "9000", "may be forbidden"),
    ],
)
def test_what_forbids_namespaces_is_named(linux, monkeypatch, tmp_path, name, value, way):
    linux("bwrap")
    monkeypatch.setattr(walls, "_SYSCTL", tmp_path)
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"{value}\n", encoding="ascii")
    said = walls.way_to_walls()
    assert way in said
    assert ("run `sudo sysctl " in said) == (value != "9000")
