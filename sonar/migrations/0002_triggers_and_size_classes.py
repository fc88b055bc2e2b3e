"""What one row cannot hold: size classes tile, versions count changes; and the default classes."""

from django.db import migrations

MB = 10**6
DEFAULT_CLASSES = [
    ("small", 0, 20 * MB, 600),
    ("medium", 100 * MB, 200 * MB, 1800),
    ("large", 1000 * MB, 2000 * MB, 7200),
]
REGISTRY_TABLES = ["site", "endpoint", "downtime", "sizeclass", "mesh", "meshinterval"]
REGISTRY_TABLES += ["mesh_sources", "mesh_destinations"]

TILE = """
CREATE FUNCTION sonar_size_classes_tile() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong text;
BEGIN
    SELECT name INTO wrong FROM (
        SELECT name, from_bytes, test_bytes,
               lead(from_bytes) OVER (ORDER BY from_bytes) AS next_bytes,
               row_number() OVER (ORDER BY from_bytes) AS place
        FROM sonar_sizeclass) AS ordered
    WHERE (place = 1 AND from_bytes <> 0)
       OR test_bytes < from_bytes OR test_bytes >= next_bytes
    ORDER BY from_bytes LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'size class % does not fit: the first must begin at 0 bytes, and each '
            'test size must lie in its own range', wrong USING ERRCODE = 'check_violation',
            CONSTRAINT = 'sizeclass_ranges_tile';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER sizeclass_ranges_tile AFTER INSERT OR UPDATE OR DELETE ON sonar_sizeclass
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sonar_size_classes_tile();
"""
UNTILE = """
DROP TRIGGER sizeclass_ranges_tile ON sonar_sizeclass;
DROP FUNCTION sonar_size_classes_tile();
"""
COUNT = """
CREATE FUNCTION sonar_count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO sonar_version (name, value) VALUES (TG_ARGV[0], 1)
    ON CONFLICT (name) DO UPDATE SET value = sonar_version.value + 1;
    RETURN NULL;
END $$;
"""
UNCOUNT = "DROP FUNCTION sonar_count_version() CASCADE;"


def counted(table: str, version: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"""CREATE TRIGGER {table}_counts_version
            AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON sonar_{table}
            FOR EACH STATEMENT EXECUTE FUNCTION sonar_count_version('{version}');""",
        f"DROP TRIGGER {table}_counts_version ON sonar_{table};",
    )


def add_default_classes(apps, schema_editor):
    SizeClass = apps.get_model("sonar", "SizeClass")
    for name, from_bytes, test_bytes, timeout_seconds in DEFAULT_CLASSES:
        SizeClass.objects.create(
            name=name,
            from_bytes=from_bytes,
            test_bytes=test_bytes,
            timeout_seconds=timeout_seconds,
        )


class Migration(migrations.Migration):
    dependencies = [("sonar", "0001_initial")]

    operations = [
        migrations.RunPython(add_default_classes, migrations.RunPython.noop),
        migrations.RunSQL(TILE, UNTILE),
        migrations.RunSQL(COUNT, UNCOUNT),
        *[counted(table, "registry") for table in REGISTRY_TABLES],
        counted("transfer", "results"),
    ]
