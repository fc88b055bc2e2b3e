"""What is dear is built once for all who ask for it, and never older than its version."""

import gzip
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest
from cachetools import LRUCache
from django.contrib.auth.models import User
from django.test import Client

from matrix.answers.matrix import grid
from matrix.answers.table import link_table
from matrix.api import links, matrix_formats
from matrix.http import compression
from matrix.store import cache
from matrix.store.cache import Kept
from sonar.models import SizeClass
from tests.matrix import world
from tests.matrix.responses import statements
from tests.matrix.world import NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
MATRIX = "/api/v1/matrix/"
LINKS = "/api/v1/links/"
# So much that it is compressed.
MANY = 20
DEADLINE_SECONDS = 60


@pytest.fixture
def builds(monkeypatch) -> list[str]:
    """Note what is built from results, and what is written of it."""
    noted: list[str] = []
    for module, name in (
        (grid, "compute"),
        (link_table, "reduce_links"),
        (matrix_formats, "as_json"),
        (links, "records"),
    ):
        original = getattr(module, name)

        def noting(*args: Any, of: Callable[..., Any] = original, **more: Any) -> Any:
            noted.append(of.__name__)
            return of(*args, **more)

        monkeypatch.setattr(module, name, noting)
    return noted


@pytest.fixture
def large(small_world) -> World:
    site = world.Site.objects.create(name="CERN", cloud="CERN")
    with world.transfers() as some:
        for number in range(MANY):
            some.add(small_world.ral, world.endpoint(f"CERN-{number}", site), 5.0)
            some.add(world.endpoint(f"CERN-B-{number}", site), small_world.ral, 6.0)
    return small_world


def ask(client: Client, *urls: str) -> None:
    for url in urls:
        assert client.get(url).status_code == 200, url


def test_a_page_with_its_numbers_and_its_call_cost_one_grid(client, small_world, builds):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    every = ("/", "/cells/", MATRIX, f"{MATRIX}?format=csv", "/?wall=1", "/cells/?transpose=1")
    ask(client, *every)
    assert builds.count("compute") == 1
    transfer(small_world.ral, small_world.glasgow, 5.0)
    ask(client, *every)
    assert builds.count("compute") == 2
    ask(client, "/?stat=max", "/cells/?stat=max")
    assert builds.count("compute") == 3


def test_a_grid_that_has_more_serves_who_needs_less_and_not_the_other_way_round(
    client, small_world, builds
):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    ask(client, MATRIX, f"{MATRIX}?format=csv", "/cells/", "/", MATRIX)
    assert builds.count("compute") == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda some: transfer(some.ral, some.desy, 1.0),
        lambda some: world.Mesh.objects.filter(id=some.mesh.id).update(priority=9),
        lambda some: world.downtime(endpoint=some.ral),
        lambda some: SizeClass.objects.filter(name="large").update(name="huge"),
    ],
)
def test_nothing_that_is_kept_is_older_than_a_change(client, small_world, builds, change):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    before = [client.get(url).content for url in (MATRIX, LINKS)]
    builds.clear()
    change(small_world)
    assert all(
        client.get(url).content != old for url, old in zip((MATRIX, LINKS), before, strict=True)
    )
    assert {"compute", "reduce_links"} <= set(builds)


def test_links_of_four_clouds_in_turn_cost_one_reduction_and_each_answer_is_written_once(
    client, small_world, builds
):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    clouds = [f"{LINKS}?source_cloud={cloud}" for cloud in ("UK", "DE", "!UK", "nowhere")]
    for _ in range(3):
        ask(client, *clouds)
    assert builds.count("reduce_links") == 1
    assert builds.count("records") == len(clouds)
    ask(client, "/table/?cloud=UK&search=disk", f"{LINKS}?format=csv", f"{LINKS}?size=small")
    assert builds.count("reduce_links") == 1
    ask(client, f"{LINKS}?streams=4")
    assert builds.count("reduce_links") == 2


def test_compressed_bytes_are_made_once_for_all_who_ask(client, large, builds, monkeypatch):
    made: list[int] = []
    compress = compression.igzip.compress

    def noted(content: bytes, *more: Any, **named: Any) -> bytes:
        made.append(len(content))
        return compress(content, *more, **named)

    monkeypatch.setattr(compression.igzip, "compress", noted)
    headers = {"accept-encoding": "gzip"}
    client.force_login(User.objects.create_user("shifter"))
    for url in (MATRIX, LINKS):
        plain = client.get(url)
        mine = client.get(url, headers=headers)
        others = Client().get(url, headers=headers)
        assert gzip.decompress(mine.content) == gzip.decompress(others.content) == plain.content
        # The bytes are the same; who may keep them is not.
        assert others["Cache-Control"] == "no-cache"
        assert mine["Cache-Control"] == plain["Cache-Control"] == "private, no-cache"
        for response in (mine, others):
            assert response["Content-Encoding"] == "gzip"
            assert response["Content-Length"] == str(len(response.content))
            assert response["ETag"] == f"W/{plain['ETag']}"
            assert set(response["Vary"].split(", ")) >= {
                "Accept-Encoding",
                "Authorization",
                "Cookie",
            }
    assert len(made) == 2
    assert builds.count("as_json") == 2  # one for each encoding


def test_an_answer_that_names_its_host_is_not_shared_between_hosts(client, small_world, settings):
    settings.ALLOWED_HOSTS = ["one.example.org", "other.example.org"]
    for host in settings.ALLOWED_HOSTS:
        found = client.get(f"{LINKS}?page_size=1", headers={"host": host}).json()
        assert found["next"].startswith(f"http://{host}/")


def test_who_may_not_read_gets_nothing_of_what_is_kept(client, small_world, settings):
    ask(client, MATRIX, LINKS, "/cells/")
    settings.SONAR_PUBLIC_READ = False
    for url in (MATRIX, LINKS, "/cells/"):
        assert client.get(url).status_code == 401


def test_a_question_is_read_once_until_the_registry_changes(client, small_world):
    url = f"{MATRIX}?source_site=RAL"
    ask(client, url)
    assert len(statements(client.get, url)) == 1
    # Not even its parameters are taken apart.
    assert "GET" not in vars(client.get(url).wsgi_request)
    world.Site.objects.filter(name="RAL").update(name="Chilton")
    assert client.get(url).status_code == 400
    world.Site.objects.filter(name="Chilton").update(name="RAL")
    ask(client, url)


def test_a_refused_question_is_read_anew(client, small_world):
    url = f"{MATRIX}?source_site=CERN"
    assert client.get(url).status_code == 400
    world.endpoint("CERN_DATADISK", world.Site.objects.create(name="CERN"))
    ask(client, url)


def test_what_is_kept_cannot_be_written_to(small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    query = grid.MatrixQuery()
    answered = grid.build(query, NOW, whole=True)
    table = link_table.build(query, NOW)
    arrays = [answered.cells.mean, answered.cells.extras["median"], answered.averages.row]
    arrays += [table.links.source, table.links.classes["large"]["ok"]]
    for values in arrays:
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 0


def test_one_thread_builds_and_those_that_want_another_answer_do_not_wait():
    kept: Kept[int] = Kept(LRUCache(10))
    begun, may_end = Event(), Event()
    built: list[str] = []
    both = Barrier(2)

    def slow() -> int:
        built.append("slow")
        begun.set()
        assert may_end.wait(DEADLINE_SECONDS)
        return 1

    def same() -> int:
        both.wait(DEADLINE_SECONDS)
        return kept.get("slow", slow)

    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(kept.get, "slow", slow)
        assert begun.wait(DEADLINE_SECONDS)
        others = [threads.submit(same) for _ in range(2)]
        assert kept.get("another", lambda: 2) == 2
        may_end.set()
        assert [first.result(), *(one.result() for one in others)] == [1, 1, 1]
    assert built == ["slow"]


def test_who_waited_for_a_build_that_failed_builds_it():
    kept: Kept[int] = Kept(LRUCache(10))
    begun, may_fail = Event(), Event()

    def failing() -> int:
        begun.set()
        assert may_fail.wait(DEADLINE_SECONDS)
        raise RuntimeError("the database is away")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(kept.get, "a", failing)
        assert begun.wait(DEADLINE_SECONDS)
        second = threads.submit(kept.get, "a", lambda: 1)
        may_fail.set()
        with pytest.raises(RuntimeError):
            first.result()
        assert second.result() == 1


def test_answers_are_bounded_in_bytes_and_the_one_used_longest_ago_goes():
    answers = cache.answers_up_to(1)

    def build(key: str, kilobytes: int) -> None:
        answers.get(key, lambda: np.zeros(kilobytes * 1024, dtype=np.uint8))

    for key in ("a", "b", "c"):
        build(key, 300)
    build("a", 300)
    build("d", 300)
    assert {key for key in "abcd" if key in answers} == {"a", "c", "d"}
    build("huge", 1025)
    assert {key for key in ("a", "c", "d", "huge") if key in answers} == {"a", "c", "d"}


def test_nothing_is_kept_where_nothing_may_be():
    answers = cache.answers_up_to(0)
    assert answers.get("a", lambda: np.zeros(1)).size == 1
    assert "a" not in answers


def test_a_grid_and_a_table_say_what_they_take(small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    query = grid.MatrixQuery()
    cells = grid.build(query, NOW).cells
    # The value is the mean; counts, rates, times, states; how cells are now, and how many links.
    assert grid.build(query, NOW).nbytes == cells.mean.size * (8 * 8 + 10 * 4 + 4) + 8 * sum(
        cells.mean.shape
    )
    table = link_table.build(query, NOW)
    assert table.links.nbytes == 357 * len(table) == 357 * 12
