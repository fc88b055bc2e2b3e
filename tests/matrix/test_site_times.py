"""What is paused or quiet is seen: on matrix, link, operations; and it is not failing."""

import re
from datetime import time, timedelta

import pytest
from django.test import Client

from sonar.models import Schedule, Site
from tests.matrix import responses
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
LINK = "/links/RAL_DATADISK/DESY_DATADISK/"
PAUSED = "RAL has paused its tests since 20 Nov 12:00 UTC, until somebody resumes them: disks."


def words(client: Client, path: str) -> str:
    html = client.get(path).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def pause(
    name: str = "RAL", since: timedelta = timedelta(), until: timedelta | None = None
) -> None:
    site = Site.objects.get(name=name)
    site.pause(NOW + since, "disks", None if until is None else NOW + until, None)
    site.save()


@pytest.fixture
def failing(small_world) -> World:
    """From RAL to DESY the newest tests failed, of which the first of the day succeeded."""
    transfer(small_world.ral, small_world.desy, 10.0, ago=20 * HOUR)
    for minutes in (50, 40, 30):
        transfer(small_world.ral, small_world.desy, None, ago=timedelta(minutes=minutes))
    return small_world


def states(client: Client) -> set[str]:
    """Return how the link is by its matrix, by the table and by its own series."""
    found = responses.answer(client, "/api/v1/matrix/?window=24h")
    row, column = (
        [group["name"] for group in found[axis]].index(name)
        for axis, name in (("sources", "RAL_DATADISK"), ("destinations", "DESY_DATADISK"))
    )
    links = responses.answer(client, "/api/v1/links/?source_endpoint=RAL_DATADISK&window=24h")[
        "links"
    ]
    (link,) = [each for each in links if each["destination"]["name"] == "DESY_DATADISK"]
    return {found["cells"]["state"][row][column], link["large"]["state"]}


def test_a_link_of_a_paused_site_is_not_failing(client, failing):
    assert "tests have failed since" in words(client, LINK)
    assert states(client) == {"failing"}
    pause(until=HOUR)
    assert states(client) == {"measured"}
    assert "tests have failed since" not in words(client, LINK)


def test_one_whose_pause_is_over_fails_again(client, failing):
    pause(since=-HOUR, until=-timedelta(minutes=1))
    assert states(client) == {"failing"}


def test_the_matrix_names_the_paused_sites_in_sight(client, failing):
    assert "paused" not in words(client, "/")
    pause()
    title = "RAL has paused its tests."
    assert title in words(client, "/")
    assert "RAL, until somebody resumes them: disks" in words(client, "/")
    assert title in words(client, "/?rows=cloud&columns=cloud")
    assert title not in words(client, "/?source_site=DESY&destination_site=Glasgow")
    assert title in words(client, "/?wall=1")
    pause("DESY", until=HOUR)
    found = words(client, "/")
    assert "2 sites have paused their tests." in found
    assert "DESY, until 20 Nov 13:00:30 UTC: disks" in found


def test_a_link_says_which_end_is_paused_and_why_its_next_test_waits(client, small_world):
    pause()
    Schedule.objects.update(skipped_because="paused", skipped_since=NOW)
    found = words(client, LINK)
    assert f"{PAUSED} No test of this link starts meanwhile." in found
    assert "waiting: a pause of RAL" in found
    assert "because of a pause of RAL." in found
    other = words(client, "/links/Glasgow_DATADISK/DESY_DATADISK/")
    assert "paused its tests" not in other


@pytest.mark.parametrize("sites", [["RAL"], ["RAL", "DESY"]])
def test_a_link_says_whose_quiet_hours_its_next_test_waits_for(client, small_world, sites):
    Site.objects.filter(name__in=sites).update(quiet_from=time(11), quiet_until=time(13))
    Schedule.objects.update(skipped_because="quiet site", skipped_since=NOW)
    each = [f"quiet hours of {site}, 11:00-13:00 UTC" for site in sites]
    assert f"waiting: {' and '.join(each)}" in words(client, LINK)
    small_world.mesh.quiet_from, small_world.mesh.quiet_until = time(22), time(1)
    small_world.mesh.save()
    Schedule.objects.update(skipped_because="quiet hours")
    of_mesh = "waiting: quiet hours of the mesh everything, 22:00-01:00 UTC"
    assert of_mesh in words(client, LINK)


def test_what_is_due_only_later_waits_for_a_pause_that_lasts_longer(client, small_world):
    Schedule.objects.update(next_due=NOW + HOUR)
    pause(until=HOUR)
    assert "waiting:" not in words(client, LINK)
    pause(until=HOUR + timedelta(seconds=1))
    assert "waiting: a pause of RAL" in words(client, LINK)
    assert "it will wait because of a pause of RAL." in words(client, LINK)


def test_a_site_says_why_its_due_tests_wait(client, small_world):
    Schedule.objects.update(skipped_because="quiet site", skipped_since=NOW)
    assert "due tests are waiting: quiet hours of a site, the longest since" in words(
        client, "/sites/RAL/"
    )


def test_operations_lists_pauses_and_counts_what_waits_for_them(client, small_world):
    assert "Sites that have paused" not in words(client, "/operations/")
    pause()
    Schedule.objects.filter(source=small_world.ral).update(
        skipped_because="paused", skipped_since=NOW
    )
    Schedule.objects.filter(source=small_world.desy).update(
        skipped_because="quiet site", skipped_since=NOW
    )
    found = words(client, "/operations/")
    assert "site RAL , since 20 Nov 12:00 UTC, until somebody resumes them: disks" in found
    assert "the site of an endpoint has paused its tests" in found
    assert "the site of an endpoint has its quiet hours" in found
