"""sonar_client.py as a library: tables, streams, and what it does where all is not well."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import requests
import sonar_client
from pytest_django import Settings
from redis import Redis
from sonar_client import Sonar, SonarError

from sonar.models import Transfer
from tests.examples.conftest import result
from tests.examples.road import Road
from tests.matrix.world import World


@pytest.fixture
def sonar(url: str, token: str) -> Sonar:
    return Sonar(url, token)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Do not really wait; return for how long it would have been."""
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    return waits


def test_a_token_is_sent_as_what_it_is() -> None:
    for token, header in (("sonar_12", "Token sonar_12"), ("eyJh.b.c", "Bearer eyJh.b.c")):
        asking = requests.Request("GET", "http://localhost:9/").prepare()
        sent = Sonar("http://localhost:9", token)._session.auth(asking)
        assert sent.headers["Authorization"] == header


def test_the_matrix_is_a_table_of_sources_by_destinations(sonar: Sonar) -> None:
    frame = sonar.matrix(window="24h")
    assert frame.loc["Glasgow_DATADISK", "RAL_DATADISK"] == pytest.approx(52.0)
    assert np.isnan(frame.loc["RAL_DATADISK", "Glasgow_DATADISK"])
    assert set(frame.dtypes.astype(str)) == {"float64"}
    assert frame.attrs["unit"] == "MB/s"
    assert frame.attrs["average"] == pytest.approx((52 + 2.6 + 30) / 3)
    assert sonar.matrix("ok", window="24h").loc["DESY_DATADISK", "RAL_DATADISK"] == 3
    assert sonar.matrix("state", window="24h").loc["Glasgow_DATADISK", "DESY_DATADISK"] == "failing"
    last = sonar.matrix("last", window="24h").loc["Glasgow_DATADISK", "RAL_DATADISK"]
    assert last == pd.Timestamp("2026-11-20T11:40:30Z")


def test_links_are_rows_whose_columns_have_their_kinds(sonar: Sonar, known_world: World) -> None:
    known_world.glasgow.site.country = "NA"  # Namibia, not "not available"
    known_world.glasgow.site.save()
    frame = sonar.links(source_cloud="UK", ordering="-large.mean_mb_s").set_index("source")
    assert frame.iloc[0]["destination"] == "RAL_DATADISK"
    assert frame.loc["Glasgow_DATADISK", "source.country"].iloc[0] == "NA"
    assert frame["large.last"].iloc[0] == pd.Timestamp("2026-11-20T11:40:30Z")
    assert set(frame.index) == {"RAL_DATADISK", "Glasgow_DATADISK"}
    # Parameters may be words of Python, and have dots.
    day = {"from_": "2026-11-20T00:00:00Z", "to": "2026-11-20T12:00:00Z"}
    assert len(sonar.links(**day, **{"large.ok.min": 3})) == 2
    assert len(sonar.links(source=None, cloud=["UK", "DE"], **day)) == 12


def test_results_come_in_as_a_stream_newest_first(sonar: Sonar) -> None:
    results = list(sonar.transfers(window="24h"))
    assert len(results) == 11
    assert results[0]["size"] == "small"
    assert results[0]["rate_mb_s"] == pytest.approx(25.0)
    assert [one["state"] for one in sonar.transfers(state="failed", window="24h")] == ["failed"] * 3
    assert sonar.transfer(results[0]["id"])["samples"] == []


def test_a_link_over_time_and_sites_are_tables_and_endpoints_and_status_answer(
    sonar: Sonar,
) -> None:
    buckets = sonar.series("Glasgow_DATADISK", "RAL_DATADISK", window="24h", bucket="1h")
    assert buckets["ok"].sum() == 3
    assert str(buckets["start"].dtype).startswith("datetime64")
    points = sonar.series("Glasgow_DATADISK", "RAL_DATADISK", window="24h", points=1)
    assert sorted(points["rate_mb_s"]) == pytest.approx([40.0, 50.0, 66.0])
    assert list(sonar.sites()["name"]) == ["DESY", "Glasgow", "RAL"]
    assert len(sonar.endpoints()) == 4
    assert sonar.status()["probes"]["queued"] == 0


def test_an_error_has_the_sentence_of_the_api_and_its_status(sonar: Sonar) -> None:
    with pytest.raises(SonarError, match="size “huge” is not known: use ") as refused:
        sonar.matrix(size="huge")
    assert refused.value.status == 400
    assert list(refused.value.errors) == ["size"]
    with pytest.raises(SonarError, match="There is no parameter “cluod”"):
        sonar.links(cluod="UK")


def test_a_token_that_is_none_is_refused_and_not_said(url: str) -> None:
    with pytest.raises(SonarError) as refused:
        list(Sonar(url, "sonar_123").transfers())
    assert refused.value.status == 401
    assert "sonar_123" not in str(refused.value)
    for wrong in ("two words", "line\nbreak", "Sönar"):
        with pytest.raises(SonarError) as refused:
            Sonar(url, wrong)
        assert wrong not in str(refused.value)


def test_a_token_only_goes_where_it_is_safe() -> None:
    for address, sentence in (
        ("http://sonar.example.org", "not sent over plain HTTP"),
        ("http://127.0.0.1.example.org", "not sent over plain HTTP"),
        ("sonar.example.org", "must be like https://"),
        ("https://me:secret@sonar.example.org", "must be like https://"),
        ("ftp://sonar.example.org", "must be like https://"),
    ):
        with pytest.raises(SonarError, match=sentence) as refused:
            Sonar(address, "sonar_123")
        assert "secret" not in str(refused.value)
    for address in ("https://a.example/sonar/", "https://a.example/sonar/api/v1"):
        assert Sonar(address).base == "https://a.example/sonar/api/v1/"


def test_a_netrc_of_the_user_is_not_sent(
    road: Road, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setattr(sonar_client, "is_loopback", lambda _: False)
    assert requests.get(road.url, timeout=120).request.headers["Authorization"].startswith("Basic ")
    Sonar(road.url).status()
    assert "Authorization" not in road.asked[-1][2]


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert Sonar(url).status()["probes"]["queued"] == 0


def test_what_is_unchanged_is_not_sent_again(
    road: Road, known_world: World, tmp_path: Path
) -> None:
    sonar = Sonar(road.url, cache=tmp_path / "cache")
    first, second = sonar.matrix(), sonar.matrix()
    assert road.statuses == [200, 304]
    pd.testing.assert_frame_equal(first, second)
    known_world.ral.site.cloud = "IE"
    known_world.ral.site.save()
    assert sonar.matrix().attrs["sources"][3]["cloud"] == "IE"
    assert sonar.links(window="24h").equals(sonar.links(window="24h"))
    assert road.statuses == [200, 304, 200, 200, 304]
    assert {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*")} == {0}


def test_a_kept_answer_is_only_for_who_asked(road: Road, token: str, tmp_path: Path) -> None:
    Sonar(road.url, token, cache=tmp_path).matrix()
    Sonar(road.url, cache=tmp_path).matrix()
    assert road.statuses == [200, 200]
    assert token.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_a_busy_server_is_asked_again_when_it_says(
    road: Road, quick: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    road.events.extend(["429 7", "503 2", "503 100000"])
    assert Sonar(road.url).status()["probes"]["queued"] == 0
    assert [one for one in quick if one >= 1] == [7, 2, 300]
    assert "Sonar responded with 429. Trying again in 7 s." in caplog.text


def test_it_keeps_to_the_limit_of_a_real_sonar(
    road: Road, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, waits = Redis.from_url(os.environ["REDIS_URL"]), []
    counts.flushdb()
    settings.SONAR_RATE_ANONYMOUS = (2, 86_400)
    monkeypatch.setattr("time.sleep", lambda wait: (waits.append(wait), counts.flushdb()))
    sonar = Sonar(road.url)
    assert [sonar.status()["probes"]["queued"] for _ in range(3)] == [0, 0, 0]
    assert road.statuses == [200, 200, 429, 200]
    assert 1 <= max(waits) <= 300
    counts.flushdb()


def test_it_gives_up_in_the_end_with_the_last_answer(road: Road, quick: list[float]) -> None:
    road.events.extend(["429 1"] * 9)
    with pytest.raises(SonarError, match="Not now") as refused:
        Sonar(road.url).matrix()
    assert refused.value.status == 429
    assert len(road.asked) == 6
    with pytest.raises(
        SonarError, match=r"127.0.0.1:9/api/v1/ is not responding.* refused"
    ) as away:
        Sonar("http://127.0.0.1:9").matrix()
    assert away.value.status is None


def test_a_lost_answer_is_asked_for_again_and_a_repeated_push_stores_nothing_twice(
    road: Road, token: str, quick: list[float]
) -> None:
    road.events.append("lost")
    assert len(Sonar(road.url).links()) == 12
    assert len(road.asked) == 2
    road.events.append("lost")
    assert Sonar(road.url, token).push([result(), result()]) == (0, 2)
    assert Transfer.objects.filter(profile__mover="fts").count() == 2


def test_an_order_is_never_sent_twice_unless_it_was_refused(
    road: Road, token: str, quick: list[float]
) -> None:
    sonar = Sonar(road.url, token)
    for event in ("lost", "503 1"):
        road.events.append(event)
        with pytest.raises(SonarError):
            sonar.probe("RAL_DATADISK", "Glasgow_DATADISK")
    assert len(road.asked) == 2
    road.events.append("429 1")
    (ordered,) = sonar.probe("RAL_DATADISK", "DESY_DATADISK")
    assert ordered["state"] == "queued"
    assert len(road.asked) == 4


def test_a_page_instead_of_an_answer_is_an_error_and_a_cut_stream_does_not_look_whole(
    road: Road,
) -> None:
    road.events.extend(["html", "cut"])
    with pytest.raises(SonarError, match="was not answered by the Sonar API: 200 OK"):
        Sonar(road.url).status()
    found = []
    with pytest.raises(SonarError, match=r"The response was cut off after [\d,]+ bytes"):
        found.extend(Sonar(road.url).transfers(window="24h"))
    assert len(found) < 11


def test_half_a_row_is_not_taken_for_the_end(sonar: Sonar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sonar, "raw", lambda *_, **__: iter([b'{"id": 1}\n{"i', b'd": 2}\n{"id"']))
    rows = sonar.transfers()
    assert [next(rows), next(rows)] == [{"id": 1}, {"id": 2}]
    with pytest.raises(SonarError, match="ended in the middle of a row"):
        next(rows)


@pytest.mark.long
def test_results_are_pushed_in_lists_that_a_call_takes(
    road: Road, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sonar = Sonar(road.url, token)
    monkeypatch.setattr(sonar_client, "MOST_RESULTS", 4)
    assert sonar.push(result() for _ in range(10)) == (10, 0)
    assert len(road.asked) == 3
    assert Transfer.objects.filter(profile__mover="fts").count() == 10
    # Long ones make short lists.
    monkeypatch.setattr(sonar_client, "MOST_BYTES", 50_000)
    failed = {"state": "failed", "error": "é" * 9_000, "error_where": "source"}
    assert sonar.push(result(**failed) for _ in range(3)) == (3, 0)
    assert len(road.asked) == 6


def test_csv_of_the_api_and_a_table_can_be_pushed(sonar: Sonar) -> None:
    """CSV says more of a result than a result has: its rate, say."""
    lines = b"".join(sonar.raw("transfers/", "csv", state="failed")).decode().splitlines()
    assert "rate_mb_s" in lines[0]
    results = list(sonar_client.read_results(lines))
    assert len(results) == 3
    assert sonar.push(results) == (0, 3)
    frame = pd.DataFrame([result(), result(state="failed", error="late", error_where="source")])
    frame["started_at"] = pd.to_datetime(frame["started_at"])
    assert sonar.push(frame) == (2, 0)
    assert Transfer.objects.filter(error="late", started_at__hour=3).count() == 1


def test_a_refused_result_is_named_with_what_was_stored_before(
    sonar: Sonar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sonar_client, "MOST_RESULTS", 2)
    with pytest.raises(SonarError) as refused:
        sonar.push([result(), result(), result(), result(bytes=0)])
    assert str(refused.value).startswith("2 results were stored before this error: Nothing was")
    assert "1.bytes" in refused.value.errors
    assert Transfer.objects.filter(profile__mover="fts").count() == 2
