"""The schedule and probes without checks and indexes that nothing reads: see the models."""

import django.db.models.deletion
from django.db import migrations, models

# Claims leave dead rows at the front of its index on the due time: not a fifth of the table.
VACUUM = "ALTER TABLE sonar_schedule SET (autovacuum_vacuum_scale_factor = 0.02);"
NO_VACUUM = "ALTER TABLE sonar_schedule RESET (autovacuum_vacuum_scale_factor);"
CASCADE, PROTECT = django.db.models.deletion.CASCADE, django.db.models.deletion.PROTECT


def lean(model, name, to, on_delete):
    field = models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=on_delete,
        related_name="+",
        to=f"sonar.{to}",
    )
    return migrations.AlterField(model_name=model, name=name, field=field)


class Migration(migrations.Migration):
    dependencies = [("sonar", "0004_token")]

    operations = [
        lean("schedule", "mesh", "mesh", CASCADE),
        lean("schedule", "source", "endpoint", CASCADE),
        lean("schedule", "destination", "endpoint", CASCADE),
        lean("schedule", "size_class", "sizeclass", CASCADE),
        lean("probe", "source", "endpoint", PROTECT),
        lean("probe", "destination", "endpoint", PROTECT),
        lean("probe", "size_class", "sizeclass", PROTECT),
        migrations.AlterField(
            model_name="probe",
            name="mesh",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to="sonar.mesh",
            ),
        ),
        migrations.AlterField(
            model_name="probe",
            name="schedule",
            field=models.OneToOneField(
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to="sonar.schedule",
            ),
        ),
        migrations.RunSQL(VACUUM, NO_VACUUM),
    ]
