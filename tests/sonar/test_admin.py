"""The admin: the registry is edited, results are only looked at, errors are sentences."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from sonar.models import Downtime, Endpoint, Mesh, Site, SizeClass
from sonar.people import roles
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.sonar.world import endpoint, mesh, three_endpoints

pytestmark = pytest.mark.django_db

REGISTRY = ["site", "endpoint", "downtime", "sizeclass", "mesh", "credential"]
RESULTS = ["probe", "transfer", "leftover"]


@pytest.fixture
def admin() -> Client:
    return logged_in(account(Role.ADMINISTRATOR))


@pytest.fixture
def operator() -> Client:
    return logged_in(account(Role.OPERATOR))


def test_every_list_opens_and_the_registry_can_be_added_to_but_not_results(admin):
    three_endpoints()
    for name in (*REGISTRY, *RESULTS):
        assert admin.get(reverse(f"admin:sonar_{name}_changelist")).status_code == 200, name
        adds = admin.get(reverse(f"admin:sonar_{name}_add")).status_code
        assert adds == (200 if name in REGISTRY else 403), name


def test_an_endpoint_is_retired_never_deleted(admin):
    glasgow, _, _ = three_endpoints()
    url = reverse("admin:sonar_endpoint_delete", args=[glasgow.id])
    assert admin.post(url, {"post": "yes"}).status_code == 403
    changelist = reverse("admin:sonar_endpoint_changelist")
    admin.post(changelist, {"action": "retire", "_selected_action": [glasgow.id]})
    assert Endpoint.objects.get(id=glasgow.id).retired_at


def posted(client: Client, kind: str, row: Model | None = None, **form: object) -> str:
    """Send the form of a row, or of a new one; return what the page says if it was not kept."""
    path = f"admin:sonar_{kind}_{'change' if row else 'add'}"
    response = client.post(reverse(path, args=[row.pk] if row else []), form)
    return "" if response.status_code == 302 else response.content.decode()


def change(admin: Client, name: str, **values: object) -> str:
    row = SizeClass.objects.get(name=name)
    fields = ("name", "from_bytes", "test_bytes", "timeout_seconds")
    return posted(admin, "sizeclass", row, **{key: getattr(row, key) for key in fields} | values)


def test_size_classes_that_would_not_tile_are_an_error_in_the_form(admin):
    before = list(SizeClass.objects.values())
    for name, values, said in (
        ("small", {"from_bytes": 5}, "must start at 0 bytes"),
        ("medium", {"test_bytes": 5}, "must be in its range"),
        ("medium", {"from_bytes": 10**9}, "start at the same size"),
    ):
        assert said in change(admin, name, **values)
        assert list(SizeClass.objects.values()) == before


def test_half_quiet_hours_are_an_error_in_the_form(admin):
    said = "Quiet hours need a start and an end, at different times."
    assert said in posted(admin, "mesh", **mesh_form(quiet_from="01:00"))
    assert not Mesh.objects.exists()


def test_a_flow_label_is_written_in_the_form_as_in_files(admin):
    page = posted(admin, "mesh", **mesh_form(scitag="139"))
    said = "Write a flow label as experiment/activity, for example 2/11: the experiment from 1 to"
    assert said in page
    assert posted(admin, "mesh", **mesh_form(scitag=" 2/11 ")) == ""
    made = Mesh.objects.get()
    assert made.scitag == 139
    change_url = reverse("admin:sonar_mesh_change", args=[made.id])
    assert 'value="2/11"' in admin.get(change_url).content.decode()
    assert posted(admin, "mesh", made, **mesh_form()) == ""
    assert Mesh.objects.get().scitag is None


def mesh_form(**change: object) -> dict[str, object]:
    form = {"name": "uk", "mover": "http-tpc", "mode": "pull", "streams": 1, "priority": 5}
    return form | {"intervals-TOTAL_FORMS": 0, "intervals-INITIAL_FORMS": 0} | change


def test_a_mesh_whose_mover_does_not_fit_is_an_error_in_the_form(admin):
    glasgow, lancs, _ = three_endpoints()
    web = endpoint("CERN", base_url="https://cern.example/data")
    ends = {"sources": [glasgow.id, web.id], "destinations": [lancs.id]}
    page = posted(admin, "mesh", **mesh_form(**ends))
    assert (
        "The transfer tool http-tpc supports the URL schemes dav, davs, http, https, not those of"
        in page
    )
    assert "GLASGOW_DATADISK (fake), LANCS_DATADISK (fake)." in page
    assert not Mesh.objects.exists()
    assert posted(admin, "mesh", **mesh_form(sources=[web.id])) == ""
    page = posted(admin, "mesh", Mesh.objects.get(), **mesh_form(sources=[web.id], mover="fake"))
    assert (
        "The transfer tool fake supports the URL scheme fake, not those of CERN_DATADISK (https)."
        in page
    )


def test_a_base_url_that_does_not_fit_is_an_error_in_the_form(admin):
    glasgow, _, _ = three_endpoints()
    form = {"name": glasgow.name, "site": glasgow.site_id, "inbound_cap": 2, "outbound_cap": 2}
    page = posted(admin, "endpoint", glasgow, **form, base_url="https://me:sesame@x/y")
    assert "without user name, password or query" in page
    mesh("lan").sources.add(glasgow)
    page = posted(admin, "endpoint", glasgow, **form, base_url="root://glasgow/data")
    assert "GLASGOW_DATADISK cannot have a base URL with root. The transfer tools of" in page
    assert "lan (fake). First remove the endpoint from these meshes." in page
    assert posted(admin, "endpoint", glasgow, **form, base_url="fake://other/data") == ""


def test_the_page_of_an_account_says_its_role(admin):
    glasgow, _, _ = three_endpoints()
    shifter = account(Role.SITE_ADMIN, glasgow.site, name="shifter")
    form = admin.get(reverse("admin:auth_user_change", args=[shifter.pk])).context["adminform"].form
    assert form["role"].value() == Role.SITE_ADMIN
    assert form["sites"].value() == [glasgow.site_id]
    every = admin.get(reverse("admin:auth_user_changelist")).content.decode()
    assert "a site admin of GLASGOW" in every
    assert admin.get(reverse("admin:auth_user_add")).status_code == 200


def change_account(client: Client, user: User, **change: object) -> str:
    """Send the form of an account; return what the page says if it was not kept."""
    url = reverse("admin:auth_user_change", args=[user.pk])
    form = {"username": user.username, "is_active": "on", "role": "reader"} | change
    response = client.post(url, form)
    return "" if response.status_code == 302 else response.content.decode()


def test_the_form_of_an_account_gives_each_role_and_takes_it(admin):
    glasgow, _, _ = three_endpoints()
    anna = account(name="anna")
    steps = [
        ({"role": "site-admin", "sites": [glasgow.site_id]}, "a site admin of GLASGOW"),
        ({"role": "operator"}, "an operator"),
        ({"role": "administrator"}, "an administrator"),
        ({}, "a reader"),
    ]
    for change, described in steps:
        assert change_account(admin, anna, **change) == ""
        assert roles.described(User.objects.get(pk=anna.pk)) == described


def test_a_new_account_has_its_role_at_once(admin):
    glasgow, _, _ = three_endpoints()
    form = {"username": "anna", "usable_password": "false", "role": "site-admin"}
    answer = admin.post(reverse("admin:auth_user_add"), form | {"sites": [glasgow.site_id]})
    assert answer.status_code == 302
    assert roles.described(User.objects.get(username="anna")) == "a site admin of GLASGOW"


def test_a_role_that_does_not_fit_is_an_error_in_the_form(admin):
    glasgow, _, _ = three_endpoints()
    anna = account(name="anna")
    page = change_account(admin, anna, role="operator", sites=[glasgow.site_id])
    assert "Sites can be selected only for site admins. Clear the selection of sites, or" in page
    assert roles.role_of(User.objects.get(pk=anna.pk)) is Role.READER
    root = User.objects.get(is_superuser=True)
    for change in ({"role": "operator"}, {"role": "administrator", "is_active": ""}):
        assert "This is the last active administrator." in change_account(admin, root, **change)
    roles.give(anna, Role.ADMINISTRATOR)
    assert change_account(admin, root, role="operator") == ""


def test_sizes_and_durations_have_units_in_forms(admin):
    medium = SizeClass.objects.get(name="medium")
    url = reverse("admin:sonar_sizeclass_change", args=[medium.pk])
    form = admin.get(url).context["adminform"].form
    assert (form["from_bytes"].value(), form["timeout_seconds"].value()) == ("100 MB", "30m")
    change(admin, "medium", from_bytes="50 MB", test_bytes="100 MB", timeout_seconds="90m")
    medium.refresh_from_db()
    assert (medium.from_bytes, medium.timeout_seconds) == (50_000_000, 5400)
    said = "is not a size: write a number and kB, MB, GB or TB"
    assert said in change(admin, "medium", from_bytes="many")


def test_each_form_begins_with_what_a_row_is(admin):
    for kind in (*REGISTRY, "annotation"):
        form = admin.get(reverse(f"admin:sonar_{kind}_add")).context["adminform"].form
        first = {"downtime": "site", "annotation": "text"}.get(kind, "name")
        assert next(iter(form.fields)) == first


def test_words_and_times_are_those_of_the_pages(admin):
    glasgow, _, _ = three_endpoints()
    Downtime.objects.create(
        site=glasgow.site,
        starts_at=datetime(2026, 11, 24, 14, 20, tzinfo=UTC),
        ends_at=datetime(2026, 11, 25, tzinfo=UTC),
        reason="moves",
    )
    assert "2026-11-24 14:20" in admin.get("/admin/sonar/downtime/").content.decode()
    index = admin.get(reverse("admin:index")).content.decode()
    assert re.findall(r'<a href="/admin/\w+/\w+/">(.*?)</a>', index) == [
        *("Sites", "Endpoints", "Meshes", "Size classes", "Credentials", "Downtimes", "Notes"),
        *("Tests", "Results", "Files left behind", "Users", "Groups"),
    ]


def test_only_administrators_make_site_admins(admin, operator):
    glasgow, _, _ = three_endpoints()
    site, shifter = glasgow.site, account(name="shifter")
    form = {"name": site.name, "cloud": "DE", "tier": 2}
    assert posted(operator, "site", site, **form, admins=[shifter.pk]) == ""
    assert Site.objects.get(id=site.id).cloud == "DE"
    assert not site.admins.exists()
    posted(admin, "site", site, **form, admins=[shifter.pk])
    assert list(site.admins.all()) == [shifter]
    shown = operator.get(reverse("admin:sonar_site_change", args=[site.id]))
    assert "shifter" in shown.content.decode()
    posted(operator, "site", site, **form)
    assert list(site.admins.all()) == [shifter]


def test_operators_edit_the_registry_as_far_as_their_permissions_go(operator):
    three_endpoints()
    index = operator.get(reverse("admin:index")).content.decode()
    shown = set(re.findall(r"/admin/(\w+/\w+)/", index))
    assert shown == {f"sonar/{name}" for name in (*REGISTRY, *RESULTS, "annotation")}
    for name in ("site", "endpoint", "downtime", "mesh", "annotation"):
        assert operator.get(reverse(f"admin:sonar_{name}_add")).status_code == 200, name
    assert operator.get(reverse("admin:sonar_sizeclass_add")).status_code == 403
    small = SizeClass.objects.get(name="small")
    before = SizeClass.objects.values().get(id=small.id)
    change_url = reverse("admin:sonar_sizeclass_change", args=[small.id])
    assert operator.post(change_url, before | {"timeout_seconds": 5}).status_code == 403
    for path in ("auth_user_changelist", "auth_group_changelist", "auth_user_add"):
        assert operator.get(reverse(f"admin:{path}")).status_code == 403
    other = account(name="other")
    assert operator.get(reverse("admin:auth_user_change", args=[other.pk])).status_code == 403


@pytest.mark.parametrize("role", [Role.READER, Role.SITE_ADMIN])
def test_the_admin_is_closed_to_others(role: Role):
    glasgow, _, _ = three_endpoints()
    client = logged_in(account(role, *([glasgow.site] if role is Role.SITE_ADMIN else [])))
    answer = client.get(reverse("admin:index"))
    assert (answer.status_code, answer["Location"]) == (302, "/admin/login/?next=/admin/")


def test_an_operator_who_is_no_more_one_is_out_at_once(operator):
    assert operator.get(reverse("admin:index")).status_code == 200
    roles.give(User.objects.get(), Role.READER)
    assert operator.get(reverse("admin:index")).status_code == 302
