"""The page of size classes: what each is and is used by, and how administrators change them."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from sonar.models import SizeClass
from sonar.people.roles import Role
from sonar.results import sealing
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix import responses
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
PAGE, ADD, LARGE = "/size-classes/", "/size-classes/add/", "/size-classes/large/"
HUGE = {"name": "huge", "from_bytes": "10 GB", "test_bytes": "20 GB", "timeout_seconds": "2h"}


@pytest.fixture
def root(small_world: World) -> Client:
    return logged_in(account(Role.ADMINISTRATOR))


def test_it_says_what_each_is_and_what_uses_it(
    client: Client, small_world: World, django_assert_num_queries
):
    small_world.mesh.intervals.create(
        size_class=SizeClass.objects.get(name="large"), every_seconds=3600
    )
    for hours in (2, 3):
        transfer(small_world.ral, small_world.desy, 10.0, ago=hours * HOUR)
    sealing.seal(NOW)
    with django_assert_num_queries(3):
        page = responses.page(client, PAGE)
    rows = page.part("main table").by_head()
    assert rows["small"] == ["0 B", "100 MB", "20 MB", "10m", "0", "–"]
    assert rows["large"] == ["1 GB", "–", "2 GB", "2h", "2", "everything"]
    assert page.link("everything") == "/meshes/everything/"
    assert not page.links('a[href="/size-classes/add/"]')
    assert "A size class cannot be deleted" in page


def test_one_is_added_and_changed_and_results_outside_are_counted(root: Client, small_world: World):
    assert root.post(ADD, HUGE)["Location"] == PAGE
    row = SizeClass.objects.get(name="huge")
    assert (row.from_bytes, row.test_bytes, row.timeout_seconds) == (10**10, 2 * 10**10, 7200)
    assert "Added size class huge." in responses.page(root, PAGE)
    transfer(small_world.ral, small_world.desy, 10.0)
    assert responses.page(root, LARGE).field("from_bytes")["value"] == "1 GB"
    change = {"from_bytes": "5 GB", "test_bytes": "6 GB", "timeout_seconds": "1h"}
    page = Page(root.post(LARGE, change, follow=True).content.decode())
    assert "Changed size class large." in page
    assert "1 result is outside the bounds of its size class but stays" in page
    assert LogEntry.objects.count() == 2


@pytest.mark.parametrize(
    ("path", "wrong", "field", "sentence"),
    [
        (ADD, {"name": "add"}, "name", "The name add is reserved"),
        (ADD, {"name": "42"}, "name", "it would be read as a number"),
        (ADD, {"name": "large"}, "name", "already exists"),
        (ADD, {"from_bytes": "1 GB"}, "from_bytes", "start at the same size"),
        (ADD, {"test_bytes": "5 GB"}, "from_bytes", "must be in its range"),
        (ADD, {"test_bytes": "some"}, "test_bytes", "some"),
        (ADD, {"timeout_seconds": "31d"}, "timeout_seconds", "less than or equal to"),
        ("/size-classes/small/", {"from_bytes": "1 MB"}, "from_bytes", "must start at 0 bytes"),
    ],
)
def test_what_is_wrong_stands_at_its_field(
    root: Client, path: str, wrong: dict[str, str], field: str, sentence: str
):
    before = [*SizeClass.objects.values()]
    answer = root.post(path, HUGE | wrong)
    page = Page(answer.content.decode())
    assert answer.status_code == 400
    assert sentence in page.part(f"#size-{field}_error").words
    assert page.field("from_bytes")["value"] == (HUGE | wrong)["from_bytes"]
    assert [*SizeClass.objects.values()] == before


def test_an_unknown_one_is_said(root: Client):
    missing = root.get("/size-classes/none/")
    assert (missing.status_code, "No size class is named “none”" in missing.content.decode()) == (
        404,
        True,
    )
