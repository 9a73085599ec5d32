"""The rules of a graph of nodes, and its nodes from a config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol
from unicodedata import is_normalized

from dagbok.agents.layers.deps import dep_specs
from dagbok.agents.layers.node import NAMELESS, LayerNode
from dagbok.agents.layers.problems import raise_problems
from dagbok.agents.layers.provider import LayerProvider, LayerProviderInput, as_provider
from dagbok.agents.layers.schemas import CompositorConfig
from dagbok.agents.layers.written_text import is_text


class Placed(Protocol):
    """A node, or what a config says of one: where it stands and what it points at."""

    @property
    def name(self) -> str: ...

    @property
    def deps(self) -> Mapping[str, str]: ...


def check_graph(nodes: Sequence[LayerNode]) -> None:
    """Refuse a graph that no run could be made of: the one problem, or an ExceptionGroup of all."""
    problems = [*place_problems(nodes), *class_problems(nodes)]
    raise_problems("The graph of layers has several problems", problems)


def place_problems(nodes: Sequence[Placed]) -> Iterator[Exception]:
    """What is wrong with names and targets, whoever makes the layers."""
    names, before = {node.name for node in nodes}, set[str]()
    for node in nodes:
        said = f"Layer '{node.name}'"
        if not node.name:
            yield ValueError(NAMELESS)
        elif node.name in before:
            yield ValueError(f"Duplicate layer name '{node.name}'")
        elif not is_text(node.name):
            yield ValueError(f"Layer {node.name!a}: its name is no text that can be written, so no snapshot has it")
        elif not is_normalized("NFC", node.name):
            yield ValueError(f"{said}: write its name in Unicode's normal form C, as sessions and digests have it")
        undefined = sorted({target for target in node.deps.values() if target not in names})
        if undefined:
            yield ValueError(f"{said} depends on undefined layer names: {', '.join(undefined)}")
        late = [f"{key}->{target}" for key, target in node.deps.items() if target in names and target not in before]
        if late:
            yield ValueError(f"{said}: dependencies must target preceding layer nodes: {', '.join(late)}")
        before.add(node.name)


def class_problems(nodes: Sequence[LayerNode]) -> Iterator[Exception]:
    """What is wrong with nodes because of who makes their layers. Of targets that are not among them nothing is
    said."""
    before: dict[str, LayerProvider[Any]] = {}
    for node in nodes:
        said, specs = f"Layer '{node.name}'", dep_specs(node.provider.layer_type.deps_type)
        problem = node.provider.problem()
        if problem is not None:
            yield problem
        unknown = sorted(node.deps.keys() - specs.keys())
        if unknown:
            yield ValueError(f"{said} has unknown dependency keys: {', '.join(unknown)}")
        for key, spec in specs.items():
            target = node.deps.get(key)
            if target is None:
                if not spec.optional:
                    yield ValueError(f"{said}: Dependency '{key}' is required")
            elif target in before and not _may_be(before[target], spec.layer_type):
                wanted, found = spec.layer_type.__name__, before[target].layer_type.__name__
                yield TypeError(f"{said}: Dependency '{key}' must be {wanted}, got {found}")
        before[node.name] = node.provider


def _may_be(provider: LayerProvider[Any], wanted: type) -> bool:
    """A factory may return any subclass of what it declares, also one that is `wanted` by another base: that is looked
    at when the layer is bound. A class that is called gives just itself."""
    return not provider.makes_itself or issubclass(provider.layer_type, wanted)


def nodes_of_config(
    config: CompositorConfig,
    providers: Sequence[LayerProviderInput],
    node_providers: Mapping[str, LayerProviderInput],
) -> list[LayerNode]:
    """The nodes of a config: a node's own provider if it has one, else the provider of its type.

    Raises:
        ValueError: A provider has no type id, or one that another has; `node_providers` names no node; or as
            `check_graph`.
        KeyError: No provider has the type of a node.
        ExceptionGroup: Several of these.
    """
    nodes, problems = nodes_and_problems(config, providers, node_providers)
    raise_problems("The config of the layers has several problems", problems)
    return nodes


def nodes_and_problems(
    config: CompositorConfig,
    providers: Sequence[LayerProviderInput],
    node_providers: Mapping[str, LayerProviderInput],
) -> tuple[list[LayerNode], list[Exception]]:
    """The nodes that can be made of a config, and all that is wrong with it and with them."""
    problems: list[Exception] = []
    by_type = _by_type(providers, problems)
    unknown = sorted(node_providers.keys() - {each.name for each in config.layers})
    if unknown:
        problems.append(ValueError(f"node_providers has unknown layer node names: {', '.join(unknown)}"))
    nodes: list[LayerNode] = []
    for each in config.layers:
        provider = node_providers.get(each.name, by_type.get(each.type))
        if provider is None:
            problems.append(KeyError(f"Layer type id '{each.type}' is not registered"))
        elif each.name:
            try:
                made = LayerNode(each.name, provider, deps=each.deps, metadata=each.metadata, declared_type=each.type)
                nodes.append(made)
            except TypeError as problem:
                problems.append(problem)
    return nodes, [*problems, *place_problems(config.layers), *class_problems(nodes)]


def _by_type(providers: Sequence[LayerProviderInput], problems: list[Exception]) -> dict[str, LayerProvider]:
    found: dict[str, LayerProvider] = {}
    for each in providers:
        try:
            provider = as_provider(each)
        except TypeError as problem:
            problems.append(problem)
            continue
        if not provider.type_id:
            problems.append(ValueError(f"{provider.layer_type.__name__} must declare a type_id"))
        elif provider.type_id in found:
            problems.append(ValueError(f"Layer type id '{provider.type_id}' is already registered"))
        else:
            found[provider.type_id] = provider
    return found
