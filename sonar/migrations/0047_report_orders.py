"""Reports by e-mail are subscriptions, too: of which kind, and of which cloud."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sonar", "0046_new_normal"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="notification",
            name="period",
            field=models.CharField(blank=True, db_default="", default="", max_length=8),
        ),
        migrations.AddField(
            model_name="subscription",
            name="cloud",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
        migrations.AddField(
            model_name="subscription",
            name="report",
            field=models.CharField(
                blank=True,
                choices=[("week", "every week"), ("month", "every month")],
                db_default="",
                default="",
                max_length=5,
            ),
        ),
        migrations.AlterField(
            model_name="notification",
            name="kind",
            field=models.CharField(
                choices=[
                    ("incident", "Incident"),
                    ("missed", "Missed"),
                    ("test", "Test"),
                    ("confirmation", "Confirmation"),
                    ("report", "Report"),
                ],
                default="incident",
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("cloud", ""), ("report", "")),
                    models.Q(
                        models.Q(("report", ""), _negated=True), ("owner__isnull", False)
                    ),
                    _connector="OR",
                ),
                name="subscription_to_a_report_is_of_one",
            ),
        ),
    ]
