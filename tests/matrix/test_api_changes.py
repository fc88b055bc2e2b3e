"""The call of changes of level: what it lists, narrows down, and says."""

from datetime import timedelta
from functools import partial
from urllib.parse import urlsplit

import pytest
from django.http import QueryDict
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.events.questions import ChangesQuestion
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Annotation, Downtime, Endpoint, SizeClass
from sonar.notation.windows import Window, parse_time
from sonar.people.roles import Role
from tests.matrix import changed, responses
from tests.matrix.changed import change
from tests.matrix.registry import caller
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

API = "/api/v1/changes/"
DAY = timedelta(days=1)


@pytest.fixture
def some_changes(small_world: World) -> World:
    """One of each kind: a link, a source, a destination, and all links together."""
    ral, glasgow, desy = small_world.ral, small_world.glasgow, small_world.desy
    change(ral, glasgow, 0.5, DAY)
    change(glasgow, None, 2.0, 2 * DAY)
    change(None, desy, 0.25, 3 * DAY)
    change(None, None, 0.7, 4 * DAY, size="small")
    change(desy, ral, 0.9, 5 * DAY, sure=False, chance=0.008)
    change(ral, desy, 0.4, 50 * DAY)
    changed.searched()
    return small_world


def kinds(client: Client, text: str = "") -> list[str]:
    return [each["kind"] for each in responses.answer(client, f"{API}{text}")["changes"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["link", "source", "destination", "grid"]),
        ("?size=large", ["link", "source", "destination"]),
        ("?size=small", ["grid"]),
        ("?kind=source", ["source"]),
        ("?level=faster", ["source"]),
        ("?level=slower", ["link", "destination", "grid"]),
        ("?factor=2", ["link", "source", "destination"]),
        ("?factor=2.01", ["destination"]),
        ("?level=slower&factor=1.5", ["link", "destination"]),
        ("?sure=any", ["link", "source", "destination", "grid", "link"]),
        ("?window=90d", ["link", "source", "destination", "grid", "link"]),
        ("?window=24h", []),
        ("?from=2026-11-17T00:00:00Z&to=2026-11-18T00:00:00Z", ["destination"]),
        # A destination has links from RAL, a source has none; the grid has all.
        ("?source_site=RAL", ["link", "destination", "grid"]),
        ("?destination_cloud=UK", ["link", "source", "grid"]),
        ("?site=!DESY", ["link", "source", "grid"]),
        ("?endpoint=DESY_SCRATCHDISK", ["source", "destination", "grid"]),
        ("?source_site=Glasgow&source_site=RAL", ["link", "source", "destination", "grid"]),
    ],
)
def test_parameters_narrow_it_down(client, some_changes, text, expected):
    assert kinds(client, text) == expected


def test_a_sentence_can_be_quoted(client, some_changes):
    sentences = [each["sentence"] for each in responses.answer(client, API)["changes"]]
    assert sentences == [
        "Large files from RAL_DATADISK to Glasgow_DATADISK: 0.50× (0.40–0.62) since 19 Nov "
        "12:00 UTC, 40.0 to 20.0 MB/s, n = 56 before and 58 since, p < 0.001.",
        "Glasgow_DATADISK sends large files at 2.00× (1.60–2.50) since 18 Nov 12:00 UTC, 3 links"
        ", "
        "n = 56 before and 58 since, p < 0.001.",
        "DESY_DATADISK receives large files at 0.25× (0.20–0.31) since 17 Nov 12:00 UTC, "
        "3 links, n = 56 before and 58 since, p < 0.001.",
        "All links together move small files at 0.70× (0.56–0.88) since 16 Nov 12:00 UTC, "
        "3 links, n = 56 before and 58 since, p < 0.001.",
    ]


def test_json_csv_and_ndjson_have_the_same(client, some_changes):
    answer = responses.answer(client, f"{API}?level=slower")
    assert answer["query"]["level"] == "slower"
    assert answer["query"]["sure"] == "yes"
    assert answer["searched"]["large"] == "2026-11-20T11:40:30Z"
    first = answer["changes"][0]
    assert (first["before_mb_s"], first["after_mb_s"], first["factor"]) == (40.0, 20.0, 0.5)
    assert (first["earliest"], first["at"]) == ("2026-11-19T11:00:30Z", "2026-11-19T12:00:30Z")
    lines = responses.csv_rows(client, f"{API}?level=slower&format=csv")
    assert [line["kind"] for line in lines] == ["link", "destination", "grid"]
    assert list(lines[0]) == list(first)
    assert lines[0]["sentence"] == first["sentence"]
    assert lines[0]["sure"] == "True"
    ndjson = client.get(f"{API}?level=slower&format=ndjson")
    assert ndjson.content.count(b"\n") == 3


def test_each_change_leads_to_before_and_after_it(client, some_changes):
    """Up to 7 days of the new level, which began with the change, and the 7 days before it."""
    paths = "/links/RAL_DATADISK/Glasgow_DATADISK/", "/sites/Glasgow/", "/sites/DESY/", "/"
    listed = responses.answer(client, API)["changes"]
    for path, one in zip(paths, listed, strict=True):
        address = urlsplit(one["comparison_url"])
        url = f"{address.path}?{address.query}"
        assert (address.netloc, address.path) == ("testserver", path)
        query = MatrixQuery.from_params(QueryDict(address.query))
        at, end = parse_time(one["at"]), NOW.replace(second=0) + timedelta(minutes=1)
        assert query.bounds == Window(at, min(end, at + timedelta(days=7)))
        assert query.compare
        assert (query.compare.start, query.compare.end) == (at - timedelta(days=7), at)
        assert query.size == one["size"]
        assert client.get(url).status_code == 200


def test_a_change_of_a_clock_ahead_can_be_compared(client, small_world):
    change(small_world.ral, small_world.glasgow, ago=-timedelta(seconds=20))
    (one,) = responses.answer(client, API)["changes"]
    assert client.get(one["comparison_url"]).status_code == 200


def test_pages_follow_each_other_without_gaps(client, small_world):
    for number in range(55):
        # Five at each moment: the id tells them apart.
        change(small_world.ral, small_world.glasgow, ago=(number // 5 + 1) * HOUR)
    pages = responses.pages(client, f"{API}?page_size=7")
    seen = [each["id"] for page in pages for each in page["changes"]]
    assert len(seen) == len(set(seen)) == 55


def test_notes_and_downtimes_near_a_change_stand_beside_it(client, small_world):
    ral, glasgow = small_world.ral, small_world.glasgow
    change(ral, glasgow, ago=3 * DAY)
    at = NOW - 3 * DAY
    note = partial(Annotation.objects.create, starts_at=at, public=True)
    note(site=ral.site, text="TCP buffers changed", starts_at=at - 2 * HOUR)
    note(source=ral, destination=glasgow, text="for operators", public=False)
    note(site=small_world.desy.site, text="elsewhere")
    note(site=ral.site, text="long ago", starts_at=at - 2 * DAY)
    Downtime.objects.create(
        endpoint=glasgow, starts_at=at - 9 * DAY, ends_at=at - 3 * HOUR, reason="new disks"
    )
    (anyone,) = responses.answer(client, API)["changes"]
    assert anyone["near"] == [
        "17 Nov 10:00 UTC: TCP buffers changed",
        "Glasgow_DATADISK, from 8 Nov 12:00:30 UTC to 17 Nov 09:00:30 UTC: new disks",
    ]
    (seen,) = responses.answer(caller(Role.OPERATOR), API)["changes"]
    texts = [text.rpartition(": ")[2] for text in seen["near"]]
    assert texts == ["for operators", "TCP buffers changed", "new disks"]


@pytest.mark.parametrize(
    ("text", "parameter", "allowed"),
    [
        ("kind=everything", "kind", "use link, source, destination or grid"),
        ("level=up", "level", "use slower or faster"),
        ("sure=maybe", "sure", "use yes or any"),
        ("size=huge", "size", "use small, medium or large"),
        ("factor=0.5", "factor", "a number from 1 to 1000"),
        ("factor=2&factor=3", "factor", "give it once"),
        ("window=2d", "window", "1h, 6h, 24h, 7d, 30d or 90d"),
        ("source_site=Nowhere", "source_site", "Nowhere"),
        ("mover=http-tpc", "mover", "There is no parameter"),
    ],
)
def test_bad_parameters_are_named(client, small_world, text, parameter, allowed):
    response = client.get(f"{API}?{text}")
    assert response.status_code == 400
    assert list(response.json()["errors"]) == [parameter]
    assert allowed in response.json()["errors"][parameter][0]


def test_bad_cursors_are_refused(client, small_world):
    for cursor in ("x", "2026-11-20T00:00:00Z", "2026-11-20T00:00:00Z_9" + "9" * 30):
        assert client.get(f"{API}?cursor={cursor}").status_code == 400


def test_retired_endpoints_keep_their_changes(client, some_changes):
    Endpoint.objects.filter(id=some_changes.glasgow.id).update(retired_at=NOW)
    assert len(kinds(client)) == 4


def test_a_deleted_or_renamed_class_takes_its_changes_along(client, some_changes):
    SizeClass.objects.filter(name="small").update(name="tiny")
    assert kinds(client, "?size=tiny") == ["grid"]


def test_the_number_of_queries_does_not_grow(client, some_changes):
    # The registry is read once for each of its versions.
    client.get(API)
    before = len(responses.statements(client.get, API))
    for number in range(30):
        change(some_changes.ral, some_changes.glasgow, ago=(number + 30) * HOUR)
    assert len(responses.statements(client.get, API)) == before == 7


QUESTIONS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.sampled_from(["small", "large"]),
        "kind": st.sampled_from(["link", "grid"]),
        "level": st.sampled_from(["slower", "faster"]),
        "factor": st.sampled_from(["1", "1.5", "2.250", "1000"]),
        "sure": st.sampled_from(["yes", "any"]),
        "window": st.sampled_from(["7d", "30d", "90d"]),
        "source_site": st.sampled_from(["RAL", "!DESY"]),
    },
)


@given(params=QUESTIONS)
def test_an_address_and_its_question_say_the_same(small_world, params):
    question = ChangesQuestion.read({name: [text] for name, text in params.items()})
    assert ChangesQuestion.read(question.to_params()) == question
    again = QueryDict(mutable=True)
    for name, texts in question.to_params().items():
        again.setlist(name, texts)
    assert ChangesQuestion.read(dict(again.lists())).describe() == question.describe()
