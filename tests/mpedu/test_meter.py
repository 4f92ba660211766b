import pytest

from mpedu.meter import Count, Meter


def counted():
    meter = Meter()
    meter.call(1, "send")
    meter.message(1, "send", 8, between=False)
    meter.message(1, "send", 16, between=True)
    meter.call(0, "barrier")
    meter.message(0, "all_reduce", 4, between=True)
    return meter


def test_counts_stand_by_rank_and_kind_in_order():
    assert list(counted().counts.items()) == [
        ((0, "all_reduce"), (0, 1, 4, 1, 4)),
        ((0, "barrier"), (1, 0, 0, 0, 0)),
        ((1, "send"), (1, 2, 24, 1, 16)),
    ]


@pytest.mark.parametrize(
    "asked, expected",
    [
        ({}, (2, 3, 28, 2, 20)),
        ({"rank": 0}, (1, 1, 4, 1, 4)),
        ({"kind": "send"}, (1, 2, 24, 1, 16)),
        ({"rank": 0, "kind": "barrier"}, (1, 0, 0, 0, 0)),
        ({"rank": 0, "kind": "send"}, (0, 0, 0, 0, 0)),
        ({"rank": 7}, (0, 0, 0, 0, 0)),
    ],
)
def test_totals_are_of_what_is_asked_for(asked, expected):
    assert counted().total(**asked) == Count(*expected)


def test_what_another_meter_counted_is_added():
    meter = counted()
    meter.add(counted().counts)
    meter.add({(2, "recv"): Count(calls=5)})
    assert meter.total(1) == (2, 4, 48, 2, 32)
    assert meter.total(2, "recv").calls == 5
    assert counted().total() == (2, 3, 28, 2, 20)


def test_a_meter_prints_as_a_table():
    lines = str(counted()).splitlines()
    assert lines[0].split() == [
        *"rank operation calls messages bytes between nodes: messages bytes".split()
    ]
    assert [line.split() for line in lines[1:]] == [
        ["0", "all_reduce", "0", "1", "4", "1", "4"],
        ["0", "barrier", "1", "0", "0", "0", "0"],
        ["1", "send", "1", "2", "24", "1", "16"],
    ]
    assert len({len(line) for line in lines}) == 1
    assert len(str(Meter()).splitlines()) == 1


def test_totals_of_nothing_are_zero():
    assert Meter().total() == Count(0, 0, 0, 0, 0) and Meter().counts == {}
