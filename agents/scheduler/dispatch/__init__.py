"""Which open attempts go to a pool, and in which order. Writes no event: rebuilt from the confirmed state at any
time."""
