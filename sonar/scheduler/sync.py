"""The schedule follows the registry: a row for each link of a mesh and size class."""

from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from sonar.models import Mesh, Version
from sonar.models.member_filters import ENDS
from sonar.movers import catalogue
from sonar.registry import mesh_members

# Stands for the schemes of each mover, `with_movers` puts them in: a mesh of every endpoint means
# those that its mover fits. Which endpoints fit the filters of meshes is given as two lists for
# each end, of ids of meshes and of endpoints: `filtered`.
FITTING = "{fitting}"
MESH_ROWS = f"""
    SELECT mesh.id AS mesh_id, source.id AS source_id, destination.id AS destination_id,
           every.size_class_id, every.every_seconds
    FROM sonar_mesh mesh
    JOIN (VALUES {FITTING}) fitting (mover, mode, schemes)
        ON (fitting.mover, fitting.mode) = (mesh.mover, mesh.mode)
    JOIN sonar_meshinterval every ON every.mesh_id = mesh.id
    JOIN sonar_endpoint source ON source.retired_at IS NULL AND NOT source.is_draft
        AND split_part(source.base_url, '://', 1) = ANY (fitting.schemes)
        AND CASE WHEN mesh.sources_filter <> '{{}}'
            THEN (mesh.id, source.id) IN (
                SELECT * FROM unnest(%(sources_meshes)s::bigint[], %(sources)s::bigint[]))
            ELSE NOT EXISTS (SELECT FROM sonar_mesh_sources WHERE mesh_id = mesh.id)
                 OR EXISTS (SELECT FROM sonar_mesh_sources
                            WHERE mesh_id = mesh.id AND endpoint_id = source.id) END
    JOIN sonar_endpoint destination ON destination.retired_at IS NULL
        AND NOT destination.is_draft
        AND split_part(destination.base_url, '://', 1) = ANY (fitting.schemes)
        AND CASE WHEN mesh.destinations_filter <> '{{}}'
            THEN (mesh.id, destination.id) IN (
                SELECT * FROM unnest(%(destinations_meshes)s::bigint[], %(destinations)s::bigint[]))
            ELSE NOT EXISTS (SELECT FROM sonar_mesh_destinations WHERE mesh_id = mesh.id)
                 OR EXISTS (SELECT FROM sonar_mesh_destinations
                            WHERE mesh_id = mesh.id AND endpoint_id = destination.id) END
    WHERE mesh.enabled AND source.id <> destination.id
"""  # noqa: S608 - a constant of this module
# One number for all that MESH_ROWS reads: to work it out costs 5 ms, to follow it at three million
# rows half a minute, and most changes of the registry (a downtime, a label) do not touch it.
MESH_ROWS_HASH = f"""
    SELECT hashtextextended(ROW(
        (SELECT array_agg(ROW(mover, mode, schemes) ORDER BY mover, mode)
         FROM (VALUES {FITTING}) fitting (mover, mode, schemes)),
        (SELECT array_agg(ROW(id, split_part(base_url, '://', 1)) ORDER BY id)
         FROM sonar_endpoint WHERE retired_at IS NULL AND NOT is_draft),
        (SELECT array_agg(ROW(id, mover, mode, sources_filter <> '{{}}',
                              destinations_filter <> '{{}}') ORDER BY id)
         FROM sonar_mesh WHERE enabled),
        %(sources_meshes)s::bigint[], %(sources)s::bigint[],
        %(destinations_meshes)s::bigint[], %(destinations)s::bigint[],
        (SELECT array_agg(ROW(mesh_id, size_class_id, every_seconds) ORDER BY id)
         FROM sonar_meshinterval),
        (SELECT array_agg(ROW(mesh_id, endpoint_id) ORDER BY id) FROM sonar_mesh_sources),
        (SELECT array_agg(ROW(mesh_id, endpoint_id) ORDER BY id) FROM sonar_mesh_destinations)
    )::text, 0)
"""  # noqa: S608 - a constant of this module
REMOVE = f"""
    WITH gone AS (
        DELETE FROM sonar_schedule old WHERE NOT EXISTS (
            SELECT FROM ({MESH_ROWS}) wanted
            WHERE (wanted.mesh_id, wanted.source_id, wanted.destination_id, wanted.size_class_id)
                = (old.mesh_id, old.source_id, old.destination_id, old.size_class_id))
        RETURNING id)
    UPDATE sonar_probe SET schedule_id = NULL FROM gone WHERE schedule_id = gone.id
"""  # noqa: S608 - constants of this module
CHANGE = """
    UPDATE sonar_schedule old
    SET every_seconds = every.every_seconds,
        next_due = least(old.next_due, %(now)s + every.every_seconds * interval '1 second')
    FROM sonar_meshinterval every
    WHERE (every.mesh_id, every.size_class_id) = (old.mesh_id, old.size_class_id)
      AND every.every_seconds <> old.every_seconds
"""
# Not ON CONFLICT: that would lock, and so write, every row that is there already.
ADD = f"""
    INSERT INTO sonar_schedule (mesh_id, source_id, destination_id, size_class_id,
                                every_seconds, next_due, skipped_because)
    SELECT wanted.*, %(now)s, '' FROM ({MESH_ROWS}) wanted
    WHERE NOT EXISTS (
        SELECT FROM sonar_schedule old
        WHERE (wanted.mesh_id, wanted.source_id, wanted.destination_id, wanted.size_class_id)
            = (old.mesh_id, old.source_id, old.destination_id, old.size_class_id))
    ORDER BY mesh_id, source_id, destination_id, size_class_id
"""  # noqa: S608 - constants of this module


NO_FILTERS = Q(sources_filter={}, destinations_filter={})


def follow_registry(now: datetime) -> None:
    """Make the schedules those of the meshes, if the registry has changed since last time."""
    versions = dict(Version.objects.values_list("name", "value"))
    registry = versions.get("registry", 0)
    if versions.get("schedule") == registry:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        parameters: dict[str, Any] = {"now": now, **filtered()}
        cursor.execute(with_movers(MESH_ROWS_HASH), parameters)
        (promised,) = cursor.fetchone() or (0,)
        if versions.get("wanted") != promised:
            cursor.execute(with_movers(REMOVE), parameters)
            cursor.execute(CHANGE, parameters)
            cursor.execute(with_movers(ADD), parameters)
        for name, value in (("wanted", promised), ("schedule", registry)):
            Version.objects.update_or_create(name=name, defaults={"value": value})


def filtered() -> dict[str, list[int]]:
    """Return what fits the filters of meshes, as parameters. Two SQL queries, one without any."""
    of_filters = mesh_members.by_filter(Mesh.objects.filter(enabled=True).exclude(NO_FILTERS))
    lists: dict[str, list[int]] = {name: [] for end in ENDS for name in (end, f"{end}_meshes")}
    for (mesh, end), endpoints in sorted(of_filters.items()):
        lists[end] += sorted(endpoints)
        lists[f"{end}_meshes"] += [mesh] * len(endpoints)
    return lists


def with_movers(statement: str) -> str:
    """Return a statement with the schemes of movers in their modes: constants, for the planner."""
    rows = [
        f"('{mover.name}', '{mode}', '{{{','.join(sorted(mover.schemes_in(mode)))}}}'::text[])"
        for mover in catalogue.MOVERS
        for mode in mover.modes
    ]
    return statement.replace(FITTING, ", ".join(rows))
