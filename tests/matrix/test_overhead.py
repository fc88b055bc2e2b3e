"""What a test costs beside its bytes."""

from __future__ import annotations

import numpy as np
import pytest

from matrix.answers.link.overhead import FEWEST, overhead_of

Class = tuple[np.ndarray, np.ndarray]


def class_of(megabytes: float, seconds: list[float]) -> Class:
    sizes = np.full(len(seconds), int(megabytes * 1e6))
    return sizes, (sizes / np.array(seconds)).astype(np.float32)


def model(megabytes: float, seconds: float, bandwidth: float, count: int = 9) -> Class:
    scatter = 1 + 0.02 * np.arange(-(count // 2), count - count // 2)
    return class_of(megabytes, ((seconds + megabytes / bandwidth) * scatter).tolist())


def test_what_passes_beside_the_bytes_is_told_from_their_bandwidth():
    found = overhead_of([model(20, 14.0, 10.9), model(200, 14.0, 10.9), model(2000, 14.0, 10.9)])
    assert found is not None
    assert found.seconds == pytest.approx(14.0, rel=1e-4)
    assert found.bandwidth == pytest.approx(10.9, rel=1e-4)
    assert found.smallest == 20.0
    assert found.share == pytest.approx(14.0 / (14.0 + 20 / 10.9), rel=1e-4)


@pytest.mark.parametrize(
    "classes",
    [
        [],
        [model(20, 14.0, 10.9)],
        [model(20, 14.0, 10.9), model(20, 14.0, 10.9)],
        [model(20, 14.0, 10.9), model(2000, 14.0, 10.9, count=FEWEST - 1)],
        [class_of(20, [9.0] * 5), class_of(200, [9.0] * 5)],
        [class_of(20, [1.0] * 5), class_of(200, [100.0] * 5)],
    ],
    ids=["nothing", "one size", "same size", "too few", "no slower", "small ones too fast"],
)
def test_nothing_is_said_where_the_times_say_nothing(classes: list[Class]):
    assert overhead_of(classes) is None
