"""Quiet hours and pauses of sites. What an older Sonar still writes meanwhile has none."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q

REASONS = {
    "downtime": "Downtime",
    "cap": "Cap",
    "quiet hours": "Quiet Hours",
    "budget": "Budget",
    "link": "another test of this link has not ended",
    "circuit": "an end keeps failing",
    "credential": "a credential would go where it may not",
    "paused": "a site has paused its tests",
    "quiet site": "a site is in its quiet hours",
}
# Those reasons are not known any more: the next tick says it by another one.
FORGET_REASONS = """
    UPDATE sonar_schedule SET skipped_because = '', skipped_since = NULL
    WHERE skipped_because IN ('paused', 'quiet site')
"""
QUIET_FROM = models.TimeField(
    blank=True,
    help_text="UTC. No scheduled test starts between this and the next.",
    null=True,
)
COLUMNS = {
    "quiet_from": QUIET_FROM,
    "quiet_until": models.TimeField(
        blank=True, help_text="UTC; may be past midnight.", null=True
    ),
    "paused_since": models.DateTimeField(
        blank=True, help_text="UTC. Empty: its tests are not paused.", null=True
    ),
    "paused_until": models.DateTimeField(
        blank=True, help_text="UTC. Empty: until somebody resumes them.", null=True
    ),
    "pause_reason": models.CharField(
        blank=True, db_default="", default="", help_text="Shown to everybody.", max_length=200
    ),
    "paused_by": models.ForeignKey(
        blank=True,
        editable=False,
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
    ),
}
RULES = [
    models.CheckConstraint(
        condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
        | Q(quiet_from__isnull=False, quiet_until__isnull=False) & ~Q(quiet_from=F("quiet_until")),
        name="site_quiet_hours_have_two_ends",
        violation_error_message="Quiet hours need two different times, or none.",
    ),
    models.CheckConstraint(
        condition=Q(paused_since__isnull=True, paused_until__isnull=True, pause_reason="")
        | Q(paused_since__isnull=False) & ~Q(pause_reason=""),
        name="site_pause_has_a_reason",
        violation_error_message="A pause has a beginning and a reason; without one, leave its "
        "beginning, end and reason empty.",
    ),
    models.CheckConstraint(
        condition=Q(paused_until__isnull=True) | Q(paused_until__gt=F("paused_since")),
        name="site_pause_ends_after_it_starts",
        violation_error_message="A pause must end after it starts.",
    ),
]


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sonar", "0013_saved_view"),
    ]

    operations = [
        *(migrations.AddField("site", name, field) for name, field in COLUMNS.items()),
        *(migrations.AddConstraint("site", rule) for rule in RULES),
        migrations.AlterField("mesh", "quiet_from", QUIET_FROM),
        migrations.AlterField(
            "site",
            "admins",
            models.ManyToManyField(
                blank=True,
                help_text="Accounts that may order and pause tests, and write downtimes and "
                "notes, for this site.",
                related_name="administered_sites",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RemoveConstraint("schedule", "schedule_skip_reason_is_known"),
        migrations.RunSQL(migrations.RunSQL.noop, FORGET_REASONS),
        migrations.AlterField(
            "schedule",
            "skipped_because",
            models.CharField(blank=True, choices=list(REASONS.items()), max_length=12),
        ),
        migrations.AddConstraint(
            "schedule",
            models.CheckConstraint(
                condition=Q(skipped_because__in=["", *REASONS]),
                name="schedule_skip_reason_is_known",
            ),
        ),
    ]
