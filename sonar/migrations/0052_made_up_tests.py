"""The made-up past of a sandbox plays tests, and counts as such."""

from django.db import migrations

MADE_UP = """
    UPDATE sonar_profile SET origin = '{}'
    WHERE mover = 'fake' AND origin = '{}' AND starts_with(activity, 'made up, until ')
"""


class Migration(migrations.Migration):
    dependencies = [("sonar", "0051_last_sent")]

    operations = [
        migrations.RunSQL(
            MADE_UP.format("test", "external"), reverse_sql=MADE_UP.format("external", "test")
        ),
    ]
