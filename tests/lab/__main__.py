"""The lab by hand, as root: its links stand until Ctrl-C, and a registry file leads Sonar there.

python -m tests.lab lab.yaml [SCENARIO ...]     (in another terminal: make run SONAR_REGISTRY=...)
"""

import argparse
import signal
import sys
from contextlib import suppress
from pathlib import Path

import yaml

from tests.lab.enclosure import RefusedError
from tests.lab.link import Lab, registry
from tests.lab.scenarios import SCENARIOS

NAMED = {scenario.name: scenario for scenario in SCENARIOS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    parser.add_argument("registry", type=Path, help="the registry file to write")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(NAMED))
    options = parser.parse_args()
    # A shell that started it in the background has Ctrl-C ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if unknown := sorted({*options.scenarios} - {*NAMED}):
        parser.error(f"no scenario {unknown[0]!r}: there are {', '.join(NAMED)}")
    try:
        lab = Lab(NAMED[name] for name in options.scenarios or NAMED)
    except RefusedError as error:
        sys.exit(f"This machine does not let the lab have {error}")
    try:
        options.registry.write_text(yaml.safe_dump(registry(lab), sort_keys=False))
        with suppress(KeyboardInterrupt):
            for name, link in lab.links.items():
                print(f"{name:18} {link.source.url} -> {link.destination.url}")
            print(f"Registered in {options.registry}; Ctrl-C ends it.", flush=True)
            signal.pause()
    finally:
        lab.close()


if __name__ == "__main__":
    main()
