"""How rows reach a database: row types as tables (`rows.py`), statements (`statements.py`), the engine (`engine.py`),
what a view works with (`session.py`), and where each view stands (`positions.py`). Nothing here knows what rows mean.
"""
