"""Goal 15: fifty transfers by programs in flight in one worker process, and their memory in all.

The servers are real: two XRootD servers and two GridFTP servers, which hold each copy midway.
"""

from tests.benchmarks.apart import Program

PROGRAM = Program(
    "tests.benchmarks.subprocesses",
    __doc__,
    measure="tests.benchmarks.in_programs",
    environment={"SONAR_IN_FLIGHT": "50"},
)
run = PROGRAM.run

if __name__ == "__main__":
    PROGRAM.main()
