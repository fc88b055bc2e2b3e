"""A hostile storage server: one process on loopback, one port for each way of misbehaving.

`python -m tests.storage.hostile --directory DIR` runs it; `served.Hostile` starts and stops it.
What a way does not spoil is done well, so that each step of a measurement can be met.
"""
