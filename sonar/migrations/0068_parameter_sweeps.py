"""Experiments are parameter sweeps: the tables, the purpose of results, and saved views.

The purpose of a result is a column of its profile, so no result is rewritten.
"""

from django.db import migrations, models

# Granted permissions keep their rows: Django would add new ones, which nobody has.
PERMISSIONS = """
UPDATE auth_permission SET codename = replace(codename, '{old}', '{new}'),
                           name = replace(name, '{old}', '{new}')
WHERE codename ~ '^(add|change|delete|view)_{old}(step)?$';
"""
# The pages of sweeps, and pages that show only their results or leave them out.
SAVED_VIEWS = r"""
UPDATE sonar_savedview
SET address = regexp_replace(regexp_replace(
    address,
    '^(?:([^?]*/links/[^/?]+/[^/?]+/){old}s/(?=\?|$)|([^?]*/){old}s/(?=[0-9a-f]{8}-))',
    '\1\2{new}s/'),
    '([?&](?:compare\.)?purpose=(?:!|%21)?){old}(?=&|$)', '\1{new}', 'g')
WHERE address ~ '{old}';
"""
PURPOSES = "UPDATE sonar_profile SET purpose = '{new}' WHERE purpose = '{old}';"
ROWS = PERMISSIONS + SAVED_VIEWS + PURPOSES


def rename_rows(old: str, new: str) -> str:
    return ROWS.replace("{old}", old).replace("{new}", new)


class Migration(migrations.Migration):
    dependencies = [("sonar", "0067_baselines"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        migrations.RemoveConstraint(model_name="experimentstep", name="experiment_step_once"),
        migrations.RemoveConstraint(
            model_name="experiment", name="experiment_is_between_two_endpoints"
        ),
        migrations.RemoveConstraint(model_name="profile", name="profile_purpose_is_known"),
        migrations.RenameModel("Experiment", "Sweep"),
        migrations.RenameModel("ExperimentStep", "SweepStep"),
        migrations.RenameField("sweepstep", "experiment", "sweep"),
        migrations.RenameIndex("sweep", new_name="sweep_of_link", old_name="experiment_of_link"),
        migrations.AddConstraint(
            model_name="sweepstep",
            constraint=models.UniqueConstraint(
                fields=["sweep", "position"], name="sweep_step_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="sweep",
            constraint=models.CheckConstraint(
                condition=models.Q(("source", models.F("destination")), _negated=True),
                name="sweep_is_between_two_endpoints",
            ),
        ),
        migrations.AlterField(
            model_name="profile",
            name="purpose",
            field=models.CharField(
                blank=True,
                choices=[
                    ("scheduled", "Scheduled"),
                    ("ordered", "Ordered"),
                    ("sweep", "Sweep"),
                ],
                db_default="",
                help_text="Why it was made; empty where an import does not say.",
                max_length=10,
            ),
        ),
        migrations.RunSQL(rename_rows("experiment", "sweep"), rename_rows("sweep", "experiment")),
        migrations.AddConstraint(
            model_name="profile",
            constraint=models.CheckConstraint(
                condition=models.Q(("purpose__in", ["", "scheduled", "ordered", "sweep"])),
                name="profile_purpose_is_known",
            ),
        ),
    ]
