"""Conditions, and the days that were judged; the version `incidents` counts their changes."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

COUNTED = """
    CREATE TRIGGER condition_counts_version
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON sonar_condition
    FOR EACH STATEMENT EXECUTE FUNCTION sonar_count_version('incidents');
"""


class Migration(migrations.Migration):
    dependencies = [
        ("sonar", "0056_names_in_any_case"),
    ]

    operations = [
        migrations.CreateModel(
            name="Assessment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("assessed_at", models.DateTimeField()),
                (
                    "awake_since",
                    models.DateTimeField(
                        help_text="Since when assessments have followed each other closely.",
                        null=True,
                    ),
                ),
                (
                    "free_since",
                    models.JSONField(
                        default=dict,
                        help_text="By id of an endpoint whose tests were kept back lately: until when (Unix ms).",
                    ),
                ),
                (
                    "intervals",
                    models.JSONField(
                        default=dict,
                        help_text="By id of a mesh: at which interval (seconds) it tests the class.",
                    ),
                ),
                (
                    "size_class",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.sizeclass",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Condition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField()),
                ("since_low", models.DateTimeField()),
                ("since_high", models.DateTimeField()),
                (
                    "confirmed_at",
                    models.DateTimeField(
                        help_text="Start of the test with which it was certain; empty: unconfirmed.",
                        null=True,
                    ),
                ),
                ("ended_at", models.DateTimeField(help_text="Empty while it lasts.", null=True)),
                ("factor", models.FloatField(null=True)),
                ("factor_low", models.FloatField(null=True)),
                ("factor_high", models.FloatField(null=True)),
                ("links", models.PositiveIntegerField(help_text="How many links show it.")),
                (
                    "of_links",
                    models.PositiveIntegerField(
                        help_text="How many links of its subject were tested since."
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("link", "Link"),
                            ("source", "Source"),
                            ("destination", "Destination"),
                            ("endpoint", "Endpoint"),
                            ("site", "Site"),
                            ("grid", "Grid"),
                        ],
                        max_length=11,
                    ),
                ),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("fast", "Fast"),
                            ("slow", "Slow"),
                            ("silent", "Silent"),
                            ("failing", "Failing"),
                        ],
                        max_length=7,
                    ),
                ),
                (
                    "size_classes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=80),
                        help_text="Names, in their order.",
                        size=None,
                    ),
                ),
                ("seen_at", models.DateTimeField(help_text="When Sonar first stored it.")),
                (
                    "destination",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.endpoint",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.site",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.endpoint",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="ConditionPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField()),
                ("since_low", models.DateTimeField()),
                ("since_high", models.DateTimeField()),
                (
                    "confirmed_at",
                    models.DateTimeField(
                        help_text="Start of the test with which it was certain; empty: unconfirmed.",
                        null=True,
                    ),
                ),
                ("ended_at", models.DateTimeField(help_text="Empty while it lasts.", null=True)),
                ("factor", models.FloatField(null=True)),
                ("factor_low", models.FloatField(null=True)),
                ("factor_high", models.FloatField(null=True)),
                ("links", models.PositiveIntegerField(help_text="How many links show it.")),
                (
                    "of_links",
                    models.PositiveIntegerField(
                        help_text="How many links of its subject were tested since."
                    ),
                ),
                (
                    "shown_at",
                    models.DateTimeField(help_text="Start of the test with which it showed."),
                ),
                (
                    "tests",
                    models.PositiveIntegerField(help_text="Tests of its subject since it began."),
                ),
                ("failed", models.PositiveIntegerField(help_text="Failed ones of these.")),
                (
                    "members_digest",
                    models.CharField(
                        help_text="Digest of its links and their baselines: whether they changed.",
                        max_length=32,
                    ),
                ),
                (
                    "condition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="sonar.condition",
                    ),
                ),
                (
                    "size_class",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.sizeclass",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="ConditionLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "baseline",
                    models.FloatField(
                        help_text="Bytes per second before it began; empty where too few tests say it.",
                        null=True,
                    ),
                ),
                (
                    "destination",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.endpoint",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.endpoint",
                    ),
                ),
                (
                    "part",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="sonar.conditionpart",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AssessedDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("until", models.DateTimeField(help_text="Tests up to this moment were judged.")),
                ("version", models.CharField(max_length=200)),
                ("digest", models.CharField(max_length=80)),
                ("kept", models.JSONField(default=list)),
                ("left", models.JSONField(default=list)),
                (
                    "is_recorded",
                    models.BooleanField(
                        default=False,
                        help_text="Whether conditions were stored since it was judged.",
                    ),
                ),
                (
                    "size_class",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.sizeclass",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("size_class", "day"), name="assessedday_once")
                ],
            },
        ),
        migrations.AddIndex(
            model_name="condition",
            index=models.Index(
                condition=models.Q(("ended_at", None)),
                fields=["-since", "-id"],
                name="condition_open",
            ),
        ),
        migrations.AddIndex(
            model_name="condition",
            index=models.Index(fields=["ended_at", "since"], name="condition_ended"),
        ),
        migrations.AddIndex(
            model_name="condition",
            index=models.Index(fields=["source", "destination"], name="condition_of_a_source"),
        ),
        migrations.AddIndex(
            model_name="condition",
            index=models.Index(fields=["destination"], name="condition_of_a_destination"),
        ),
        migrations.AddConstraint(
            model_name="condition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("since_high__gte", models.F("since")), ("since_low__lte", models.F("since"))
                ),
                name="condition_begins_within_its_bounds",
            ),
        ),
        migrations.AddConstraint(
            model_name="condition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("ended_at__isnull", True),
                    ("ended_at__gte", models.F("since")),
                    _connector="OR",
                ),
                name="condition_ends_after_it_begins",
            ),
        ),
        migrations.AddConstraint(
            model_name="condition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("factor", None), ("factor_high", None), ("factor_low", None)),
                    models.Q(
                        ("factor__gt", 0),
                        ("factor__isnull", False),
                        ("factor_high__gte", models.F("factor")),
                        ("factor_high__isnull", False),
                        ("factor_low__gte", 0),
                        ("factor_low__isnull", False),
                        ("factor_low__lte", models.F("factor")),
                    ),
                    _connector="OR",
                ),
                name="condition_factor_is_within_its_interval",
            ),
        ),
        migrations.AddConstraint(
            model_name="condition",
            constraint=models.CheckConstraint(
                condition=models.Q(("links__lte", models.F("of_links"))),
                name="condition_links_are_of_its_subject",
            ),
        ),
        migrations.AddConstraint(
            model_name="condition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("destination__isnull", False),
                        ("scope", "link"),
                        ("source__isnull", False),
                        models.Q(("source", models.F("destination")), _negated=True),
                    ),
                    models.Q(
                        ("destination__isnull", True),
                        ("scope", "source"),
                        ("source__isnull", False),
                    ),
                    models.Q(
                        ("destination__isnull", False),
                        ("scope", "destination"),
                        ("source__isnull", True),
                    ),
                    models.Q(("scope", "endpoint"), ("source", models.F("destination"))),
                    models.Q(
                        ("destination__isnull", True),
                        ("scope__in", ["site", "grid"]),
                        ("source__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="condition_has_the_ends_of_its_scope",
            ),
        ),
        migrations.AddConstraint(
            model_name="condition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("site__isnull", False),
                    models.Q(("scope", "site"), _negated=True),
                    _connector="XOR",
                ),
                name="condition_has_a_site_if_of_one",
            ),
        ),
        migrations.AddConstraint(
            model_name="condition",
            constraint=models.CheckConstraint(
                condition=models.Q(("type__in", ["fast", "slow", "silent", "failing"])),
                name="condition_type_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="condition",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at", None)),
                fields=("scope", "source", "destination", "site", "type"),
                name="condition_open_once_for_a_subject",
                nulls_distinct=False,
            ),
        ),
        migrations.AddIndex(
            model_name="conditionpart",
            index=models.Index(fields=["ended_at"], name="conditionpart_ended"),
        ),
        migrations.AddConstraint(
            model_name="conditionpart",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("since_high__gte", models.F("since")), ("since_low__lte", models.F("since"))
                ),
                name="conditionpart_begins_within_its_bounds",
            ),
        ),
        migrations.AddConstraint(
            model_name="conditionpart",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("ended_at__isnull", True),
                    ("ended_at__gte", models.F("since")),
                    _connector="OR",
                ),
                name="conditionpart_ends_after_it_begins",
            ),
        ),
        migrations.AddConstraint(
            model_name="conditionpart",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("factor", None), ("factor_high", None), ("factor_low", None)),
                    models.Q(
                        ("factor__gt", 0),
                        ("factor__isnull", False),
                        ("factor_high__gte", models.F("factor")),
                        ("factor_high__isnull", False),
                        ("factor_low__gte", 0),
                        ("factor_low__isnull", False),
                        ("factor_low__lte", models.F("factor")),
                    ),
                    _connector="OR",
                ),
                name="conditionpart_factor_is_within_its_interval",
            ),
        ),
        migrations.AddConstraint(
            model_name="conditionpart",
            constraint=models.CheckConstraint(
                condition=models.Q(("links__lte", models.F("of_links"))),
                name="conditionpart_links_are_of_its_subject",
            ),
        ),
        migrations.AddConstraint(
            model_name="conditionpart",
            constraint=models.CheckConstraint(
                condition=models.Q(("failed__lte", models.F("tests"))),
                name="conditionpart_failed_tests_are_tests",
            ),
        ),
        migrations.AddIndex(
            model_name="conditionlink",
            index=models.Index(fields=["source", "destination"], name="conditionlink_of_a_link"),
        ),
        migrations.AddIndex(
            model_name="conditionlink",
            index=models.Index(fields=["destination"], name="conditionlink_destination"),
        ),
        migrations.AddConstraint(
            model_name="conditionlink",
            constraint=models.UniqueConstraint(
                fields=("part", "source", "destination"), name="conditionlink_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="conditionlink",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("baseline__isnull", True), ("baseline__gt", 0), _connector="OR"
                ),
                name="conditionlink_baseline_is_positive",
            ),
        ),
        migrations.AddIndex(
            model_name="transfer",
            index=models.Index(
                condition=models.Q(
                    ("error_where__in", ["source", "destination", "control"]),
                    ("state", "failed"),
                ),
                fields=["started_at", "size_class"],
                name="transfer_failed_where",
            ),
        ),
        migrations.RunSQL(COUNTED, "DROP TRIGGER condition_counts_version ON sonar_condition;"),
    ]
