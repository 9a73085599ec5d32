"""JSON Schema (2020-12) of the types that messages are made of: what `msgspec` would decode, no more and no less.

`msgspec.json.schema_components` cannot write a default that is a `msgspec.Raw`, which fields with any JSON value have;
so the types are walked here. A default stands in the schema as it would stand in the message.
"""

from __future__ import annotations

import inspect
from typing import Final

import msgspec
from msgspec import inspect as types

from dagbok.events.canonical import Json

Schema = dict[str, Json]

BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_SIMPLE: Final[dict[type[types.Type], Schema]] = {
    types.RawType: {},
    types.NoneType: {"type": "null"},
    types.BoolType: {"type": "boolean"},
    types.IntType: {"type": "integer"},
    types.StrType: {"type": "string"},
    types.BytesType: {"type": "string", "contentEncoding": "base64", "pattern": BASE64},
}


class Definitions:
    """The schemas of structs, by the name of their class; each stands once and is referred to."""

    def __init__(self) -> None:
        self._schemas: dict[str, Schema] = {}
        self._classes: dict[str, type] = {}

    def schemas(self) -> Schema:
        """What becomes `$defs`, by name."""
        return {name: self._schemas[name] for name in sorted(self._schemas)}

    def refer(self, struct: type[msgspec.Struct]) -> Schema:
        """A reference to the schema of a struct. Raises `TypeError` for a type that messages have not had so far, and
        for two classes of one name."""
        return self._of(types.type_info(struct))

    def members(self, struct: type[msgspec.Struct]) -> tuple[dict[str, Schema], list[Json]]:
        """The schemas of the fields of a struct, by name, and the names of those that it must have. Raises like
        `refer`."""
        found = types.type_info(struct)
        assert isinstance(found, types.StructType)
        return self._members(found)

    def _of(self, kind: types.Type) -> Schema:
        match kind:
            case types.StructType():
                return self._refer(kind)
            case types.UnionType():
                return _any_of([self._of(one) for one in kind.types])
            case types.LiteralType():
                return {"enum": sorted(kind.values, key=str)}
            case types.VarTupleType():
                return {"type": "array", "items": self._of(kind.item_type)}
            case types.TupleType():
                items: list[Json] = [self._of(item) for item in kind.item_types]
                return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
            case types.DictType(key_type=types.StrType()):
                return {"type": "object", "additionalProperties": self._of(kind.value_type)}
            case _ if kind.__class__ in _SIMPLE and kind == kind.__class__():
                return dict(_SIMPLE[kind.__class__])
        raise TypeError(f"no JSON Schema is known here for {kind}")

    def _refer(self, struct: types.StructType) -> Schema:
        name = struct.cls.__name__
        if self._classes.setdefault(name, struct.cls) is not struct.cls:
            raise TypeError(f"{name} is the name of two classes: {self._classes[name]} and {struct.cls}")
        if name not in self._schemas:
            self._schemas[name] = {}  # a struct may hold itself
            self._schemas[name] = _described(struct.cls) | (
                self._of_array(struct) if struct.array_like else self._of_object(struct)
            )
        return {"$ref": f"#/$defs/{name}"}

    def _of_object(self, struct: types.StructType) -> Schema:
        members, needed = self._members(struct)
        if struct.tag_field is not None:
            tag: Schema = {"const": struct.tag}
            members = {struct.tag_field: tag} | members
            needed.insert(0, struct.tag_field)
        return {"type": "object", "properties": {**members}, "required": needed}

    def _members(self, struct: types.StructType) -> tuple[dict[str, Schema], list[Json]]:
        members = {field.encode_name: self._of_field(field) for field in struct.fields}
        return members, [field.encode_name for field in struct.fields if field.required]

    def _of_array(self, struct: types.StructType) -> Schema:
        items: list[Json] = [{"title": field.name, **self._of_field(field)} for field in struct.fields]
        needed = sum(field.required for field in struct.fields)
        return {"type": "array", "prefixItems": items, "minItems": needed}

    def _of_field(self, field: types.Field) -> Schema:
        found = self._of(field.type)
        if field.required:
            return found
        return found | {"default": _default(field)}


def _any_of(schemas: list[Schema]) -> Schema:
    if all(schema.keys() == {"type"} for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": [*schemas]}


def _default(field: types.Field) -> Json:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    told: Json = msgspec.json.decode(msgspec.json.encode(value))
    return told


def _described(cls: type) -> Schema:
    text = cls.__dict__.get("__doc__")
    return {"title": cls.__name__, "description": inspect.cleandoc(text)} if text else {"title": cls.__name__}
