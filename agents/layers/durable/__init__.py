"""Layers whose session lives in the log of a run: a worker that is killed goes on where it was put down."""

from dagbok.agents.layers.durable.worker import LayeredAttempt, LayeredWorker, Loop

__all__ = ["LayeredAttempt", "LayeredWorker", "Loop"]
