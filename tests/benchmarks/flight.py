"""Goal 8: 500 transfers in flight in one small worker process, and 50 a second through it.

Everything is real and runs on two cores: PostgreSQL, Redis, beat, control, the worker with its
movers, and storage nodes that copy files of 1 MB over HTTP third-party copy.
"""

from tests.benchmarks.apart import Program

PROGRAM = Program(
    "tests.benchmarks.flight",
    __doc__,
    measure="tests.benchmarks.in_flight",
    environment={
        "SONAR_IN_FLIGHT": "500",
        "SONAR_PLAN_SECONDS": "1",
        "SONAR_DATABASE_POOL": "8",
    },
)
run = PROGRAM.run

if __name__ == "__main__":
    PROGRAM.main()
