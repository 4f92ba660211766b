import pytest

from autograder.withhold import strip_source, withheld
from mpedu import families
from mpedu.families import gpipe as an_alias
from mpedu.faults import Withheld
from mpedu.simulate import Span, Timeline


def test_an_alias_imported_earlier_refuses_and_works_again_after():
    before = an_alias(2, 3)
    with (
        withheld(["mpedu.families.gpipe"]),
        pytest.raises(Withheld, match=r"this is the exercise: mpedu\.families\.gpipe"),
    ):
        an_alias(2, 3)
    assert an_alias(2, 3) == before


def test_a_part_that_its_package_does_not_hand_on_is_named_by_its_module():
    name = "mpedu.families.interleaved.split"
    with withheld([name]), pytest.raises(Withheld, match=r"interleaved\.split refuses"):
        families.interleaved.split([(0, 0)], 0)
    source = "def split():\n    return 1\n"
    assert "return 1" not in strip_source(source, "mpedu.families.interleaved", [name])
    assert "return 1" in strip_source(source, "mpedu.families.zero_bubble", [name])


@pytest.mark.parametrize("name, value", [("idle_share", 0), ("busy_s", 1)])
def test_a_property_refuses_under_the_name_that_students_write(name, value):
    timeline = Timeline([Span(0, "F", 0, 0, 0, 1)], 1)
    with (
        withheld([f"mpedu.simulate.Timeline.{name}"]),
        pytest.raises(Withheld, match=f"this is the exercise: Timeline.{name} refuses"),
    ):
        getattr(timeline, name)
    assert getattr(timeline, name) == value


def test_a_function_comes_back_when_the_check_raises():
    with pytest.raises(KeyError), withheld(["mpedu.families.gpipe"]):
        raise KeyError
    assert families.gpipe(1, 1)


def test_only_functions_can_be_withheld():
    with (
        pytest.raises(ValueError, match="not a plain function"),
        withheld(["mpedu.schedule.KINDS"]),
    ):
        pass


SOURCE = '''
class Box:
    @property
    def size(self):
        """The answer."""
        return 42

    def other(self):
        return 1

def answer(x):
    """Returns the answer."""
    return x + 41

def free():
    return 3
'''


def test_stripped_source_keeps_the_rest_and_loses_every_withheld_body():
    stripped = strip_source(SOURCE, "mpedu.m", ["mpedu.m.answer", "mpedu.m.Box.size", "mpedu.n.x"])
    assert "41" not in stripped and "42" not in stripped and "The answer" not in stripped
    namespace = {}
    exec(stripped, namespace)
    assert namespace["free"]() == 3 and namespace["Box"]().other() == 1
    with pytest.raises(Withheld, match=r"this is the exercise: mpedu\.m\.answer"):
        namespace["answer"](1)
    with pytest.raises(Withheld, match=r"this is the exercise: Box\.size"):
        _ = namespace["Box"]().size


def test_a_withheld_name_that_is_not_there_is_an_error_not_a_hole():
    with pytest.raises(ValueError, match=r"mpedu\.m\.gone is withheld"):
        strip_source(SOURCE, "mpedu.m", ["mpedu.m.gone"])
