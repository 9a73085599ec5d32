"""Worker processes: they take attempts from a queue, run the user's functions, and send commands. They write no
event."""
