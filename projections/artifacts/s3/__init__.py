"""Artifacts in a bucket of an S3-compatible service (extra `s3`).

`blobs.py` is the adapter and `objects.py` says what lies in the bucket; `place.py` reads the URL, `client.py` connects,
`bucket.py` makes the requests, `failures.py` puts what the service says into the words of the port.
"""
