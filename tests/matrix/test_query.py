"""Every parameter of a question and of a display, there and back; and what a bad one is told."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.http import QueryDict
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from matrix.plots import display
from matrix.plots.display import LARGEST, ORDERS, SCALES, Display, number_text
from matrix.plots.palettes import PALETTES
from matrix.query.addresses import OF_MESSAGES, address, matrix_url
from matrix.query.attributes import GROUPINGS
from matrix.query.catalogue import STATS
from matrix.query.filters import FILTERS, LINK_FILTERS
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.query.url_text import encoded
from matrix.statistics.cells.states import LOOKS
from sonar.models import SizeClass
from sonar.notation.csv_text import MOVER
from sonar.notation.windows import PRESETS
from tests.properties import examples

pytestmark = pytest.mark.django_db


def asked(text: str) -> MatrixQuery:
    return MatrixQuery.from_params(QueryDict(text))


def display_of(text: str, stat: str = "mean") -> Display:
    return Display.from_params(dict(QueryDict(text).lists()), stat)


def sentences(text: str) -> dict[str, list[str]]:
    with pytest.raises(BadQueryError) as caught:
        display.read(QueryDict(text))
    return caught.value.errors


texts = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp", "Zs", "Cf", "Co", "Cn"]
    ),
    min_size=1,
    max_size=20,
).filter(lambda text: not text.startswith("!"))
VALUES = {
    "tier": st.sampled_from("0123"),
    "ip_version": st.sampled_from("46"),
    "origin": st.sampled_from(["test", "production", "external"]),
    "mode": st.sampled_from(["pull", "push"]),
    "clock": st.sampled_from(["request", "tool", "service"]),
    "concurrent": st.sampled_from(["none", "some", "unknown"]),
    "data_server": st.sampled_from(["st-048.example.org:8443", "[2001:db8::48]:1094"]),
    "purpose": st.sampled_from(["scheduled", "ordered", "sweep", "unknown"]),
    "streams": st.integers(1, 9999).map(str),
    "site": st.sampled_from(["RAL", "Glasgow", "DESY"]),
    "endpoint": st.sampled_from(["RAL_DATADISK", "DESY_SCRATCHDISK"]),
    "mesh": st.just("everything"),
    "mover": st.from_regex(MOVER, fullmatch=True),
}
filter_values = {
    name: st.lists(
        st.tuples(
            st.sampled_from(["", "!"]),
            VALUES.get(name.split("_")[-1] if name in LINK_FILTERS else name, texts),
        ).map("".join),
        max_size=2,
    )
    for name in FILTERS
}
moments = st.datetimes(datetime(1970, 1, 1), datetime(2999, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
bounds = st.tuples(moments, st.integers(1, 10**9)).map(
    lambda pair: {
        "from": [pair[0].isoformat()],
        "to": [(pair[0] + timedelta(seconds=pair[1])).isoformat()],
    }
)
windows = st.one_of(
    st.just({}), bounds, st.sampled_from(PRESETS).map(lambda one: {"window": [one]})
)
plain = st.fixed_dictionaries(
    {},
    optional={
        "size": st.sampled_from(["small", "medium", "large"]).map(lambda one: [one]),
        "stat": st.sampled_from(STATS).map(lambda one: [one]),
        "rows": st.sampled_from(GROUPINGS).map(lambda one: [one]),
        "columns": st.sampled_from(GROUPINGS).map(lambda one: [one]),
        **filter_values,
    },
).filter(lambda params: sum(map(len, map(params.get, filter_values.keys() & params))) <= 50)


@examples(150)
@given(given_plain=plain, window=windows)
def test_every_query_survives_its_own_url(small_world, given_plain, window):
    query = MatrixQuery.from_params(given_plain | window)
    again = asked(matrix_url(query).removeprefix("/").removeprefix("?"))
    assert again == query
    assert matrix_url(again) == matrix_url(query)
    assert query.describe() == again.describe()


def many(name: str, count: int) -> str:
    return "&".join(f"{name}=a{number}" for number in range(count))


@pytest.mark.parametrize(
    ("text", "name", "given"),
    [
        (many("tag", 51), "tag", 51),
        (f"tier=1&{many('source_tag', 50)}&ip_version=4", "source_tag", 50),
        (f"{many('tag', 20)}&compare=week&{many('compare.tag', 31)}", "compare.tag", 31),
        (many("tag", 26) + "&" + many("tag", 26).replace("=", "=!"), "tag", 52),
    ],
)
def test_a_question_has_so_many_filters_and_no_more(text, name, given):
    """Each is a link of a page that has the address of all others in it."""
    count = text.count("=") - text.count("compare=")
    assert sentences(text) == {
        name: [
            f"“{name}” has {given} values, which makes {count} filters: a query can have at most "
            "50. Use fewer values, or filter by a tag, cloud or tier that the values share."
        ]
    }


def test_fifty_filters_are_a_question():
    assert len(asked(many("tag", 50)).filters) == 50
    assert len(asked("&".join([many("tag", 50), "tag="] * 3)).filters) == 50


def test_defaults_are_left_out_of_the_url_and_all_else_stands_in_it():
    assert matrix_url(asked("size=large&window=7d&stat=mean&rows=endpoint&columns=endpoint")) == "/"
    assert asked("").url("/", format="csv") == "/?format=csv"
    assert (
        matrix_url(asked("columns=tier&rows=site&stat=p95")) == "/?stat=p95&rows=site&columns=tier"
    )


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3))
def test_any_value_stands_in_an_address_as_a_library_writes_it(texts):
    params = {"cloud": texts, "source_tag": ["!a b:c&=%+ä"]}
    assert encoded(params) == urlencode(params, True, ":!")
    assert QueryDict(encoded(params)).getlist("cloud") == texts


def test_empty_values_as_a_plain_form_sends_them_are_not_given():
    assert asked("from=&to=&window=&site=&stat=") == asked("")


def test_the_default_size_is_the_largest_class_where_none_is_called_large():
    SizeClass.objects.filter(name="large").update(name="huge")
    assert asked("").size == "huge"
    assert sentences("size=large")["size"] == [
        "size “large” is not known: use small, medium or huge."
    ]


@pytest.mark.parametrize(
    ("text", "parameter", "sentence"),
    [
        (
            "colour=red",
            "colour",
            "There is no parameter “colour”: use above, below, clock,",
        ),
        ("size=giant", "size", "size “giant” is not known: use small, medium or large."),
        ("window=8d", "window", "window “8d” is not known: use 1h, 6h, 24h, 7d, 30d or 90d."),
        (
            "stat=mode",
            "stat",
            "stat “mode” is not known: use mean, median, now, vs_usual, vs_target, p05,",
        ),
        ("rows=planet", "rows", "use endpoint, site, cloud, tier or country."),
        ("columns=planet", "columns", "use endpoint, site, cloud, tier or country."),
        ("stat=mean&stat=max", "stat", "“stat” is given 2 times: give it only once."),
        ("from=2026-11-01", "to", "“to” is missing: “from” and “to” must be given together."),
        ("to=2026-11-01", "from", "“from” is missing: “from” and “to” must be given together."),
        ("from=2026-11-02&to=2026-11-01", "from", "“from” must be before “to”."),
        ("from=2026-11-02&to=2026-11-02", "from", "“from” must be before “to”."),
        (
            "window=7d&from=2026-11-01&to=2026-11-02",
            "window",
            "cannot be combined with “from” and “to”",
        ),
        ("from=yesterday&to=2026-11-02", "from", "Use the format 2026-11-20 04:00 (UTC)"),
        ("from=0001-01-01T00:00%2B14:00&to=2026-11-02", "from", "from 1970 on"),
        ("from=2026-11-01T00:00:00.5Z&to=2026-11-02", "from", "without fractions of a second"),
        ("tier=4", "tier", "tier “4” is not known: use 0, 1, 2 or 3."),
        ("source_tier=!4", "source_tier", "source_tier “4” is not known: use 0, 1, 2 or 3."),
        ("ip_version=5", "ip_version", "ip_version “5” is not known: use 4 or 6."),
        ("origin=mars", "origin", "use all, external, production or test."),
        (
            "origin=!all",
            "origin",
            "origin “!all” excludes everything: exclude individual values instead.",
        ),
        ("compare.origin=!all", "compare.origin", "compare.origin “!all” excludes everything"),
        ("mode=shove", "mode", "mode “shove” is not known: use pull or push."),
        ("concurrent=1", "concurrent", "concurrent “1” is not known: use none, some or unknown."),
        ("concurrent=!0", "concurrent", "concurrent “0” is now called none."),
        (
            "compare.beside=0",
            "compare.beside",
            "The parameter “compare.beside” is now called compare.concurrent.",
        ),
        ("streams=0", "streams", "streams “0” is not a whole number from 1 to 9999."),
        ("streams=²", "streams", "is not a whole number"),
        ("cloud=%00", "cloud", "cloud must be 1 to 80 printable characters"),
        ("label=!", "label", "label must be 1 to 80 printable characters"),
        (f"cloud={'x' * 81}", "cloud", "1 to 80 printable characters"),
        (
            "site=Atlantis",
            "site",
            "site “Atlantis” is not known: use the name of a registered site.",
        ),
        ("destination_site=!Atlantis", "destination_site", "the name of a registered site."),
        ("endpoint=X", "endpoint", "use the name of a registered endpoint."),
        ("mesh=X", "mesh", "mesh “X” is not known: use the name of a registered mesh."),
        ("order=size", "order", "order “size” is not known: use name, cloud, tier, average or"),
        ("order=name&order=tier", "order", "“order” is given 2 times: give it only once."),
        ("transpose=yes", "transpose", "transpose “yes” is not known: use 1."),
        ("wall=0", "wall", "wall “0” is not known: use 1."),
        (
            "only=red",
            "only",
            "only “red” is not known: use measured, failing, failed, stale, untested, down, "
            "usual, slower, faster, silent, unknown or partly.",
        ),
        ("only=not_applicable", "only", "only “not_applicable” is not known"),
        ("palette=jet", "palette", "use viridis, cividis, magma or rdylgn."),
        ("scale=log", "scale", "scale “log” is not known: use middle or whole."),
        ("above=much", "above", "above “much” is not a number from 0 up to 10¹²"),
        ("above=nan", "above", "is not a number from 0"),
        ("below=inf", "below", "is not a number from 0"),
        ("below=-1", "below", "is not a number from 0"),
        ("above=5&below=4", "above", "“above” must not be greater than “below”."),
        ("low=0", "low", "low “0” is not a number above 0 up to 10¹²: enter a number"),
        ("high=0", "high", "high “0” is not a number above 0"),
        ("low=5&high=5", "low", "“low” must be less than “high”."),
    ],
)
def test_a_bad_value_is_answered_with_a_sentence_that_names_the_parameter(
    text, parameter, sentence
):
    found = sentences(text)
    assert list(found) == [parameter]
    assert sentence in found[parameter][0]


def test_all_bad_parameters_are_named_at_once():
    assert set(sentences("size=giant&stat=mode&tier=9&x=1&x=2")) == {"size", "stat", "tier", "x"}
    assert set(sentences("order=x&low=x&only=x&wall=2")) == {"order", "low", "only", "wall"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Mean rate of large-file transfers, the last 7 days"),
        (
            "stat=success&size=small&window=24h&rows=site&columns=cloud",
            "Share of small-file transfers that succeeded, the last 24 hours, from site to cloud",
        ),
        (
            "from=2026-11-01&to=2026-11-02T04:05:06Z",
            "Mean rate of large-file transfers, 1 Nov 00:00 to 2 Nov 2026 04:05:06 UTC",
        ),
        (
            "source_cloud=UK&source_cloud=DE&destination_site=!RAL&site=DESY&ip_version=6",
            "Mean rate of large-file transfers, the last 7 days, "
            "only from or to site DESY, not to site RAL, only from cloud DE or UK, "
            "only with IP version 6",
        ),
        (
            "concurrent=none&mode=push&mover=!fake",
            "Mean rate of large-file transfers, the last 7 days, "
            "not with mover fake, only with mode push, only measured without concurrent tests",
        ),
        (
            "concurrent=some&concurrent=unknown&concurrent=!none",
            "Mean rate of large-file transfers, the last 7 days, "
            "only measured with concurrent tests or without a record of concurrent tests, "
            "not measured without concurrent tests",
        ),
    ],
)
def test_a_query_describes_itself_in_a_sentence(small_world, text, sentence):
    assert asked(text).describe() == sentence


def test_a_preset_replaces_both_bounds_and_a_filter_can_be_taken_away(small_world):
    query = asked("from=2026-11-01&to=2026-11-02&cloud=UK&cloud=!DE")
    assert matrix_url(query.replace(window="24h")) == "/?window=24h&cloud=UK&cloud=!DE"
    assert matrix_url(query.without(query.filters[0])).endswith("&cloud=!DE")


numbers = st.one_of(
    st.none(), st.integers(1, int(LARGEST)).map(float), st.floats(1e-9, LARGEST, allow_nan=False)
)
pairs = st.tuples(numbers, numbers).map(
    lambda pair: sorted(pair) if None not in pair and pair[0] != pair[1] else [pair[0], None]
)


@given(
    order=st.sampled_from(ORDERS),
    transpose=st.booleans(),
    wall=st.booleans(),
    only=st.sets(st.sampled_from(LOOKS)),
    palette=st.sampled_from(["", *PALETTES]),
    scale=st.sampled_from(SCALES),
    focus=pairs,
    colours=pairs,
    stat=st.sampled_from(STATS),
)
def test_every_display_survives_its_own_url(
    order, transpose, wall, only, palette, scale, focus, colours, stat
):
    one = Display(
        order=order,
        transpose=transpose,
        only=tuple(state for state in LOOKS if state in only),
        above=focus[0],
        below=focus[1],
        palette=palette,
        scale=scale,
        low=colours[0],
        high=colours[1],
        wall=wall,
    )
    again = Display.from_params(one.to_params(), stat)
    assert again == one
    assert again.to_params() == one.to_params()


def test_defaults_are_left_out_and_states_stand_in_one_order():
    assert display_of("order=name&scale=middle&transpose=&only=&low=&palette=").to_params() == {}
    assert display_of("only=stale&only=failed&only=stale").to_params() == {
        "only": ["failed", "stale"]
    }
    assert display_of("wall=1&high=10.0&below=0.50").to_params() == {
        "below": ["0.5"],
        "high": ["10"],
        "wall": ["1"],
    }


def test_a_bound_of_zero_is_a_bound():
    assert display_of("above=0").above == 0
    assert display_of("above=-0.0").to_params() == {"above": ["0"]}
    assert display_of("above=0").focuses
    assert display_of("above=0").to_params() == {"above": ["0"]}


def test_colours_of_a_share_may_begin_at_zero():
    assert display_of("low=0&high=50", "success").low == 0
    assert "low" in sentences("low=0&high=50&stat=median")


def test_numbers_of_another_unit_are_dropped_with_the_statistic_that_they_were_meant_for():
    text = "above=5&below=50&low=1&high=10&order=tier&unit="
    assert display_of(text + "MB/s", "mean") == display_of(text)
    assert display_of(text + "MB/s", "p95") == display_of(text)
    assert display_of(text + "MB/s", "success") == Display(order="tier")
    assert display_of(text + "%25", "success") == display_of(text)


def test_a_focus_is_taken_away_as_one():
    focused = display_of("only=failed&above=1&below=2&order=tier")
    assert focused.focuses
    assert focused.unfocused() == Display(order="tier")
    assert not focused.unfocused().focuses


def test_displays_have_fingerprints_of_their_own():
    some = [Display(), Display(transpose=True), Display(low=1), Display(only=("failed",))]
    assert len({one.fingerprint for one in some}) == len(some)
    assert Display().fingerprint == display_of("order=name").fingerprint


@given(st.floats(0, LARGEST))
def test_a_number_is_read_as_it_was_written(value):
    assert float(number_text(value)) == value


@pytest.mark.parametrize("route", OF_MESSAGES)
def test_what_messages_lead_to_is_where_the_routes_lead(route):
    names = ["A&B ä:%~{}", "x+y@(z)"] if route != "incident" else [7]
    names = names[: OF_MESSAGES[route].count("{}")]
    assert address(route, *names) == reverse(route, args=names)
