"""Who makes the layers of a graph: what imported files hold, and what the command line names in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from dagbok.agents.layers import Layer, LayerProvider, LayerProviderInput, PromptLayer
from dagbok.cli.module_file import load
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput


@dataclass(frozen=True)
class Makers:
    """What a program would give `Compositor.from_config`."""

    modules: Sequence[ModuleType]
    providers: Sequence[LayerProviderInput]
    node_providers: dict[str, LayerProviderInput]


def makers(imports: Sequence[str], node_providers: Sequence[str], providers: str | None) -> Makers:
    """Of files, of "NODE=VARIABLE", and of a variable with a list. Raises `InvalidInput` (`usage`) for a variable that
    no file has."""
    modules = [load(name) for name in imports]
    listed = collected(modules) if providers is None else [*_listed(modules, providers)]
    return Makers(modules, listed, dict(_named(modules, each) for each in node_providers))


def collected(modules: Sequence[ModuleType]) -> list[LayerProviderInput]:
    """Providers and classes with a type id, and the plain prompt layer, which needs no import.

    A class is left out where a provider is of it, or where it is only imported and a subclass has its type id: no
    program registers both. Of what else has one type id twice nobody can tell which is meant.
    """
    found = {id(each): each for module in modules for each in vars(module).values() if _is_known(each)}
    made = {each.layer_type for each in found.values() if isinstance(each, LayerProvider)}
    at_home = {module.__name__ for module in modules}
    classes = [each for each in found.values() if isinstance(each, type)]

    def gives_way(kind: type[Layer]) -> bool:  # type: ignore[type-arg]
        below = (each for each in classes if each is not kind and issubclass(each, kind))
        return kind in made or (
            kind.__module__ not in at_home and any(each.type_id == kind.type_id for each in below)
        )

    kept = [each for each in found.values() if not (isinstance(each, type) and gives_way(each))]
    return kept if any(each.type_id == PromptLayer.type_id for each in kept) else [PromptLayer, *kept]


def _is_known(value: object) -> bool:
    if isinstance(value, LayerProvider):
        return bool(value.type_id)
    return isinstance(value, type) and issubclass(value, Layer) and bool(value.type_id) and hasattr(value, "deps_type")


def _listed(modules: Sequence[ModuleType], variable: str) -> Iterator[LayerProviderInput]:
    found = _variable(modules, variable)
    if not isinstance(found, list | tuple):
        raise InvalidInput(f"{variable} is no list of providers", code=Code.USAGE, advice="name a list or tuple")
    yield from found


def _named(modules: Sequence[ModuleType], given: str) -> tuple[str, LayerProviderInput]:
    name, found, variable = given.partition("=")
    if not (name and found and variable):
        raise InvalidInput(f"{given!r} is not NODE=VARIABLE", code=Code.USAGE, advice="--node-provider tools=TOOLS")
    return name, _variable(modules, variable)


def _variable(modules: Sequence[ModuleType], name: str) -> LayerProviderInput:
    for module in modules:
        if name in vars(module):
            found: LayerProviderInput = vars(module)[name]
            return found
    raise InvalidInput(
        f"no imported file has {name!r}", code=Code.USAGE, advice="--import the file, and name a variable of it"
    )
