"""Answers of sources of topology, written by hand from the lists of their fields."""

import json
import zlib
from pathlib import Path
from typing import Any


def cric_sites(**changed: Any) -> dict[str, Any]:
    """Return an answer of ATLAS CRIC to site/query/?json: two sites, of which one has two names."""
    rows = {
        "UKI-SCOTGRID-GLASGOW": site(
            "UKI-SCOTGRID-GLASGOW",
            cloud="UK",
            country="United Kingdom",
            country_code="GB",
            rc_site="UKI-SCOTGRID-GLASGOW",
            latitude=55.86,
            longitude=-4.26,
        ),
        "BNL-ATLAS": site("BNL-ATLAS", tier_level=1, cloud="US", country_code="US", rc_site="BNL"),
    }
    return rows | changed


def site(name: str, **changed: Any) -> dict[str, Any]:
    usual = {
        "name": name,
        "tier_level": 2,
        "cloud": "",
        "country": "",
        "country_code": None,
        "state": "ACTIVE",
        "rc_site": name,
        "latitude": 0.0,
        "longitude": 0.0,
        "datapolicies": [],
        "ddmendpoints": {},
    }
    return usual | changed


def cric_endpoints(**changed: Any) -> dict[str, Any]:
    """Return an answer to ddmendpoint/query/?json: disks of both, tape, and an object store."""
    rows = [
        rse("UKI-SCOTGRID-GLASGOW_DATADISK", "UKI-SCOTGRID-GLASGOW", "ceph.example.ac.uk"),
        rse("BNL-ATLAS_DATADISK", "BNL-ATLAS", "dcgftp.example.gov"),
        rse(
            "BNL-ATLAS_DATATAPE",
            "BNL-ATLAS",
            "tape.example.gov",
            type="DATATAPE",
            is_tape=True,
            aprotocols={"write_wan": [["srm://tape.example.gov:8443", 1, "/srm/tape"]]},
        ),
        rse("BNL-ATLAS_OLDDISK", "BNL-ATLAS", "old.example.gov", state="DISABLED"),
    ]
    return {row["name"]: row for row in rows} | changed


def rse(name: str, site: str, host: str, **changed: Any) -> dict[str, Any]:
    path = f"/atlas/{name.rpartition('_')[2].lower()}/"
    door = [f"davs://{host}:443", 1, path]
    usual = {
        "name": name,
        "id": zlib.crc32(name.encode()),
        "site": site,
        "token": "ATLASDATADISK",
        "type": "DATADISK",
        "state": "ACTIVE",
        "is_tape": False,
        "is_deterministic": True,
        "se_flavour": "DCACHE",
        "aprotocols": {
            "read_wan": [[f"root://door-{host}:1094", 2, path], door],
            "third_party_copy": [door],
        },
        "arprotocols": {},
    }
    return usual | changed


def written(folder: Path, **documents: Any) -> list[str]:
    """Write documents to files of these names, and return their paths."""
    paths = []
    for name, document in documents.items():
        path = folder / f"{name}.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        paths.append(str(path))
    return paths


def large(endpoints: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return sites and endpoints of ATLAS CRIC, four to a site."""
    sites = {f"SITE-{n:04}": site(f"SITE-{n:04}", cloud="XX") for n in range(endpoints // 4)}
    rows = [
        rse(f"SITE-{n // 4:04}_DISK{n % 4}", f"SITE-{n // 4:04}", f"se{n // 4}.example.org")
        for n in range(endpoints)
    ]
    return sites, {row["name"]: row for row in rows}


def rucio_export(**changed: Any) -> dict[str, Any]:
    """Return an answer of Rucio to GET /export/: a disk, tape, and one that nobody can reach."""
    rows = {
        "1": rucio_rse("GLASGOW_DATADISK", site="UKI-SCOTGRID-GLASGOW", tier=2, country="GB"),
        "2": rucio_rse("BNL_TAPE", site="BNL", rse_type="TAPE"),
        "3": rucio_rse("SRM_ONLY", site="BNL", schemes=("srm",)),
        "4": rucio_rse("NOWHERE"),
    }
    return {"rses": rows | changed, "distances": {}}


def rucio_rse(
    name: str,
    schemes: tuple[str, ...] = ("root", "davs"),
    rse_type: str = "DISK",
    **attributes: Any,
) -> dict[str, Any]:
    return {
        "rse": name,
        "rse_type": rse_type,
        "deterministic": True,
        "volatile": False,
        "availability_read": True,
        "availability_write": True,
        "deleted": False,
        "latitude": None,
        "longitude": None,
        "attributes": {name: True, "type": "DATADISK", "verify_checksum": True, **attributes},
        "protocols": [
            {
                "scheme": scheme,
                "hostname": f"{scheme}.{name.lower().replace('_', '-')}.example.org",
                "port": {"root": 1094, "davs": 2880}.get(scheme, 8443),
                "prefix": "/vo/datadisk/",
                "impl": "rucio.rse.protocols.gfal.Default",
                "domains": {
                    "lan": {"read": 1, "write": 1, "delete": 1},
                    "wan": {"read": 1, "write": 1, "third_party_copy_read": place + 1},
                },
                "extended_attributes": None,
            }
            for place, scheme in enumerate(schemes)
        ],
    }


def wlcg() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return answers of WLCG CRIC to rcsite/query and to service/query, of SE and PerfSonar."""
    sites = {
        name: {
            "name": name,
            "country": "United Kingdom",
            "latitude": 55.86,
            "longitude": -4.26,
            "rc_tier_level": 2,
            "netsites": [f"{name}-LHCONE"],
            "federations": [],
        }
        for name in ("UKI-SCOTGRID-GLASGOW", "UKI-ELSEWHERE")
    }
    services = {
        "ceph": {
            "rcsite": "UKI-SCOTGRID-GLASGOW",
            "type": "SE",
            "endpoint": "srm.example.ac.uk",
            "flavour": "XROOTD",
            "usage": {"atlas": [{"site": "UKI-SCOTGRID-GLASGOW"}]},
            "protocols": {"root": {"endpoint": "root://door.example.ac.uk:1094"}},
            "aprotocols": {"read_wan": ["root"]},
        },
        "ps": {
            "rcsite": "UKI-SCOTGRID-GLASGOW",
            "type": "PerfSonar",
            "endpoint": "ps-bandwidth.example.ac.uk",
            "flavour": "perfSonar",
        },
    }
    return sites, services


def storage_report(host: str) -> dict[str, Any]:
    """Return what a storage says of itself (SRR)."""
    return {
        "storageservice": {
            "name": "Glasgow",
            "id": host,
            "implementation": "xrootd",
            "implementationversion": "5.7.1",
            "qualitylevel": "production",
            "latestupdate": 1764230400,
            "storageendpoints": [
                {"name": "https", "endpointurl": f"https://{host}:443/atlas", "capabilities": []}
            ],
            "storageshares": [
                {"name": "atlas", "path": ["/atlas"], "totalsize": 10**16, "usedsize": 9 * 10**15}
            ],
        }
    }
