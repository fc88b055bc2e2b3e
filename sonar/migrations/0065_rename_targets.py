"""Rename expectations to targets, and keep their minimum rates in MB/s.

Stored words follow: history entries, saved views, rows of registry files and permissions.
"""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.models import F, Q

KINDS = [
    ("site", "Site"),
    ("endpoint", "Endpoint"),
    ("credential", "Credential"),
    ("mesh", "Mesh"),
    ("size class", "Size Class"),
    ("criteria set", "Criteria Set"),
    ("downtime", "Downtime"),
    ("alias", "Alias"),
    ("topology source", "Topology Source"),
    ("target", "Target"),
    ("subscription", "Subscription"),
    ("new normal", "New Normal"),
    ("all tests", "All Tests"),
    ("test", "Test"),
    ("account", "Account"),
    ("group", "Group"),
    ("token", "Token"),
]

# The history must not report the change of unit, so its trigger is away meanwhile.
NO_HISTORY = "DROP TRIGGER sonar_{0}_has_history ON sonar_{0};"
HISTORY = """
CREATE TRIGGER sonar_{0}_has_history AFTER INSERT OR DELETE OR UPDATE ON sonar_{0}
    FOR EACH ROW EXECUTE FUNCTION sonar_history_row('{0}', '{{id}}');
"""
COUNTING = "ALTER TRIGGER {0}_counts_version ON sonar_target RENAME TO {1}_counts_version;"
SCALE = "UPDATE sonar_target SET floor_mb_s = floor_mb_s {} 1e6 WHERE floor_mb_s IS NOT NULL;"

# What is held without anybody's name is Sonar's own, and comes and goes with its incident.
ACCEPTED = """
CREATE OR REPLACE FUNCTION sonar_history_new_normal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM sonar_history_add('new normal', NEW.id,
        (SELECT source.name || ' → ' || destination.name || ', ' || class.name
         FROM sonar_endpoint AS source, sonar_endpoint AS destination, sonar_sizeclass AS class
         WHERE source.id = NEW.source_id AND destination.id = NEW.destination_id
             AND class.id = NEW.size_class_id),
        NULL, 'added', jsonb_build_object(
            '{}', jsonb_build_array(NULL, NEW.rate{}),
            'until', jsonb_build_array(NULL, NEW.until),
            'note', jsonb_build_array(NULL, sonar_history_value('note', to_jsonb(NEW.note)))));
    RETURN NULL;
END $$;
"""

CHANGES = """
UPDATE sonar_historyentry
SET changes = changes - '{old}' || jsonb_build_object('{new}', (
    SELECT jsonb_agg(
        CASE jsonb_typeof(value) WHEN 'number' THEN to_jsonb(value::text::float8 {scale} 1e6)
            ELSE value END ORDER BY place)
    FROM jsonb_array_elements(changes -> '{old}') WITH ORDINALITY AS pair(value, place)))
WHERE kind = '{kind}' AND changes ? '{old}';
"""
WORDS = """
UPDATE sonar_historyentry SET kind = '{new}' WHERE kind = '{old}';
UPDATE sonar_historyentry
SET changes = replace(changes::text, '_{old}"', '_{new}"')::jsonb
WHERE kind IN ('account', 'group') AND changes ? 'permissions'
    AND changes::text LIKE '%\\_{old}"%';
UPDATE sonar_filerow SET kind = '{new}s',
    fields = CASE WHEN jsonb_typeof(fields -> 'floor') = 'number' THEN
        fields || jsonb_build_object('floor', (fields ->> 'floor')::float8 {scale} 1e6)
        ELSE fields END
WHERE kind = '{old}s';
UPDATE auth_permission
SET codename = replace(codename, '{old}', '{new}'), name = replace(name, '{old}', '{new}')
WHERE codename LIKE '%\\_{old}' AND content_type_id IN (
    SELECT id FROM django_content_type
    WHERE app_label = 'sonar' AND model IN ('expectation', 'target'));
UPDATE sonar_savedview
SET address = regexp_replace(regexp_replace(regexp_replace(address,
    '([?&]stat=){old_stat}(?=[&#]|$)', '\\1{new_stat}'),
    '([?&]kind=){old}(?=[&#]|$)', '\\1{new}'),
    '^([^?#]*)/{old}s/', '\\1/{new}s/')
WHERE address LIKE '%{old}%' OR address LIKE '%stat={old_stat}%';
"""
NOW = {"old": "expectation", "new": "target", "old_stat": "expectation", "new_stat": "vs_target"}
BEFORE = {"old": "target", "new": "expectation", "old_stat": "vs_target", "new_stat": "expectation"}


class Migration(migrations.Migration):
    dependencies = [
        ("sonar", "0064_addresses_of_views"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.RunSQL(NO_HISTORY.format("expectation"), HISTORY.format("expectation")),
        migrations.RemoveConstraint("expectation", "expectation_name_is_plain"),
        migrations.RemoveConstraint("expectation", "expectation_floor_is_positive"),
        migrations.RemoveConstraint("expectation", "expectation_above_is_not_below"),
        migrations.RenameModel("Expectation", "Target"),
        migrations.RenameField("target", "floor", "floor_mb_s"),
        migrations.RunSQL(SCALE.format("/"), SCALE.format("*")),
        migrations.AlterField(
            "target",
            "floor_mb_s",
            models.FloatField(
                blank=True,
                help_text="Minimum rate in MB/s. Empty: the baseline of each link.",
                null=True,
                validators=[MinValueValidator(0.001), MaxValueValidator(1e6)],
                verbose_name="minimum rate (MB/s)",
            ),
        ),
        migrations.AlterField(
            "target",
            "priority",
            models.PositiveSmallIntegerField(
                default=5,
                help_text="If several targets match a link, the one with the highest priority "
                "applies.",
            ),
        ),
        migrations.AlterField(
            "target",
            "below",
            models.FloatField(
                default=2 / 3,
                help_text="A link is slow below this fraction of its minimum rate or baseline.",
                validators=[MinValueValidator(0.05), MaxValueValidator(1)],
            ),
        ),
        migrations.AlterField(
            "target",
            "above",
            models.FloatField(
                default=0.8,
                help_text="The statistic rate / target (stat=vs_target) shows a link as near "
                "target from `below` up to this fraction. Incidents do not depend on it.",
                validators=[MinValueValidator(0.05), MaxValueValidator(2)],
            ),
        ),
        migrations.AlterField(
            "target",
            "failures",
            models.PositiveSmallIntegerField(
                default=3,
                help_text="Number of consecutive failed tests after which a link is failing.",
                validators=[MinValueValidator(2), MaxValueValidator(100)],
            ),
        ),
        migrations.AlterField(
            "target",
            "silent_after",
            models.FloatField(
                default=3.0,
                help_text="Number of test intervals without a result after which a link is "
                "silent.",
                validators=[MinValueValidator(1.5), MaxValueValidator(1000)],
            ),
        ),
        migrations.AddConstraint(
            "target",
            models.CheckConstraint(
                condition=Q(name__regex="^[A-Za-z0-9][A-Za-z0-9._-]*$"),
                name="target_name_is_plain",
            ),
        ),
        migrations.AddConstraint(
            "target",
            models.CheckConstraint(
                condition=Q(floor_mb_s__isnull=True) | Q(floor_mb_s__gt=0),
                name="target_floor_is_positive",
            ),
        ),
        migrations.AddConstraint(
            "target",
            models.CheckConstraint(
                condition=Q(below__gt=0, above__gte=F("below")),
                name="target_above_is_not_below",
                violation_error_message="`above` must not be less than `below`.",
            ),
        ),
        migrations.RunSQL(
            COUNTING.format("expectation", "target"), COUNTING.format("target", "expectation")
        ),
        migrations.RunSQL(HISTORY.format("target"), NO_HISTORY.format("target")),
        migrations.AlterField(
            "historyentry", "kind", models.CharField(choices=KINDS, max_length=20)
        ),
        migrations.RunSQL(
            ACCEPTED.format("rate_mb_s", " / 1e6"),
            ACCEPTED.format("rate", ""),
        ),
        migrations.RunSQL(
            CHANGES.format(kind="expectation", old="floor", new="floor_mb_s", scale="/"),
            CHANGES.format(kind="expectation", old="floor_mb_s", new="floor", scale="*"),
        ),
        migrations.RunSQL(
            CHANGES.format(kind="new normal", old="rate", new="rate_mb_s", scale="/"),
            CHANGES.format(kind="new normal", old="rate_mb_s", new="rate", scale="*"),
        ),
        migrations.RunSQL(WORDS.format(**NOW, scale="/"), WORDS.format(**BEFORE, scale="*")),
    ]
