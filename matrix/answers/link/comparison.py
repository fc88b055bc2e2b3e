"""A link against another window, direction, size class or way of testing, class by class."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.text import capfirst

from matrix.answers.comparison import all_links
from matrix.answers.link import samples
from matrix.answers.link.samples import Results
from matrix.answers.words.phrases import counted
from matrix.answers.words.ratios import PairRatio
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.compare.two_samples import FEWEST_TESTS
from sonar.notation.units import format_count, three_digits
from sonar.notation.windows import Window

SUCCESS = "successful transfer"
Ends = tuple[EndpointInfo, EndpointInfo]
HEADLINES = {
    "slower": "slower than {other}",
    "faster": "faster than {other}",
    "perhaps": "perhaps {direction} than {other}, not certain with {tests} tests",
    "same": "no significant difference from {other}",
    "": "too few results to compare with {other}",
}


@dataclass(frozen=True)
class ComparedClass:
    """One size class against another or itself; ``results`` are those of the other side."""

    size: str
    other_size: str
    results: Results
    pair: PairRatio


@dataclass(frozen=True)
class LinkComparison:
    """A link and what its question is compared with: ``other``, over ``window``, between ``ends``.

    ``classes`` are those that can be compared, by name.
    """

    query: MatrixQuery
    window: Window
    link: Ends
    ends: Ends
    of: str
    classes: dict[str, ComparedClass]

    @property
    def words(self) -> str:
        """Say what the link is compared with: `the 7 days before`."""
        return self.query.other_words()

    def headline(self, size: str) -> str:
        """Say in a few words how a class compares."""
        pair = self.classes[size].pair
        tests = f"{format_count(pair.ok)} and {format_count(pair.other_ok)}"
        about = {"other": self.words, "direction": pair.direction, "tests": tests}
        words = HEADLINES[pair.kind].format(**about)
        return f"{capfirst(size)} files: {words}"

    def sentence(self, size: str) -> str:
        """Say both rates of a class, then their ratio, its interval, n and p, to be quoted."""
        pair, (source, destination) = self.classes[size].pair, self.link
        subject = f"{capfirst(size)} files from {source.name} to {destination.name}"
        when = f"{'from' if self.query.bounds else 'in'} {self.query.window_words()}"
        if not pair.kind:
            here, there = (counted(count, SUCCESS) for count in (pair.ok, pair.other_ok))
            counts = f"{here} {when}, {there} for {self.words}"
            return f"{subject}: {counts}; a ratio needs {FEWEST_TESTS} on either side."
        here, there = (f"{three_digits(rate)} MB/s" for rate in (pair.value, pair.other))
        rates = f"{self.of} {here} {when}, {there} for {self.words}"
        return f"{subject}: {rates}. Ratio {pair.words}."


def compare(
    query: MatrixQuery,
    link: Ends,
    here: Iterable[str],
    sizes: Mapping[int, str],
    now: datetime,
) -> LinkComparison | None:
    """Compare the results of a link in the size classes ``here``, as the query asks for it.

    Nothing if it compares with nothing. ``sizes`` are the names of the classes by id; with another
    one than its own it is the class of the query alone which is compared.
    """
    if query.compare is None:
        return None
    other = query.other(now)
    ends = (link[1], link[0]) if query.compare.reverse else link
    window = other.window_at(now)
    there = samples.read(ends, window, other.filters).of_link(*ends)
    ids = {name: size_class for size_class, name in sizes.items()}
    of = query.compare.of
    classes = {}
    for size in [query.size] if query.compare.size else here:
        other_size = query.compare.size or size
        results = there.of_class(ids[other_size])
        of_class = query.replace(size=size)
        pair = all_links.link_ratio(of_class, now, link[0].name, link[1].name)
        classes[size] = ComparedClass(size, other_size, results, pair)
    return LinkComparison(query, window, link, ends, of, classes)
