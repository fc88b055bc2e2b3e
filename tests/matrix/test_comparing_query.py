"""What a question is compared with: every combination there and back, and what is refused."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.query.addresses import link_url, matrix_url
from matrix.query.catalogue import RATIO, STATS
from matrix.query.filters import FILTERS
from matrix.query.forms import ALL_FILTERS, MOST_FILTERS, BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import LinkIndex
from matrix.store import registry
from tests.matrix.test_query import asked, filter_values, moments, plain, sentences, windows
from tests.properties import examples

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)
between = st.tuples(moments, st.integers(1, 10**9)).map(
    lambda pair: (
        f"{pair[0]:%Y-%m-%dT%H:%M:%SZ}..{pair[0] + timedelta(seconds=pair[1]):%Y-%m-%dT%H:%M:%SZ}"
    )
)
compared = st.fixed_dictionaries(
    {},
    optional={
        "compare": st.lists(
            st.one_of(st.sampled_from(["previous", "week", "month", "reverse"]), between),
            max_size=2,
        ),
        "compare.size": st.sampled_from(["small", "medium", "large"]).map(lambda size: [size]),
        "compare.of": st.sampled_from(["median", "mean"]).map(lambda of: [of]),
        **{
            f"compare.{name}": st.one_of(st.just([""]), values)
            for name, values in filter_values.items()
        },
    },
)


def filters(params: dict[str, list[str]]) -> int:
    return sum(len(set(params[name]) - {""}) for name in ALL_FILTERS & params.keys())


@pytest.mark.long
@examples(200)
@given(own=plain, window=windows, other=compared)
def test_every_comparison_survives_its_own_url_or_is_refused_by_name(
    small_world, own, window, other
):
    errors: dict[str, list[str]] = {}
    try:
        query = MatrixQuery.from_params(own | window | other)
    except BadQueryError as error:
        errors = error.errors
    if errors:
        refused = set(errors) <= {name for name in other if name.startswith("compare")}
        assert refused or (filters(own | other) > MOST_FILTERS and "the most" in str(errors))
        assert all(name in text for name, texts in errors.items() for text in texts)
        return
    again = asked(matrix_url(query).removeprefix("/").removeprefix("?"))
    assert again == query
    assert matrix_url(again) == matrix_url(query)
    assert again.describe() == query.describe()
    assert (query.compare is None) == ("compare" not in matrix_url(query))
    if query.compare:
        other_query = query.other(NOW)
        assert other_query.compare is None
        assert asked(matrix_url(other_query).removeprefix("/").removeprefix("?")) == other_query
        assert other_query != query.replace(compare=None, max_age="")


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("compare=previous", ("2026-11-06T12:01:00Z", "2026-11-13T12:01:00Z")),
        ("compare=week&window=24h", ("2026-11-12T12:01:00Z", "2026-11-13T12:01:00Z")),
        ("compare=previous&window=24h", ("2026-11-18T12:01:00Z", "2026-11-19T12:01:00Z")),
        ("compare=month", ("2026-10-14T12:01:00Z", "2026-11-13T12:01:00Z")),
        ("compare=month&window=1h", ("2026-10-21T11:01:00Z", "2026-11-20T11:01:00Z")),
        (
            "from=2026-11-10&to=2026-11-11&compare=month&compare=reverse",
            ("2026-10-11T00:00:00Z", "2026-11-10T00:00:00Z"),
        ),
        ("compare=2026-10-01..2026-10-03", ("2026-10-01T00:00:00Z", "2026-10-03T00:00:00Z")),
        (
            "from=2026-11-10&to=2026-11-11T01:00&compare=previous",
            ("2026-11-08T23:00:00Z", "2026-11-10T00:00:00Z"),
        ),
        ("compare=reverse", ("2026-11-13T12:01:00Z", "2026-11-20T12:01:00Z")),
    ],
)
def test_the_other_window_is_as_long_and_where_it_should_be(text, bounds):
    params = asked(text).other(NOW).to_params()
    assert (*params["from"], *params["to"]) == bounds


def test_filters_of_the_other_side_replace_those_of_the_same_parameter_and_no_others(small_world):
    query = asked(
        "streams=1&origin=test&origin=!production&mover=fake&tier=2&max_age=6h&stat=p95"
        "&compare.streams=4&compare.streams=8&compare.origin=&compare.size=small"
    )
    other = query.other(NOW)
    expected = [("tier", "2"), ("mover", "fake"), ("streams", "4"), ("streams", "8")]
    assert [(option.parameter, option.text) for option in other.filters] == expected
    assert (other.size, other.stat, other.max_age) == ("small", "p95", "")
    assert query.statistic is RATIO
    assert asked("stat=p95").statistic.name == "p95"
    assert RATIO.name not in STATS


@examples(60)
@given(values=st.fixed_dictionaries({}, optional=filter_values))
def test_the_opposite_direction_of_each_link_passes_the_turned_filters(small_world, values):
    query = MatrixQuery.from_params(values | {"compare": ["reverse"]})
    links = LinkIndex(registry.read_places(registry.read_versions()))
    own, other = (
        links.matching(side.filters).reshape(links.shape) for side in (query, query.other(NOW))
    )
    assert (own == other.T).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("compare=previous", "the 7 days before"),
        ("compare=week&window=1h", "the same hour a week earlier"),
        ("compare=previous&window=1h", "the hour before"),
        ("compare=month", "the 30 days before"),
        (
            "compare=month&window=1h&compare.size=small",
            "small-file transfers of the 30 days before",
        ),
        ("from=2026-11-10&to=2026-11-11&compare=month", "11 Oct 00:00 to 10 Nov 2026 00:00 UTC"),
        ("compare=reverse", "the opposite direction"),
        ("compare=reverse&compare=previous", "the 7 days before in the opposite direction"),
        ("compare.size=small", "small-file transfers"),
        ("compare.size=small&compare=previous", "small-file transfers of the 7 days before"),
        ("compare=2026-10-01..2026-10-03T04:00", "1 Oct 00:00 to 3 Oct 2026 04:00 UTC"),
        ("from=2026-11-10&to=2026-11-11&compare=previous", "9 Nov 00:00 to 10 Nov 2026 00:00 UTC"),
        ("compare.streams=4", "transfers only with streams 4"),
        ("streams=4&compare.streams=", "transfers whatever the streams"),
        (
            "compare=previous&compare.origin=production&ip_version=6&compare.ip_version=",
            "the 7 days before, only with origin production, whatever the IP version",
        ),
        ("origin=production&compare.origin=", "transfers only with origin test"),
        ("compare.origin=all", "transfers whatever the origin"),
    ],
)
def test_a_comparison_is_described_in_words(small_world, text, words):
    query = asked(text)
    assert query.other_words() == words
    assert query.describe().endswith(f", compared with {words}")
    assert query.describe().startswith("Ratio of median rates of large-file transfers, ")
    means = query.describe().replace("median", "mean", 1)
    assert asked(f"{text}&compare.of=mean").describe() == means


@pytest.mark.parametrize(
    ("text", "parameter", "sentence"),
    [
        (
            "compare=yesterday",
            "compare",
            "compare “yesterday” is not known: use previous, week, month, reverse, or two times "
            "with .. between them, for example, 2026-11-01..2026-11-08.",
        ),
        (
            "compare=previous&compare=week",
            "compare",
            "“compare” has 2 time ranges, previous and week",
        ),
        ("compare=month&compare=week", "compare", "“compare” has 2 time ranges, month and week"),
        (
            "from=1970-01-15&to=1970-01-16&compare=month",
            "compare",
            "compare=month reaches back before 1970, the earliest year.",
        ),
        (
            "compare=2026-10-01..",
            "compare",
            "The time range “2026-10-01..” in “compare” has only one time: use previous",
        ),
        ("compare=2026-10-01..soon", "compare", "compare “soon” is not a valid time. Use the"),
        ("compare=2026-10-02..2026-10-01", "compare", "must begin before it ends."),
        ("compare.size=giant", "compare.size", "compare.size “giant” is not known: use small,"),
        ("compare.size=large", "compare.size", "compare.size is already part of the query"),
        ("compare.size=small&compare.size=large", "compare.size", "is given 2 times"),
        ("compare.of=mode", "compare.of", "compare.of “mode” is not known: use median or mean."),
        ("compare.of=mean", "compare.of", "“compare.of” requires “compare”,"),
        ("compare.tier=4", "compare.tier", "compare.tier “4” is not known: use 0, 1, 2 or 3."),
        ("compare.site=X", "compare.site", "compare.site “X” is not known: use the name of a"),
        ("tier=1&compare.tier=1", "compare.tier", "compare.tier is already part of the query"),
        (
            "compare=reverse&rows=site&columns=cloud",
            "compare",
            "compare=reverse requires rows and columns with the same grouping, but they are "
            "grouped by site and cloud.",
        ),
        (
            "from=2026-11-01&to=2026-11-02&compare=2026-11-01..2026-11-02",
            "compare",
            "compare is already part of the query: compare with something else.",
        ),
        (
            "from=1970-01-02&to=2026-11-02&compare=previous",
            "compare",
            "compare=previous reaches back before 1970, the earliest year.",
        ),
        (
            "from=1971-01-01&to=9999-01-01&compare=previous",
            "compare",
            "reaches back before 1970",
        ),
        ("compare.colour=red", "compare.colour", "There is no parameter “compare.colour”: use"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_sentence_that_names_the_parameter(
    small_world, text, parameter, sentence
):
    errors = sentences(text)
    assert list(errors) == [parameter]
    assert sentence in errors[parameter][0]


def test_empty_parameters_of_a_plain_form_compare_with_nothing(small_world):
    empty = "&".join(f"compare.{name}=" for name in FILTERS)
    assert asked(f"compare=&compare.size=&compare.of=median&{empty}") == asked("")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("compare=previous&compare.tier=1&compare.streams=4", "compare=previous&compare.streams=4"),
        ("cloud=UK&compare.tier=1&compare.cloud=", ""),
        (
            "streams=2&compare.streams=&compare=reverse",
            "streams=2&compare=reverse&compare.streams=",
        ),
    ],
)
def test_a_link_is_compared_by_what_says_something_about_a_single_link(small_world, text, shown):
    assert link_url("A", "B", asked(text)).partition("?")[2] == shown


@pytest.mark.parametrize(
    ("text", "changes", "left"),
    [
        ("compare.size=small", {"size": "small"}, "size=small"),
        ("compare.size=small&compare=week", {"size": "small"}, "size=small&compare=week"),
        ("compare=reverse", {"rows": "site"}, "rows=site"),
        (
            "compare=reverse",
            {"rows": "site", "columns": "site"},
            "rows=site&columns=site&compare=r",
        ),
        ("tier=1&compare.tier=", {"filters": ()}, ""),
    ],
)
def test_what_no_longer_differs_is_no_longer_compared(small_world, text, changes, left):
    url = matrix_url(asked(text).replace(**changes)).partition("?")[2]
    assert url.startswith(left)
    assert ("compare" in url) == ("compare" in left)
    assert asked(url) == asked(text).replace(**changes)


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("compare=month", True),
        ("compare=month&compare.of=mean", True),
        ("compare=2026-10-01..2026-10-02", True),
        ("compare=reverse", False),
        ("compare=week&compare=reverse", False),
        ("compare=week&compare.size=small", False),
        ("compare=week&compare.streams=4", False),
        ("streams=4&compare=week&compare.streams=", False),
    ],
)
def test_a_comparison_is_of_time_if_nothing_else_differs(small_world, text, is_so):
    assert asked(text).compare.is_of_time == is_so


@pytest.mark.parametrize("text", ["compare.origin=test", "origin=all&compare.origin=all"])
def test_an_origin_is_not_compared_with_itself(small_world, text):
    with pytest.raises(BadQueryError) as refused:
        asked(text)
    assert "is already part of the query" in str(refused.value)
    assert asked("origin=test&compare.origin=").compare is None
