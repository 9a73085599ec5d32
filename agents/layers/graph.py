"""The rules of a graph of nodes, and its nodes from a config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dagbok.agents.layers.deps import dep_specs
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.problems import raise_problems
from dagbok.agents.layers.provider import LayerProvider, LayerProviderInput, as_provider
from dagbok.agents.layers.schemas import CompositorConfig


def check_graph(nodes: Sequence[LayerNode]) -> None:
    """Refuse a graph that no run could be made of: the one problem, or an ExceptionGroup of all."""
    raise_problems("The graph of layers has several problems", [*graph_problems(nodes)])


def graph_problems(nodes: Sequence[LayerNode]) -> Iterator[Exception]:
    """All that is wrong with a graph, node by node."""
    names, before = {node.name for node in nodes}, set[str]()
    types = {node.name: node.provider.layer_type for node in nodes}
    for node in nodes:
        if node.name in before:
            yield ValueError(f"Duplicate layer name '{node.name}'")
        problem = node.provider.problem()
        if problem is not None:
            yield problem
        yield from _dep_problems(node, names, before)
        for key, spec in dep_specs(node.provider.layer_type.deps_type).items():
            target = node.deps.get(key)
            if target is None:
                if not spec.optional:
                    yield ValueError(f"Layer '{node.name}': Dependency '{key}' is required")
            elif target in before and not _may_be(types[target], spec.layer_type):
                wanted, found = spec.layer_type.__name__, types[target].__name__
                yield TypeError(f"Layer '{node.name}': Dependency '{key}' must be {wanted}, got {found}")
        before.add(node.name)


def _may_be(declared: type, wanted: type) -> bool:
    """A factory may return a subclass of what it declares: only classes that exclude each other are a problem now."""
    return issubclass(declared, wanted) or issubclass(wanted, declared)


def _dep_problems(node: LayerNode, names: set[str], before: set[str]) -> Iterator[Exception]:
    said = f"Layer '{node.name}'"
    unknown = sorted(node.deps.keys() - dep_specs(node.provider.layer_type.deps_type).keys())
    if unknown:
        yield ValueError(f"{said} has unknown dependency keys: {', '.join(unknown)}")
    undefined = sorted({target for target in node.deps.values() if target not in names})
    if undefined:
        yield ValueError(f"{said} depends on undefined layer names: {', '.join(undefined)}")
    late = [f"{key}->{target}" for key, target in node.deps.items() if target in names and target not in before]
    if late:
        yield ValueError(f"{said}: dependencies must target preceding layer nodes: {', '.join(late)}")


def nodes_of_config(
    config: CompositorConfig,
    providers: Sequence[LayerProviderInput],
    node_providers: Mapping[str, LayerProviderInput],
) -> list[LayerNode]:
    """The nodes of a config: a node's own provider if it has one, else the provider of its type.

    Raises:
        ValueError: A provider has no type id, or one that another has; `node_providers` names no node.
        KeyError: No provider has the type of a node.
        ExceptionGroup: Several of these, or of the problems of the graph that can be told already.
    """
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
            continue
        try:
            made = LayerNode(each.name, provider, deps=each.deps, metadata=each.metadata, declared_type=each.type)
            nodes.append(made)
        except (TypeError, ValueError) as problem:
            problems.append(problem)
    if problems and len(nodes) == len(config.layers):
        problems.extend(graph_problems(nodes))
    raise_problems("The config of the layers has several problems", problems)
    return nodes


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
