"""Why each result was made. Only experiments move to profiles of their own, hour by dirty hour."""

from django.db import migrations, models

SCHEDULED = "UPDATE sonar_profile SET purpose = 'scheduled' WHERE mesh_id IS NOT NULL;"
# An import has no worker; nor has a test that was given up before it ran. One pass over the
# results, a second for a million or two, unless Sonar never made a test outside of a mesh.
ORDERED = """
CREATE TEMPORARY TABLE ordered_here ON COMMIT DROP AS
SELECT id, started_at, profile_id, source_id, destination_id, size_class_id,
       'ordered'::varchar AS purpose
FROM sonar_transfer
WHERE EXISTS (SELECT FROM sonar_profile WHERE mesh_id IS NULL AND origin = 'test')
  AND profile_id IN (SELECT id FROM sonar_profile WHERE mesh_id IS NULL AND origin = 'test')
  AND (worker <> '' OR (state = 'failed' AND error_where = 'control' AND seconds = 0));
ANALYZE ordered_here;
"""
# As sonar.models.transfer says it of a test that ends now; the meshes are those of today.
EXPERIMENTS = """
UPDATE ordered_here AS test SET purpose = 'experiment'
WHERE EXISTS (SELECT FROM sonar_experimentstep WHERE test_id = test.id)
   OR (SELECT bool_and((mesh.mover, mesh.mode, mesh.streams, mesh.tcp_buffer_bytes)
                       IS DISTINCT FROM (own.mover, own.mode, own.streams, own.tcp_buffer_bytes))
       FROM sonar_schedule AS schedule
       JOIN sonar_mesh AS mesh ON mesh.id = schedule.mesh_id
       JOIN sonar_profile AS own ON own.id = test.profile_id
       WHERE schedule.source_id = test.source_id
         AND schedule.destination_id = test.destination_id
         AND schedule.size_class_id = test.size_class_id);
"""
OTHERWISE_ALIKE = """
    (kept.mover, kept.mode, kept.streams, kept.streams_used, kept.tcp_buffer_bytes,
     kept.ip_version, kept.origin, kept.mesh_id, kept.activity, kept.clock, kept.beside)
    IS NOT DISTINCT FROM
    (made.mover, made.mode, made.streams, made.streams_used, made.tcp_buffer_bytes,
     made.ip_version, made.origin, made.mesh_id, made.activity, made.clock, made.beside)
"""
MOVED = f"""
INSERT INTO sonar_profile (mover, mode, streams, streams_used, tcp_buffer_bytes, ip_version,
                           origin, mesh_id, activity, clock, beside, purpose)
SELECT mover, mode, streams, streams_used, tcp_buffer_bytes, ip_version, origin, mesh_id,
       activity, clock, beside, test.purpose
FROM (SELECT DISTINCT profile_id, purpose FROM ordered_here) AS test
JOIN sonar_profile AS made ON made.id = test.profile_id;
UPDATE sonar_transfer AS result SET profile_id = kept.id
FROM ordered_here AS test, sonar_profile AS made, sonar_profile AS kept
WHERE result.id = test.id AND result.started_at = test.started_at
  AND made.id = test.profile_id AND kept.purpose = test.purpose AND {OTHERWISE_ALIKE};
"""
# The older one of two that differ in nothing else keeps the results of both.
BACK = f"""
CREATE TEMPORARY TABLE profile_before ON COMMIT DROP AS
SELECT made.id, (SELECT min(kept.id) FROM sonar_profile AS kept WHERE {OTHERWISE_ALIKE}) AS kept_id
FROM sonar_profile AS made;
DELETE FROM profile_before WHERE id = kept_id;
UPDATE sonar_transfer SET profile_id = kept_id FROM profile_before WHERE profile_id = profile_before.id;
DELETE FROM sonar_profile WHERE id IN (SELECT id FROM profile_before);
"""
FIELDS = [
    "mover",
    "mode",
    "streams",
    "streams_used",
    "tcp_buffer_bytes",
    "ip_version",
    "origin",
    "mesh",
    "activity",
    "clock",
    "beside",
]


class Migration(migrations.Migration):
    dependencies = [("sonar", "0026_outages")]

    operations = [
        migrations.RemoveConstraint(model_name="profile", name="profile_once"),
        migrations.AddField(
            model_name="profile",
            name="purpose",
            field=models.CharField(
                blank=True,
                choices=[
                    ("scheduled", "Scheduled"),
                    ("ordered", "Ordered"),
                    ("experiment", "Experiment"),
                ],
                db_default="",
                help_text="Why it was made; empty where an import does not say.",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="profile",
            constraint=models.UniqueConstraint(
                fields=(*FIELDS, "purpose"), name="profile_once", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="profile",
            constraint=models.CheckConstraint(
                condition=models.Q(("purpose__in", ["", "scheduled", "ordered", "experiment"])),
                name="profile_purpose_is_known",
            ),
        ),
        # PostgreSQL alters no table that has rows to check at the end: these come last.
        migrations.RunSQL(SCHEDULED + ORDERED + EXPERIMENTS + MOVED, BACK),
    ]
