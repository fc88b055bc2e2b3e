"""Each level that somebody accepts for a link stands in the history, whichever door it came by."""

import django.core.validators
from django.db import migrations, models

# What is held without anybody's name is Sonar's own, and comes and goes with its incident.
TOLD = """
CREATE FUNCTION sonar_history_new_normal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM sonar_history_add('new normal', NEW.id,
        (SELECT source.name || ' → ' || destination.name || ', ' || class.name
         FROM sonar_endpoint AS source, sonar_endpoint AS destination, sonar_sizeclass AS class
         WHERE source.id = NEW.source_id AND destination.id = NEW.destination_id
             AND class.id = NEW.size_class_id),
        NULL, 'added', jsonb_build_object(
            'rate', jsonb_build_array(NULL, NEW.rate),
            'until', jsonb_build_array(NULL, NEW.until),
            'note', jsonb_build_array(NULL, sonar_history_value('note', to_jsonb(NEW.note)))));
    RETURN NULL;
END $$;
CREATE TRIGGER sonar_heldlevel_has_history AFTER INSERT ON sonar_heldlevel
    FOR EACH ROW WHEN (NEW.by_id IS NOT NULL) EXECUTE FUNCTION sonar_history_new_normal();
"""


class Migration(migrations.Migration):
    dependencies = [("sonar", "0045_commissioning")]

    operations = [
        migrations.AlterField(
            model_name="expectation",
            name="floor",
            field=models.FloatField(
                blank=True,
                help_text="The least rate, in bytes per second; empty: the usual rate of each "
                "link.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1e12),
                ],
                verbose_name="floor (bytes/s)",
            ),
        ),
        migrations.AlterField(
            model_name="historyentry",
            name="kind",
            field=models.CharField(
                choices=[
                    ("site", "Site"),
                    ("endpoint", "Endpoint"),
                    ("credential", "Credential"),
                    ("mesh", "Mesh"),
                    ("size class", "Size Class"),
                    ("criteria set", "Criteria Set"),
                    ("downtime", "Downtime"),
                    ("alias", "Alias"),
                    ("topology source", "Topology Source"),
                    ("expectation", "Expectation"),
                    ("subscription", "Subscription"),
                    ("new normal", "New Normal"),
                    ("account", "Account"),
                    ("group", "Group"),
                    ("token", "Token"),
                ],
                max_length=20,
            ),
        ),
        migrations.RunSQL(TOLD, "DROP FUNCTION sonar_history_new_normal CASCADE;"),
    ]
