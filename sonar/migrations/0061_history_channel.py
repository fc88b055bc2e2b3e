"""An entry of the history has the channel that the change came through: page, API, file."""

from django.db import migrations

ADD = """
CREATE OR REPLACE FUNCTION sonar_history_add(
    kind text, key bigint, name text, site bigint, action text, changes jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    actor jsonb := nullif(current_setting('sonar.actor', true), '');
BEGIN
    INSERT INTO sonar_historyentry (at, {field}, who, token, kind, key, name, site, action, changes)
    VALUES (now(), coalesce(actor ->> '{field}', 'database'),
        coalesce(actor ->> 'who', session_user), coalesce(actor ->> 'token', ''),
        kind, key, coalesce(name, key::text), site, action, changes);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("sonar", "0060_targets")]

    operations = [
        migrations.RenameField("historyentry", "door", "channel"),
        migrations.RunSQL(ADD.format(field="channel"), ADD.format(field="door")),
    ]
