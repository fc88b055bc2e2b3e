"""An accepted rate is the new baseline of its links; subscriptions without an owner are shared."""

import django.contrib.postgres.fields
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models

KINDS = [
    "site",
    "endpoint",
    "credential",
    "mesh",
    "size class",
    "criteria set",
    "downtime",
    "alias",
    "topology source",
    "target",
    "subscription",
    "baseline",
    "all tests",
    "test",
    "account",
    "group",
    "token",
]
EVENTS = [
    "opened",
    "grew",
    "shrank",
    "worse",
    "better",
    "cause",
    "merged",
    "closed",
    "reopened",
    "acknowledged",
    "assigned",
    "muted",
    "unmuted",
    "note",
    "accepted",
]
# As `TextChoices` names those that have no label.
LABELS = {"cause": "another cause"}
WORDS = """
ALTER FUNCTION sonar_history_{old_function} RENAME TO sonar_history_{function};
CREATE OR REPLACE FUNCTION sonar_history_{function}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM sonar_history_add('{kind}', NEW.id,
        (SELECT source.name || ' → ' || destination.name || ', ' || class.name
         FROM sonar_endpoint AS source, sonar_endpoint AS destination, sonar_sizeclass AS class
         WHERE source.id = NEW.source_id AND destination.id = NEW.destination_id
             AND class.id = NEW.size_class_id),
        NULL, 'added', jsonb_build_object(
            'rate_mb_s', jsonb_build_array(NULL, NEW.rate / 1e6),
            'until', jsonb_build_array(NULL, NEW.until),
            'note', jsonb_build_array(NULL, sonar_history_value('note', to_jsonb(NEW.note)))));
    RETURN NULL;
END $$;
UPDATE sonar_historyentry SET kind = '{kind}' WHERE kind = '{old_kind}';
UPDATE sonar_incidentevent SET kind = '{event}' WHERE kind = '{old_event}';
UPDATE sonar_notification SET kinds = array_replace(kinds, '{old_event}', '{event}')
WHERE '{old_event}' = ANY(kinds);
UPDATE sonar_savedview
SET address = regexp_replace(address, '([?&])kind={asked}(&|$)', '\\1kind={kind_in_url}\\2')
WHERE address LIKE '%/history/?%';
"""
OLD = {"function": "new_normal", "kind": "new normal", "event": "new normal"}
NEW = {"function": "baseline", "kind": "baseline", "event": "accepted"}


def words(old: dict[str, str], new: dict[str, str]) -> str:
    return WORDS.format(
        **new,
        **{f"old_{name}": value for name, value in old.items()},
        asked=old["kind"].replace(" ", r"(?:\+|%20)"),
        kind_in_url=new["kind"].replace(" ", "+"),
    )


def chosen(values: list[str]) -> list[tuple[str, str]]:
    return [(value, LABELS.get(value, value.title())) for value in values]


class Migration(migrations.Migration):
    dependencies = [("sonar", "0066_incident_link_baseline")]

    operations = [
        migrations.AlterField(
            "historyentry", "kind", models.CharField(choices=chosen(KINDS), max_length=20)
        ),
        migrations.AlterField(
            "incidentevent", "kind", models.CharField(choices=chosen(EVENTS), max_length=12)
        ),
        migrations.RunSQL(words(OLD, NEW), words(NEW, OLD)),
        migrations.AlterField(
            "subscription",
            "cap",
            models.PositiveSmallIntegerField(
                default=10,
                help_text="Messages per hour; further notifications are combined into one message.",
                validators=[MinValueValidator(1), MaxValueValidator(1000)],
            ),
        ),
        migrations.AlterField(
            "subscription",
            "conditions",
            django.contrib.postgres.fields.ArrayField(
                models.CharField(max_length=7),
                blank=True,
                default=list,
                help_text="Conditions of the incidents. Empty: all.",
            ),
        ),
        migrations.AlterConstraint(
            "subscription",
            "subscription_of_list_has_no_own_sites",
            models.CheckConstraint(
                condition=models.Q(owner__isnull=False) | ~models.Q(scope="own"),
                name="subscription_of_list_has_no_own_sites",
                violation_error_message="A shared subscription cannot have the scope own.",
            ),
        ),
    ]
