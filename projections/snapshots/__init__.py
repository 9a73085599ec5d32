"""Snapshots of a partition: recovery reads the newest one and the log behind it, not everything (architecture 3.3).

A snapshot is derived and can be deleted; a damaged one makes recovery slower, never wrong.
"""
