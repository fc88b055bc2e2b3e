"""`python -m sonar worker ...` and `python -m sonar beat`: the programs of Celery, for Sonar.

As `celery -A sonar.celery ...`, without what Celery loads for its shells: 8 MB of each process.
"""

import os
import re
import sys
from collections.abc import Sequence
from types import ModuleType

from celery.__main__ import main


def load_without_shells() -> None:
    """Load Celery's commands without an editor of lines and the colours of all languages."""
    editor = ModuleType("click_repl")
    editor.register_repl = lambda group: None  # type: ignore[attr-defined]
    left_out = {"click_repl": editor, "pygments": None}
    sys.modules.update(left_out)  # type: ignore[arg-type]  # None: as if it were not installed
    import celery.bin.celery  # noqa: F401 - loaded for main

    for name in left_out:
        del sys.modules[name]


def with_own_name(arguments: Sequence[str], pid: int) -> list[str]:
    """Give a worker without a name one that no other has: `transfers-4711@%h`.

    Two with Celery's default name would count as one, and the queues of one of them as deserted.
    """
    is_named = any(each.startswith(("-n", "--hostname")) for each in arguments)
    if "worker" not in arguments or is_named:
        return list(arguments)
    queues = re.search(r"(?:^| )(?:-Q|--queues)[ =]?([\w,.@-]+)", " ".join(arguments))
    words = queues[1].replace(",", "-").replace("@", "-") if queues else "worker"
    return [*arguments, "-n", f"{words}-{pid}@%h"]


if __name__ == "__main__":
    load_without_shells()
    sys.argv[1:] = ["-A", "sonar.celery", *with_own_name(sys.argv[1:], os.getpid())]
    sys.exit(main())
