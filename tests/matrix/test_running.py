"""The running median: a change is seen at the test at which it happened."""

import numpy as np
import pytest

from matrix.statistics.samples.quantiles import MOST_PLACES, running_median

HOUR = 3_600_000


def hourly(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int64) * HOUR


@pytest.mark.parametrize("change", [3, 20, 100, 164])
def test_a_step_stays_where_it_happened(change: int):
    values = np.where(np.arange(168) < change, 7.5, 2.1)
    line = running_median(hourly(168), values)
    drawn = ~np.isnan(line.values)
    assert line.values[drawn].tolist() == values.tolist()
    assert line.started[drawn].tolist() == hourly(168).tolist()


def test_single_outliers_do_not_move_the_line():
    values = np.full(50, 5.0)
    values[[10, 30]] = 500.0, 0.01
    assert set(running_median(hourly(50), values).values[:-1]) == {5.0}


def test_values_are_medians_of_the_samples_around():
    values = np.random.default_rng(4).lognormal(size=40)
    line = running_median(hourly(40), values)
    assert line.around == 5
    for at in range(40):
        assert line.values[at] == np.median(values[max(0, at - 2) : at + 3])
    assert line.values[39] == np.median(values[-3:]), "its end is what the link has now"


def test_there_is_no_line_across_a_gap():
    started = np.append(hourly(10), hourly(10) + 40 * HOUR)
    line = running_median(started, np.arange(20.0))
    gaps = np.flatnonzero(np.isnan(line.values)).tolist()
    assert gaps == [10, 21]
    assert line.values[9] == 8.0
    assert line.values[11] == 11.0, "what lies beyond the gap has no part in it"


@pytest.mark.parametrize("count", [0, 1])
def test_what_is_no_line_is_none(count: int):
    assert not running_median(hourly(count), np.ones(count)).values.size


def test_a_dense_line_is_thinned_and_a_change_of_hours_is_still_seen():
    count = 90 * 24 * 12
    values = np.full(count, 7.5)
    slow = slice(count // 2, count // 2 + 14 * 12)
    values[slow] = 2.1
    started = np.arange(count, dtype=np.int64) * HOUR // 12
    line = running_median(started, values)
    assert len(line.values) <= MOST_PLACES + 2
    low = line.started[line.values == 2.1]
    assert abs(int(low[0]) - int(started[slow.start])) <= 2 * HOUR
    assert abs(int(low[-1]) - int(started[slow.stop])) <= 2 * HOUR
