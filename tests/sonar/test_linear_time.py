"""Input from elsewhere takes time in proportion to its size, or a little more.

Each case would take hours if it took the square of that.
"""

import json
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import FrameType

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from matrix.answers import search
from matrix.answers.words import phrases
from matrix.query import time_words
from sonar.credentials import kinds, uploads
from sonar.models import Endpoint, Site
from sonar.movers import failures, messages
from sonar.movers.http import perf_markers
from sonar.movers.programs import gfal2, gridftp, xrootd
from sonar.notation import addresses
from sonar.notation.addresses import Places
from sonar.notation.enumeration import first_twice
from sonar.records import files
from sonar.redaction import servers
from sonar.registry.downtimes import document
from sonar.registry.file import loading
from sonar.registry.file import reading as registry_file
from sonar.registry.topology import reading

NOW = datetime(2026, 11, 20, tzinfo=UTC)
# Of a processor: a busy machine changes nothing.
SECONDS = 100
MANY = 200_000


@pytest.fixture(autouse=True)
def not_for_hours() -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"not done after {SECONDS} s of a processor")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def test_a_json_object_with_a_name_twice_is_refused():
    names = [f'"k{number}":0' for number in range(MANY)]
    text = f"{{{','.join([*names, names[-1]])}}}"
    assert len(text) > 2_000_000
    with pytest.raises(reading.TopologyError, match=f"'k{MANY - 1}' appears twice in one object"):
        reading.decoded(text.encode(), "rses.json")
    assert json.loads(text)["k0"] == 0


def test_a_header_of_many_columns_is_refused():
    names = [f"column{number}" for number in range(MANY)]
    with pytest.raises(files.BrokenFileError, match="this line must name the columns"):
        files.columns((1, names))
    assert first_twice([*names, "b", "a", "b", "a"]) == "b"
    assert first_twice(names) is None


def test_a_registry_file_of_unknown_names_is_refused_with_their_lines():
    text = "\n".join(f"k{number}: 0" for number in range(20_000))
    with pytest.raises(registry_file.RegistryError) as error:
        registry_file.parse(text)
    assert len(error.value.problems) == 20_000
    assert "k19999 (line 20000)" in error.value.problems[-1]


def one_server(count: int) -> str:
    """Return a registry file with this many endpoints of one server."""
    rows = (
        f"  - {{name: E{number}, site: S, base_url: 'https://s.example.org/disk/{number}'}}"
        for number in range(count)
    )
    return "\n".join(["sites: [{name: S}]", "endpoints:", *rows])


@pytest.mark.django_db
def test_a_registry_file_reads_the_places_of_all_endpoints_once(monkeypatch):
    places, work = addresses.place_of, dict[int, tuple[int, int]]()
    for count in (50, 200):
        read = list[str]()
        monkeypatch.setattr(
            addresses, "place_of", lambda url, read=read: read.append(url) or places(url)
        )
        with CaptureQueriesContext(connection) as queries, transaction.atomic():
            loading.load(one_server(count))
            transaction.set_rollback(True)
        work[count] = len(queries), len(read)
    (few_queries, few_read), (queries_of_all, read_of_all) = work[50], work[200]
    assert queries_of_all <= 4 * few_queries
    assert read_of_all <= 4 * few_read


@pytest.mark.django_db
@pytest.mark.parametrize("model", [Site, Endpoint])
def test_a_name_is_found_in_any_case_by_an_index(model: type[Site | Endpoint]):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    plan = model.objects.filter(name__iexact="s").exclude(name="s").order_by().explain()
    assert f"{model._meta.model_name}_name_in_any_case" in plan


@pytest.mark.django_db
def test_a_registry_file_still_refuses_a_place_inside_another():
    loading.load(one_server(3))
    inside = one_server(2).replace("disk/1", "disk/0/deeper")
    for text in (inside, one_server(2).replace("disk/1", "disk/2/")):
        with pytest.raises(
            registry_file.RegistryError, match=r"base URL overlaps with that of E[02]:"
        ):
            loading.load(text)
    with pytest.raises(registry_file.RegistryError, match="already exists"):
        loading.load(one_server(2).replace("disk/1", "disk/2"))
    swapped = one_server(3).replace("disk/1", "disk/x").replace("disk/2", "disk/1")
    loading.load(swapped.replace("disk/x", "disk/2"))
    assert Endpoint.objects.get(name="E2").base_url.endswith("/disk/1")


@pytest.mark.long
def test_endpoints_of_one_server_are_found_by_their_place():
    places, base = Places(), "https://s.example.org"
    for number in range(30_000):
        url = f"{base}/disk/{number}"
        assert places.at(url) == places.overlapping(url) == ""
        places.add(str(number), url)
    assert places.at(f"{base}/disk//7/") == "7"
    assert places.overlapping(f"{base}/disk/7/deeper", ["8"]) == "7"
    assert places.overlapping(f"{base}/disk/7/deeper", ["7"]) == ""
    assert places.overlapping(f"{base}/disk", ["0", "1"]) == "2"
    places.add("7", f"{base}/elsewhere")
    assert places.overlapping(f"{base}/disk/7/deeper") == ""
    assert places.overlapping(base, [str(number) for number in range(7)]) == "8"


def test_a_key_that_begins_many_times_is_refused():
    begins = "-----BEGIN PRIVATE KEY-----\n" * 2_200
    for text in (begins, "-----BEGIN A" * 5_000, f"-----BEGIN {'A ' * 30_000}"):
        with pytest.raises(uploads.UploadError, match="The file contains no private key"):
            uploads.read(kinds.X509, text.encode(), NOW)
    # Without the limit of an upload, too.
    with pytest.raises(uploads.UploadError):
        uploads.READERS[kinds.X509](begins * 1_000)


@pytest.mark.parametrize("part", ["<a>", "<a/>", '<a b="" c=""/>'])
def test_xml_of_nothing_but_elements_is_refused_before_it_takes_memory(part: str):
    content = f"<results>{part * (1_500_000)}</results>".encode()
    with pytest.raises(document.BadAnswer, match=r"more than (20 levels deep|500,000 elements)"):
        document.root_of(content, "results")


def test_xml_of_as_much_as_there_may_be_is_read():
    content = f"<results>{'<D><S>OUTAGE</S></D>' * 200_000}</results>".encode()
    assert len(document.root_of(content, "results")) == 200_000


def a_date(text: str) -> object:
    with pytest.raises(ValueError, match="too long"):
        return time_words.read_time(text, NOW)
    return None


@pytest.mark.parametrize(
    ("use", "unit"),
    [
        (failures.PATH.findall, "a"),
        (failures.ADDRESS.findall, "a"),
        (perf_markers.ADDRESS.search, "a"),
        (messages.without_secrets, "a"),
        (lambda text: gridftp.ANNOUNCED.sub("", text), "\n"),
        (xrootd.VERSION.search, "\n"),
        (lambda text: gfal2.TYPE.match(f"event: [1] BOTH x TRANSFER:TYPE {text}"), " "),
        (servers.CUT.search, "a"),
        (search.BETWEEN.split, " "),
        (search.UNFINISHED.search, " "),
        (phrases.BEFORE_QUOTE.findall, " "),
        (a_date, " 1"),
        (a_date, " "),
    ],
)
def test_a_long_text_is_searched_once(use: Callable[[str], object], unit: str):
    use(f"1{unit * (1_000_000 // len(unit))}x")
