"""What a worker keeps from turn to turn and from attempt to attempt: a JSON value in the log, written as changes."""
