"""Slow networks and disks for real: kernel TCP between XRootD servers in namespaces of their own.

Everything hangs on one process (`enclosure`): when it dies, however that comes about, the kernel
takes servers, wires, devices and mounts away with it.
"""
