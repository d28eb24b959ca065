"""A profile: what to read from a document, how soon, and how it is judged. Profiles are YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from docmill.errors import UnknownProfile
from inference.profile_format import FORMAT

_FORMAT = Draft202012Validator(FORMAT)
#: The profiles that come with docmill.
BUILT_IN = Path(__file__).parent / "profiles"


class BrokenProfile(ValueError):
    """A profile's file is not of the profile format; the message names the file, the place in it and the reason."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What to read, in which words to ask for it, and where and how soon.

    `instructions` by language ("en", "zh"). `schema` is a JSON Schema whose fields may carry `x-source` (inference/
    grounding.py) and `x-labels` (words beside which the value is printed). `lanes` are names in order of preference;
    `precision` is a hint for lanes that are made for it. `window_seconds` is how long a result may take, 0: at once.
    `document_tokens` bounds what is read of a document (None: all of it); blocks that hold one of `critical_terms`, or
    stand under a heading with one of `critical_sections`, are kept when it must be shortened. No answer is given less
    room than `min_output_tokens`. `quantized_long` lets lanes of
    quantised weights read long documents too (inference/cost_control.py).
    """

    name: str
    version: str
    title: str
    instructions: Mapping[str, str]
    schema: Mapping[str, Any]
    lanes: tuple[str, ...]
    precision: str
    window_seconds: int
    temperature: float
    max_output_tokens: int
    ruleset: str
    critical_terms: tuple[str, ...] = ()
    critical_sections: tuple[str, ...] = ()
    document_tokens: int | None = None
    min_output_tokens: int = 48
    quantized_long: bool = False

    def json_schema(self) -> dict[str, Any]:
        """The schema in JSON Schema's own words only, for engines that refuse others."""
        return without_extensions(self.schema)


def load_profiles(folder: Path = BUILT_IN) -> Mapping[str, Profile]:
    """All profiles of a folder, by name. Raises BrokenProfile for the first file that is not one."""
    loaded: dict[str, Profile] = {}
    for file in sorted(folder.glob("*.yaml")):
        profile = read_profile(file)
        if profile.name in loaded:
            raise BrokenProfile(f"{file}: the name {profile.name!r} is taken by another file; give each its own name")
        loaded[profile.name] = profile
    return MappingProxyType(loaded)


def get(profiles: Mapping[str, Profile], name: str) -> Profile:
    """The profile of this name; raises UnknownProfile, which says what there is."""
    try:
        return profiles[name]
    except KeyError:
        available = ", ".join(sorted(profiles)) or "none"
        raise UnknownProfile(f"there is no profile {name!r}; available: {available}") from None


def read_profile(file: Path) -> Profile:
    """One file as a profile."""
    try:
        fields = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise BrokenProfile(f"{file}: not YAML: {error}") from error
    except UnicodeDecodeError as error:
        raise BrokenProfile(f"{file}: not UTF-8: {error}") from error
    if wrong := best_match(_FORMAT.iter_errors(fields)):
        raise BrokenProfile(f"{file}: at {wrong.json_path}: {wrong.message}")
    return _profile(fields)


def _profile(fields: dict[str, Any]) -> Profile:
    schema = _closed(fields.pop("schema"))
    lanes = tuple(fields.pop("lanes"))
    for name in ("critical_terms", "critical_sections"):
        fields[name] = tuple(fields.get(name, ()))
    instructions = MappingProxyType({key: text.strip() for key, text in fields.pop("instructions").items()})
    return Profile(schema=schema, lanes=lanes, instructions=instructions, **fields)


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Every object has exactly its listed properties: what the grammar writes, and what a check must insist on."""
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: _closed(inner) for name, inner in schema["properties"].items()}
        closed |= {"required": list(schema["properties"]), "additionalProperties": False}
    if "items" in schema:
        closed["items"] = _closed(schema["items"])
    return closed


def without_extensions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in JSON Schema's own words only."""
    plain = {key: value for key, value in schema.items() if not key.startswith("x-") and key != "description"}
    if "properties" in plain:
        plain["properties"] = {name: without_extensions(inner) for name, inner in plain["properties"].items()}
    if "items" in plain:
        plain["items"] = without_extensions(plain["items"])
    return plain
