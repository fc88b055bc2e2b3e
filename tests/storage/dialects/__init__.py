"""Servers that speak as EOS, dCache and StoRM do, each a process of its own with TLS on loopback.

They store real bytes and move them over HTTP for a COPY. Times are shorter than real ones: a marker
comes each 0.1 s and not each 5 s, a transfer waits in a queue for 1.2 s and not for minutes.
"""
