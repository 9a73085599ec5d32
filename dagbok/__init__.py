"""dagbok: verified, dynamic task graphs of many agents, kept in a log."""
