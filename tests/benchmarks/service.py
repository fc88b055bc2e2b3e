"""Goal 16: 500 transfers of FTS3 in flight in one small worker process that asks rarely.

Everything is real and runs on two cores, but the FTS3 server, which is the one of the tests: it
keeps each job in its queue for a while, and then lets a storage node fetch the file.
"""

from tests.benchmarks.apart import Program

PROGRAM = Program(
    "tests.benchmarks.service",
    __doc__,
    measure="tests.benchmarks.in_service",
    environment={
        "SONAR_IN_FLIGHT": "500",
        "SONAR_PLAN_SECONDS": "1",
        "SONAR_DATABASE_POOL": "8",
    },
)
run = PROGRAM.run

if __name__ == "__main__":
    PROGRAM.main()
