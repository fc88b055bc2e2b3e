"""What the ordered tests of a link say about streams: as many as were used, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matrix.answers.diagnosis.streams import but_streams, streams_of
from matrix.answers.experiments.words import of_one_number
from matrix.answers.on_demand import ProbeGroup
from matrix.answers.ratio_words import PairRatio
from matrix.statistics.compare import two_samples
from matrix.statistics.compare.two_samples import FEWEST_TESTS
from matrix.store.transfers import rate_of
from sonar.models import Transfer
from sonar.notation.units import format_count, three_digits


@dataclass(frozen=True)
class StreamsStatement:
    """``headline`` says what streams do, or why nobody can tell; ``rest`` on which tests."""

    headline: str
    rest: str


def statements(groups: Iterable[ProbeGroup]) -> list[StreamsStatement]:
    """Return what tests say that differ in their streams alone, as they were used."""
    alike: dict[object, list[tuple[ProbeGroup, Transfer]]] = {}
    for group in groups:
        link = group.source.id, group.destination.id, group.size_class.id
        for transfer in group.results:
            if transfer.state == Transfer.State.DONE:
                key = *link, *but_streams(transfer.profile)
                alike.setdefault(key, []).append((group, transfer))
    return [
        statement
        for pairs in alike.values()
        for statement in of_alike(pairs[0][0], [transfer for _, transfer in pairs])
    ]


def of_alike(group: ProbeGroup, tests: Sequence[Transfer]) -> Iterator[StreamsStatement]:
    """Yield what tests of one link, size class and way say; ``group`` is one of theirs."""
    by_number: dict[int, list[Transfer]] = {}
    for test in tests:
        by_number.setdefault(streams_of(test.profile), []).append(test)
    where = (
        f"from {group.source.name} to {group.destination.name}, {group.size_class.name}, "
        f"{group.mode}"
    )
    if len(by_number) == 1:
        (number,) = by_number
        if len({test.profile.streams for test in tests}) > 1:
            yield StreamsStatement(of_one_number(number, len(tests)), f"{where}.")
        return
    least = min(by_number)
    for number in sorted(by_number.keys() - {least}):
        yield compared(by_number, number, least, where)


def compared(
    by_number: Mapping[int, Sequence[Transfer]], number: int, least: int, where: str
) -> StreamsStatement:
    """Compare the tests that used so many streams with those that used the fewest."""
    several, few = by_number[number], by_number[least]
    rates, others = ([rate_of(test) for test in tests] for tests in (several, few))
    pair = PairRatio.at(two_samples.compare(rates, others))
    counts = f"{format_count(pair.ok)} and {format_count(pair.other_ok)} tests"
    medians = f"median {three_digits(pair.value)} MB/s instead of {three_digits(pair.other)} MB/s"
    names = named(number, several), named(least, few)
    if not pair.kind:
        return StreamsStatement(
            f"{names[0]} and {names[1]}: {counts}, too few to compare.",
            f"{where}: {medians}; a comparison needs {FEWEST_TESTS} successful tests of each.",
        )
    certain = "certain" if pair.sure else "not certain"
    return StreamsStatement(
        f"{names[0]}: {pair.factor_words} the rate of {names[1]}, {certain}: {counts}.",
        f"{where}: {medians}.",
    )


def named(number: int, tests: Iterable[Transfer]) -> str:
    """Say so many streams; `requested` where nobody can tell how many some tests used."""
    streams = f"{number} stream{'s' * (number != 1)}"
    are_counted = all(test.profile.streams_used for test in tests)
    return streams if are_counted else f"{streams} requested"
