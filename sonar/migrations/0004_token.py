"""Tokens of scripts."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SCOPES = [("read", "Read"), ("ingest", "Ingest"), ("operate", "Operate")]


class Migration(migrations.Migration):
    dependencies = [
        ("sonar", "0003_store"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Token",
            fields=[
                ("digest", models.CharField(max_length=128, primary_key=True, serialize=False)),
                ("token_key", models.CharField(db_index=True, max_length=25)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("expiry", models.DateTimeField(blank=True, null=True)),
                (
                    "name",
                    models.CharField(help_text="Name, for example cron-at-ral.", max_length=80),
                ),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(choices=SCOPES, max_length=10), size=None
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="auth_token_set",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["user__username", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "name"), name="token_name_once_for_a_user"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "^[A-Za-z0-9][A-Za-z0-9._-]*$")),
                        name="token_name_is_plain",
                        violation_error_message=(
                            "A name is made of letters, digits, dot, dash and underscore."
                        ),
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("scopes__contained_by", ["read", "ingest", "operate"]),
                            ("scopes__len__gte", 1),
                        ),
                        name="token_scopes_are_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expiry__isnull", False)), name="token_expires"
                    ),
                ],
            },
        ),
    ]
