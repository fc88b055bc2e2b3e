#!/usr/bin/env python3
"""Find the best sources for a destination now, for brokers before they send.

Prints CSV, fastest first. Exit code: 0, 1 if no source is good enough, 2 if the command line is
wrong, 3 if Sonar could not answer.
"""

from __future__ import annotations

import argparse
import sys

import pandas as pd
from sonar_client import Sonar, SonarError, connected, which_sonar


def candidates(sonar: Sonar, wanted: argparse.Namespace) -> pd.DataFrame:
    """Return all sources that succeeded, by name: rate, counts, last success, and if young."""
    asked = {"destination_endpoint": wanted.destination, "size": wanted.size}
    asked["window"] = wanted.window
    links = sonar.links(**asked).set_index("source")
    links = links[links["source.retired"].ne(True)]
    rates = sonar.matrix(stat=wanted.by, **asked).reindex(columns=[wanted.destination])
    now = pd.Timestamp(rates.attrs["query"]["end"])  # by Sonar's clock
    found = pd.DataFrame(
        {
            f"{wanted.by}_mb_s": rates[wanted.destination],
            **{name: links[f"{wanted.size}.{name}"] for name in ("ok", "failed", "last_ok")},
        }
    )
    # A test that failed just now says nothing for a source that last succeeded long ago.
    found["young"] = found["last_ok"] >= now - pd.Timedelta(hours=wanted.max_age)
    return found[found["ok"] > 0].rename_axis("source")


def best(found: pd.DataFrame, wanted: argparse.Namespace) -> pd.DataFrame:
    """Return those that are young, fast and sure enough, the fastest first."""
    rate, success = found[f"{wanted.by}_mb_s"], found["ok"] / (found["ok"] + found["failed"])
    good = found["young"] & (rate >= wanted.min_mb_s) & (success >= wanted.min_success)
    return found[good].sort_values(rate.name, ascending=False).drop(columns="young").head(wanted.n)


def why_none(found: pd.DataFrame, wanted: argparse.Namespace) -> str:
    young = found[found["young"]]
    fastest = f", the fastest of them {young.iloc[:, 0].max():.3g} MB/s" if len(young) else ""
    return (
        f"No suitable source for {wanted.destination}: {len(found)} succeeded in {wanted.window}, "
        f"{len(young)} of them in the last {wanted.max_age:g} h{fastest}."
    )


def command_line() -> argparse.ArgumentParser:
    known = argparse.ArgumentParser(description=__doc__, parents=[which_sonar()])
    known.add_argument(
        "destination", metavar="DESTINATION", help="name of the destination endpoint"
    )
    known.add_argument("-n", type=int, default=3, help="maximum number of sources (default: 3)")
    known.add_argument("--size", default="large", help="size class (default: large)")
    known.add_argument("--window", default="24h", help="time range (default: 24h)")
    known.add_argument(
        "--by",
        choices=["mean", "median", "p05"],
        default="median",
        help="statistic to sort by (median)",
    )
    known.add_argument(
        "--max-age",
        type=float,
        default=3,
        metavar="HOURS",
        help="maximum age of the last success (3)",
    )
    known.add_argument("--min-mb-s", type=float, default=0, metavar="RATE", help="in MB/s (0)")
    known.add_argument(
        "--min-success", type=float, default=0.5, metavar="SHARE", help="share of tests (0.5)"
    )
    return known


def main() -> int:
    wanted = command_line().parse_args()
    try:
        found = candidates(connected(wanted), wanted)
    except (SonarError, OSError) as error:
        print(f"best_sources: {error}", file=sys.stderr)
        return 3
    chosen = best(found, wanted)
    if chosen.empty:
        print(why_none(found, wanted), file=sys.stderr)
        return 1
    print(chosen.to_csv(date_format="%Y-%m-%dT%H:%M:%SZ", float_format="%.4g"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
