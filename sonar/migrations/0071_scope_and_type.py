"""Incidents have a scope (where) and a type (what happened), like conditions.

Stored texts with the former names are rewritten: updates of incidents, the history of
subscriptions, and saved views of the pages of events and incidents.
"""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import django.contrib.postgres.fields
from django.db import migrations, models
from django.db.models import F, Q

UPDATES = """
    UPDATE sonar_incidentevent
    SET values = values - '{level,condition}'::text[] || jsonb_strip_nulls(jsonb_build_object(
        'scope', values -> 'level', 'type', values -> 'condition'))
    WHERE values ?| '{level,condition}';
"""
HISTORY = """
    UPDATE sonar_historyentry
    SET changes = changes - '{levels,conditions}'::text[] || jsonb_strip_nulls(jsonb_build_object(
        'incident_scopes', changes -> 'levels', 'incident_types', changes -> 'conditions'))
    WHERE kind = 'subscription' AND changes ?| '{levels,conditions}';
"""
LONGEST = 2000
PARAMETERS = {
    "events": {"kind": "type", "level": "scope", "certain": "significant"},
    "incidents": {"condition": "type", "level": "scope"},
    # This page is that of events, and what it called a kind is a scope.
    "changes": {"level": "type", "kind": "scope", "sure": "significant"},
}


def renamed_address(address):
    parts = urlsplit(address)
    root, _, page = parts.path.strip("/").rpartition("/")
    if page not in PARAMETERS:
        return address
    pairs = [
        (PARAMETERS[page].get(name, name), value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if page != "changes" or name != "before"
    ]
    path = f"/{root}/events/".replace("//", "/") if page == "changes" else parts.path
    return urlunsplit(parts._replace(path=path, query=urlencode(pairs, safe=":!")))


def rename_in_saved_views(apps, schema_editor):
    views = apps.get_model("sonar", "SavedView").objects
    for view in views.filter(address__regex="/(events|incidents|changes)/"):
        address = renamed_address(view.address)
        # An address that would become too long stays: its page names what has another name.
        if address != view.address and len(address) <= LONGEST:
            views.filter(pk=view.pk).update(address=address)


class Migration(migrations.Migration):
    dependencies = [("sonar", "0070_words_of_criteria")]

    operations = [
        migrations.RemoveConstraint("incident", "incident_has_the_ends_of_its_level"),
        migrations.RemoveConstraint("incident", "incident_has_a_site_if_of_one"),
        migrations.RemoveConstraint("incident", "incident_open_once_for_a_subject"),
        migrations.RenameField("incident", "level", "scope"),
        migrations.RenameField("incident", "condition", "type"),
        migrations.RenameField("incidentlink", "condition", "type"),
        migrations.RenameField("incidentevent", "kind", "type"),
        migrations.RenameField("notification", "kinds", "event_types"),
        migrations.RenameField("subscription", "levels", "incident_scopes"),
        migrations.RenameField("subscription", "conditions", "incident_types"),
        migrations.AlterField(
            "subscription",
            "incident_scopes",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=11),
                blank=True,
                default=list,
                help_text="Scopes of the incidents. Empty: all.",
                size=None,
            ),
        ),
        migrations.AlterField(
            "subscription",
            "incident_types",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=7),
                blank=True,
                default=list,
                help_text="Types of the incidents. Empty: all.",
                size=None,
            ),
        ),
        migrations.AddConstraint(
            "incident",
            models.CheckConstraint(
                condition=Q(scope="link", source__isnull=False, destination__isnull=False)
                | Q(scope="source", source__isnull=False, destination__isnull=True)
                | Q(scope="destination", source__isnull=True, destination__isnull=False)
                | Q(scope="endpoint", source=F("destination"))
                | Q(scope__in=["site", "grid"], source__isnull=True, destination__isnull=True),
                name="incident_has_the_ends_of_its_scope",
            ),
        ),
        migrations.AddConstraint(
            "incident",
            models.CheckConstraint(
                condition=Q(site__isnull=False) ^ ~Q(scope="site"),
                name="incident_has_a_site_if_of_one",
            ),
        ),
        migrations.AddConstraint(
            "incident",
            models.UniqueConstraint(
                fields=["scope", "source", "destination", "site", "type"],
                condition=Q(closed_at=None),
                nulls_distinct=False,
                name="incident_open_once_for_a_subject",
            ),
        ),
        migrations.RunSQL(UPDATES, migrations.RunSQL.noop),
        migrations.RunSQL(HISTORY, migrations.RunSQL.noop),
        migrations.RunPython(rename_in_saved_views, migrations.RunPython.noop),
    ]
