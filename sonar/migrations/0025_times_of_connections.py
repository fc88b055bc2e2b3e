from datetime import datetime, timezone

from django.db import migrations, models
from django.db.models import Q

# PostgreSQL keeps times that Python cannot read: one forged packet left a row that nobody could.
POSSIBLE = (
    datetime(1970, 1, 1, 0, 0, tzinfo=timezone.utc),
    datetime(2999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
)
ARE_POSSIBLE = Q(started_at__range=POSSIBLE, seen_at__range=POSSIBLE) & (
    Q(ended_at__isnull=True) | Q(ended_at__range=POSSIBLE)
)


def delete_unreadable(apps, schema_editor):
    apps.get_model('sonar', 'Flow').objects.exclude(ARE_POSSIBLE).delete()


class Migration(migrations.Migration):

    dependencies = [
        ('sonar', '0024_uploads_of_source_files'),
    ]

    operations = [
        migrations.RunPython(delete_unreadable, migrations.RunPython.noop, elidable=True),
        migrations.AddConstraint(
            model_name='flow',
            constraint=models.CheckConstraint(condition=ARE_POSSIBLE, name='flow_times_are_possible'),
        ),
    ]
