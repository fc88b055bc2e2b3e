"""The history of the registry, of accounts and of rights, and the triggers that write it.

Triggers see each statement, also those of `update` and `bulk_create`, whichever door it came by.
What is secret is in no entry: of a password, or of the secret of a credential, there is only that
it was set, replaced or removed; digests of tokens are left out.
"""

from django.db import migrations, models

# What is written in place of what looks like a secret, wherever somebody has typed it: tokens
# (JWT, macaroons, Sonar's own), keys, and passwords in URLs.
SECRETS = (
    r"eyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]+)*|MDA[A-Za-z0-9+/_=-]{30,}|sonar_[0-9a-f]{16,}"
    r"|-----BEGIN [^\"]*|(?<=://)[^/@\s\"]+(?=@)"
)
VALUES = f"""
CREATE FUNCTION sonar_history_value(field text, value jsonb) RETURNS jsonb STABLE
LANGUAGE plpgsql AS $$
DECLARE
    tables constant jsonb := '{{"site_id": "sonar_site", "endpoint_id": "sonar_endpoint",
        "mesh_id": "sonar_mesh", "size_class_id": "sonar_sizeclass",
        "credential_id": "sonar_credential", "credential_lent_id": "sonar_credential",
        "service_credential_id": "sonar_credential", "group_id": "auth_group"}}';
    named jsonb;
BEGIN
    IF value IS NULL OR value IN ('null', '""', '[]', '{{}}') THEN
        RETURN NULL;
    ELSIF tables ? field THEN
        EXECUTE format('SELECT to_jsonb(name) FROM %I WHERE id = $1', tables ->> field)
            INTO named USING value::bigint;
    ELSIF field IN ('user_id', 'paused_by_id') THEN
        SELECT to_jsonb(username) FROM auth_user WHERE id = value::bigint INTO named;
    ELSIF field = 'permission_id' THEN
        SELECT to_jsonb(codename) FROM auth_permission WHERE id = value::bigint INTO named;
    ELSIF field = 'password' THEN
        named := CASE WHEN value ->> 0 LIKE '!%' THEN NULL ELSE '"set"'::jsonb END;
        RETURN named;
    ELSE
        RETURN regexp_replace(value::text, '{SECRETS}', '***', 'g')::jsonb;
    END IF;
    RETURN coalesce(named, value);
END $$;
"""
NO_VALUES = "DROP FUNCTION sonar_history_value;"

ADD = """
CREATE FUNCTION sonar_history_add(
    kind text, key bigint, name text, site bigint, action text, changes jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    actor jsonb := nullif(current_setting('sonar.actor', true), '');
BEGIN
    INSERT INTO sonar_historyentry (at, door, who, token, kind, key, name, site, action, changes)
    VALUES (now(), coalesce(actor ->> 'door', 'database'), coalesce(actor ->> 'who', session_user),
        coalesce(actor ->> 'token', ''), kind, key, coalesce(name, key::text), site, action,
        changes);
END $$;
"""
NOT_ADD = "DROP FUNCTION sonar_history_add;"

# A row: its kind, and the columns that say nothing, or must not be told. A field that is new or
# gone stands there if it has a value.
ROW = """
CREATE FUNCTION sonar_history_row() RETURNS trigger LANGUAGE plpgsql SET TimeZone = 'UTC' AS $$
DECLARE
    kind constant text := TG_ARGV[0];
    before jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE to_jsonb(OLD) END;
    since jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE to_jsonb(NEW) END;
    named jsonb := CASE WHEN TG_OP = 'DELETE' THEN before ELSE since END;
    key constant bigint := coalesce(named ->> 'id', named ->> 'user_id');
    site bigint := CASE WHEN kind = 'site' THEN key ELSE (named ->> 'site_id')::bigint END;
    name text := coalesce(named ->> 'name', named ->> 'username');
    changes jsonb;
BEGIN
    SELECT jsonb_object_agg(regexp_replace(field, '_id$', ''), jsonb_build_array(was,
        CASE WHEN field = 'password' AND was = is_now THEN '"replaced"' ELSE is_now END))
    FROM jsonb_object_keys(before || since) AS field,
        sonar_history_value(field, before -> field) AS was,
        sonar_history_value(field, since -> field) AS is_now
    WHERE before -> field IS DISTINCT FROM since -> field
        AND field <> ALL (TG_ARGV[1]::text[]) AND (was IS NOT NULL OR is_now IS NOT NULL)
    INTO changes;
    IF TG_OP = 'UPDATE' AND changes IS NULL THEN
        RETURN NULL;
    END IF;
    IF kind = 'downtime' AND site IS NULL THEN
        SELECT site_id, endpoint.name FROM sonar_endpoint AS endpoint
        WHERE id = (named ->> 'endpoint_id')::bigint INTO site, name;
    ELSIF kind = 'downtime' THEN
        name := sonar_history_value('site_id', named -> 'site_id') ->> 0;
    ELSIF kind = 'token' THEN
        name := name || ' of ' || (sonar_history_value('user_id', named -> 'user_id') ->> 0);
    ELSIF kind = 'topology source' THEN
        name := (named ->> 'source') || ' ' || name;
    END IF;
    PERFORM sonar_history_add(kind, key, name, site,
        CASE TG_OP WHEN 'INSERT' THEN 'added' WHEN 'UPDATE' THEN 'changed' ELSE 'removed' END,
        coalesce(changes, '{}'));
    RETURN NULL;
END $$;
"""
NO_ROW = "DROP FUNCTION sonar_history_row CASCADE;"

# A row that is a part of another thing: the kind of that, the column that refers to it, what the
# part is called there, the column of what it is for (or empty), and the one of its value.
PART = """
CREATE FUNCTION sonar_history_part() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE to_jsonb(OLD) END;
    since jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE to_jsonb(NEW) END;
    named jsonb := CASE WHEN TG_OP = 'DELETE' THEN before ELSE since END;
    whole constant bigint := named ->> TG_ARGV[1];
    field text := TG_ARGV[2];
    was jsonb := before -> TG_ARGV[4];
    is_now jsonb := since -> TG_ARGV[4];
BEGIN
    IF was IS NOT DISTINCT FROM is_now THEN
        RETURN NULL;
    END IF;
    IF TG_ARGV[3] = '' THEN  -- a secret
        was := CASE WHEN was IS NULL THEN NULL ELSE '"uploaded"'::jsonb END;
        is_now := CASE WHEN is_now IS NULL THEN NULL WHEN was IS NULL THEN '"uploaded"'::jsonb
            ELSE '"replaced"'::jsonb END;
    ELSE
        field := field || '.' || (sonar_history_value(TG_ARGV[3], named -> TG_ARGV[3]) ->> 0);
    END IF;
    PERFORM sonar_history_add(TG_ARGV[0], whole,
        sonar_history_value(TG_ARGV[1], to_jsonb(whole)) ->> 0, NULL, 'changed',
        jsonb_build_object(field, jsonb_build_array(was, is_now)));
    RETURN NULL;
END $$;
"""
NO_PART = "DROP FUNCTION sonar_history_part CASCADE;"

# Rows that are a list of another thing, all of a statement at once: the kind of that, the column
# that refers to it, what the list is called there, and the column of its members.
LIST = """
CREATE FUNCTION sonar_history_list() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed record;
    now_there text[];
    were_there text[];
BEGIN
    FOR changed IN EXECUTE format(
        'SELECT %1$I::bigint AS whole, array_agg(sonar_history_value(%2$L, to_jsonb(%2$I)) ->> 0)'
        ' AS members FROM statement_rows GROUP BY %1$I', TG_ARGV[1], TG_ARGV[3])
    LOOP
        EXECUTE format(
            'SELECT coalesce(array_agg(sonar_history_value(%2$L, to_jsonb(%2$I)) ->> 0), ''{}'')'
            ' FROM %3$I WHERE %1$I = $1', TG_ARGV[1], TG_ARGV[3], TG_TABLE_NAME)
        INTO now_there USING changed.whole;
        SELECT coalesce(array_agg(one), '{}') FROM unnest(now_there) AS one
        WHERE one <> ALL (changed.members) INTO were_there;
        IF TG_OP = 'DELETE' THEN
            were_there := now_there || changed.members;
        END IF;
        PERFORM sonar_history_add(TG_ARGV[0], changed.whole,
            sonar_history_value(TG_ARGV[1], to_jsonb(changed.whole)) ->> 0, NULL, 'changed',
            jsonb_build_object(TG_ARGV[2], jsonb_build_array(
                ARRAY(SELECT unnest(were_there) ORDER BY 1),
                ARRAY(SELECT unnest(now_there) ORDER BY 1))));
    END LOOP;
    RETURN NULL;
END $$;
"""
NO_LIST = "DROP FUNCTION sonar_history_list CASCADE;"

ROWS = {
    "sonar_site": ("site", "{id}"),
    "sonar_endpoint": ("endpoint", "{id}"),
    "sonar_credential": ("credential", "{id}"),
    "sonar_mesh": ("mesh", "{id}"),
    "sonar_sizeclass": ("size class", "{id}"),
    "sonar_downtime": ("downtime", "{id,key,url}"),
    "sonar_alias": ("alias", "{id,key}"),
    "sonar_sourcedvalues": ("topology source", "{id,values}"),
    "auth_user": ("account", "{id,first_name,last_name,email,last_login,date_joined}"),
    "auth_group": ("group", "{id}"),
    "sonar_token": ("token", "{digest,token_key,created}"),
}
# Each log-in writes only when that was.
COLUMNS = {"auth_user": " OF username, password, is_active, is_staff, is_superuser"}
PARTS = {
    "sonar_meshinterval": ("mesh", "mesh_id", "intervals", "size_class_id", "every_seconds"),
    "sonar_uploadedsecret": ("credential", "credential_id", "secret", "", "content"),
}
LISTS = {
    "sonar_mesh_sources": ("mesh", "mesh_id", "sources", "endpoint_id"),
    "sonar_mesh_destinations": ("mesh", "mesh_id", "destinations", "endpoint_id"),
    "sonar_site_admins": ("account", "user_id", "sites", "site_id"),
    "auth_user_groups": ("account", "user_id", "groups", "group_id"),
    "auth_user_user_permissions": ("account", "user_id", "permissions", "permission_id"),
    "auth_group_permissions": ("group", "group_id", "permissions", "permission_id"),
}


def watched(table, function, arguments):
    """Return the trigger of a table whose rows are told one by one."""
    told = ", ".join(f"'{argument}'" for argument in arguments)
    return migrations.RunSQL(
        f"""CREATE TRIGGER {table}_has_history
            AFTER INSERT OR DELETE OR UPDATE{COLUMNS.get(table, "")} ON {table}
            FOR EACH ROW EXECUTE FUNCTION {function}({told});""",
        f"DROP TRIGGER {table}_has_history ON {table};",
    )


def watched_list(table, arguments):
    """Return the triggers of a table whose rows are told together; they are never updated."""
    told = ", ".join(f"'{argument}'" for argument in arguments)
    return [
        migrations.RunSQL(
            f"""CREATE TRIGGER {table}_has_history_of_{event.lower()} AFTER {event} ON {table}
                REFERENCING {state} TABLE AS statement_rows
                FOR EACH STATEMENT EXECUTE FUNCTION sonar_history_list({told});""",
            f"DROP TRIGGER {table}_has_history_of_{event.lower()} ON {table};",
        )
        for event, state in (("INSERT", "NEW"), ("DELETE", "OLD"))
    ]


class Migration(migrations.Migration):
    dependencies = [
        ("sonar", "0041_pauses_of_endpoints"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="HistoryEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(help_text="When its transaction began.")),
                (
                    "door",
                    models.CharField(
                        choices=[
                            ("page", "Page"),
                            ("API", "Api"),
                            ("admin", "Admin"),
                            ("file", "File"),
                            ("command", "Command"),
                            ("refresh", "Refresh"),
                            ("log-in", "Log In"),
                            ("database", "Database"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "who",
                    models.TextField(
                        help_text="An account or a process; empty for nobody who logged in."
                    ),
                ),
                (
                    "token",
                    models.TextField(
                        help_text="The name of the token that the account showed, if any."
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("site", "Site"),
                            ("endpoint", "Endpoint"),
                            ("credential", "Credential"),
                            ("mesh", "Mesh"),
                            ("size class", "Size Class"),
                            ("downtime", "Downtime"),
                            ("alias", "Alias"),
                            ("topology source", "Topology Source"),
                            ("account", "Account"),
                            ("group", "Group"),
                            ("token", "Token"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "key",
                    models.BigIntegerField(
                        help_text="The id of the thing among those of its kind."
                    ),
                ),
                ("name", models.TextField(help_text="What the thing was called then.")),
                (
                    "site",
                    models.BigIntegerField(
                        help_text="The id of the site that it belonged to.", null=True
                    ),
                ),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("added", "Added"),
                            ("changed", "Changed"),
                            ("removed", "Removed"),
                        ],
                        max_length=7,
                    ),
                ),
                ("changes", models.JSONField()),
            ],
            options={
                "verbose_name_plural": "history entries",
                "indexes": [
                    models.Index(fields=["-at", "-id"], name="history_newest_first"),
                    models.Index(fields=["kind", "key", "-at", "-id"], name="history_of_a_thing"),
                ],
            },
        ),
        migrations.RunSQL(VALUES, NO_VALUES),
        migrations.RunSQL(ADD, NOT_ADD),
        migrations.RunSQL(ROW, NO_ROW),
        migrations.RunSQL(PART, NO_PART),
        migrations.RunSQL(LIST, NO_LIST),
        *[watched(table, "sonar_history_row", told) for table, told in ROWS.items()],
        *[watched(table, "sonar_history_part", told) for table, told in PARTS.items()],
        *[one for table, told in LISTS.items() for one in watched_list(table, told)],
    ]
