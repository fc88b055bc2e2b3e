"""How a link table is narrowed, ordered and paged by the parameters of a URL."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.http import QueryDict

from matrix.answers.table import table_query
from matrix.answers.table.link_table import LinkTable
from matrix.answers.table.table_query import TableQuery
from matrix.query.forms import PARAMETERS, BadQueryError
from sonar.notation.windows import preset
from tests.matrix import many_links
from tests.matrix.world import NOW

pytestmark = pytest.mark.django_db
SIZES = ["small", "medium", "large"]
TABLE = many_links.table(12)


def read(text: str) -> TableQuery:
    return table_query.read(QueryDict(text), SIZES)[1]


def changed(**changes: Any) -> LinkTable:
    """Return the table with some of its columns changed."""
    return LinkTable(dataclasses.replace(TABLE.links, **changes))


def found(text: str) -> list[int]:
    return sorted(read(text).rows(TABLE, NOW).tolist())


def those(flags: np.ndarray) -> list[int]:
    return np.flatnonzero(flags).tolist()


def test_no_parameter_of_a_listing_is_one_of_a_query():
    # Of a matrix it takes the values of cells away, of a listing the links: by the same rule.
    assert set(PARAMETERS) & set(table_query.parameters(SIZES)) == {"max_age"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "search=UK+t2&ordering=-large.mean_mb_s",
        "source.has=RAL&source.tier.is=2&large.mean_mb_s.min=5&page=3&per_page=25",
        "large.size_mean_bytes.max=1.5GB&large.age.max=6h&priority.min=5",
    ],
)
def test_parameters_are_written_as_they_were_read(text: str):
    assert read(text).params() == dict(QueryDict(text).lists())


def test_defaults_and_empty_fields_are_left_out():
    listed = read("search=+&source.has=&ordering=source&page=1&per_page=50&large.ok.min=")
    assert listed == TableQuery()
    assert listed.params() == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "ordering=large.nothing",
            "ordering “large.nothing” is not known: use source, destination",
        ),
        ("per_page=51", "per_page “51” is not known: use 25, 50, 100, 250 or 1000."),
        ("page=0", "page “0” is not a whole number of at least 1."),
        ("page=a", "page “a” is not a whole number of at least 1."),
        ("source.tier.is=4", "source.tier.is “4” is not a tier: use 0, 1, 2 or 3."),
        ("large.ok.min=-1", "large.ok.min “-1” is not a number of 0 or more, for example, 12.5."),
        ("large.mean_mb_s.max=nan", "large.mean_mb_s.max “nan” is not a number"),
        ("large.mean_mb_s.max=1e3", "large.mean_mb_s.max “1e3” is not a number"),
        ("large.mean_mb_s.max=٣", "large.mean_mb_s.max “٣” is not a number"),
        (
            "large.size_mean_bytes.min=1PB",
            "is not a size: enter a number of bytes, or a number with",
        ),
        ("large.age.max=soon", "large.age.max “soon” is not an age: enter a number of seconds, or"),
        ("large.age.max=²", "large.age.max “²” is not an age"),
        ("max_age=soon", "max_age “soon” is not an age"),
        ("large.ok.min=1&large.ok.min=2", "“large.ok.min” is given 2 times: give it only once."),
        ("min_mb_s=1&large.mean_mb_s.min=2", "“min_mb_s” is given 2 times: give it only once."),
        ("search=%00", "search “\x00” is not at most 200 printable characters."),
        (f"source.has={'x' * 201}", "is not at most 200 printable characters."),
        ("giant.ok.min=1", "There is no parameter “giant.ok.min”"),
        ("source.nothing.has=1", "There is no parameter “source.nothing.has”"),
    ],
)
def test_a_bad_value_is_said_with_its_parameter_and_what_is_allowed(text: str, sentence: str):
    with pytest.raises(BadQueryError, match=r".") as caught:
        read(text)
    assert sentence in str(caught.value)


def test_text_is_contained_without_regard_to_case():
    assert found("source.has=site-1") == those(np.isin(TABLE.source, [0, 9, 10, 11]))
    assert found("destination.site.has=SITE-12") == those(TABLE.destination == 11)
    assert found("destination.cloud.has=c3") == those(TABLE.destination == 2)
    assert found("source.country.has=fr") == []
    assert len(found("source.label.has=disk")) == len(TABLE)


def test_a_tier_is_exact():
    assert found("source.tier.is=1") == those(np.isin(TABLE.source, [0, 4, 8]))


@pytest.mark.parametrize("name", ["mean_mb_s", "std_mb_s", "ok", "failed", "size_mean_bytes"])
def test_a_number_is_at_least_and_at_most_and_none_is_neither(name: str):
    values = TABLE.column(f"large.{name}")
    bound = float(np.nanmedian(values))
    assert found(f"large.{name}.min={bound:.9f}") == those(values >= float(f"{bound:.9f}"))
    assert found(f"large.{name}.max={bound:.9f}") == those(values <= float(f"{bound:.9f}"))


def test_sizes_and_ages_may_have_units():
    assert found("large.size_mean_bytes.min=2GB") == those(TABLE.column("large.ok") > 0)
    assert found("large.size_mean_bytes.min=2.001+GB") == []
    recent = those(TABLE.column("small.last_ok") >= NOW.timestamp() - 6 * 3600)
    assert found("small.age.max=6h") == found("small.age.max=21600") == recent


def test_the_short_names_speak_of_the_size_class_of_the_query():
    assert found("min_mb_s=9") == found("large.mean_mb_s.min=9")
    assert found("size=small&min_mb_s=9&max_mb_s=12") == found(
        "small.mean_mb_s.min=9&small.mean_mb_s.max=12"
    )
    assert found("max_age=3600") == found("large.age.max=1h")


def test_all_conditions_and_the_search_must_hold():
    both = set(found("source.cloud.has=c1")) & set(found("large.ok.min=5"))
    assert set(found("source.cloud.has=c1&large.ok.min=5")) == both
    assert set(found("source.cloud.has=c1&search=site-7")) <= set(found("source.cloud.has=c1"))


def test_rows_come_in_the_order_that_was_asked_for():
    rows = read("ordering=-large.mean_mb_s&large.ok.min=1").rows(TABLE, NOW)
    rates = TABLE.column("large.mean_mb_s")[rows]
    assert (np.diff(rates) <= 0).all()
    assert len(rows) == (TABLE.column("large.ok") > 0).sum()


def test_a_changed_listing_begins_with_its_first_page():
    listed = read("page=4&search=x&source.has=y&large.ok.min=3")
    assert listed.replace(ordering="priority").page == 1
    assert listed.replace(page=5).page == 5
    (dropped, kept) = listed.conditions
    assert listed.without(dropped) == TableQuery(search="x", conditions=(kept,))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("source.has=RAL", "from endpoint with “RAL”"),
        ("destination.cloud.has=UK", "to cloud with “UK”"),
        ("destination.tier.is=2", "to tier 2"),
        ("large.mean_mb_s.min=5", "large mean rate (MB/s) at least 5"),
        ("priority.max=3", "priority at most 3"),
        ("large.age.max=6h", "large age of the last success at most 6h"),
    ],
)
def test_a_condition_says_itself_in_words(text: str, words: str):
    assert [one.words() for one in read(text).conditions] == [words]


def test_ages_count_from_the_moment_of_the_question():
    later = datetime.fromtimestamp(NOW.timestamp() + 86_400, UTC)
    table = changed(window=preset("7d", later))
    assert read("large.age.max=1d").rows(TABLE, NOW).size > 0
    assert read("large.age.max=1d").rows(table, later).size == 0


def test_ages_in_a_window_that_is_past_count_from_its_end():
    later = NOW + timedelta(days=30)
    young = read("large.age.max=1d").rows(TABLE, later)
    assert young.tolist() == read("large.age.max=1d").rows(TABLE, TABLE.window.end).tolist()
    assert young.size > 0


def test_an_age_is_that_of_the_last_success():
    dead = TABLE.links.classes["large"] | {
        "last_ok": np.full(len(TABLE), NOW.timestamp() - 86_400),
        "last_failed": np.full(len(TABLE), NOW.timestamp() - 60),
    }
    table = changed(classes=TABLE.links.classes | {"large": dead})
    assert read("max_age=6h").rows(table, NOW).size == 0
    assert read("max_age=25h").rows(table, NOW).size == len(table)
    never = dead | {"last_ok": np.full(len(TABLE), np.nan)}
    table = changed(classes=TABLE.links.classes | {"large": never})
    assert read("max_age=25h").rows(table, NOW).size == 0
