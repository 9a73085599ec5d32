"""What is known of one run: the state of its task graph (`state.py`) and how events change it (`evolve.py`).

The scheduler decides on it, and a query for "the graph at event n" folds it again: one code for both.
"""
