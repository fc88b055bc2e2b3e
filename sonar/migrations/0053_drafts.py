"""An endpoint is a draft until it is first enabled, or a result of it is imported."""

from django.db import migrations, models

KEEP = """
CREATE FUNCTION sonar_endpoint_draft() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.is_draft := NEW.is_draft AND NOT NEW.enabled AND (TG_OP = 'INSERT' OR OLD.is_draft);
    RETURN NEW;
END $$;
CREATE TRIGGER endpoint_draft BEFORE INSERT OR UPDATE ON sonar_endpoint
    FOR EACH ROW EXECUTE FUNCTION sonar_endpoint_draft();
"""
NOT_KEEP = """
DROP TRIGGER endpoint_draft ON sonar_endpoint;
DROP FUNCTION sonar_endpoint_draft;
"""
# The history has that an endpoint was enabled: that it stopped being a draft says nothing more.
HISTORY = """
DROP TRIGGER sonar_endpoint_has_history ON sonar_endpoint;
CREATE TRIGGER sonar_endpoint_has_history
    AFTER INSERT OR DELETE OR UPDATE ON sonar_endpoint
    FOR EACH ROW EXECUTE FUNCTION sonar_history_row('endpoint', '{columns}');
"""
# By the index of results on source and destination; there are few endpoints that are not enabled.
USED = """
UPDATE sonar_endpoint AS endpoint SET is_draft = false
WHERE enabled
   OR EXISTS (SELECT FROM sonar_historyentry
              WHERE kind = 'endpoint' AND key = endpoint.id AND changes -> 'enabled' @> 'true')
   OR EXISTS (SELECT FROM sonar_transfer WHERE source_id = endpoint.id)
   OR EXISTS (SELECT FROM sonar_endpoint AS other JOIN sonar_transfer
              ON source_id = other.id AND destination_id = endpoint.id)
"""


class Migration(migrations.Migration):
    dependencies = [("sonar", "0052_made_up_tests")]

    operations = [
        migrations.RunSQL(
            HISTORY.format(columns="{id,is_draft}"), HISTORY.format(columns="{id}")
        ),
        migrations.AddField(
            model_name="endpoint",
            name="is_draft",
            field=models.BooleanField(db_default=True, default=True, editable=False),
        ),
        migrations.RunSQL(KEEP, NOT_KEEP),
        migrations.RunSQL(USED, migrations.RunSQL.noop),
    ]
