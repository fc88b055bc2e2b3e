"""A registry file that did not change leaves what pages have set since it was loaded."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sonar", "0054_stop_tests")]

    operations = [
        migrations.CreateModel(
            name="FileRow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(help_text="The section of the file.", max_length=20)),
                ("name", models.CharField(max_length=200)),
                ("fields", models.JSONField(default=dict)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "name"), name="filerow_is_unique")
                ],
            },
        ),
    ]
