"""All tests can be stopped, and one that runs; a check keeps what it depends on."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q

TRIGGERS = """
CREATE TRIGGER alltests_counts_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE
ON sonar_alltests FOR EACH STATEMENT EXECUTE FUNCTION sonar_count_version('registry');
CREATE TRIGGER sonar_alltests_has_history AFTER INSERT OR DELETE OR UPDATE ON sonar_alltests
FOR EACH ROW EXECUTE FUNCTION sonar_history_row('all tests', '{id,name}');
"""
NO_TRIGGERS = """
DROP TRIGGER sonar_alltests_has_history ON sonar_alltests;
DROP TRIGGER alltests_counts_version ON sonar_alltests;
"""
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
    ("expectation", "Expectation"),
    ("subscription", "Subscription"),
    ("new normal", "New Normal"),
    ("all tests", "All Tests"),
    ("test", "Test"),
    ("account", "Account"),
    ("group", "Group"),
    ("token", "Token"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("sonar", "0053_drafts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="endpointcheck",
            name="checked",
            field=models.JSONField(
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="Digests of what the check depends on, as it was then.",
            ),
        ),
        migrations.AddField(
            model_name="probe",
            name="cancelled_by",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Who cancelled it while it ran, as all may read it; its worker ends it "
                "then.",
                max_length=100,
            ),
        ),
        migrations.AlterField(
            model_name="historyentry",
            name="kind",
            field=models.CharField(choices=KINDS, max_length=20),
        ),
        migrations.CreateModel(
            name="AllTests",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "paused_since",
                    models.DateTimeField(
                        blank=True, help_text="UTC. Empty: its tests are not paused.", null=True
                    ),
                ),
                (
                    "paused_until",
                    models.DateTimeField(
                        blank=True, help_text="UTC. Empty: until somebody resumes them.", null=True
                    ),
                ),
                (
                    "pause_reason",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Shown to everybody.",
                        max_length=200,
                    ),
                ),
                (
                    "name",
                    models.CharField(default="all tests", editable=False, max_length=20),
                ),
                (
                    "paused_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "stop of all tests",
                "verbose_name_plural": "stop of all tests",
                "constraints": [
                    models.CheckConstraint(condition=Q(id=1), name="alltests_is_one"),
                    models.CheckConstraint(
                        condition=Q(
                            paused_since__isnull=True, paused_until__isnull=True, pause_reason=""
                        )
                        | Q(paused_since__isnull=False) & ~Q(pause_reason=""),
                        name="alltests_pause_has_a_reason",
                        violation_error_message="A pause has a beginning and a reason; without "
                        "one, leave its beginning, end and reason empty.",
                    ),
                    models.CheckConstraint(
                        condition=Q(paused_until__isnull=True)
                        | Q(paused_until__gt=F("paused_since")),
                        name="alltests_pause_ends_after_it_starts",
                        violation_error_message="A pause must end after it starts.",
                    ),
                ],
            },
        ),
        migrations.RunSQL(TRIGGERS, NO_TRIGGERS),
    ]
