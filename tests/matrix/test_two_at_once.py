"""Two who change one thing at the same moment: none takes back what the other did."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sonar.models import Credential, Endpoint, SavedView
from sonar.people import accounts, saved_views
from sonar.people.role_rules import Grant
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.matrix.test_api_registry_races import at_once
from tests.sonar.world import endpoint

pytestmark = pytest.mark.usefixtures("real_commits")


def test_the_most_views_are_kept_by_two_who_save_at_once(monkeypatch):
    user = account(name="ann")
    monkeypatch.setattr(saved_views, "MOST", 1)

    def save() -> Any:
        try:
            return saved_views.save(user, "second", "/table/")
        except saved_views.SavedViewError as error:
            return error

    def first() -> None:
        saved_views.save(user, "first", "/table/")

    assert "the maximum" in str(at_once(save, first))
    assert SavedView.objects.count() == 1


def test_a_log_in_does_not_open_an_account_that_is_closed_at_the_same_moment():
    person = accounts.Identity("https://issuer.example", "42", name="ann")
    grant = Grant(Role.READER)
    record = accounts.recorded(person, grant)
    assert record is not None
    user = record.user

    def close() -> None:
        User.objects.filter(pk=user.pk).update(is_active=False)

    at_once(lambda: accounts.recorded(person, grant), close)  # type: ignore[arg-type, return-value]
    user.refresh_from_db()
    assert not user.is_active


def test_an_endpoint_is_not_moved_while_it_is_enabled():
    row = endpoint("RAL", base_url="davs://se.ral.example:443/atlas", enabled=False)
    client = logged_in(account(Role.SITE_ADMIN, row.site))
    credential = Credential.objects.create(name="grid", hosts=["se.ral.example"])
    sent = {"name": row.name, "label": "", "software": "", "base_url": "davs://evil.example:443/x"}

    def enable() -> None:
        Endpoint.objects.filter(pk=row.pk).update(enabled=True, credential=credential)

    path = f"/sites/{row.site.name}/endpoints/{row.name}/set-up/endpoint/"
    answer = at_once(lambda: client.post(path, sent), enable)
    assert answer.status_code == 302
    row.refresh_from_db()
    assert (row.enabled, row.base_url, row.credential) == (
        True, "davs://se.ral.example:443/atlas", credential
    )  # fmt: skip


@pytest.mark.parametrize("door", ["own", "administrator", "admin"])
def test_a_new_password_does_not_open_an_account_that_is_closed_at_the_same_moment(door):
    user = User.objects.create_user("eve", password="an-old-password")
    other = logged_in(account(Role.ADMINISTRATOR))
    new = dict.fromkeys(("new_password1", "new_password2"), "a-new-password-9")
    in_admin = {"password1": "a-new-password-9", "password2": "a-new-password-9"}
    own = Client()
    own.force_login(user, "django.contrib.auth.backends.ModelBackend")
    client, path, sent = {
        "own": (own, "/password/", {"old_password": "an-old-password", **new}),
        "administrator": (other, "/people/eve/password/", new),
        "admin": (
            other,
            f"/admin/auth/user/{user.pk}/password/",
            {"usable_password": "true", **in_admin},
        ),
    }[door]

    def close() -> None:
        User.objects.filter(pk=user.pk).update(is_active=False)

    answer = at_once(lambda: client.post(path, sent), close)
    assert answer.status_code == 302
    user.refresh_from_db()
    assert (user.check_password("a-new-password-9"), user.is_active) == (True, False)


def test_a_view_that_is_deleted_while_it_is_renamed_stays_deleted(monkeypatch):
    user = account(name="ann")
    view = saved_views.save(user, "first", "/table/")
    SavedView.objects.all().delete()
    saved_views.rename(view, "second")
    assert not SavedView.objects.exists()


def test_of_two_places_that_are_added_at_once_none_is_inside_the_other():
    site = endpoint("RAL", base_url="davs://se.ral.example:443/atlas").site
    client = logged_in(account(Role.OPERATOR))
    sent = {"name": "B", "label": "", "software": "", "data_hosts": "", "vantage": ""}
    place = "davs://se.ral.example:443/cms"

    def first() -> None:
        client.post(f"/sites/{site.name}/add-endpoint/", sent | {"name": "A", "base_url": place})

    other = logged_in(account(Role.ADMINISTRATOR))
    inside = sent | {"base_url": f"{place}/disk"}
    answer = at_once(lambda: other.post(f"/sites/{site.name}/add-endpoint/", inside), first)
    assert answer.status_code == 400
    assert "The base URL overlaps with that of A" in answer.content.decode()
    assert Endpoint.objects.filter(name__in=["A", "B"]).count() == 1
