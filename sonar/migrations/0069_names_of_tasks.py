"""The heartbeats of background tasks have the names of status/, /metrics and Operations."""

from django.db import migrations

NAMES = {
    "plan": "planner",
    "sweep": "recovery",
    "clean": "cleanup",
    "seal": "compaction",
    "keep_months": "retention",
}


def rename(names: dict[str, str]) -> list[str]:
    # A row under the new name may have been written before the migration: it is newer.
    return [
        statement.format(old=old, new=new)
        for old, new in names.items()
        for statement in (
            "DELETE FROM sonar_signoflife WHERE name = '{old}' "
            "AND EXISTS (SELECT FROM sonar_signoflife WHERE name = '{new}');",
            "UPDATE sonar_signoflife SET name = '{new}' WHERE name = '{old}' AND kind = 'task';",
        )
    ]


class Migration(migrations.Migration):
    dependencies = [("sonar", "0068_parameter_sweeps")]

    operations = [
        migrations.RunSQL(rename(NAMES), rename({new: old for old, new in NAMES.items()})),
    ]
