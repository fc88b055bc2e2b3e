"""The export of a Rucio 41.5.1, with made-up names, which tests change as its administrators do."""

from __future__ import annotations

import json
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

HERE = Path(__file__).resolve().parent
PURPOSES = ("read", "write", "delete", "third_party_copy_read", "third_party_copy_write")


class Rucio:
    """RSEs by name; ``apply`` lets Sonar read them."""

    def __init__(self, folder: Path, **rses: dict[str, Any]) -> None:
        self._file = folder / "export.json"
        self.rses = rses

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self.rses[name]

    def add(self, name: str, site: str = "SITE", **values: Any) -> dict[str, Any]:
        """Add an RSE with an id and a host of its own, which any site can copy from and to."""
        number = len(self.rses) + 1
        while f"{number:032x}" in {rse["id"] for rse in self.rses.values()}:
            number += 1
        self.rses[name] = rse(name, f"{number:032x}", f"se{number}.example.org", site) | values
        return self.rses[name]

    def rename(self, name: str, new_name: str) -> None:
        self.rses[new_name] = self.rses.pop(name) | {"rse": new_name}

    def document(self) -> dict[str, Any]:
        return {"rses": {rse["id"]: rse for rse in self.rses.values()}}

    def run(self, verb: str = "apply", *more: Path, **options: Any) -> str:
        self._file.write_text(json.dumps(self.document()))
        out = StringIO()
        places = [str(self._file), *map(str, more)]
        call_command("topology", verb, "--from", "rucio", *places, stdout=out, **options)
        return out.getvalue()

    def apply(self, **options: Any) -> str:
        """Apply twice; the second time changes nothing. Return what is said the first time."""
        text = self.run(**options)
        again = self.run(**options)
        assert again.startswith("rucio: no changes"), again
        return text


def rse(name: str, rse_id: str, host: str, site: str) -> dict[str, Any]:
    return {
        "id": rse_id,
        "rse": name,
        "vo": "def",
        "rse_type": "DISK",
        "staging_area": False,
        "volatile": False,
        "availability_read": True,
        "availability_write": True,
        "availability_delete": True,
        "latitude": None,
        "longitude": None,
        "attributes": {name: True, "site": site} if site else {name: True},
        "protocols": [protocol("davs", host)],
    }


def protocol(scheme: str, host: str, priority: int | None = 1, **wan: int | None) -> dict[str, Any]:
    """Return a protocol whose purposes have one priority, but those that are named."""
    return {
        "scheme": scheme,
        "hostname": host,
        "port": {"davs": 2880, "root": 1094}.get(scheme, 8443),
        "prefix": "/vo/disk",
        "domains": {
            "lan": {"read": 1, "write": 1, "delete": 1},
            "wan": dict.fromkeys(PURPOSES, priority) | wan,
        },
    }


def real(folder: Path) -> Rucio:
    """Return the RSEs of the real export."""
    rows = json.loads((HERE / "export.json").read_text())["rses"]
    return Rucio(folder, **deepcopy({rse["rse"]: rse for rse in rows.values()}))
