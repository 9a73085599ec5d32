"""What is wrong with a log and with those who serve it, seen from outside."""
