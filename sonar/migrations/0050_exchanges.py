"""Endpoints may exchange their names, or their base URLs, in one statement or transaction."""

from django.db import migrations

UNIQUE = """
    ALTER TABLE sonar_endpoint DROP CONSTRAINT sonar_endpoint_{column}_key,
        ADD CONSTRAINT sonar_endpoint_{column}_key UNIQUE ({column}) {when}
"""


def checked(when: str) -> list[str]:
    return [UNIQUE.format(column=column, when=when) for column in ("name", "base_url")]


class Migration(migrations.Migration):
    dependencies = [("sonar", "0049_sourced_ids")]

    operations = [
        migrations.RunSQL(
            checked("DEFERRABLE INITIALLY IMMEDIATE"), reverse_sql=checked("NOT DEFERRABLE")
        ),
    ]
