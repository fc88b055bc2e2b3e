"""Transfers by month, dirty marks by trigger, and segments: the store of docs/storage.md."""

import django.db.models.deletion
from django.db import migrations, models

LEVELS = [("hour", "Hour"), ("day", "Day")]
BLOBS = ["keys", "offsets", "sizes", "profiles", "links", "lasts"]

# Makes the partition that a moment belongs to, unless it is there; returns its name if made.
MAKE_MONTH = """
CREATE FUNCTION sonar_make_month(moment timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    month timestamp := date_trunc('month', moment AT TIME ZONE 'UTC');
    name text := 'sonar_transfer_' || to_char(month, 'YYYY_MM');
BEGIN
    IF to_regclass(name) IS NOT NULL THEN RETURN NULL; END IF;
    PERFORM pg_advisory_xact_lock(hashtext('sonar_make_month'));
    IF to_regclass(name) IS NOT NULL THEN RETURN NULL; END IF;
    -- Made beside and then attached: readers and writers of other months go on meanwhile.
    EXECUTE format('CREATE TABLE %I (LIKE sonar_transfer INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
                   name);
    EXECUTE format('ALTER TABLE sonar_transfer ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   name, month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
    RETURN name;
END $$;
"""
# One by one in every month's index: left to itself, PostgreSQL reads whole months for a long list.
KNOWN_IDS = """
CREATE FUNCTION sonar_known_ids(uuid[]) RETURNS SETOF uuid LANGUAGE sql STABLE
    SET enable_seqscan = off SET enable_bitmapscan = off
    AS 'SELECT id FROM sonar_transfer WHERE id = ANY($1)';
"""
TO_PARTITIONS = """
DROP TRIGGER transfer_counts_version ON sonar_transfer;
DELETE FROM sonar_version WHERE name = 'results';
ALTER TABLE sonar_transfer RENAME TO sonar_transfer_plain;
ALTER TABLE sonar_transfer_plain DROP CONSTRAINT sonar_transfer_pkey;
CREATE TABLE sonar_transfer (LIKE sonar_transfer_plain INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
    PARTITION BY RANGE (started_at);
ALTER TABLE sonar_transfer ADD PRIMARY KEY (id, started_at);
CREATE INDEX transfer_started_class ON sonar_transfer (started_at, size_class_id);
CREATE INDEX transfer_link_started ON sonar_transfer (source_id, destination_id, started_at);
"""
# Statements of their own, as a function's table must be there when it is called.
FILL_PARTITIONS = """
SELECT sonar_make_month(now());
SELECT sonar_make_month(month)
    FROM (SELECT DISTINCT date_trunc('month', started_at, 'UTC') AS month
          FROM sonar_transfer_plain) AS months;
INSERT INTO sonar_transfer SELECT * FROM sonar_transfer_plain;
INSERT INTO sonar_dirtymark (size_class_id, level, start)
    SELECT DISTINCT size_class_id, 'hour', date_trunc('hour', started_at, 'UTC')
    FROM sonar_transfer_plain;
DROP TABLE sonar_transfer_plain;
"""
TO_PLAIN = """
ALTER TABLE sonar_transfer RENAME TO sonar_transfer_parts;
ALTER INDEX sonar_transfer_pkey RENAME TO sonar_transfer_parts_pkey;
CREATE TABLE sonar_transfer (LIKE sonar_transfer_parts INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
INSERT INTO sonar_transfer SELECT * FROM sonar_transfer_parts;
DROP TABLE sonar_transfer_parts;
ALTER TABLE sonar_transfer ADD PRIMARY KEY (id);
ALTER TABLE sonar_transfer
    ADD FOREIGN KEY (source_id) REFERENCES sonar_endpoint DEFERRABLE INITIALLY DEFERRED,
    ADD FOREIGN KEY (destination_id) REFERENCES sonar_endpoint DEFERRABLE INITIALLY DEFERRED,
    ADD FOREIGN KEY (size_class_id) REFERENCES sonar_sizeclass DEFERRABLE INITIALLY DEFERRED,
    ADD FOREIGN KEY (profile_id) REFERENCES sonar_profile DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX transfer_class_started ON sonar_transfer (size_class_id, started_at);
CREATE TRIGGER transfer_counts_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE
    ON sonar_transfer FOR EACH STATEMENT EXECUTE FUNCTION sonar_count_version('results');
"""
TRIGGERS = """
CREATE FUNCTION sonar_mark_dirty() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        INSERT INTO sonar_dirtymark (size_class_id, level, start)
        SELECT DISTINCT size_class_id, 'hour', date_trunc('hour', started_at, 'UTC') FROM added;
    END IF;
    IF TG_OP IN ('UPDATE', 'DELETE') THEN
        INSERT INTO sonar_dirtymark (size_class_id, level, start)
        SELECT DISTINCT size_class_id, 'hour', date_trunc('hour', started_at, 'UTC') FROM removed;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER transfer_insert_marks AFTER INSERT ON sonar_transfer
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION sonar_mark_dirty();
CREATE TRIGGER transfer_update_marks AFTER UPDATE ON sonar_transfer
    REFERENCING NEW TABLE AS added OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION sonar_mark_dirty();
CREATE TRIGGER transfer_delete_marks AFTER DELETE ON sonar_transfer
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sonar_mark_dirty();

CREATE FUNCTION sonar_forget_segments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sonar_segment;
    DELETE FROM sonar_dirtymark;
    RETURN NULL;
END $$;
CREATE TRIGGER transfer_truncate_forgets AFTER TRUNCATE ON sonar_transfer
    FOR EACH STATEMENT EXECUTE FUNCTION sonar_forget_segments();

-- What a foreign key would do, once for each statement and not for each row.
CREATE FUNCTION sonar_check_references() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE missing text;
BEGIN
    SELECT 'endpoint ' || min(used.id) INTO missing
    FROM (SELECT source_id AS id FROM added UNION ALL SELECT destination_id FROM added
          EXCEPT SELECT id FROM sonar_endpoint) AS used;
    IF missing IS NULL THEN
        SELECT 'size class ' || min(used.id) INTO missing
        FROM (SELECT size_class_id AS id FROM added EXCEPT SELECT id FROM sonar_sizeclass) AS used;
    END IF;
    IF missing IS NULL THEN
        SELECT 'profile ' || min(used.id) INTO missing
        FROM (SELECT profile_id AS id FROM added EXCEPT SELECT id FROM sonar_profile) AS used;
    END IF;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'a transfer refers to % which does not exist', missing
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER transfer_insert_refers AFTER INSERT ON sonar_transfer
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION sonar_check_references();
CREATE TRIGGER transfer_update_refers AFTER UPDATE ON sonar_transfer
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION sonar_check_references();

CREATE FUNCTION sonar_history_keeps() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE used boolean;
BEGIN
    EXECUTE format('SELECT EXISTS (SELECT FROM sonar_transfer WHERE $1 IN (%s))', TG_ARGV[0])
        INTO used USING OLD.id;
    IF used THEN
        RAISE EXCEPTION 'results refer to % % which cannot be deleted', TG_TABLE_NAME, OLD.id
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER endpoint_history_keeps BEFORE DELETE ON sonar_endpoint
    FOR EACH ROW EXECUTE FUNCTION sonar_history_keeps('source_id, destination_id');
CREATE TRIGGER sizeclass_history_keeps BEFORE DELETE ON sonar_sizeclass
    FOR EACH ROW EXECUTE FUNCTION sonar_history_keeps('size_class_id');
CREATE TRIGGER profile_history_keeps BEFORE DELETE ON sonar_profile
    FOR EACH ROW EXECUTE FUNCTION sonar_history_keeps('profile_id');
"""
NO_TRIGGERS = """
DROP FUNCTION sonar_mark_dirty() CASCADE;
DROP FUNCTION sonar_forget_segments() CASCADE;
DROP FUNCTION sonar_check_references() CASCADE;
DROP FUNCTION sonar_history_keeps() CASCADE;
"""
# Payloads are read whole and do not compress: out of line, as they are.
EXTERNAL = "\n".join(
    f"ALTER TABLE sonar_segment ALTER COLUMN {name} SET STORAGE EXTERNAL;" for name in BLOBS
)


def size_class():
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.DO_NOTHING,
        to="sonar.sizeclass",
    )


def reference(name, to):
    field = models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        to=f"sonar.{to}",
    )
    return migrations.AlterField(model_name="transfer", name=name, field=field)


class Migration(migrations.Migration):
    dependencies = [("sonar", "0002_triggers_and_size_classes")]

    operations = [
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("id__lte", 65535)),
                name="endpoint_id_has_16_bits",
                violation_error_message="Sonar keeps at most 65535 endpoints, retired ones too.",
            ),
        ),
        migrations.AddConstraint(
            model_name="profile",
            constraint=models.CheckConstraint(
                condition=models.Q(("id__lte", 65535)), name="profile_id_has_16_bits"
            ),
        ),
        migrations.CreateModel(
            name="DirtyMark",
            fields=[
                ("seq", models.BigAutoField(primary_key=True, serialize=False)),
                ("size_class", size_class()),
                ("level", models.CharField(choices=LEVELS, max_length=4)),
                ("start", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["size_class", "start"], name="dirtymark_class_start")
                ],
            },
        ),
        migrations.CreateModel(
            name="Segment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("size_class", size_class()),
                ("level", models.CharField(choices=LEVELS, max_length=4)),
                ("start", models.DateTimeField()),
                ("rows", models.IntegerField()),
                *[(name, models.BinaryField()) for name in BLOBS],
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("size_class", "level", "start"), name="segment_once"
                    )
                ],
            },
        ),
        migrations.RunSQL(EXTERNAL, migrations.RunSQL.noop),
        migrations.RunSQL(MAKE_MONTH, "DROP FUNCTION sonar_make_month(timestamptz);"),
        migrations.RunSQL(
            TO_PARTITIONS,
            TO_PLAIN,
            state_operations=[
                migrations.RemoveIndex(model_name="transfer", name="transfer_class_started"),
                reference("destination", "endpoint"),
                reference("profile", "profile"),
                reference("size_class", "sizeclass"),
                reference("source", "endpoint"),
                migrations.AddIndex(
                    model_name="transfer",
                    index=models.Index(
                        fields=["started_at", "size_class"], name="transfer_started_class"
                    ),
                ),
                migrations.AddIndex(
                    model_name="transfer",
                    index=models.Index(
                        fields=["source", "destination", "started_at"],
                        name="transfer_link_started",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(FILL_PARTITIONS, migrations.RunSQL.noop),
        migrations.RunSQL(KNOWN_IDS, "DROP FUNCTION sonar_known_ids(uuid[]);"),
        migrations.RunSQL(TRIGGERS, NO_TRIGGERS),
    ]
