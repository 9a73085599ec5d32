"""Traces of runs for OpenTelemetry, derived from confirmed commits (`docs/tracing.md`)."""
