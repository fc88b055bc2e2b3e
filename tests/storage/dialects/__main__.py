"""`python -m tests.storage.dialects ROOM`: one server, as `settings.json` of its room says."""

import json
import sys
from pathlib import Path

from tests.storage.dialects import bystander, dcache, eos, storm
from tests.storage.dialects.base import Settings, serve

ROLES = {
    "eos-mgm": eos.Mgm,
    "eos-fst": eos.Fst,
    "dcache-door": dcache.Door,
    "dcache-pool": dcache.Pool,
    "storm": storm.Storm,
}


def main() -> None:
    said = json.loads((Path(sys.argv[1]) / "settings.json").read_text())
    ports = said.pop("ports", 0)
    settings = Settings(**said)
    if settings.role == "bystander":
        bystander.serve(settings, ports)
    serve(ROLES[settings.role], settings)


if __name__ == "__main__":
    main()
