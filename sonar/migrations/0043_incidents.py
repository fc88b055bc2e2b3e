"""What links are expected to do, and incidents; the version `incidents` counts their changes."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def counted(table):
    """Return the trigger by which each change of a table raises the version (migration 0002)."""
    return migrations.RunSQL(
        f"""CREATE TRIGGER {table}_counts_version
            AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON sonar_{table}
            FOR EACH STATEMENT EXECUTE FUNCTION sonar_count_version('incidents');""",
        f"DROP TRIGGER {table}_counts_version ON sonar_{table};",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("sonar", "0042_history"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="historyentry",
            name="kind",
            field=models.CharField(
                choices=[
                    ("site", "Site"),
                    ("endpoint", "Endpoint"),
                    ("credential", "Credential"),
                    ("mesh", "Mesh"),
                    ("size class", "Size Class"),
                    ("downtime", "Downtime"),
                    ("alias", "Alias"),
                    ("topology source", "Topology Source"),
                    ("expectation", "Expectation"),
                    ("account", "Account"),
                    ("group", "Group"),
                    ("token", "Token"),
                ],
                max_length=20,
            ),
        ),
        migrations.CreateModel(
            name="Incident",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "level",
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
                    "condition",
                    models.CharField(
                        choices=[("slow", "Slow"), ("silent", "Silent"), ("failing", "Failing")],
                        max_length=7,
                    ),
                ),
                (
                    "began_at",
                    models.DateTimeField(help_text="Start of the first test that shows it."),
                ),
                ("opened_at", models.DateTimeField(help_text="When Sonar saw it.")),
                (
                    "clear_since",
                    models.DateTimeField(help_text="Since when all is well again.", null=True),
                ),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "factor",
                    models.FloatField(help_text="Rate now over what is expected.", null=True),
                ),
                ("low", models.FloatField(null=True)),
                ("high", models.FloatField(null=True)),
                (
                    "links",
                    models.PositiveIntegerField(help_text="How many links are not as expected."),
                ),
                (
                    "of_links",
                    models.PositiveIntegerField(help_text="Of so many that could be judged."),
                ),
                (
                    "sizes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=80),
                        help_text="Names of its size classes.",
                        size=None,
                    ),
                ),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("muted_until", models.DateTimeField(null=True)),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "assignee",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
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
                    "merged_into",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, to="sonar.incident"
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
        ),
        migrations.CreateModel(
            name="IncidentEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("opened", "Opened"),
                            ("grew", "Grew"),
                            ("shrank", "Shrank"),
                            ("worse", "Worse"),
                            ("better", "Better"),
                            ("cause", "another cause"),
                            ("merged", "Merged"),
                            ("closed", "Closed"),
                            ("reopened", "Reopened"),
                            ("acknowledged", "Acknowledged"),
                            ("assigned", "Assigned"),
                            ("muted", "Muted"),
                            ("unmuted", "Unmuted"),
                            ("note", "Note"),
                            ("new normal", "New Normal"),
                        ],
                        max_length=12,
                    ),
                ),
                ("text", models.CharField(blank=True, max_length=1000)),
                ("values", models.JSONField(default=dict)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "incident",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="sonar.incident",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="IncidentLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "condition",
                    models.CharField(
                        choices=[("slow", "Slow"), ("silent", "Silent"), ("failing", "Failing")],
                        max_length=7,
                    ),
                ),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField(null=True)),
                ("expected", models.FloatField(help_text="Bytes per second.", null=True)),
                (
                    "rate",
                    models.FloatField(
                        help_text="Bytes per second, of its newest tests then.", null=True
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
                    "incident",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="sonar.incident",
                    ),
                ),
                (
                    "size_class",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.sizeclass",
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
            ],
        ),
        migrations.CreateModel(
            name="Expectation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "sources_filter",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="As the matrix has it in its address: cloud=UK&label=DATADISK&tag=!tape. Endpoints that fit enter by themselves, and leave when they fit no more.",
                        verbose_name="sources by filter",
                    ),
                ),
                (
                    "destinations_filter",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="As the matrix has it in its address: cloud=UK&label=DATADISK&tag=!tape. Endpoints that fit enter by themselves, and leave when they fit no more.",
                        verbose_name="destinations by filter",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=80,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9][A-Za-z0-9._-]*$",
                                "A name is made of letters, digits, dot, dash and underscore.",
                            )
                        ],
                        verbose_name="name",
                    ),
                ),
                (
                    "priority",
                    models.PositiveSmallIntegerField(
                        default=5, help_text="Of several that match a link, the highest counts."
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                (
                    "floor",
                    models.FloatField(
                        blank=True,
                        help_text="The least rate, in bytes per second; empty: the usual rate of each link.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="floor (bytes/s)",
                    ),
                ),
                (
                    "below",
                    models.FloatField(
                        default=0.6666666666666666,
                        help_text="A link is slow below this part of its usual rate, or of the floor.",
                        validators=[
                            django.core.validators.MinValueValidator(0.05),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "above",
                    models.FloatField(
                        default=0.8,
                        help_text="And well again from this part of it on.",
                        validators=[
                            django.core.validators.MinValueValidator(0.05),
                            django.core.validators.MaxValueValidator(2),
                        ],
                    ),
                ),
                (
                    "bad",
                    models.PositiveSmallIntegerField(
                        default=2,
                        help_text="So many ...",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3),
                        ],
                    ),
                ),
                (
                    "of",
                    models.PositiveSmallIntegerField(
                        default=3,
                        help_text="... of so many newest successful tests.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3),
                        ],
                    ),
                ),
                (
                    "failures",
                    models.PositiveSmallIntegerField(
                        default=3,
                        help_text="A link fails when so many tests in a row have failed.",
                        validators=[
                            django.core.validators.MinValueValidator(2),
                            django.core.validators.MaxValueValidator(100),
                        ],
                    ),
                ),
                (
                    "silent_after",
                    models.FloatField(
                        default=3.0,
                        help_text="And is silent when no result came for so many intervals of its mesh.",
                        validators=[
                            django.core.validators.MinValueValidator(1.5),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                    ),
                ),
                (
                    "mesh",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only links that this mesh tests.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.mesh",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only links from or to this site.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.site",
                    ),
                ),
                (
                    "size_class",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: every size class.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.sizeclass",
                    ),
                ),
            ],
            options={
                "ordering": ["-priority", "name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "^[A-Za-z0-9][A-Za-z0-9._-]*$")),
                        name="expectation_name_is_plain",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("floor__isnull", True), ("floor__gt", 0), _connector="OR"
                        ),
                        name="expectation_floor_is_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("above__gte", models.F("below")), ("below__gt", 0)),
                        name="expectation_above_is_not_below",
                        violation_error_message="`above` must not be less than `below`.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("bad__gte", 1), ("of__gte", models.F("bad")), ("of__lte", 3)
                        ),
                        name="expectation_tests_are_possible",
                        violation_error_message="`bad` must not be more than `of`.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HeldLevel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rate", models.FloatField(help_text="Bytes per second.")),
                ("since", models.DateTimeField()),
                (
                    "until",
                    models.DateTimeField(
                        help_text="Empty: as long as its incident is open.", null=True
                    ),
                ),
                ("note", models.CharField(blank=True, max_length=500)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                    "size_class",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sonar.sizeclass",
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("source", "destination", "size_class"),
                        name="heldlevel_once_for_a_link",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EvaluationRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("evaluated_at", models.DateTimeField()),
                ("awake_since", models.DateTimeField()),
                (
                    "links",
                    models.PositiveIntegerField(
                        help_text="How many were judged, of all size classes."
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(fields=["-opened_at", "-id"], name="incident_newest_first"),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("destination__isnull", False), ("level", "link"), ("source__isnull", False)
                    ),
                    models.Q(
                        ("destination__isnull", True),
                        ("level", "source"),
                        ("source__isnull", False),
                    ),
                    models.Q(
                        ("destination__isnull", False),
                        ("level", "destination"),
                        ("source__isnull", True),
                    ),
                    models.Q(("level", "endpoint"), ("source", models.F("destination"))),
                    models.Q(
                        ("destination__isnull", True),
                        ("level__in", ["site", "grid"]),
                        ("source__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="incident_has_the_ends_of_its_level",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("site__isnull", False),
                    models.Q(("level", "site"), _negated=True),
                    _connector="XOR",
                ),
                name="incident_has_a_site_if_of_one",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at", None)),
                fields=("level", "source", "destination", "site"),
                name="incident_open_once_for_a_cause",
                nulls_distinct=False,
            ),
        ),
        migrations.AddIndex(
            model_name="incidentlink",
            index=models.Index(
                fields=["source", "destination", "-since"], name="incidentlink_of_a_link"
            ),
        ),
        migrations.AddConstraint(
            model_name="incidentlink",
            constraint=models.UniqueConstraint(
                condition=models.Q(("until", None)),
                fields=("incident", "source", "destination", "size_class"),
                name="incidentlink_once",
            ),
        ),
        *[counted(table) for table in ("expectation", "heldlevel", "incident", "incidentevent")],
        migrations.RunSQL(
            """CREATE TRIGGER sonar_expectation_has_history
                AFTER INSERT OR DELETE OR UPDATE ON sonar_expectation
                FOR EACH ROW EXECUTE FUNCTION sonar_history_row('expectation', '{id}');""",
            "DROP TRIGGER sonar_expectation_has_history ON sonar_expectation;",
        ),
    ]
