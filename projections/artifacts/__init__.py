"""Artifacts: immutable bytes under their SHA-256, apart for every tenant and project.

`port.py` is what callers use and where every check stands; `blobs.py` is what an adapter implements (`memory.py`,
`local.py`, `s3/`); `orphans.py` removes what nothing refers to.
"""
