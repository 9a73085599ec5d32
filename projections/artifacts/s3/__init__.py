"""Artifacts in a bucket of an S3-compatible service (`pip install dagbok[s3]`).

`place.py` reads the URL, `client.py` connects, `objects.py` says what lies in the bucket, `blobs.py` is the adapter,
`failures.py` puts what the service says into the words of the port.
"""
