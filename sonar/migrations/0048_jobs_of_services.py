from django.db import migrations, models

# A service chooses which end does the work, and does not tell: the mode of its results is unknown.
FORGET_MODE = """
    UPDATE sonar_profile mine SET mode = ''
    WHERE mover = 'fts3' AND origin = 'test' AND mode <> '' AND NOT EXISTS (
        SELECT FROM sonar_profile other WHERE other.mover = mine.mover AND other.mode = ''
        AND (other.streams, other.streams_used, other.tcp_buffer_bytes, other.ip_version,
             other.origin, other.mesh_id, other.activity, other.clock, other.beside, other.purpose)
            IS NOT DISTINCT FROM
            (mine.streams, mine.streams_used, mine.tcp_buffer_bytes, mine.ip_version,
             mine.origin, mine.mesh_id, mine.activity, mine.clock, mine.beside, mine.purpose)
    )
"""
# The mover no longer takes root://, whose files it would therefore never delete.
HAND_OVER_FILES = """
    UPDATE sonar_leftover SET mover = 'xrootd' FROM sonar_endpoint endpoint
    WHERE mover = 'fts3' AND endpoint.id = endpoint_id AND endpoint.base_url ~ '^x?root:'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('sonar', '0047_report_orders'),
    ]

    operations = [
        migrations.AddField(
            model_name='leftover',
            name='remote_id',
            field=models.CharField(blank=True, db_default='', help_text='The job of a service that may still write it; empty if none is known.', max_length=100),
        ),
        migrations.RunSQL(FORGET_MODE, migrations.RunSQL.noop, elidable=True),
        migrations.RunSQL(HAND_OVER_FILES, migrations.RunSQL.noop, elidable=True),
    ]
