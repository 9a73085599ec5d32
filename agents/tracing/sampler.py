"""Which runs are traced."""

from __future__ import annotations

from functools import lru_cache

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision


class Sampler:
    """Whether a run is traced, by `OTEL_TRACES_SAMPLER`: the same answer in every process that has the same
    variables."""

    def __init__(self) -> None:
        self._sampler = TracerProvider(shutdown_on_exit=False).sampler
        self.sampled = lru_cache(4_096)(self._ask)

    def _ask(self, trace_id: int) -> bool:
        return self._sampler.should_sample(None, trace_id, "run").decision is Decision.RECORD_AND_SAMPLE
