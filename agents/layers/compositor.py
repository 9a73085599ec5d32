"""The compositor: a plan of layers that any number of runs are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Generic

from dagbok.agents.layers.disposing import dispose, prepare_disposal
from dagbok.agents.layers.entering import Entering
from dagbok.agents.layers.graph import check_graph, nodes_of_config
from dagbok.agents.layers.models import LayerConfigInput
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.preparing import Made, prepare
from dagbok.agents.layers.provider import LayerProviderInput
from dagbok.agents.layers.run import CompositorRun, RunPromptT, RunToolT, RunUserPromptT
from dagbok.agents.layers.schemas import CompositorConfig, CompositorConfigValue, read_versioned
from dagbok.agents.layers.snapshots.claims import ClaimsInMemory, SnapshotClaims
from dagbok.agents.layers.snapshots.diff import SnapshotDiff
from dagbok.agents.layers.snapshots.found import AnySnapshotValue, found_layers
from dagbok.agents.layers.snapshots.planning import plan_resume
from dagbok.agents.layers.snapshots.rules import NO_RULES, ResumeRules
from dagbok.agents.layers.snapshots.schema import Snapshot
from dagbok.agents.layers.transformers import CompositorTransformer, Transformers

CLEANUP_TIMEOUT_S = 30.0


class Compositor(Generic[RunPromptT, RunUserPromptT, RunToolT]):
    """An immutable graph of layers. It keeps nothing of a run but which snapshots were gone on with, so it may be
    entered many times at once."""

    def __init__(
        self,
        nodes: Sequence[LayerNode],
        *,
        prompt_transformer: CompositorTransformer[Any, RunPromptT] | None = None,
        user_prompt_transformer: CompositorTransformer[Any, RunUserPromptT] | None = None,
        tool_transformer: CompositorTransformer[Any, RunToolT] | None = None,
        cleanup_timeout_s: float = CLEANUP_TIMEOUT_S,
        snapshot_claims: SnapshotClaims | None = None,
    ) -> None:
        """Take nodes in order and check them.

        Args:
            nodes: A dependency points at an earlier node.
            prompt_transformer: From the tagged prompts of a run to what its user takes; so the other two.
            user_prompt_transformer: See above.
            tool_transformer: See above.
            cleanup_timeout_s: How long leaving the layers may go on once a run was cancelled, in seconds; then each
                step that still goes on is cut.
            snapshot_claims: Knows which snapshots were gone on with; None: those of this compositor, in memory.

        Raises:
            ValueError: A name is used twice, or a dependency is unknown, missing, undefined or not earlier.
            TypeError: A dependency is of the wrong class, or a layer's constructor needs arguments.
            ExceptionGroup: Several of these.
        """
        self._nodes = tuple(nodes)
        check_graph(self._nodes)
        self._transformers = Transformers(prompt_transformer, user_prompt_transformer, tool_transformer)
        self._cleanup_timeout_s = cleanup_timeout_s
        self._claims = snapshot_claims or ClaimsInMemory()

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
        snapshot_claims: SnapshotClaims | None = None,
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
            snapshot_claims=snapshot_claims,
        )

    def enter(
        self,
        *,
        configs: Mapping[str, LayerConfigInput] | None = None,
        session_snapshot: AnySnapshotValue | None = None,
        resume: ResumeRules = NO_RULES,
    ) -> Entering[CompositorRun[RunPromptT, RunUserPromptT, RunToolT]]:
        """Make the layers of one run and enter them; leave them at the end.

        Args:
            configs: By node name; a node that is left out has defaults.
            session_snapshot: What an earlier run ended with (`run.snapshot`, or `run.session_snapshot` of version 1):
                its layers go on from there.
            resume: What becomes of layers that the snapshot has otherwise than this graph; without rules such a
                snapshot is refused. `diff` tells beforehand.

        Raises:
            Before a layer is made: as `preparing.prepare` says; then RuntimeError for a snapshot that was gone on with
            before, where that can be known: it has an id, and `snapshot_claims` remembers it. Later: what
            `Prepared.make` says, and what hooks, resources and the body raise; of several errors, as `failing` says.
        """

        def run(made: Made) -> CompositorRun[RunPromptT, RunUserPromptT, RunToolT]:
            return CompositorRun(self._nodes, made, self._transformers)

        check = partial(prepare, self._nodes, configs, session_snapshot, resume)
        return Entering(check, run, self._claims, self._cleanup_timeout_s)

    async def dispose(
        self,
        session_snapshot: AnySnapshotValue,
        *,
        configs: Mapping[str, LayerConfigInput] | None = None,
        resume: ResumeRules = NO_RULES,
    ) -> Snapshot:
        """Delete what a snapshot has suspended, without a run: its layers are resumed in order, and their delete hooks
        run in reverse order, with their resources around them. No prompt and no tool is asked for.

        One that fails does not keep others from it: it stays suspended, and so does what it depends on.

        Args:
            session_snapshot: It is used up, as by `enter`.
            configs: By node name; a node that is left out has defaults.
            resume: `retired` has nodes for layers that are not in this graph, or not with this type; migrators as in
                `enter`. Policies are not asked.

        Returns:
            The snapshot afterwards: nothing in it is suspended.

        Raises:
            Before a layer is entered: ValueError for a suspended layer that nothing here can delete, and as `enter`.
            Later: what hooks and resources raise; of several errors, as `failing` says. `own_snapshot_of` the error has
            what is left, for another try.
        """
        disposing = prepare_disposal(self._nodes, session_snapshot, configs or {}, resume)
        return await dispose(disposing, self._claims, self._cleanup_timeout_s)

    def diff(self, session_snapshot: AnySnapshotValue, *, resume: ResumeRules = NO_RULES) -> SnapshotDiff:
        """What resuming a snapshot would do to each layer, without doing it: migrators are called and states validated,
        no layer is made and the snapshot is not used up.

        Raises:
            ValueError: It is malformed (also pydantic's ValidationError), or of another format or version.
        """
        return plan_resume(self._nodes, found_layers(session_snapshot), resume).diff
