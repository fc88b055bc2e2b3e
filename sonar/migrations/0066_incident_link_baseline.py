"""The rate of a link before an incident is its baseline, as that of a condition is."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("sonar", "0065_rename_targets")]

    operations = [migrations.RenameField("incidentlink", "expected", "baseline")]
