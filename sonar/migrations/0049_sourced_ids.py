"""A source's own ids, and why an endpoint is retired on behalf of a source."""

from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F, Func, JSONField, Value


def tell_waiting_from_off(apps: Any, editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ANN401
    """Read `retired` as `waits since it is new`: nothing tells the two apart until now."""
    rows = apps.get_model("sonar", "SourcedValues").objects.using(editor.connection.alias)
    waiting = Value({"retired": False, "held": "new"}, JSONField())
    rows.filter(endpoint__isnull=False, values__retired=True).update(
        values=Func(F("values"), waiting, arg_joiner=" || ", template="(%(expressions)s)")
    )


class Migration(migrations.Migration):
    dependencies = [("sonar", "0048_jobs_of_services")]

    operations = [
        migrations.AddField(
            model_name="sourcedvalues",
            name="source_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=255),
        ),
        migrations.RunPython(tell_waiting_from_off, migrations.RunPython.noop),
    ]
