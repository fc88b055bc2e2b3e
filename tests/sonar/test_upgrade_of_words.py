"""Rows of an older Sonar that hold former names go on by the new ones after `migrate`."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection

from sonar.models import HistoryEntry, SavedView, Site, UnknownAlias
from tests.accounts import account
from tests.sonar.migrating import migrate, migrate_to_now
from tests.sonar.world import NOW

pytestmark = pytest.mark.usefixtures("real_commits")
BEFORE = [("sonar", "0060_targets")]


def test_the_history_and_unknown_names_of_an_older_sonar_go_on():
    Site.objects.create(name="RAL")
    HistoryEntry.objects.all().delete()
    group = Group.objects.create(name="own")
    group.permissions.add(Permission.objects.get(codename="view_unknownalias"))
    migrate(BEFORE)
    try:
        assert group.permissions.get().codename == "view_unknownname"
        with connection.cursor() as cursor:
            cursor.execute(
                'SET sonar.actor = \'{"door": "page", "who": "anna"}\';'
                "UPDATE sonar_site SET tier = 3; RESET sonar.actor;"
                "INSERT INTO sonar_unknownname"
                " (kind, name, source, example, times, first_at, last_at)"
                f" VALUES ('rse', 'RAL-ECHO', 'rucio', '', 2, '{NOW}', '{NOW}')"
            )
    finally:
        migrate_to_now()
    assert group.permissions.get().codename == "view_unknownalias"
    assert UnknownAlias.objects.get().times == 2
    Site.objects.update(tier=1)
    entries = HistoryEntry.objects.filter(kind="site").order_by("id")
    assert [entry.channel for entry in entries] == ["page", "database"]
    assert entries[0].who == "anna"


ADDRESSES = {
    "/?size=small&stat=expected": "/?size=small&stat=predicted",
    "/?stat=residual&window=7d": "/?stat=vs_predicted&window=7d",
    "/sonar/history/?kind=site&door=API": "/sonar/history/?kind=site&channel=API",
    "/history/?name=door=": "/history/?name=door=",
    "/operations/names/": "/operations/aliases/",
}


def test_views_that_an_older_sonar_saved_open_the_same():
    user = account(name="anna")
    migrate(BEFORE)
    try:
        for address in ADDRESSES:
            SavedView.objects.create(user=user, name=address, address=address)
    finally:
        migrate_to_now()
    assert dict(SavedView.objects.values_list("name", "address")) == ADDRESSES
