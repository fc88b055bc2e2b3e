"""Goal 9: one planning tick over three million scheduled rows, of which 2,000 are due."""

from tests.benchmarks.apart import Program

PROGRAM = Program(
    "tests.benchmarks.planning",
    __doc__,
    measure="tests.benchmarks.ticks",
    # Memory for the schedule and its indexes (1 GB), as such a database would be given.
    options=("shared_buffers=2GB", "max_wal_size=8GB", "jit=off", "autovacuum=off"),
)
run = PROGRAM.run

if __name__ == "__main__":
    PROGRAM.main()
