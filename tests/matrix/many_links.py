"""Link tables made by hand, of as many links as wanted."""

from dataclasses import replace

import numpy as np

from matrix.answers.table.link_table import EVERY, Arrays, LinkColumns, LinkTable
from matrix.statistics.cells.states import MEASURED, UNTESTED
from sonar.notation.windows import preset
from tests.matrix.grids import endpoint_info
from tests.matrix.world import NOW


def of_class(links: int, rng: np.random.Generator) -> Arrays:
    """Make values up, with a tenth of the links without any."""
    ok = rng.integers(0, 10, links)
    rate = np.where(ok > 0, rng.lognormal(2, 1, links), np.nan)
    last = np.where(ok > 0, NOW.timestamp() - rng.uniform(0, 86_400, links), np.nan)
    size = np.where(ok > 0, 2e9, np.nan)
    failed, every = rng.integers(0, 3, links) * (ok > 0), np.full(links, 3600.0)
    last_failed = np.where(failed > 0, last - 60, np.nan)
    state = np.where(ok > 0, MEASURED, UNTESTED).astype(np.uint8)
    level, streak = np.zeros(links, dtype=np.uint8), np.zeros(links, dtype=np.int32)
    since, bound = np.full(links, np.nan), np.full(links, np.nan, dtype=np.float32)
    return {
        **dict.fromkeys(("mean_mb_s", "usual_mb_s", "now_mb_s"), rate),
        "std_mb_s": rate / 10,
        "size_mean_bytes": size,
        "size_std_bytes": size * 0,
        "ok": ok,
        "failed": failed,
        "state": state,
        "last_ok": last,
        "last_failed": last_failed,
        **dict.fromkeys(("ratio_low", "ratio_high"), bound),
        "level": level,
        "since": since,
        "streak": streak,
        "unconfirmed": level,
        "condition": streak,
        EVERY: every,
    }


def table(endpoints: int) -> LinkTable:
    """Make a table of all links between this many endpoints."""
    rng = np.random.default_rng(1)
    places = tuple(
        replace(
            endpoint_info(
                n,
                f"SITE-{n}_DATADISK",
                site=f"SITE-{n}",
                cloud=f"C{n % 10}",
                tier=n % 4,
                country="DE",
                label="DATADISK",
            ),
            simulated=n == 1,
        )
        for n in range(1, endpoints + 1)
    )
    source, destination = np.nonzero(~np.eye(endpoints, dtype=bool))
    classes = {size: of_class(len(source), rng) for size in ("small", "medium", "large")}
    priority = np.where(rng.random(len(source)) < 0.1, np.nan, 5.0)
    window = preset("7d", NOW)
    return LinkTable(LinkColumns(window, places, source, destination, priority, classes))
