"""The values of a result, one by one, each with its JSON pointer and what its schema says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_NOTHING: Mapping[str, Any] = {}
#: An amount is checked as a number is, a cell of a column as any copied text.
_SOURCES: Mapping[Any, str] = {"amount": "number", "enum-of-table-column": "verbatim"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that is no object and no array; `source` is its `x-source`: number, date, id, verbatim, quote.

    `choice` marks a value that the schema chooses from a list, `labels` are its `x-labels`.
    """

    path: str
    value: Any
    source: str | None
    choice: bool = False
    labels: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The value as printed; empty for null."""
        match self.value:
            case None:
                return ""
            case bool():
                return "true" if self.value else "false"
            case _:
                return str(self.value)

    @property
    def grounded(self) -> bool:
        """Whether it claims to be taken from the document."""
        return self.source is not None and self.value is not None

    @property
    def prose(self) -> bool:
        """Whether the model wrote it in its own words."""
        return self.source is None and not self.choice and isinstance(self.value, str)


def leaves(result: Any, schema: Mapping[str, Any]) -> Iterator[Leaf]:
    """Every leaf, in the order of the result. What the schema does not describe has no source."""
    yield from _walk(result, schema, schema, "")


def descriptions(schema: Any) -> Iterator[str]:
    """What the schema says of its fields, at any depth."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("description"), str):
            yield schema["description"]
        for part in schema.values():
            yield from descriptions(part)


def example_values(schema: Any) -> Iterator[str]:
    """The values that a schema gives as examples of its fields, at any depth."""
    if isinstance(schema, Mapping):
        examples = schema.get("examples", ())
        yield from (str(value) for value in (examples if isinstance(examples, list) else ()))
        for key, part in schema.items():
            yield from example_values(part) if key != "examples" else ()


def step(path: str, key: str | int) -> str:
    """The JSON pointer of a member of what `path` points to."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def at(result: Any, path: str) -> Any:
    """What a JSON pointer points to, or None."""
    for key in path.split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")
        if isinstance(result, dict):
            result = result.get(name)
        elif isinstance(result, list) and name.isdigit() and int(name) < len(result):
            result = result[int(name)]
        else:
            return None
    return result


def expand(result: Any, path: str) -> Iterator[str]:
    """The pointers that a pointer with `*` for every item stands for."""
    before, star, after = path.partition("/*")
    if not star:
        yield path
        return
    items = at(result, before)
    for index in range(len(items) if isinstance(items, list) else 0):
        yield from expand(result, f"{step(before, index)}{after}")


def _walk(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str) -> Iterator[Leaf]:
    schema = _resolve(schema, root)
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _walk(member, _part(schema, "properties").get(key, _NOTHING), root, step(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, _part(schema, "items"), root, step(path, index))
    else:
        source = schema.get("x-source")
        yield Leaf(path, value, _SOURCES.get(source, source), "enum" in schema, tuple(schema.get("x-labels", ())))


def _part(schema: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    """A keyword's subschema, looked for in the alternatives too: a nullable object is often written with anyOf."""
    own = schema.get(keyword)
    if isinstance(own, Mapping):
        return own
    options = [option for word in ("anyOf", "oneOf", "allOf") for option in schema.get(word, ())]
    return next((option[keyword] for option in options if isinstance(option, Mapping) and keyword in option), _NOTHING)


def _resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    target = at(root, reference[1:])
    return {**target, **schema} if isinstance(target, dict) else schema
