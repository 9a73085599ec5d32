"""The scheduler owns partitions: it decides commands (`decide/`), commits events, and derives what leaves it."""
