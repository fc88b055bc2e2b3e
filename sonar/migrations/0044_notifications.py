"""Whom Sonar calls for incidents, and its outbox. The history has what is changed of lists."""

import uuid

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# What is secret, whom it reaches, and what the sender notes are no part of the history.
UNTOLD = (
    "{id,key,owner_id,address,secret,confirmed_at,leased_until,told_at,failures,failing_since,"
    "retry_at,answer}"
)


def watched(events, row):
    """Return the trigger that tells of lists; what people subscribe to for themselves is theirs."""
    name = f"subscription_has_history_{row.lower()}"
    return migrations.RunSQL(
        f"""CREATE TRIGGER {name} AFTER {events} ON sonar_subscription FOR EACH ROW
            WHEN ({row}.owner_id IS NULL)
            EXECUTE FUNCTION sonar_history_row('subscription', '{UNTOLD}');""",
        f"DROP TRIGGER {name} ON sonar_subscription;",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("sonar", "0043_incidents"),
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
                    ("subscription", "Subscription"),
                    ("account", "Account"),
                    ("group", "Group"),
                    ("token", "Token"),
                ],
                max_length=20,
            ),
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "quiet_from",
                    models.TimeField(
                        blank=True,
                        help_text="UTC. No scheduled test starts between this and the next.",
                        null=True,
                    ),
                ),
                (
                    "quiet_until",
                    models.TimeField(blank=True, help_text="UTC; may be past midnight.", null=True),
                ),
                ("key", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=80)),
                ("channel", models.CharField(max_length=20)),
                ("address", models.CharField(blank=True, max_length=254)),
                ("secret", models.BinaryField(null=True)),
                (
                    "confirmed_at",
                    models.DateTimeField(editable=False, null=True),
                ),
                ("enabled", models.BooleanField(default=True)),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("own", "incidents of my own sites"),
                            ("sites", "incidents of these sites"),
                            ("grid", "all incidents"),
                        ],
                        default="grid",
                        max_length=5,
                    ),
                ),
                (
                    "levels",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=11),
                        blank=True,
                        default=list,
                        help_text="What they are of. Empty: all.",
                        size=None,
                    ),
                ),
                (
                    "conditions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=7),
                        blank=True,
                        default=list,
                        help_text="What is so. Empty: all.",
                        size=None,
                    ),
                ),
                (
                    "digest_hour",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="UTC. One message a day at this hour; empty: a message for each "
                        "incident.",
                        null=True,
                        validators=[django.core.validators.MaxValueValidator(23)],
                    ),
                ),
                (
                    "cap",
                    models.PositiveSmallIntegerField(
                        default=10,
                        help_text="So many messages an hour; what comes beyond is told in one.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                    ),
                ),
                ("leased_until", models.DateTimeField(editable=False, null=True)),
                ("told_at", models.DateTimeField(editable=False, null=True)),
                ("failures", models.PositiveIntegerField(default=0, editable=False)),
                ("failing_since", models.DateTimeField(editable=False, null=True)),
                ("retry_at", models.DateTimeField(editable=False, null=True)),
                ("answer", models.CharField(blank=True, editable=False, max_length=500)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("sites", models.ManyToManyField(blank=True, related_name="+", to="sonar.site")),
            ],
            options={
                "ordering": ["name", "id"],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("incident", "Incident"),
                            ("missed", "Missed"),
                            ("test", "Test"),
                            ("confirmation", "Confirmation"),
                        ],
                        default="incident",
                        max_length=12,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("sent", "Sent"), ("failed", "Failed")],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=12), default=list, size=None
                    ),
                ),
                ("missed", models.PositiveIntegerField(default=0)),
                ("urgent", models.BooleanField(default=False)),
                (
                    "together",
                    models.BooleanField(default=False, help_text="With others, in one message."),
                ),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "message",
                    models.UUIDField(help_text="The id of the message that told it.", null=True),
                ),
                ("answer", models.CharField(blank=True, max_length=500)),
                (
                    "incident",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to="sonar.incident",
                    ),
                ),
                (
                    "subscription",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to="sonar.subscription",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(
                fields=("owner", "name"),
                name="subscription_name_once",
                nulls_distinct=False,
                violation_error_message="Another subscription has this name already.",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(("owner", None), ("channel", "email"), _connector="OR"),
                name="subscription_of_one_is_email",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("owner__isnull", False),
                    models.Q(("scope", "own"), _negated=True),
                    _connector="OR",
                ),
                name="subscription_of_list_has_no_own_sites",
                violation_error_message="A list has no sites of its own: choose sites, or all.",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("digest_hour", None), ("digest_hour__lte", 23), _connector="OR"
                ),
                name="subscription_digest_at_an_hour",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(("cap__gte", 1)), name="subscription_cap_is_positive"
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("quiet_from__isnull", True), ("quiet_until__isnull", True)),
                    models.Q(
                        ("quiet_from__isnull", False),
                        ("quiet_until__isnull", False),
                        models.Q(("quiet_from", models.F("quiet_until")), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="subscription_quiet_hours_have_two_ends",
                violation_error_message="Quiet hours need two different times, or none.",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["due_at"],
                name="notification_waiting",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(fields=["subscription", "-id"], name="notification_newest"),
        ),
        migrations.AddConstraint(
            model_name="notification",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "waiting")),
                fields=("subscription", "incident", "kind"),
                name="notification_waits_once",
                nulls_distinct=False,
            ),
        ),
        watched("INSERT OR UPDATE", "NEW"),
        watched("DELETE", "OLD"),
    ]
