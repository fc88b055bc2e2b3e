"""Sweeps: ordered by form, API and command, followed, and what they show in words."""

import json
import os
import re
import signal
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from matrix.answers.diagnosis.evidence import disobeyed
from matrix.answers.ordering import sweeps
from matrix.answers.ordering.sweeps import SweepReport
from matrix.management.commands import sweep as command
from sonar.models import Endpoint, Probe, SizeClass, Sweep, SweepStep
from sonar.people.roles import Role
from sonar.results import store
from tests.accounts import account
from tests.matrix import responses, sent, world
from tests.matrix.world import HOUR, MB, NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon", "nothing_is_sent")]
URL = "/api/v1/sweeps/"
ENDS = {"source": "RAL_DATADISK", "destination": "DESY_DATADISK"}
LINK = "/links/RAL_DATADISK/DESY_DATADISK/"


def post(client: Client, **change: object) -> Any:
    body = {**ENDS, "variable": "streams", "size": "small"} | change
    return client.post(URL, json.dumps(body), content_type="application/json")


def text(response: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def run(
    probes: Iterable[Probe],
    rate: Callable[[Probe], float],
    failing: str = "",
    used: Callable[[Probe], int | None] = lambda probe: None,
) -> None:
    """End tests as a worker would: each with a rate in MB/s, or failed with so many streams."""
    profiles = store.Profiles()
    results = [
        sent.result(
            probe.source,
            probe.destination,
            NOW + timedelta(seconds=position),
            id=probe.id,
            size_class_id=probe.size_class_id,
            profile_id=profiles.id_of(
                mover=probe.mover, mode=probe.mode, streams=probe.streams, streams_used=used(probe)
            ),
            seconds=probe.bytes / rate(probe) / MB,
            bytes=probe.bytes,
            error="no route to host" if str(probe.streams) == failing else "",
        )
        for position, probe in enumerate(probes, 1)
    ]
    store.store(results, ids_are_new=True)
    Probe.objects.filter(id__in=[result.id for result in results]).delete()


def run_all(rate: Callable[[Probe], float], **how: Any) -> None:
    """End all tests that are ordered."""
    run(Probe.objects.order_by("requested_at", "id"), rate, **how)


def test_tests_run_there_and_back_through_the_values(operator):
    response = post(operator, values=[4, 1, 2], repeats=2)
    assert response.status_code == 202, response.content
    answer = response.json()
    assert [step["value"] for step in answer["steps"]] == ["1", "2", "4", "4", "2", "1"]
    tests = list(Probe.objects.order_by("id").values_list("streams", "id"))
    assert [streams for streams, _ in tests] == [1, 2, 4, 4, 2, 1]
    assert [UUID(step["id"]) for step in answer["steps"]] == [test for _, test in tests]
    assert SweepStep.objects.count() == 6
    assert answer["title"] == "1, 2 and 4 streams with small files, pull"
    assert (answer["ended"], answer["tests"], answer["open"]) == (False, 6, 6)
    assert answer["url"].endswith(f"{URL}{answer['id']}/")


def test_usual_values_stand_for_none(operator):
    values = [value["value"] for value in post(operator).json()["values"]]
    assert values == ["1", "2", "4", "8", "16"]
    sizes = [value["value"] for value in post(operator, variable="size").json()["values"]]
    assert sizes == ["small", "medium", "large"]
    modes = [value["value"] for value in post(operator, variable="mode").json()["values"]]
    assert modes == ["pull", "push"]


@pytest.mark.parametrize(
    ("change", "field", "sentence"),
    [
        ({"variable": "colour"}, "variable", "variable must be streams, size or mode."),
        ({"values": [1]}, "values", "values must be a list of 2 to 10 values"),
        ({"values": [4, 4]}, "values", "“values” must contain at least two different values"),
        ({"values": [1, 65]}, "values", "values “65” is not allowed for streams: use whole"),
        ({"values": [1, True]}, "values", "values"),
        ({"values": ["1", "2"]}, "values", "values “1” is not allowed for streams"),
        ({"variable": "size", "values": ["small", "huge"]}, "values", "values “huge” is not"),
        ({"variable": "mode", "values": ["pull", "throw"]}, "values", "use pull and push"),
        ({"values": list(range(1, 9)), "repeats": 10}, "repeats", "exceed the limit of 50 tests"),
        ({"repeats": 0}, "repeats", "repeats must be a whole number from 1 to 10."),
        ({"repeats": "3"}, "repeats", "repeats must be a whole number from 1 to 10."),
        ({"size": "huge"}, "size", "“huge” is not a size class."),
        ({"source": "Nowhere"}, "source", "source “Nowhere” is not a registered endpoint."),
        ({"destination": "RAL_DATADISK"}, "destination", "a different endpoint"),
        ({"hurry": True}, "hurry", "There is no field “hurry”"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(
    operator, change: dict[str, Any], field: str, sentence: str
):
    response = post(operator, **change)
    assert response.status_code == 400, response.content
    assert sentence in " ".join(response.json()["errors"][field])
    assert not Probe.objects.exists()
    assert not Sweep.objects.exists()


def test_an_end_in_a_downtime_refuses_all_of_it(operator, small_world):
    world.downtime(site=small_world.desy.site)
    response = post(operator)
    assert response.status_code == 409
    assert "downtime" in response.json()["detail"]
    assert (Probe.objects.count(), Sweep.objects.count()) == (0, 0)


def test_a_site_admin_orders_for_links_of_its_site_alone(client, small_world):
    client.force_login(account(Role.SITE_ADMIN, small_world.ral.site))
    assert post(client).status_code == 202
    other = {"source": "Glasgow_DATADISK", "destination": "DESY_DATADISK"}
    assert post(client, **other).status_code == 403


def ended(client: Client, rate: Callable[[Probe], float], **change: object) -> dict[str, Any]:
    url = post(client, **change).json()["url"]
    run_all(rate)
    answer = client.get(url).json()
    assert (answer["ended"], answer["open"], answer["failed"]) == (True, 0, 0)
    return answer


def wobble(probe: Probe) -> float:
    return 1 + 0.02 * (probe.id.int % 3)


def test_rates_in_proportion_to_streams_are_told(operator):
    answer = ended(operator, lambda probe: 0.7 * probe.streams * wobble(probe))
    assert answer["trend"] == "proportional"
    assert answer["slope"]["exponent"] == pytest.approx(1, abs=0.03)
    assert answer["slope"]["factor"] == pytest.approx(16, rel=0.08)
    assert answer["slope"]["n"] == 15
    assert "TCP window" in answer["finding"]
    assert "(n = 15)" in answer["finding"]


@pytest.mark.parametrize(
    ("rate", "trend", "words"),
    [
        (lambda probe: 20 * wobble(probe), "flat", "More streams make no difference"),
        (
            lambda probe: 40 * wobble(probe) / probe.streams,
            "falling",
            "More streams reduce the rate",
        ),
        (
            lambda probe: 10 * min(probe.streams, 4) * wobble(probe),
            "rising",
            "4 are about as fast as 16.",
        ),
    ],
)
def test_what_streams_do_is_told(operator, rate: Callable[[Probe], float], trend: str, words: str):
    answer = ended(operator, rate)
    assert answer["trend"] == trend
    assert words in answer["finding"]


def test_streams_count_as_they_were_used(operator):
    url = post(operator).json()["url"]
    run_all(lambda probe: 5 * wobble(probe), used=lambda probe: 1)
    answer = operator.get(url).json()
    assert answer["finding"].startswith("Every transfer used 1 stream, however many were requested")
    assert (answer["trend"], answer["slope"]) == ("unclear", None)
    of_link = sweeps.reports(list(sweeps.rows()), NOW + timedelta(hours=1))
    assert "does not show the effect of streams: every transfer used 1," in disobeyed(
        of_link, "small"
    )
    assert disobeyed(of_link, "large") == ""
    url = post(operator).json()["url"]
    run_all(
        lambda probe: 5 * min(probe.streams, 4) * wobble(probe),
        used=lambda probe: min(probe.streams, 4),
    )
    answer = operator.get(url).json()
    assert answer["trend"] == "proportional"
    assert answer["slope"]["factor"] == pytest.approx(4, rel=0.1)
    assert "16 (4 in use) give" in answer["finding"]


def test_sizes_and_modes_are_told(operator):
    # 10 s before bytes flow at 100 MB/s.
    answer = ended(
        operator, lambda probe: probe.bytes / MB / (10 + probe.bytes / MB / 100), variable="size"
    )
    assert "Larger files are faster" in answer["finding"]
    answer = ended(
        operator,
        lambda probe: (20 if probe.mode == "pull" else 60) * wobble(probe),
        variable="mode",
        repeats=6,
    )
    assert answer["finding"].startswith("Push is faster than pull: push gives ")
    assert answer["slope"] is None


def test_failures_and_cancelled_tests_are_counted(operator):
    url = post(operator, values=[1, 2], repeats=2).json()["url"]
    cancelled = Probe.objects.order_by("-id").first()
    cancelled.delete()
    run_all(lambda probe: 10, failing="2")
    answer = operator.get(url).json()
    assert [step["state"] for step in answer["steps"]] == ["done", "failed", "failed", "gone"]
    assert (answer["done"], answer["failed"], answer["ended"]) == (1, 2, True)
    assert answer["finding"] == "1 successful test: too few to draw a conclusion yet."
    page = text(operator.get(f"/sweeps/{answer['id']}/"))
    assert "cancelled or deleted" in page
    shown = responses.page(operator, f"/sweeps/{answer['id']}/").table("table.ranking tbody tr")
    assert [row[:4] for row in shown] == [["1", "10.0", "1", "0"], ["2", "–", "0", "2"]]


def test_cancelling_drops_what_has_not_begun(operator):
    url = post(operator, values=[1, 2], repeats=2).json()["url"]
    first = Probe.objects.order_by("id").first()
    running = {"state": "running", "started_at": NOW, "deadline": NOW + HOUR}
    Probe.objects.filter(id=first.id).update(**running)
    assert operator.delete(url).status_code == 204
    assert list(Probe.objects.values_list("id", flat=True)) == [first.id]
    again = operator.delete(url)
    assert again.status_code == 409
    assert "none can be cancelled" in again.json()["detail"]


def test_an_sweep_that_is_not_there(operator):
    assert operator.get(f"{URL}{uuid4()}/").status_code == 404
    assert operator.get(f"/sweeps/{uuid4()}/").status_code == 404


def test_sweeps_are_listed_newest_first_by_pages(operator):
    ids = []
    for number in range(3):
        ids.append(post(operator, values=[1, 2], repeats=1).json()["id"])
        Sweep.objects.filter(id=ids[-1]).update(requested_at=NOW + timedelta(hours=number))
    first = operator.get(f"{URL}?page_size=2&source=RAL_DATADISK").json()
    assert [each["id"] for each in first["sweeps"]] == ids[:0:-1]
    second = operator.get(first["next"]).json()
    assert [each["id"] for each in second["sweeps"]] == ids[:1]
    assert second["next"] is None
    assert operator.get(f"{URL}?source=DESY_DATADISK").json()["sweeps"] == []


def test_the_list_takes_as_many_statements_for_many_as_for_one(operator, django_assert_num_queries):
    post(operator, values=[1, 2], repeats=1)
    operator.get(URL)
    for count in (1, 4):
        while Sweep.objects.count() < count:
            post(operator, values=[1, 2], repeats=1)
        # Session and account, then sweeps, steps, probes, their places, transfers and sizes.
        with django_assert_num_queries(8):
            operator.get(URL)


def test_tests_as_csv(operator):
    url = post(operator, values=[1, 2], repeats=1).json()["url"]
    run_all(lambda probe: 20)
    head, *lines = operator.get(f"{url}?format=csv").content.decode().splitlines()
    assert head == "id,value,state,started_at,rate_mb_s"
    assert [line.split(",")[1:3] for line in lines] == [["1", "done"], ["2", "done"]]
    assert float(lines[0].rsplit(",", 1)[1]) == pytest.approx(20)


def order(client: Client, **change: str) -> Any:
    form = {"variable": "streams", "values": "1, 4", "repeats": "2", "size": "small"}
    return client.post(f"{LINK}sweeps/", form | {"streams": "1", "mode": "pull"} | change)


def test_the_form_leads_to_the_sweep(operator):
    response = order(operator)
    sweep = Sweep.objects.get()
    assert (response.status_code, response["Location"]) == (302, f"/sweeps/{sweep.id}/")
    assert Probe.objects.count() == 4
    page = text(operator.get(response["Location"]))
    assert "4 of 4 tests have not ended" in page
    assert "Cancel the 4 tests that have not started" in page
    run_all(lambda probe: 5 * probe.streams * wobble(probe))
    page = text(operator.get(response["Location"]))
    assert "The rate grows in proportion to the number of streams" in page
    link = text(operator.get(LINK))
    assert "1 and 4 streams with small files, pull" in link
    assert "The rate grows in proportion" in link


@pytest.mark.parametrize("values", ["1 4", "1,4", " 1 ,  4,"])
def test_commas_or_spaces_separate_the_values_of_a_form(operator, values: str):
    assert order(operator, values=values).status_code == 302
    assert set(Probe.objects.values_list("streams", flat=True)) == {1, 4}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"values": "1, many"}, "Values “many” is not allowed for streams"),
        ({"repeats": "ninety"}, "Tests for each value must be a whole number from 1 to 10."),
        ({"variable": "size", "values": "small, huge"}, "Values “huge” is not allowed for size"),
        ({"size": "huge"}, "“huge” is not a size class."),
    ],
)
def test_the_form_says_what_is_wrong_and_keeps_what_was_written(
    operator, change: dict[str, str], sentence: str
):
    response = order(operator, **change)
    assert response.status_code == 400
    assert sentence in text(response)
    assert not Sweep.objects.exists()


@pytest.mark.parametrize(
    ("size", "advice"),
    [
        ("small", "try a larger size class."),
        (
            "large",
            "The servers of this link ignore the number of streams, even for the largest size "
            "class.",
        ),
    ],
)
def test_a_larger_size_class_is_advised_only_where_there_is_one(operator, size: str, advice: str):
    response = order(operator, size=size)
    run_all(lambda probe: 5.0, used=lambda probe: 1)
    page = text(operator.get(response["Location"]))
    assert advice in page
    assert ("larger size class." in page) is (size == "small")


def test_that_streams_were_ignored_lately_is_said_before_an_order(operator):
    assert "requested several streams" not in text(operator.get(LINK))
    order(operator)
    run_all(lambda probe: 5.0, used=lambda probe: 1)
    said = "2 tests in the last 28 days requested several streams but used only 1. A stream sweep"
    for page in (LINK, f"{LINK}sweeps/"):
        assert said in text(operator.get(page)).replace("\N{NO-BREAK SPACE}", " ")
        assert "requested several streams" not in text(Client().get(page))
    order(operator)
    run_all(lambda probe: 5.0, used=lambda probe: probe.streams)
    assert "requested several streams" not in text(operator.get(LINK))


def test_what_no_mover_of_a_link_can_vary_is_not_offered_and_refused(operator, small_world):
    for end, host in ((small_world.ral, "ral"), (small_world.desy, "desy")):
        Endpoint.objects.filter(pk=end.pk).update(base_url=f"root://{host}.example:1094/data")
    page = responses.page(operator, f"{LINK}sweeps/")
    (option,) = page.parts('select[name="variable"] option[disabled]')
    assert option.attributes["value"] == "mode"
    assert option.words.endswith("(no transfer tool of this link supports both pull and push)")
    response = order(operator, variable="mode", values="")
    assert response.status_code == 400
    reason = "no transfer tool of this link supports both pull and push."
    assert f"This setting cannot be varied: {reason}" in text(response)
    refusal = post(operator, variable="mode", mover="xrootd")
    assert refusal.status_code == 400
    assert "does not support mode push" in refusal.json()["errors"]["values"][0]
    SizeClass.objects.exclude(name="small").delete()
    page = responses.page(operator, f"{LINK}sweeps/")
    assert [each.attributes["value"] for each in page.parts("option[disabled]")] == ["size", "mode"]


def test_an_address_fills_in_the_form_and_opens_it(operator):
    page = responses.html(operator, f"{LINK}sweeps/?variable=size&size=medium")
    assert '<details class="d-print-none" open>' in page
    assert '<option value="size" selected>' in page
    assert '<option value="medium" selected>' in page
    assert '<details class="d-print-none">' in responses.html(operator, f"{LINK}sweeps/")


def test_an_address_with_what_cannot_be_says_what_can(client, small_world):
    response = client.get(f"{LINK}sweeps/?variable=colour&size=huge")
    assert response.status_code == 400
    page = text(response)
    assert "variable “colour” is not known: use streams, size or mode." in page
    assert "size “huge” is not known: use " in page


def test_readers_see_sweeps_and_no_form(client, operator):
    order(operator)
    reader = Client()
    page = text(reader.get(LINK))
    assert "1 and 4 streams with small files, pull" in page
    assert "Request a parameter sweep" not in page
    sweep = Sweep.objects.get()
    assert "Cancel the" not in text(reader.get(f"/sweeps/{sweep.id}/"))
    assert reader.post(f"/sweeps/{sweep.id}/cancel/").status_code == 302
    assert Probe.objects.count() == 4


def test_the_button_cancels_and_says_how_many(operator):
    order(operator)
    sweep = Sweep.objects.get()
    response = operator.post(f"/sweeps/{sweep.id}/cancel/", follow=True)
    assert "4 tests were cancelled" in text(response)
    assert not Probe.objects.exists()
    assert "No results are left" in text(response)


def test_a_size_class_that_was_renamed_leaves_its_sweep(operator):
    url = post(operator, variable="size", values=["small", "medium"], repeats=2).json()["url"]
    SizeClass.objects.filter(name="small").update(name="little")
    run_all(lambda probe: 20)
    answer = operator.get(url).json()
    assert [value["value"] for value in answer["values"]] == ["small", "medium"]
    assert "Files of every size move at the same rate" in answer["finding"]
    assert operator.get(f"/sweeps/{answer['id']}/").status_code == 200


# manage.py sweep


def before_each_look(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let something happen before each look that the command takes."""
    look = sweeps.reports

    def reports(asked: Sequence[Sweep], now: datetime) -> list[SweepReport]:
        act()
        return look(asked, now)

    monkeypatch.setattr(sweeps, "reports", reports)
    monkeypatch.setattr(command, "LOOK_AGAIN_SECONDS", 0.01)


def end_the_oldest() -> None:
    oldest = Probe.objects.order_by("requested_at", "id")[:1]
    run(oldest, lambda probe: 2 * probe.streams * (1 + 0.01 * (Probe.objects.count() % 2)))


def test_a_sweep_is_followed_to_its_end_and_told(small_world, monkeypatch, capsys):
    before_each_look(monkeypatch, end_the_oldest)
    call_command("sweep", *ENDS.values(), "--values", "1,2,4", "--repeats", "2", "--size", "small")
    said = capsys.readouterr().out
    assert f"The sweep {Sweep.objects.get().id} was requested." in said
    assert "1, 2 and 4 streams with small files, pull" in said
    assert "The rate grows in proportion to the number of streams: 4 give 4.0" in said
    assert "(n = 6)" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--values", "1,many"), "values “many” is not allowed for streams"),
        (("--repeats", "0"), "repeats must be a whole number from 1 to 10."),
        (("--size", "huge"), "“huge” is not a size class."),
    ],
)
def test_the_command_says_why_it_orders_nothing(
    small_world, arguments: tuple[str, ...], sentence: str
):
    with pytest.raises(CommandError, match="The sweep was refused: ") as refusal:
        call_command("sweep", *ENDS.values(), *arguments)
    assert sentence in str(refusal.value)
    assert not Probe.objects.exists()


def test_control_c_cancels_what_has_not_begun(small_world, monkeypatch):
    before_each_look(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(CommandError, match="Stopped: 4 tests were cancelled") as stopped:
        call_command(
            "sweep", *ENDS.values(), "--values", "1,2", "--repeats", "2", "--size", "small"
        )
    assert stopped.value.returncode == 130
    assert not Probe.objects.exists()
