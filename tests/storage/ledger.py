"""What a database itself notes of probes while everything around it fails, and what must hold."""

# No mesh tests anything for hours. To move what is due into the future would not do: what is
# due later than an interval from now is due now.
QUIET = """
UPDATE sonar_mesh SET quiet_from = (now() AT TIME ZONE 'UTC' - interval '1 hour')::time,
                      quiet_until = (now() AT TIME ZONE 'UTC' + interval '6 hours')::time
WHERE quiet_from IS NULL
"""

# Written by the database itself, with the name of the process that made the change.
JOURNAL = """
CREATE TABLE journal (number bigserial, id uuid, event text,
                      process text DEFAULT current_setting('application_name'),
                      at timestamptz DEFAULT clock_timestamp());
CREATE INDEX ON journal (id);
CREATE FUNCTION note_probe() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO journal (id, event) VALUES (coalesce(new.id, old.id),
        CASE TG_OP WHEN 'INSERT' THEN 'made' WHEN 'DELETE' THEN 'gone' ELSE new.state END);
    RETURN NULL;
END $$;
CREATE TRIGGER journal AFTER INSERT OR UPDATE OF state OR DELETE ON sonar_probe
    FOR EACH ROW EXECUTE FUNCTION note_probe();
CREATE VIEW run AS SELECT DISTINCT ON (id) id, process, at AS since FROM journal
    WHERE event = 'running' ORDER BY id, number DESC;
"""
# By a worker that was killed; a probe that waits in the queue has no run.
HELD = "EXISTS (SELECT FROM run WHERE run.id = sonar_probe.id AND process = ANY (%(killed)s))"
NOT_ONE_TRANSFER = """
SELECT journal.id, array_agg(transfer.state) FROM journal
LEFT JOIN sonar_transfer transfer USING (id) WHERE event = 'made'
GROUP BY journal.id HAVING count(transfer.id) <> 1
"""
MADE = "SELECT count(*) FROM journal WHERE event = 'made'"
STATES = "SELECT state, count(*) FROM sonar_transfer GROUP BY state ORDER BY state"
# Before the last full hour, so that half of the results are read from segments; and so are those
# of a clock that was ahead, which nobody shows before their time.
LONG_AGO = """
UPDATE sonar_transfer SET started_at = started_at - interval '2 hours' WHERE id < %(half)s
   OR started_at > now()
"""
COUNTS = """
SELECT name, count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'failed')
FROM sonar_transfer transfer JOIN sonar_sizeclass size ON size.id = transfer.size_class_id
GROUP BY name ORDER BY name
"""
MATRIX_COUNTS = """
import django
django.setup()
from datetime import timedelta
from django.utils import timezone
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
now = timezone.now().replace(microsecond=0)
for size in ("medium", "small"):
    query = MatrixQuery(size=size, window="", start=now - timedelta(hours=6), end=now)
    cells = grid.build(query, now).cells
    print(size, int(cells.ok.sum()), int(cells.failed.sum()))
"""
# Of each run of a probe: from when it was taken until it ended or was handed back.
RUNS = """
SELECT id, at AS began, (SELECT min(later.at) FROM journal later
                         WHERE later.id = journal.id AND later.at > journal.at) AS ended
FROM journal WHERE event = 'running' ORDER BY at
"""
