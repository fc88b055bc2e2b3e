"""The results of a window as sorted runs: equal to plain SQL, whatever is sealed."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from django.db import InternalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from psycopg import IsolationLevel

from matrix.query.filters import Filter
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.run import Run
from matrix.store import data_version, runs, segment_columns
from matrix.store.data_version import snapshot
from sonar.models import Endpoint, Profile, Segment, SizeClass, Transfer
from sonar.notation.windows import Window
from sonar.results import sealing
from tests.matrix import world
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
# Midnight between two days, two months and two years.
MIDNIGHT = datetime(2027, 1, 1, tzinfo=UTC)
TODAY = datetime(2026, 11, 20, tzinfo=UTC)
LATER = MIDNIGHT + 30 * DAY
# Ids of endpoints that tests are likely to make, and few enough for numbers to be kept.
NUMBERING = Numbering(np.arange(1, 500))

STATISTICS = """
    SELECT source_id << 16 | destination_id,
        count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'failed'),
        avg(rate), stddev_samp(rate),
        percentile_cont(ARRAY[0.05, 0.5, 0.95]) WITHIN GROUP (ORDER BY rate),
        (extract(epoch FROM max(started_at)) * 1000)::bigint, sum(bytes)
    FROM (
        SELECT *, CASE WHEN state = 'done' THEN (bytes / seconds)::real::float8 END AS rate
        FROM sonar_transfer
    ) AS rated
    WHERE size_class_id = %s AND started_at >= %s AND started_at < %s
      AND state <> 'lost' AND profile_id = ANY(%s)
    GROUP BY 1 ORDER BY 1
"""


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    segment_columns.CACHE.clear()
    yield
    segment_columns.CACHE.clear()


def large() -> int:
    return SizeClass.objects.get(name="large").id


def seal(day: datetime, now: datetime = LATER) -> None:
    sealing.seal_day(large(), day, now)


def read(asked: Window, *filters: Filter, sizes: bool = True) -> tuple[Run, ...]:
    found = runs.read("large", asked, filters, sizes=sizes)
    for run in found:
        assert run.keys.size
        assert np.all(run.keys[1:] >= run.keys[:-1])
        assert run.links.tolist() == sorted(set((run.keys >> np.uint64(32)).tolist()))
        assert len(run.lasts) == len(run.links)
        # What is kept of one window serves the next.
        assert NUMBERING.numbers_of(run).tolist() == NUMBERING.numbers(run.links).tolist()
    return found


def statistics_of(found: Sequence[Run]) -> list[tuple[Any, ...]]:
    """Reduce runs link by link, the plain way."""
    keys = np.concatenate([run.keys for run in found] or [np.empty(0, np.uint64)])
    sizes = np.concatenate([run.sizes for run in found] or [np.empty(0, np.int64)])
    links = keys >> np.uint64(32)
    rates = keys.astype(np.uint32).view(np.float32).astype(np.float64)
    lasts: dict[int, int] = {}
    for run in found:
        lasts |= dict(zip(run.links.tolist(), run.lasts.tolist(), strict=True))
    return [
        one_link(int(link), rates[links == link], sizes[links == link], lasts[int(link)])
        for link in np.unique(links)
    ]


def one_link(link: int, rates: Any, sizes: Any, last: int) -> tuple[Any, ...]:
    ok = rates[rates >= 0]
    return (
        link,
        len(ok),
        len(rates) - len(ok),
        ok.mean() if len(ok) else None,
        ok.std(ddof=1) if len(ok) > 1 else None,
        np.quantile(ok, [0.05, 0.5, 0.95]).tolist() if len(ok) else None,
        last,
        int(sizes.sum()),
    )


def by_sql(asked: Window, *profiles: Profile) -> list[tuple[Any, ...]]:
    ids = [one.id for one in profiles or Profile.objects.all()]
    with connection.cursor() as cursor:
        cursor.execute(STATISTICS, [large(), asked.start, asked.end, ids])
        return cursor.fetchall()


def assert_equal_to_sql(
    asked: Window, *filters: Filter, made: Sequence[Profile] = ()
) -> list[tuple[Any, ...]]:
    found, expected = statistics_of(read(asked, *filters)), by_sql(asked, *made)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[:3] == theirs[:3]
        assert (ours[3] is None, ours[4] is None) == (theirs[3] is None, theirs[4] is None)
        assert numbers(ours[3:5]) == pytest.approx(numbers(theirs[3:5]), rel=1e-9, abs=1e-6)
        assert ours[5] == (pytest.approx(theirs[5], rel=1e-6) if theirs[5] else None)
        assert ours[6:] == theirs[6:]
    return found


def numbers(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def statements(do: Callable[[], Any]) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        do()
    return [one["sql"] for one in captured.captured_queries]


def at(
    source: Endpoint, destination: Endpoint, moment: datetime, rate: float | None = 5.0, **more: Any
) -> Transfer:
    return transfer(source, destination, rate, ago=NOW - moment, **more)


def test_a_result_is_seen_at_once_and_still_when_its_hour_and_day_are_sealed(small_world: World):
    at(small_world.ral, small_world.glasgow, TODAY + 10 * HOUR, 8.0)
    asked = Window(TODAY, TODAY + DAY)
    assert any("sonar_transfer" in sql for sql in statements(lambda: read(asked)))
    expected = assert_equal_to_sql(asked)
    assert expected[0][3] == pytest.approx(8e6)
    # What has the marks that it had is kept.
    assert not any("sonar_transfer" in sql for sql in statements(lambda: read(asked)))
    seal(TODAY, TODAY + 12 * HOUR)
    assert assert_equal_to_sql(asked) == expected
    seal(TODAY)
    assert assert_equal_to_sql(asked) == expected
    assert not any("sonar_transfer" in sql for sql in statements(lambda: read(asked)))


def test_a_late_result_is_seen_beside_the_sealed_ones_of_its_day(small_world: World):
    for hour in range(24):
        at(small_world.ral, small_world.glasgow, TODAY + hour * HOUR, 1.0 + hour)
    seal(TODAY)
    at(small_world.ral, small_world.glasgow, TODAY + 5 * HOUR + timedelta(minutes=1), 100.0)
    found = read(Window(TODAY, TODAY + DAY))
    assert len(found) == 24
    assert sum(run.keys.size for run in found) == 25
    assert_equal_to_sql(Window(TODAY, TODAY + DAY))


def test_an_edited_and_a_deleted_result_are_read_as_they_are_now(small_world: World):
    gone = at(small_world.ral, small_world.glasgow, TODAY, 5.0)
    moved = at(small_world.ral, small_world.desy, TODAY + HOUR, 5.0)
    seal(TODAY)
    gone.delete()
    Transfer.objects.filter(id=moved.id).update(started_at=TODAY - HOUR)
    assert read(Window(TODAY, TODAY + DAY)) == ()
    assert_equal_to_sql(Window(TODAY - DAY, TODAY))
    seal(TODAY)
    assert read(Window(TODAY, TODAY + DAY)) == ()


@pytest.mark.parametrize("sealed", ["nothing", "hours", "day"])
def test_a_window_that_cuts_a_bucket_holds_its_start_and_not_its_end(
    small_world: World, sealed: str
):
    instant = timedelta(milliseconds=1)
    start, end = TODAY + 3.5 * HOUR, TODAY + 20.5 * HOUR
    for rate, moment in enumerate((start - instant, start, end - instant, end), 1):
        at(small_world.ral, small_world.glasgow, moment, float(rate))
    if sealed != "nothing":
        seal(TODAY, TODAY + 22 * HOUR if sealed == "hours" else LATER)
    (found,) = assert_equal_to_sql(Window(start, end))
    assert (found[1], found[3]) == (2, pytest.approx(2.5e6))
    assert {run.keys.size for run in read(Window(start, end))} == {2 if sealed == "day" else 1}


@pytest.mark.parametrize("sealed_until", [0, 30, 48])
def test_runs_are_in_order_of_time(small_world: World, sealed_until: int):
    for hour in range(48):
        at(small_world.ral, small_world.glasgow, TODAY + hour * HOUR)
    sealing.seal(TODAY + sealed_until * HOUR + sealing.GRACE)
    at(small_world.ral, small_world.glasgow, TODAY + 7 * HOUR)
    newest = [int(run.lasts[0]) for run in read(Window(TODAY, TODAY + 2 * DAY))]
    assert newest == sorted(newest)


def test_a_lost_result_is_in_no_run(small_world: World):
    at(small_world.ral, small_world.glasgow, TODAY, None, state="lost")
    assert read(Window(TODAY, TODAY + DAY)) == ()
    seal(TODAY)
    assert read(Window(TODAY, TODAY + DAY)) == ()


def test_sizes_come_only_if_asked_for(small_world: World):
    at(small_world.ral, small_world.glasgow, TODAY)
    asked = Window(TODAY, TODAY + DAY)
    for _ in range(2):
        assert [run.sizes for run in read(asked, sizes=False)] == [None]
        assert [run.sizes.tolist() for run in read(asked) if run.sizes is not None] == [[2 * 10**9]]
        seal(TODAY)


FILTERS = [
    ([Filter("streams", "4")], "fast"),
    ([Filter("streams", "4", True)], "plain other"),
    ([Filter("mover", "xrootd"), Filter("streams", "4")], ""),
    ([Filter("origin", "production"), Filter("origin", "test")], "plain fast other"),
    ([Filter("mesh", "everything", True)], "plain fast"),
    ([Filter("source_site", "RAL")], "plain fast other"),
]


@pytest.mark.parametrize("sealed", ["nothing", "hours", "day"])
@pytest.mark.parametrize(("filters", "names"), FILTERS)
def test_filters_choose_by_how_a_result_was_made_and_leave_links_to_others(
    small_world: World, filters: list[Filter], names: str, sealed: str
):
    made = {
        "plain": world.profile(),
        "fast": world.profile(streams=4),
        "other": Profile.objects.create(mover="xrootd", mesh=small_world.mesh),
    }
    for hour, profile in enumerate(made.values()):
        at(small_world.ral, small_world.glasgow, TODAY + hour * HOUR, 2.0 + hour, made=profile)
        at(small_world.desy, small_world.ral, TODAY + 20 * HOUR, 3.0 * hour or None, made=profile)
    if sealed != "nothing":
        seal(TODAY, TODAY + 22 * HOUR if sealed == "hours" else LATER)
    chosen = [made[name] for name in names.split()] or [Profile(id=0)]
    assert_equal_to_sql(Window(TODAY, TODAY + DAY), *filters, made=chosen)
    assert_equal_to_sql(Window(TODAY + HOUR, TODAY + 21 * HOUR), *filters, made=chosen)


@pytest.mark.parametrize("megabytes", [0, 0.001, 256])
def test_the_cache_changes_nothing_whatever_its_size(
    small_world: World, monkeypatch: pytest.MonkeyPatch, megabytes: float
):
    cache = segment_columns.Cache(int(megabytes * 2**20))
    monkeypatch.setattr(segment_columns, "CACHE", cache)
    for hour in range(72):
        at(small_world.ral, small_world.glasgow, TODAY + hour * HOUR, 1.0 + hour)
    for day in range(3):
        seal(TODAY + day * DAY)
    for asked in (
        Window(TODAY, TODAY + 3 * DAY),
        Window(TODAY + 5 * HOUR, TODAY + 3 * DAY - timedelta(minutes=1)),
    ):
        assert_equal_to_sql(asked)
        assert_equal_to_sql(asked)
    assert bool(cache.bytes) == bool(megabytes)


def test_a_warm_window_fetches_no_column_and_a_wider_one_only_what_is_new(small_world: World):
    for day in range(3):
        at(small_world.ral, small_world.glasgow, TODAY + day * DAY)
        seal(TODAY + day * DAY)
    asked = Window(TODAY, TODAY + 2 * DAY)
    assert len(statements(lambda: read(asked))) == 2
    assert len(statements(lambda: read(asked))) == 1
    *_, columns = statements(lambda: read(Window(TODAY, TODAY + 3 * DAY)))
    newest = Segment.objects.get(level="day", start=TODAY + 2 * DAY)
    assert columns.count(f"'{{{newest.id}}}'") == columns.count("SELECT") == 4


def test_a_window_larger_than_the_cache_finds_there_what_fits(small_world: World):
    found = {segment_columns.Key(one, "keys"): np.zeros(10) for one in range(5)}
    cache = segment_columns.Cache(3 * 80)
    cache.put(found, found.keys())
    assert cache.bytes == 240
    assert [key.segment for key in cache.get(found)] == [0, 1, 2]
    # Another window drives out what was used longest ago.
    cache.get([segment_columns.Key(0, "keys")])
    other = segment_columns.Key(9, "keys")
    cache.put({other: np.zeros(10)}, {other})
    assert sorted(key.segment for key in cache.get([*found, other])) == [0, 2, 9]
    huge = segment_columns.Key(10, "keys")
    cache.put({huge: np.zeros(100)}, {huge})
    assert len(cache.get([*found, other, huge])) == 3


def test_columns_are_aligned_and_cannot_be_written_to(small_world: World):
    for day in range(3):
        at(small_world.ral, small_world.glasgow, TODAY + day * DAY)
        seal(TODAY + day * DAY)
    for run in read(Window(TODAY, TODAY + 3 * DAY)):
        for array in (run.keys, run.links, run.lasts, run.sizes):
            assert array is not None
            assert array.flags.aligned
            assert not array.flags.writeable


def test_four_statements_read_any_window(small_world: World):
    filters = (Filter("streams", "1"),)
    asked = Window(TODAY - 3 * DAY, TODAY + DAY)

    def names() -> list[str]:
        made = statements(lambda: read(asked, *filters))
        tables = ("dirtymark", "profile", "segment", "transfer")
        return [next(name for name in tables if f"sonar_{name}" in sql) for sql in made]

    assert names() == ["dirtymark", "profile"]
    for hour in range(-70, 20, 2):
        at(small_world.ral, small_world.glasgow, TODAY + hour * HOUR)
    sealing.seal(TODAY)
    at(small_world.ral, small_world.glasgow, TODAY - 30 * HOUR)
    assert names() == ["dirtymark", "profile", "transfer", "segment"]


def test_an_hour_is_read_again_when_its_results_have_changed_and_not_before(small_world: World):
    asked = Window(TODAY, TODAY + DAY)

    def reads_rows() -> bool:
        return any("sonar_transfer" in sql for sql in statements(lambda: read(asked)))

    first = at(small_world.ral, small_world.glasgow, TODAY + 10 * HOUR, 8.0)
    assert [reads_rows(), reads_rows()] == [True, False]
    changes: list[Callable[[], object]] = [
        lambda: at(small_world.ral, small_world.glasgow, TODAY + 10 * HOUR, 9.0),
        lambda: Transfer.objects.filter(id=first.id).update(bytes=5),
        lambda: Transfer.objects.filter(id=first.id).delete(),
        lambda: at(small_world.ral, small_world.glasgow, TODAY + 11 * HOUR, 10.0),
    ]
    for change in changes:
        change()
        assert [reads_rows(), reads_rows()] == [True, False]
        assert_equal_to_sql(asked)
    with transaction.atomic():
        at(small_world.ral, small_world.glasgow, TODAY + 10 * HOUR, 11.0)
        assert_equal_to_sql(asked)
        transaction.set_rollback(True)
    assert [reads_rows(), reads_rows()] == [False, False]
    assert_equal_to_sql(asked)


def test_an_unknown_size_class_and_a_window_finer_than_a_millisecond_are_errors(db: None):
    with pytest.raises(ValueError, match="giant"):
        runs.read("giant", Window(TODAY, TODAY + DAY), ())
    with pytest.raises(ValueError, match="millisecond"):
        read(Window(TODAY, TODAY + timedelta(microseconds=1500)))


@pytest.mark.parametrize("sealed", [False, True])
def test_a_window_of_all_time_holds_every_result(small_world: World, sealed: bool):
    at(small_world.ral, small_world.glasgow, TODAY)
    if sealed:
        seal(TODAY)
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert len(assert_equal_to_sql(Window(datetime(1970, 1, 1, tzinfo=UTC), last))) == 1
    assert read(Window(last - HOUR, last)) == ()
    assert data_version.read("large", Window(TODAY, last))


def test_the_fingerprint_changes_with_every_change_in_the_window_and_class(small_world: World):
    asked = Window(TODAY + HOUR + timedelta(minutes=30), TODAY + DAY)
    seen = [data_version.read("large", asked)]

    def changed() -> bool:
        seen.append(data_version.read("large", asked))
        return seen[-1] not in seen[:-1]

    made = at(small_world.ral, small_world.glasgow, TODAY + 2 * HOUR)
    assert changed()
    seal(TODAY, TODAY + 5 * HOUR)
    changed()
    at(small_world.ral, small_world.glasgow, TODAY + 2 * HOUR)
    assert changed()
    seal(TODAY)
    changed()
    Transfer.objects.filter(id=made.id).update(bytes=5)
    assert changed()
    made.delete()
    assert changed()
    at(small_world.ral, small_world.glasgow, TODAY, size="small")
    at(small_world.ral, small_world.glasgow, TODAY + DAY)
    at(small_world.ral, small_world.glasgow, TODAY - timedelta(seconds=1))
    at(small_world.ral, small_world.glasgow, TODAY + timedelta(minutes=59))
    assert not changed()
    at(small_world.ral, small_world.glasgow, TODAY + HOUR + timedelta(minutes=45))
    assert changed()


def elsewhere(do: Callable[[], Any]) -> None:
    """Do something on a connection of its own, and commit."""

    def work() -> None:
        try:
            do()
        finally:
            connection.close()

    thread = Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("where", "stage"), [(runs, "_of_segments"), (segment_columns, "_fetch_raw")]
)
def test_what_is_written_and_sealed_while_a_window_is_read_is_not_in_it(
    real_commits: None, monkeypatch: pytest.MonkeyPatch, where: ModuleType, stage: str
):
    small_world = world.make()
    for hour in range(30):
        at(small_world.ral, small_world.glasgow, TODAY - DAY + hour * HOUR, 1.0 + hour)
    sealing.seal(TODAY + 3 * HOUR)
    asked = Window(TODAY - DAY, TODAY + DAY)
    before = statistics_of(read(asked))
    segment_columns.CACHE.clear()

    def others() -> None:
        at(small_world.ral, small_world.glasgow, TODAY - HOUR, 500.0)
        at(small_world.ral, small_world.glasgow, TODAY + 4 * HOUR, 500.0)
        Transfer.objects.filter(started_at=TODAY - DAY).delete()
        sealing.seal(LATER)

    plain = getattr(where, stage)

    def disturbed(*args: Any, **more: Any) -> Any:
        if connection.in_atomic_block:  # what is in the cache is looked for without
            elsewhere(others)
        return plain(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(where, stage, disturbed)
        assert statistics_of(read(asked)) == before
    assert statistics_of(read(asked)) != before
    assert_equal_to_sql(asked)


def test_what_is_in_the_cache_takes_one_statement_and_no_transaction(
    real_commits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_world = world.make()
    ends = small_world.ral, small_world.glasgow
    for hour in range(-30, 20):
        at(*ends, TODAY + hour * HOUR, 50.0 + hour)
    sealing.seal(LATER)
    aligned, cut = Window(TODAY, TODAY + DAY), Window(TODAY - 3 * HOUR, TODAY + 20 * HOUR)
    for asked in (aligned, cut):
        assert_equal_to_sql(asked)
        before = statistics_of(read(asked))
        (sent,) = statements(lambda asked=asked: read(asked))
        assert "sonar_dirtymark" in sent
        assert statistics_of(read(asked)) == before

    def others() -> None:
        at(*ends, TODAY + 2 * HOUR, 500.0)
        Transfer.objects.filter(started_at=TODAY + HOUR).delete()
        sealing.seal(LATER)

    plain = runs._of_segments

    def disturbed(*args: Any, **more: Any) -> Any:
        elsewhere(others)
        return plain(*args, **more)

    # What has gone from the database meanwhile is still what stood there.
    with monkeypatch.context() as patch:
        patch.setattr(runs, "_of_segments", disturbed)
        assert statistics_of(read(cut)) == before
    assert statistics_of(read(cut)) != before
    assert_equal_to_sql(cut)
    segment_columns.CACHE.clear()
    fetch = segment_columns.fetch

    def in_one_moment(keys: Sequence[segment_columns.Key]) -> Any:
        assert connection.in_atomic_block
        return fetch(keys)

    with monkeypatch.context() as patch:
        patch.setattr(segment_columns, "fetch", in_one_moment)
        assert_equal_to_sql(aligned)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_day_cut_at_its_start_or_end_has_only_the_links_of_what_is_left(
    small_world: World, sealed: bool
) -> None:
    ral, glasgow, desy = small_world.ral, small_world.glasgow, small_world.desy
    for hour in (1, 4, 8, 9, 15, 22):
        at(ral, glasgow, TODAY + hour * HOUR, 5.0 + hour)
    at(ral, desy, TODAY + 2 * HOUR, 5.0)
    at(desy, ral, TODAY + 20 * HOUR, 5.0)
    if sealed:
        seal(TODAY)
    bounds = [(0, 24), (2, 24), (3, 24), (9, 24), (0, 8), (0, 9), (0, 21), (3, 19), (22, 24)]
    for start, end in bounds:
        assert_equal_to_sql(Window(TODAY + start * HOUR, TODAY + end * HOUR))


def test_the_numbers_of_the_links_of_a_segment_are_found_once_for_whole_and_cut_days(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour in (1, 20):
        at(small_world.ral, small_world.glasgow, TODAY + hour * HOUR)
    at(small_world.desy, small_world.ral, TODAY + 2 * HOUR)
    seal(TODAY)
    windows = [Window(TODAY + start * HOUR, TODAY + DAY) for start in (0, 3)]
    (whole,), (cut,) = (runs.read("large", window, ()) for window in windows)
    kept = segment_columns.CACHE.bytes
    links = NUMBERING.numbers(whole.links)
    assert NUMBERING.numbers_of(whole).tolist() == links.tolist()
    assert segment_columns.CACHE.bytes == kept + 4 * len(links)
    monkeypatch.setattr(Numbering, "numbers", None)
    assert NUMBERING.numbers_of(whole).tolist() == links.tolist()
    assert NUMBERING.numbers_of(cut).tolist() == links[whole.links == cut.links].tolist()
    # Of another numbering, with an endpoint more, they are others.
    with pytest.raises(TypeError):
        Numbering(np.arange(500)).numbers_of(whole)


@pytest.mark.long
def test_a_reader_sees_each_batch_of_a_writer_whole_or_not_at_all(real_commits: None):
    small_world = world.make()
    stopped = Event()

    def write() -> None:
        for batch in range(40):
            with transaction.atomic():
                for hour in (-25, -10, 2):
                    at(small_world.ral, small_world.glasgow, TODAY + hour * HOUR, 1.0 + batch)
            if batch % 3 == 0:
                sealing.seal(LATER)
        stopped.set()
        connection.close()

    writer = Thread(target=write)
    writer.start()
    counts = [0]
    while not stopped.wait(0.001):
        counts.append(sum(run.keys.size for run in read(Window(TODAY - 2 * DAY, TODAY + DAY))))
    writer.join()
    assert [count for count in counts if count % 3] == []
    assert counts == sorted(counts)
    assert len(set(counts)) > 3
    assert_equal_to_sql(Window(TODAY - 2 * DAY, TODAY + DAY))


def test_a_snapshot_can_only_read_and_leaves_the_connection_as_it_was(real_commits: None):
    with pytest.raises(InternalError, match="read-only"), snapshot():
        world.make()
    session = connection.connection
    assert (session.isolation_level, session.read_only) == (None, None)
    with snapshot(), connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("repeatable read",)
        assert session.isolation_level == IsolationLevel.REPEATABLE_READ
    world.make()
    assert Endpoint.objects.count() == 4


def ways(asked: Window, *filters: Filter) -> frozenset[int]:
    """Return the profiles that occur, by both ways of telling them."""
    found = runs.profiles_of(runs.read("large", asked, filters, distinct_profiles=True))
    some = runs.read("large", asked, filters, profiles=True)
    places = np.array(sorted(Endpoint.objects.values_list("id", flat=True)), dtype=np.int64)
    every = np.ones((len(places), len(places)), dtype=bool)
    assert runs.profiles_of(some, Numbering(places), every) == found
    assert not runs.profiles_of(some, Numbering(places), ~every)
    return found


@pytest.mark.parametrize("sealed", [False, True])
def test_the_profiles_that_occur_are_those_of_the_window(small_world: World, sealed: bool) -> None:
    early, late, lost = (world.profile(streams=count) for count in (1, 2, 3))
    ends = small_world.ral, small_world.glasgow
    transfer(*ends, 1.0, ago=30 * HOUR, made=early)
    transfer(*ends, None, ago=2 * HOUR, made=late)
    transfer(*ends, 1.0, ago=2 * HOUR, made=lost, state="lost")
    if sealed:
        seal(TODAY)
        seal(TODAY - DAY)
    both, today = Window(TODAY - DAY, TODAY + DAY), Window(TODAY, TODAY + DAY)
    for _ in range(2):  # what is known of a segment by then is as good
        assert ways(both) == {early.id, late.id}
        assert ways(today) == {late.id}
        assert ways(Window(TODAY + 11 * HOUR, TODAY + 12 * HOUR)) == frozenset()
        assert ways(both, Filter("streams", "1")) == {early.id}


def test_profiles_of_whole_segments_are_read_once_and_not_kept(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    transfer(small_world.ral, small_world.glasgow, 1.0)
    seal(TODAY)
    fetched = fetched_columns(monkeypatch)
    for _ in range(2):
        runs.read("large", Window(TODAY, TODAY + DAY), (), distinct_profiles=True)
    assert fetched == [["keys", "lasts", "links", "profiles"]]
    assert segment_columns.CACHE.bytes < 8 + 4 + 8 + 2 + 2


def fetched_columns(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return a list that grows with the columns that each statement fetches."""
    fetched: list[list[str]] = []
    fetch = segment_columns.fetch

    def noted(keys: Sequence[segment_columns.Key]) -> Iterator[tuple[segment_columns.Key, Any]]:
        fetched.append(sorted({key.column for key in keys}))
        return fetch(keys)

    monkeypatch.setattr(segment_columns, "fetch", noted)
    return fetched


@pytest.mark.parametrize("sealed", [False, True])
def test_sweeps_are_left_out_of_whole_cut_and_raw_pieces(small_world: World, sealed: bool) -> None:
    plain, tried = world.profile(), world.profile(streams=8, purpose="sweep")
    ends = small_world.ral, small_world.glasgow
    for hour in range(40):
        at(*ends, TODAY - DAY + hour * HOUR, 5.0 + hour, made=plain)
        moment = TODAY - DAY + hour * HOUR + timedelta(minutes=30)
        at(*ends, moment, 900.0 if hour % 3 else None, made=tried)
    # A link of which there is nothing else.
    at(small_world.desy, small_world.glasgow, TODAY, 900.0, made=tried)
    if sealed:
        seal(TODAY)
        seal(TODAY - DAY)
    for _ in range(2):
        for start, end in ((-24, 24), (0, 24), (-20, 9), (-24, 0), (2, 3)):
            asked = Window(TODAY + start * HOUR, TODAY + end * HOUR)
            assert_equal_to_sql(asked, made=[plain])
            only = Filter("purpose", "sweep")
            assert_equal_to_sql(asked, only, made=[tried])
            both = only, Filter("purpose", "unknown")
            assert_equal_to_sql(asked, *both, made=[plain, tried])
            kept = runs.read(
                "large", asked, (), failures=True, offsets=True, distinct_profiles=True
            )
            assert runs.profiles_of(kept) == {plain.id}
            assert not any(run.newest_failed().links.size for run in kept)
            ends_of = [run.started(np.arange(len(run.keys))).max() for run in kept]
            assert ends_of == [run.lasts.max() for run in kept]


def test_what_sweeps_leave_of_a_segment_is_made_once(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = small_world.ral, small_world.glasgow
    for hour, purpose in enumerate(["", "sweep", ""]):
        at(*ends, TODAY + hour * HOUR, 5.0, made=world.profile(purpose=purpose))
        at(*ends, TODAY - DAY + hour * HOUR, 5.0, made=world.profile())
    seal(TODAY)
    seal(TODAY - DAY)
    fetched, whole = fetched_columns(monkeypatch), Window(TODAY - DAY, TODAY + DAY)
    for _ in range(3):
        assert [run.keys.size for run in runs.read("large", whole, ())] == [3, 2]
    assert fetched == [["profiles"], ["keys", "lasts", "links", "offsets"]]
    assert len(statements(lambda: runs.read("large", whole, ()))) == 1
    # Of that day the columns are kept that are left, of the other those that are there: 20 bytes
    # for each link and each row but one, and where the one stands.
    assert segment_columns.CACHE.bytes == 5 * 8 + 2 * (4 + 8) + 8


def test_where_there_never_was_an_sweep_no_profile_is_looked_at(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(small_world.ral, small_world.glasgow, TODAY, 5.0)
    seal(TODAY)
    fetched = fetched_columns(monkeypatch)
    runs.read("large", Window(TODAY, TODAY + DAY), ())
    assert fetched == [["keys", "lasts", "links"]]
