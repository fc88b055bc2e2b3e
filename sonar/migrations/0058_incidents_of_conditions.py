"""Each incident follows a condition; levels that Sonar held of its own accord are no longer used.

A condition keeps what was usual of its links before it, so what remains held was accepted by
somebody, with a note that says why.
"""

import django.db.models.deletion
from django.db import migrations, models

AUTOMATIC = "DELETE FROM sonar_heldlevel WHERE by_id IS NULL AND note = ''"


class Migration(migrations.Migration):
    dependencies = [("sonar", "0057_conditions")]

    operations = [
        migrations.RemoveConstraint(
            model_name="incident",
            name="incident_open_once_for_a_cause",
        ),
        migrations.AddField(
            model_name="incident",
            name="cause",
            field=models.ForeignKey(
                help_text="The condition that it follows; empty for older ones.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="incidents",
                to="sonar.condition",
            ),
        ),
        migrations.AlterField(
            model_name="evaluationrun",
            name="links",
            field=models.PositiveIntegerField(default=0, help_text="Of no use any more."),
        ),
        migrations.AlterField(
            model_name="incident",
            name="began_at",
            field=models.DateTimeField(help_text="When it most likely began."),
        ),
        migrations.AlterField(
            model_name="incident",
            name="factor",
            field=models.FloatField(
                help_text="Rate since it began over the rate before.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="incident",
            name="links",
            field=models.PositiveIntegerField(help_text="How many links show it."),
        ),
        migrations.AlterField(
            model_name="incident",
            name="of_links",
            field=models.PositiveIntegerField(
                help_text="How many links of its subject were tested since."
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at", None)),
                fields=("level", "source", "destination", "site", "condition"),
                name="incident_open_once_for_a_subject",
                nulls_distinct=False,
            ),
        ),
        migrations.RunSQL(AUTOMATIC, migrations.RunSQL.noop),
    ]
