"""Agents of other frameworks: as workers of tasks, and as those who look at runs and steer them."""
