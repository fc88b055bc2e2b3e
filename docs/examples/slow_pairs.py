#!/usr/bin/env python3
"""Alert on slow or failing links, for cron or Nagios.

A link is slow if the mean of its tests is below a rate, failing if too many of its tests fail,
and not measured if it has too few tests or the last one is too old. Links in a declared
downtime, and those that no mesh tests, are left out. Exit code: 0, 1 if a link is slow or
failing, 2 if the command line is wrong, 3 if Sonar could not answer.
"""

from __future__ import annotations

import argparse
import sys

import pandas as pd
from sonar_client import Sonar, SonarError, connected, which_sonar

COLUMNS = ["source", "destination", "mean_mb_s", "ok", "failed", "last"]
# What the alarm is not about: nothing is expected of these links now.
EXCUSED = ("down", "not_applicable")
FILTERS = ("cloud", "source_cloud", "destination_cloud", "site", "source_site", "destination_site")


def links(sonar: Sonar, wanted: argparse.Namespace) -> pd.DataFrame:
    """Return the links that should be measured, with the state that the matrix shows."""
    asked = {"size": wanted.size, "window": wanted.window}
    asked |= {name: one for name in FILTERS if (one := getattr(wanted, name))}
    table = sonar.links(**asked).rename(columns=lambda name: name.removeprefix(f"{wanted.size}."))
    return table[~table["state"].isin(EXCUSED)]


def judged(table: pd.DataFrame, wanted: argparse.Namespace) -> dict[str, pd.DataFrame]:
    """Put each link under what is wrong with it; those with which nothing is are in none."""
    tests = table["ok"] + table["failed"]
    unknown = (tests < wanted.min_tests) | table["state"].isin(["stale", "untested"])
    failing = ~unknown & (table["failed"] > wanted.max_failed * tests)
    slow = ~unknown & ~failing & (table["mean_mb_s"] < wanted.under)
    return {"slow": table[slow], "failing": table[failing], "not measured": table[unknown]}


def shown(name: str, table: pd.DataFrame) -> str:
    few = table[COLUMNS].sort_values(["mean_mb_s", "source", "destination"])
    few["last"] = few["last"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    text = few.to_string(index=False, na_rep="-", float_format="{:.4g}".format)
    return f"{name}: {len(table)}\n" + (f"{text}\n" if len(table) else "")


def command_line() -> argparse.ArgumentParser:
    known = argparse.ArgumentParser(description=__doc__, parents=[which_sonar()])
    known.add_argument(
        "--under", type=float, default=5, metavar="MB/S", help="slow below this rate (default: 5)"
    )
    known.add_argument(
        "--min-tests", type=int, default=3, help="minimum number to evaluate a link (3)"
    )
    known.add_argument(
        "--max-failed",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="failing above this share (0.5)",
    )
    known.add_argument("--size", default="large", help="size class (default: large)")
    known.add_argument("--window", default="24h", help="time range (default: 24h)")
    for name in FILTERS:
        known.add_argument(f"--{name.replace('_', '-')}", action="append", metavar="NAME")
    return known


def main() -> int:
    wanted = command_line().parse_args()
    try:
        found = judged(links(connected(wanted), wanted), wanted)
    except (SonarError, OSError) as error:
        print(f"slow_pairs: {error}", file=sys.stderr)
        return 3
    print("\n".join(shown(name, table) for name, table in found.items()), end="")
    return int(not (found["slow"].empty and found["failing"].empty))


if __name__ == "__main__":
    sys.exit(main())
