"""The compositor: a plan of layers that any number of runs are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic

from dagbok.agents.layers.entering import Entering
from dagbok.agents.layers.graph import check_graph, nodes_of_config
from dagbok.agents.layers.models import LayerConfigInput
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.preparing import prepare
from dagbok.agents.layers.provider import LayerProviderInput
from dagbok.agents.layers.run import CompositorRun, RunPromptT, RunToolT, RunUserPromptT
from dagbok.agents.layers.schemas import (
    CompositorConfig,
    CompositorConfigValue,
    CompositorSessionSnapshotValue,
    read_versioned,
)
from dagbok.agents.layers.transformers import CompositorTransformer, Transformers

CLEANUP_TIMEOUT_S = 30.0


class Compositor(Generic[RunPromptT, RunUserPromptT, RunToolT]):
    """An immutable graph of layers. It keeps nothing of a run, so it may be entered many times at once."""

    def __init__(
        self,
        nodes: Sequence[LayerNode],
        *,
        prompt_transformer: CompositorTransformer[Any, RunPromptT] | None = None,
        user_prompt_transformer: CompositorTransformer[Any, RunUserPromptT] | None = None,
        tool_transformer: CompositorTransformer[Any, RunToolT] | None = None,
        cleanup_timeout_s: float = CLEANUP_TIMEOUT_S,
    ) -> None:
        """Take nodes in order and check them.

        Args:
            nodes: A dependency points at an earlier node.
            prompt_transformer: From the tagged prompts of a run to what its user takes; so the other two.
            user_prompt_transformer: See above.
            tool_transformer: See above.
            cleanup_timeout_s: How long leaving the layers may go on once a run was cancelled, in seconds; then each
                step that still goes on is cut.

        Raises:
            ValueError: A name is used twice, or a dependency is unknown, missing, undefined or not earlier.
            TypeError: A dependency is of the wrong class, or a layer's constructor needs arguments.
            ExceptionGroup: Several of these.
        """
        self._nodes = tuple(nodes)
        check_graph(self._nodes)
        self._transformers = Transformers(prompt_transformer, user_prompt_transformer, tool_transformer)
        self._cleanup_timeout_s = cleanup_timeout_s

    @property
    def nodes(self) -> tuple[LayerNode, ...]:
        """The nodes in order."""
        return self._nodes

    @classmethod
    def from_config(
        cls,
        conf: CompositorConfigValue,
        *,
        providers: Sequence[LayerProviderInput],
        node_providers: Mapping[str, LayerProviderInput] | None = None,
        prompt_transformer: CompositorTransformer[Any, RunPromptT] | None = None,
        user_prompt_transformer: CompositorTransformer[Any, RunUserPromptT] | None = None,
        tool_transformer: CompositorTransformer[Any, RunToolT] | None = None,
        cleanup_timeout_s: float = CLEANUP_TIMEOUT_S,
    ) -> Compositor[RunPromptT, RunUserPromptT, RunToolT]:
        """Of a graph config: `providers` make its types, `node_providers` override them by node name. The others are as
        for the constructor.

        Raises:
            pydantic.ValidationError: The config is malformed.
            ValueError, KeyError: As `graph.nodes_of_config` says.
            ExceptionGroup: Several problems.
        """
        config = read_versioned(CompositorConfig, conf)
        return cls(
            nodes_of_config(config, providers, node_providers or {}),
            prompt_transformer=prompt_transformer,
            user_prompt_transformer=user_prompt_transformer,
            tool_transformer=tool_transformer,
            cleanup_timeout_s=cleanup_timeout_s,
        )

    def enter(
        self,
        *,
        configs: Mapping[str, LayerConfigInput] | None = None,
        session_snapshot: CompositorSessionSnapshotValue | None = None,
    ) -> Entering[CompositorRun[RunPromptT, RunUserPromptT, RunToolT]]:
        """Make the layers of one run and enter them; leave them at the end.

        Args:
            configs: By node name; a node that is left out has defaults.
            session_snapshot: What an earlier run ended with; its layers go on from there.

        Raises:
            Before a layer is entered: as `preparing.prepare` says. Later: what hooks, resources and the body raise; of
            several errors, as `failing` says.
        """
        return Entering(lambda: self._run(configs, session_snapshot), self._cleanup_timeout_s)

    def _run(
        self, configs: Mapping[str, LayerConfigInput] | None, snapshot: CompositorSessionSnapshotValue | None
    ) -> CompositorRun[RunPromptT, RunUserPromptT, RunToolT]:
        return CompositorRun(prepare(self._nodes, configs, snapshot), self._transformers)
