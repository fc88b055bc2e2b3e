"""Collects fireflies: what marking servers tell of the connections of a transfer, by UDP.

Each packet is about one connection and its flow label (scitags.org). Anybody can forge one, so
what they say is shown beside a result and never changes it.
"""
