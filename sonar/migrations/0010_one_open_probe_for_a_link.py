from django.db import migrations, models

# From a Sonar that tested a link several times at once: of each link one test stays, one that
# runs if there is one. The others wait for their turn, and what their workers find is dropped.
LET_WAIT = """
    UPDATE sonar_probe SET state = 'waiting', started_at = NULL, deadline = NULL, worker = '',
        progress_bytes = 0
    WHERE id IN (
        SELECT id FROM (
            SELECT id, row_number() OVER (PARTITION BY source_id, destination_id
                                          ORDER BY state = 'running' DESC, requested_at, id)
            FROM sonar_probe WHERE state IN ('queued', 'running')) AS numbered
        WHERE row_number > 1)
"""


class Migration(migrations.Migration):
    dependencies = [("sonar", "0009_recent_runs_by_endpoint")]

    operations = [
        migrations.AddField(
            model_name="probe",
            name="queued_at",
            field=models.DateTimeField(
                help_text="When it was queued, if it had to wait for that.", null=True
            ),
        ),
        migrations.RunSQL(LET_WAIT, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="probe",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["queued", "running"])),
                fields=("source", "destination"),
                name="probe_one_test_per_link",
            ),
        ),
    ]
