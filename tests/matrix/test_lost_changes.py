"""Two people open the same form: the second does not take back what the first changed."""

from typing import Any

import pytest
from django.db.models import Model
from django.test import Client

from matrix.pages.targets import pages as target_pages
from sonar.models import (
    Annotation,
    Credential,
    CriteriaSet,
    Downtime,
    MeshInterval,
    Site,
    SizeClass,
    Subscription,
    Target,
)
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix.test_api_registry_races import at_once
from tests.sonar.world import NOW, endpoint, mesh

pytestmark = pytest.mark.django_db

CHANGED = "after you opened the page: the field shows the new value. Check it, and save again."


@pytest.fixture
def ann() -> Client:
    return logged_in(account(Role.ADMINISTRATOR, name="ann"))


@pytest.fixture
def bob() -> Client:
    return logged_in(account(Role.ADMINISTRATOR, name="bob"))


def opened(client: Client, path: str, form: str = "form") -> dict[str, Any]:
    """Return what the form of a page sends as it is, with what it says that it has shown."""
    page = Page(client.get(path).content.decode())
    for each in page.parts(form):
        sent: dict[str, Any] = {}
        for name, value in each.sent():
            sent.setdefault(name, []).append(value)
        if "shown" in sent:
            return sent
    raise AssertionError(f"no form of {path} says what it shows")


def case(row: Model, page: str, form: str, to: str, first: Any, second: Any, **more: Any) -> Any:
    return row, page, form, to, first, second, more


def target() -> Any:
    row = Target.objects.create(name="uk")
    path = "/targets/uk/"
    return case(row, path, "#choice", path, ("failures", 7), ("priority", 9), save="")


def criteria_set() -> Any:
    row = CriteriaSet.objects.create(
        name="DDT", size_class=SizeClass.objects.get(name="large"), period_hours=24,
        least_tests=6, least_mb_s=20.0,
    )  # fmt: skip
    path = "/commissioning/DDT/change/"
    return case(row, path, "form", path, ("least_tests", 7), ("least_mb_s", 25.0))


def size_class() -> Any:
    row = SizeClass.objects.get(name="large")
    path = "/size-classes/large/"
    return case(row, path, "form", path, ("timeout_seconds", 60), ("test_bytes", 2 * 10**9))


def site() -> Any:
    row = endpoint("RAL").site
    path = "/sites/RAL/set-up/"
    return case(row, path, "form", path, ("cloud", "FR"), ("country", "GB"))


def draft() -> Any:
    row = endpoint("RAL", enabled=False, base_url="davs://se.ral.example:443/atlas")
    path = f"/sites/RAL/endpoints/{row.name}/set-up/endpoint/"
    return case(row, path, "form", path, ("label", "DATADISK"), ("software", "dCache 9"))


def limits() -> Any:
    row = endpoint("RAL", inbound_cap=2, outbound_cap=2)
    path = f"/sites/RAL/endpoints/{row.name}/"
    form = f'form[action="{path}"]'
    return case(row, "/sites/RAL/", form, path, ("inbound_cap", 7), ("outbound_cap", 9))


def mesh_limits() -> Any:
    own = Credential.objects.create(name="grid", hosts=["se.ral.example"])
    place = "davs://se.ral.example:443/atlas"
    row = endpoint("RAL", enabled=False, base_url=place, credential=own)
    Site.objects.update(quiet_from="05:00", quiet_until="07:00")
    mesh(mover="http-tpc")
    path = f"/sites/RAL/endpoints/{row.name}/set-up/"
    first = ("budget_bytes_per_day", 7 * 10**9)
    second = ("site.quiet_from", "06:00:00")
    return case(row, path, "#choice", f"{path}start/", first, second, later="")


def mesh_row() -> Any:
    endpoint("RAL"), endpoint("LANCS")
    row = mesh()
    path = "/meshes/uk/change/"
    return case(row, path, "#choice", path, ("streams", 3), ("priority", 9), save="")


def subscription() -> Any:
    row = Subscription.objects.create(
        name="list", channel="chat", address="https://chat.example.org", confirmed_at=NOW
    )
    path = f"/subscriptions/{row.pk}/"
    return case(row, path, "form", path, ("cap", 7), ("digest_hour", 9))


def in_admin(row: Model, first: Any, second: Any) -> Any:
    path = f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/change/"
    return case(row, path, "form", path, first, second)


def site_in_admin() -> Any:
    return in_admin(endpoint("RAL").site, ("cloud", "FR"), ("country", "GB"))


def endpoint_in_admin() -> Any:
    return in_admin(endpoint("RAL"), ("inbound_cap", 7), ("label", "TAPE"))


def downtime_in_admin() -> Any:
    row = Downtime.objects.create(
        site=endpoint("RAL").site, starts_at="2026-12-01T00:00Z", ends_at="2026-12-02T00:00Z",
        reason="switch",
    )  # fmt: skip
    return in_admin(row, ("reason", "new switch"), ("severity", "warning"))


def note_in_admin() -> Any:
    row = Annotation.objects.create(
        site=endpoint("RAL").site, text="new switch", starts_at="2026-11-20T00:00Z"
    )
    return in_admin(row, ("text", "old switch"), ("public", True))


CASES = [
    target, criteria_set, size_class, site, draft, limits, mesh_limits, mesh_row,
    subscription, site_in_admin, endpoint_in_admin, downtime_in_admin, note_in_admin,
]  # fmt: skip
# What a field of a form is called, and what people write into it, if not as the row has it.
WRITTEN = {
    "budget_bytes_per_day": ("budget", "7"),
    "site.quiet_from": ("quiet_from", "06:00"),
}


def written(change: tuple[str, Any]) -> dict[str, str]:
    column, value = change
    name, text = WRITTEN.get(column, (column, str(value)))
    return {name: "on" if value is True else text}


def kept(row: Model, column: str) -> Any:
    row = type(row)._default_manager.get(pk=row.pk)
    for name in column.split("."):
        row = getattr(row, name)
    return str(row)


@pytest.mark.parametrize("make", CASES)
def test_who_saves_another_field_does_not_take_a_change_back(make, ann, bob):
    row, page, form, to, first, second, more = make()
    before = kept(row, second[0])
    of_ann, of_bob = opened(ann, page, form), opened(bob, page, form)
    assert ann.post(to, of_ann | written(first) | more).status_code == 302
    assert kept(row, first[0]) == str(first[1])
    refused = bob.post(to, of_bob | written(second) | more)
    words = Page(refused.content.decode()).words
    assert refused.status_code in (200, 400), refused.headers
    assert CHANGED in words
    if make is not note_in_admin:  # notes have no history
        assert "ann changed this at" in words
    assert kept(row, first[0]) == str(first[1])
    assert kept(row, second[0]) == before
    # The page shows what ann wrote, and what bob did, and is right as it is.
    again = Page(refused.content.decode())
    sent = next(dict(each.sent()) for each in again.parts(form) if each.parts('[name="shown"]'))
    name, text = next(iter(written(second).items()))
    assert sent[name] == text
    assert bob.post(to, of_bob | sent | more).status_code == 302
    assert kept(row, first[0]) == str(first[1])
    assert kept(row, second[0]) == str(second[1])


@pytest.mark.parametrize("make", CASES)
def test_who_writes_the_same_value_is_not_refused(make, ann, bob):
    row, page, form, to, first, second, more = make()
    of_ann, of_bob = opened(ann, page, form), opened(bob, page, form)
    assert ann.post(to, of_ann | written(first) | more).status_code == 302
    both = written(first) | written(second)
    if make in (mesh_limits,):
        both |= {"budget": "7"}
    assert bob.post(to, of_bob | both | more).status_code == 302
    assert (kept(row, first[0]), kept(row, second[0])) == (str(first[1]), str(second[1]))


def test_what_others_are_shown_is_not_overwritten_by_the_smaller_forms_of_a_site(ann, bob):
    row = endpoint("RAL", data_hosts=["a.example.org"])
    changes = {
        "/sites/RAL/quiet-hours/": (
            {"quiet_from": "01:00", "quiet_until": "02:00"},
            {"quiet_from": "", "quiet_until": "03:00"},
        ),
        "/sites/RAL/pause/": ({"pause_reason": "fire"}, {"pause_reason": "water"}),
        f"/sites/RAL/endpoints/{row.name}/pause/": (
            {"pause_reason": "fire"},
            {"pause_reason": "water"},
        ),
        f"/sites/RAL/endpoints/{row.name}/data-hosts/": (
            {"data_hosts": "b.example.org"},
            {"data_hosts": "c.example.org"},
        ),
    }
    for path, (of_ann, of_bob) in changes.items():
        page = "/sites/RAL/" if "endpoints" not in path else f"/sites/RAL/endpoints/{row.name}/"
        form = f'form[action="{path}"]'
        first, second = opened(ann, page, form), opened(bob, page, form)
        assert ann.post(path, first | of_ann).status_code == 302, path
        refused = bob.post(path, second | of_bob)
        assert refused.status_code == 400, path
        words = Page(refused.content.decode()).words
        assert "ann changed this at" in words, path
        assert CHANGED in words, path
    site = Site.objects.get()
    assert f"{site.quiet_hours}" == "01:00-02:00"
    row.refresh_from_db()
    assert (site.pause_reason, row.pause_reason) == ("fire", "fire")
    assert row.data_hosts == ["b.example.org"]


def test_a_role_is_not_given_back_by_who_closes_an_account(ann, bob):
    person = account(Role.OPERATOR, name="eve")
    first, second = opened(ann, "/people/eve/"), opened(bob, "/people/eve/")
    assert ann.post("/people/eve/", first | {"role": Role.READER}).status_code == 302
    del second["is_active"]
    refused = bob.post("/people/eve/", second)
    assert refused.status_code == 400
    assert CHANGED in refused.content.decode()
    person.refresh_from_db()
    assert (person.groups.count(), person.is_active) == (0, True)


def test_an_interval_and_members_of_a_mesh_are_not_taken_back(ann, bob):
    endpoint("RAL"), endpoint("LANCS")
    row = mesh()
    path = "/meshes/uk/change/"
    first, second = opened(ann, path, "#choice"), opened(bob, path, "#choice")
    of_ann = {"every-large": "2h", "sources": "RAL_DATADISK\nLANCS_DATADISK", "save": ""}
    assert ann.post(path, first | of_ann).status_code == 302
    refused = bob.post(path, second | {"priority": "9", "save": ""})
    assert refused.status_code == 400
    form = Page(refused.content.decode()).part("#choice")
    assert form.words.count("ann changed this at") == 3
    assert row.sources.count() == 2
    assert row.intervals.get(size_class__name="large").every_seconds == 7200


def test_an_interval_in_the_admin_that_was_not_touched_is_not_written(ann, bob):
    endpoint("RAL")
    row = mesh()
    large = row.intervals.get(size_class__name="large")
    path = f"/admin/sonar/mesh/{row.pk}/change/"
    sent = opened(bob, path, "form")
    MeshInterval.objects.filter(pk=large.pk).update(every_seconds=7200)
    assert bob.post(path, sent | {"priority": "9"}).status_code == 302
    large.refresh_from_db()
    row.refresh_from_db()
    assert (large.every_seconds, row.priority) == (7200, 9)


@pytest.mark.usefixtures("real_commits")
def test_of_two_who_save_at_the_same_moment_the_second_is_refused(monkeypatch):
    """The first has not committed yet when the second is read: it waits for the lock."""
    SizeClass.objects.get_or_create(name="large")
    ann, bob = (logged_in(account(Role.ADMINISTRATOR, name=name)) for name in ("ann", "bob"))
    row = Target.objects.create(name="uk")
    path = "/targets/uk/"
    of_ann, of_bob = opened(ann, path, "#choice"), opened(bob, path, "#choice")

    def first() -> None:
        assert ann.post(path, of_ann | {"failures": "7", "save": ""}).status_code == 302

    answer = at_once(lambda: bob.post(path, of_bob | {"priority": "9", "save": ""}), first)
    assert answer.status_code == 400
    assert CHANGED in answer.content.decode()
    row.refresh_from_db()
    assert (row.failures, row.priority) == (7, Target().priority)
    assert target_pages.target_of("uk").failures == 7
