"""Data that is kept between runs, and how to see that it is what would be made again."""

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.benchmarks.scale import Scale

PROJECT = Path(__file__).resolve().parents[2]
BENCHMARKS = "tests/benchmarks"
TABLES = ("0001_initial", "0002_triggers_and_size_classes", "0003_store")
# The sources that decide what each stage of the preparation leaves behind.
ROWS = [
    f"{BENCHMARKS}/{name}.py"
    for name in ("scale", "server", "data", "copy_rows", "load", "registry")
]
STAGES = {
    # Migrations that come later are made on kept data as anywhere else.
    "rows": [*ROWS, *(f"sonar/migrations/{name}.py" for name in TABLES)],
    "segments": [
        *(f"sonar/results/{name}.py" for name in ("segments", "sealing")),
        *(f"sonar/database/{name}.py" for name in ("pg_copy", "pg_columns")),
    ],
    "peers": [f"{BENCHMARKS}/peers/postgres.py"],
}


class Kept:
    """Notes beside the data which stages are done, with the figures that they gave."""

    def __init__(self, home: Path, scale: Scale) -> None:
        self.path = home / "kept.json"
        self.scale = scale
        self.notes: dict[str, Any] = {}
        if self.path.is_file():
            self.notes = json.loads(self.path.read_text())
        if not self.has("rows"):
            shutil.rmtree(home / "postgres", ignore_errors=True)
            self.notes = {}

    def has(self, stage: str) -> bool:
        return bool(self.notes.get(stage, {}).get("made_by") == self.made_by(stage))

    def figures(self, stage: str) -> dict[str, float]:
        found: dict[str, float] = self.notes[stage]["figures"]
        return found

    def note(self, stage: str, figures: dict[str, float]) -> None:
        self.notes[stage] = {"made_by": self.made_by(stage), "figures": figures}
        self.path.write_text(json.dumps(self.notes, indent=1))

    def made_by(self, stage: str) -> str:
        """Return a digest of the scale and of the sources of a stage and those before it."""
        stages = list(STAGES)[: list(STAGES).index(stage) + 1]
        if stage == "peers":
            stages.remove("segments")
        sources = b"".join(path.read_bytes() for path in files(stages))
        return hashlib.sha256(repr(self.scale).encode() + sources).hexdigest()


def files(stages: Iterable[str]) -> list[Path]:
    return [PROJECT / name for stage in stages for name in STAGES[stage]]
