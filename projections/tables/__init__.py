"""How rows reach a database: row types as tables (`rows.py`), statements for many rows (`statements.py`; `bulk.py` and
`columns.py` for PostgreSQL), what a view works with (`session.py`), where each view stands (`positions.py`), and the
databases themselves (`database.py`, `sqlite.py`, `postgres.py`). Nothing here knows what rows mean.
"""
