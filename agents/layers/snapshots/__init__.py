"""Layers between two runs: how they are written, migrated, imported and resumed (docs/layers.md, ADR 20)."""
