"""The page of all downtimes: of each time and source, and page by page."""

import pytest
from django.test import Client

from sonar.models import Downtime
from tests.matrix import responses
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
PAGE = "/downtimes/"
TIMES = ("20 Nov 11:00", "20 Nov 13:00")


def test_those_of_each_time_and_source_are_listed(
    client: Client, small_world: World, django_assert_num_queries
):
    assert "There are no downtimes. Downtimes are declared on site pages" in responses.page(
        client, PAGE
    )
    hour = {"starts_at": NOW - HOUR, "ends_at": NOW + HOUR}
    Downtime.objects.create(site=small_world.ral.site, reason="new switch", **hour)
    told = {
        "origin": "gocdb",
        "key": "7G0",
        "url": "https://gocdb.example/7",
        "severity": "warning",
    }
    Downtime.objects.create(endpoint=small_world.desy, reason="disks", **hour, **told)
    later = {"starts_at": NOW + HOUR, "ends_at": NOW + 9 * HOUR}
    Downtime.objects.create(site=small_world.desy.site, reason="power", **later)
    for hours in range(2, 105):
        span = {"starts_at": NOW - hours * HOUR, "ends_at": NOW - hours * HOUR + HOUR / 2}
        Downtime.objects.create(site=small_world.ral.site, reason=f"past {hours}", **span)
    with django_assert_num_queries(3):
        page = responses.page(client, PAGE)
    assert page.texts('[aria-label="when"] a') == ["now 2", "coming 1", "past 103"]
    rows = page.part("main table").by_head()
    assert rows["RAL"] == ["all", *TIMES, "down", "new switch", "Sonar"]
    assert rows["DESY"] == ["DESY_DATADISK", *TIMES, "at risk (tests run)", "disks", "GOCDB"]
    assert "power" in responses.page(client, f"{PAGE}?when=coming")
    past = responses.page(client, f"{PAGE}?when=past")
    assert "Showing 1 to 100 of 103 rows" in past
    assert past.link("next") == f"{PAGE}?when=past&page=2"
    of_gocdb = responses.page(client, f"{PAGE}?source=gocdb")
    assert ("disks" in of_gocdb, "new switch" in of_gocdb) == (True, False)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("when=soon", "when “soon” is not known: use now, coming or past."),
        ("source=x", "source “x” is not known: use hand, gocdb or osg."),
        ("page=0", "a whole number of at least 1"),
    ],
)
def test_what_is_none_is_refused_by_its_name(client, small_world, wrong: str, sentence: str):
    answer = client.get(f"{PAGE}?{wrong}")
    assert (answer.status_code, sentence in answer.content.decode()) == (400, True)
