"""The check of an endpoint on its page and in the API: who orders it, and who sees what of it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from sonar.models import Credential, Endpoint, EndpointCheck
from sonar.notation.check_steps import CheckStep, StepState
from sonar.ordering import request_checks
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix import responses
from tests.matrix.responses import statements, words
from tests.matrix.world import NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
PAGE = "/sites/DESY/endpoints/DESY_DATADISK/"
CALL = "/api/v1/endpoints/DESY_DATADISK/check/"
MINUTE = timedelta(minutes=1)
STEPS = [
    CheckStep("name", StepState.FINE, "desy.example: 192.0.2.7 (IPv4)."),
    CheckStep("write", StepState.FAILED, "PUT desy.example/data/x: 403.", "Ask who gave it."),
    CheckStep("delete", StepState.NOT_TRIED, "This step needs “Write” to succeed first."),
]


@pytest.fixture(autouse=True)
def _sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_checks, "send_check", lambda *_: None)


@pytest.fixture
def admin(small_world: World) -> Client:
    return logged_in(account(Role.SITE_ADMIN, small_world.desy.site, name="anna"))


@pytest.fixture
def kept(small_world: World) -> Callable[..., EndpointCheck]:
    """Return what keeps a check of DESY's endpoint."""
    Endpoint.objects.filter(pk=small_world.desy.pk).update(base_url="https://desy.example/data")

    def keep(steps: list[CheckStep] = STEPS, **times: object) -> EndpointCheck:
        facts = {"requested_at": NOW - MINUTE, "steps": [step.to_json() for step in steps]}
        row, _ = EndpointCheck.objects.update_or_create(
            endpoint=small_world.desy, defaults=facts | times
        )
        return row

    return keep


def ended(**more: object) -> dict[str, object]:
    return {"started_at": NOW - MINUTE, "ended_at": NOW - MINUTE / 2, **more}


def section(client: Client) -> str:
    page = responses.html(client, PAGE).replace("\N{NO-BREAK SPACE}", " ")
    return words(page.partition('id="check"')[2].partition("</section>")[0])


def test_the_button_orders_a_check_which_waits_on_the_page(admin, small_world):
    assert "This endpoint has not been checked yet." in section(admin)
    response = admin.post(f"{PAGE}check/")
    assert response["Location"] == f"{PAGE}#check"
    check = EndpointCheck.objects.get()
    assert (check.endpoint, str(check.requested_by)) == (small_world.desy, "anna")
    said = section(admin)
    assert "The check is waiting for a worker. Requested by anna." in said
    assert "Check again" not in said
    assert 'hx-trigger="every 5s' in responses.html(admin, PAGE)
    admin.post(f"{PAGE}check/")
    assert "checked less than a minute ago" in responses.html(admin, PAGE)


@pytest.mark.parametrize(
    ("times", "sentence", "button"),
    [
        ({"requested_at": NOW}, "The check is waiting for a worker.", False),
        ({"requested_at": NOW - 2 * MINUTE}, "No worker has started the check in 2 min.", True),
        ({"started_at": NOW}, "The check is running; steps so far: 3.", False),
        ({"started_at": NOW - 11 * MINUTE}, "The check did not finish because", True),
        (
            ended(),
            "1 step needs attention. The check finished 30 s ago",
            True,
        ),
        (
            ended(steps=[]),
            "nothing is wrong. The check finished 30 s ago",
            True,
        ),
    ],
)
def test_the_page_says_how_far_a_check_is(admin, kept, times, sentence, button):
    kept(**times)
    said = section(admin)
    assert sentence in said
    assert ("Check again" in said) == button


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"base_url": "https://desy.example/other"}, "base URL"),
        ({"data_hosts": ["pool.desy.example"]}, "data hosts"),
        ({"vantage": "desy"}, "vantage"),
        ({"base_url": "https://a.example/b", "vantage": "desy"}, "base URL and vantage"),
    ],
)
def test_a_check_of_what_has_changed_since_says_so(admin, kept, change, named: str):
    endpoint = Endpoint.objects.get(name="DESY_DATADISK")
    kept(**ended(), checked=request_checks.depends_on(endpoint))
    assert "before its" not in section(admin)
    assert responses.answer(admin, CALL)["changed"] == []
    Endpoint.objects.filter(pk=endpoint.pk).update(**change)
    said = f"Checked 20 Nov 12:00:00 UTC, before its {named} was changed: check the endpoint again."
    assert said in section(admin)
    answer = responses.answer(admin, CALL)
    assert (answer["sentence"], answer["changed"]) == (said, named.split(" and "))


def test_a_check_before_another_credential_or_another_secret_says_so(admin, small_world, kept):
    row = Credential.objects.create(name="first", hosts=["desy.example"])
    for change in ({"credential": row}, {"credential": None}):
        admin.post(f"{PAGE}check/")
        EndpointCheck.objects.update(**ended(), requested_at=NOW - 2 * MINUTE)
        Endpoint.objects.filter(name="DESY_DATADISK").update(**change)
        assert "before its credential was changed" in section(admin)
    Endpoint.objects.filter(name="DESY_DATADISK").update(credential=row)
    admin.post(f"{PAGE}check/")
    EndpointCheck.objects.update(**ended())
    assert "before its" not in section(admin)
    Credential.objects.update(uploaded_at=NOW)
    assert "before its credential was changed" in section(admin)


def test_a_check_that_is_refused_says_so_where_it_is(admin, small_world):
    for _ in range(2):
        assert admin.post(f"{PAGE}check/")["Location"].endswith("#check")
    whole = responses.html(admin, PAGE)
    assert whole.count("was checked less than a minute ago") == 1
    admin.post(f"{PAGE}check/")
    assert "was checked less than a minute ago" in section(admin)


def test_hosts_and_addresses_are_only_for_who_may_see_them(admin, kept):
    kept(**ended())
    assert "desy.example: 192.0.2.7 (IPv4)." in section(admin)
    assert "PUT desy.example/data/x: 403. To do: Ask who gave it." in section(admin)
    for client in (Client(), logged_in(account(Role.READER))):
        said = section(client)
        assert "desy.example" not in said
        assert "192.0.2.7" not in said
        assert (
            "Host name fine: Only operators and site admins of this endpoint can see this result."
            in said
        )
        assert "PUT DESY_DATADISK/x: 403. To do: Ask who gave it." in said
        assert "Check again" not in said


def test_a_check_with_more_steps_takes_no_more_statements(small_world, kept):
    client = Client()
    without = len(statements(responses.html, client, PAGE))
    kept(**ended())
    responses.html(client, PAGE)  # where servers are is read once
    assert len(statements(responses.html, client, PAGE)) == without + 1
    kept(STEPS * 5, **ended())
    assert len(statements(responses.html, client, PAGE)) == without + 1


def test_a_retired_endpoint_is_not_checked(admin, small_world):
    Endpoint.objects.filter(pk=small_world.desy.pk).update(retired_at=NOW)
    assert "Run check" not in section(admin)
    admin.post(f"{PAGE}check/")
    assert "is retired: it cannot be checked until it is in use again." in responses.html(
        admin, PAGE
    )
    assert not EndpointCheck.objects.exists()


def test_the_call_orders_a_check_and_gives_its_steps(admin, kept):
    assert admin.get(CALL).status_code == 404
    ordered = admin.post(CALL, content_type="application/json")
    assert ordered.status_code == 202
    assert ordered.json()["state"] == "waiting"
    assert ordered.json()["url"].endswith(CALL)
    assert admin.post(CALL, content_type="application/json").status_code == 409
    refused = admin.post(CALL, {"steps": ["name"]}, content_type="application/json")
    assert (refused.status_code, "is not a field" in refused.json()["errors"]["steps"][0]) == (
        400,
        True,
    )
    kept(**ended())
    answer = responses.answer(admin, CALL)
    assert (answer["state"], answer["wrong"], answer["endpoint"]) == ("done", 1, "DESY_DATADISK")
    assert answer["steps"][1] == {
        "name": "write",
        "label": "Write",
        "state": "failed",
        "seen": "PUT desy.example/data/x: 403.",
        "advice": "Ask who gave it.",
    }
    public = responses.answer(Client(), CALL)
    assert public["steps"][0]["advice"] is None
    assert "desy.example" not in str(public)
    assert admin.get("/api/v1/endpoints/NOBODY/check/").status_code == 404


def test_a_step_of_another_version_is_left_out(admin, kept):
    row = kept(**ended())
    row.steps.append({"name": "smell", "state": "fine", "seen": "roses", "advice": ""})
    row.save()
    assert "roses" not in section(admin)
    assert isinstance(responses.page(admin, PAGE), Page)
