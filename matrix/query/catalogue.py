"""The catalogue of statistics: every fact about one stands here, and all else is derived of it.

Add a quantile as one line of STATISTICS: forms, sentences, colours, the card and the tables of
pages, columns, the API and its schema follow. What is no quantile needs its formula, too, in
matrix/statistics/.
"""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Unit:
    """What values are in: its name, how names of fields end, and how a number is written.

    ``title`` stands above a colour bar, but of a factor. An age has its own units in its text, and
    so has a factor.
    """

    name: str
    suffix: str
    written: Literal["digits", "count", "age", "factor"] = "digits"
    title: str = ""

    @property
    def behind(self) -> str:
        """Return what stands behind a number that is written, or nothing."""
        return "" if self.written in ("age", "factor") else self.name


RATE = Unit("MB/s", "mb_s")
PERCENT = Unit("%", "percent")
TRANSFERS = Unit("transfers", "transfers", written="count")
AGE = Unit("s", "seconds", written="age", title="age")
SECONDS = Unit("s", "s")
TIMES = Unit("×", "times", written="factor")


@dataclass(frozen=True)
class Statistic:
    """A statistic of the transfers of a cell or a link.

    ``label`` is what controls call it, ``sentence`` describes it, of ``{files}``. ``quantile`` is
    the share of rates below it, for what is one; ``needs_sizes`` says that its formula takes the
    bytes of transfers beside their rates; ``of_line`` that it is read off the line through the
    times of all size classes; ``of_now`` that it says how links are now (statistics/standing.py),
    which looks back beyond the window. A linear scale begins at 0 and ends at ``greatest``, or
    where the values do; a diverging one is logarithmic, with 1 in its middle, which is the rate
    ``against`` which values are: below it is slower. ``worse`` is the end of the
    scale where the bad values are, if any, and ``worst`` what those are called when they are
    listed, first in the ``worst_first`` order of the link table (after the name of the size
    class), if it has one; without a word they are not listed.

    ``on_card`` says that the card of a cell has it whatever is asked for, ``of_link`` that the
    page and the series of a link have it, ``in_band`` that it is one end of the range that is
    shaded there, and ``in_table`` that the link table has a column of it for who asks. ``base`` is
    the statistic of all cells of a matrix that it is computed of, for what a cell alone has not.
    """

    name: str
    label: str
    sentence: str
    purpose: str = ""
    unit: Unit = RATE
    quantile: float | None = None
    needs_sizes: bool = False
    of_line: bool = False
    of_now: bool = False
    scale: Literal["logarithmic", "linear", "diverging"] = "logarithmic"
    greatest: float | None = None
    against: str = ""
    worse: Literal["low", "high", ""] = "low"
    worst: str = "slowest"
    worst_first: str = "mean_mb_s"
    on_card: bool = False
    of_link: bool = False
    in_band: bool = False
    in_table: bool = False
    base: str = ""

    @property
    def field(self) -> str:
        """Return what the API calls it: `p95_mb_s`."""
        return f"{self.name}_{self.unit.suffix}"

    @property
    def words(self) -> str:
        return self.label.partition(" (")[0]


def percentile(percent: int, *, in_band: bool = False) -> Statistic:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(percent % 10 if percent // 10 != 1 else 0, "th")
    label = f"{percent}{ending} percentile"
    return Statistic(
        f"p{percent:02}",
        label,
        f"{label} of the rate for {{files}}",
        f"{percent} % of tests are slower",
        quantile=percent / 100,
        of_link=True,
        in_band=in_band,
        in_table=True,
    )


STATISTICS = {
    statistic.name: statistic
    for statistic in (
        Statistic(
            "mean", "mean", "Mean rate of {files}", "MB/s, the default", on_card=True, of_link=True
        ),
        Statistic(
            "median",
            "median",
            "Median rate of {files}",
            "MB/s, half of the tests are slower",
            quantile=0.5,
            on_card=True,
            of_link=True,
            in_table=True,
        ),
        Statistic(
            "now",
            "now",
            "Rate now (median of the newest three successful tests) for {files}",
            "MB/s, for the newest tests",
            of_now=True,
            worst="slowest now",
            worst_first="now_mb_s",
        ),
        Statistic(
            "vs_usual",
            "now / baseline",
            "Rate now divided by the baseline for {files}",
            "which links changed",
            unit=TIMES,
            of_now=True,
            scale="diverging",
            against="the baseline",
            # Those are listed as slower already.
            worst="",
            on_card=True,
        ),
        Statistic(
            "vs_target",
            "rate / target",
            "Rate now divided by the rate target for {files}",
            "links below their target",
            unit=TIMES,
            of_now=True,
            scale="diverging",
            against="target",
            worst="furthest below target",
            worst_first="",
        ),
        percentile(5, in_band=True),
        percentile(95, in_band=True),
        percentile(99),
        Statistic(
            "std",
            "standard deviation",
            "Standard deviation of the rate for {files}",
            "how much rates vary",
            worse="high",
            worst="",
            on_card=True,
        ),
        Statistic("min", "lowest", "Lowest rate of {files}", "the slowest test", quantile=0.0),
        Statistic("max", "highest", "Highest rate of {files}", "the fastest test", quantile=1.0),
        Statistic(
            "throughput",
            "throughput",
            "Throughput (total bytes divided by total seconds) for {files}",
            "total bytes / total seconds",
            needs_sizes=True,
        ),
        Statistic(
            "overhead",
            "overhead (s)",
            "Overhead of transfers in all size classes (seconds per transfer, whatever the file "
            "size)",
            "seconds before bytes move",
            unit=SECONDS,
            of_line=True,
            worse="high",
            worst="most overhead",
        ),
        Statistic(
            "bandwidth",
            "bandwidth",
            "Bandwidth of transfers in all size classes (rate without the overhead)",
            "rate without overhead",
            of_line=True,
            worst="least bandwidth",
        ),
        Statistic(
            "success",
            "success (%)",
            "Share of {files} that succeeded",
            "share of successful tests",
            unit=PERCENT,
            scale="linear",
            greatest=100.0,
            worst="least successful",
            worst_first="-failed",
        ),
        Statistic(
            "count",
            "number of tests",
            "Number of {files}",
            "successful tests that each value is based on",
            unit=TRANSFERS,
            scale="linear",
            worse="",
            worst="",
            on_card=True,
        ),
        Statistic(
            "last",
            "age of the last result",
            "Age of the last result for {files}",
            "which links have no new results",
            unit=AGE,
            worse="high",
            worst="oldest",
            worst_first="last",
            on_card=True,
        ),
        Statistic(
            "predicted",
            "predicted rate",
            "Predicted rate (suggested by the other links of both endpoints) for {files}",
            "rate that the other links suggest",
            worst="",
            base="median",
        ),
        Statistic(
            "vs_predicted",
            "rate / predicted",
            "Links that deviate from their predicted rate: median / predicted rate for {files}",
            "which links deviate",
            unit=TIMES,
            scale="diverging",
            against="predicted",
            worst="furthest below the predicted rate",
            worst_first="",
            base="median",
        ),
    )
}
STATS = tuple(STATISTICS)
# What shows cells that are slower or faster than usual as such.
VS_USUAL = STATISTICS["vs_usual"]
# Marks cells that are below, near or above their rate target.
VS_TARGET = STATISTICS["vs_target"]
# What a question shows that is compared with another, whichever statistic it names.
RATIO = Statistic(
    "ratio",
    "ratio",
    "Ratio of median rates of {files}",
    unit=TIMES,
    scale="diverging",
    against="the other side",
    worst="largest slowdown",
)
RATIO_OF_MEANS = replace(RATIO, sentence="Ratio of mean rates of {files}")
UNITS = {statistic.unit.name: statistic.unit for statistic in (*STATISTICS.values(), RATIO)}
QUANTILES = {
    statistic.name: statistic.quantile
    for statistic in STATISTICS.values()
    if statistic.quantile is not None
}
# What costs time of its own, and is only computed where it is asked for.
EXTRAS = frozenset(
    statistic.name
    for statistic in STATISTICS.values()
    if statistic.quantile is not None or statistic.needs_sizes
)
# What the card of a cell says beside what every cell has.
CARD_EXTRAS = tuple(name for name in STATS if name in EXTRAS and STATISTICS[name].on_card)
OF_LINK = tuple(statistic for statistic in STATISTICS.values() if statistic.of_link)
LINK_QUANTILES = {
    statistic.name: QUANTILES[statistic.name]
    for statistic in OF_LINK
    if statistic.name in QUANTILES
}
# What the API calls them in a series: the mean, and then from the lowest to the highest.
SERIES_FIELDS = {
    statistic.field: statistic.name
    for statistic in sorted(OF_LINK, key=lambda statistic: statistic.quantile or 0)
}
# The ends of the band, and what it is called.
LOW, HIGH = sorted(
    (statistic for statistic in OF_LINK if statistic.in_band),
    key=lambda statistic: QUANTILES[statistic.name],
)
BAND_WORDS = f"{LOW.label.removesuffix(' percentile')} to {HIGH.label}"
# Columns of the link table for who asks for them, by name.
TABLE_QUANTILES = {
    statistic.name: statistic for statistic in STATISTICS.values() if statistic.in_table
}
