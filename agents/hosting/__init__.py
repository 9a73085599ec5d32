"""What runs actors. The embedded host has all of them in one process, but for the projector; only here are adapters
named."""
