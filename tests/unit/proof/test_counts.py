"""Figures of a test run are summed by name."""

from counts import KEY, Counts, recorder, summary


def test_figures_are_summed_by_name():
    given = [["b", 2, 3], ["a", 1, None], ["b", 1, 1], ["a", 4, None]]
    assert summary([("other", 5), *((KEY, value) for value in given)]) == ["a: 5", "b: 3/4"]


def test_a_figure_is_a_property_of_the_report(counts: Counts):
    found: list[tuple[str, object]] = []
    recorder(lambda name, value: found.append((name, value)))("masks drawn", 7)
    assert found == [(KEY, ["masks drawn", 7, None])] and callable(counts)
