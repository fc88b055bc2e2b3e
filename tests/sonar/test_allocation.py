"""Memory of a process with many threads: one arena of glibc for all of them."""

import subprocess
import sys

# Each thread keeps what it has while the next begins, as transfers in flight do.
MANY_THREADS = """
import ctypes, threading
from sonar.celery import share_one_arena
if {shared}:
    assert share_one_arena()
libc, barrier = ctypes.PyDLL(None), threading.Barrier(17)
libc.malloc.restype = ctypes.c_void_p
found = []
def take():
    found.append(libc.malloc(4000) >> 26)
    barrier.wait()
threads = [threading.Thread(target=take) for _ in range(16)]
for thread in threads:
    thread.start()
barrier.wait()
print(len(set(found)))
"""


def arenas(*, shared: bool) -> int:
    command = [sys.executable, "-c", MANY_THREADS.format(shared=shared)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_threads_of_a_worker_take_memory_from_one_place():
    # An arena is as large as what is compared of an address, or that of the whole process.
    assert arenas(shared=True) <= 2 < arenas(shared=False)
