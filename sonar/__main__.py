"""`python -m sonar worker ...` and `python -m sonar beat`: the programs of Celery, for Sonar.

As `celery -A sonar.celery ...`, without what Celery loads for its shells: 8 MB of each process.
"""

import sys
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


if __name__ == "__main__":
    load_without_shells()
    sys.argv[1:1] = ["-A", "sonar.celery"]
    sys.exit(main())
