"""Lanes: each is one engine (a model at one precision with one context) and the queues that it drains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import yaml

from docmill.types import Heat, LengthClass
from inference.cost import Prices

#: The examples that come with docmill.
BUILT_IN = Path(__file__).parent / "lanes.yaml"
#: More requests at once than this make every one of them slow on one GPU.
MOST_AT_ONCE = 20

#: How precisions begin that lose nothing; "none" is that of an engine without a model.
_WHOLE = ("fp16", "float16", "bf16", "bfloat16", "fp32", "float32", "auto", "none")

EngineKind = Literal["vllm_local", "vllm_server", "stub"]


class BrokenLanes(ValueError):
    """The file of lanes is not of its format; the message names the file, the place and the reason."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One engine. `model` is a folder or hub name for `vllm_local`, a URL for `vllm_server`.

    `quantization` is vLLM's word for it, null where the weights say it themselves. `gpus` is the tensor-parallel size.
    `quality` ranks lanes by how well they read: a result that the rules reject is read again by the best above its own.
    """

    name: str
    model: str
    engine: EngineKind
    precision: str
    context_tokens: int
    dtype: str = "auto"
    quantization: str | None = None
    gpus: int = 1
    max_num_seqs: int = 16
    heats: tuple[Heat, ...] = tuple(Heat)
    lengths: tuple[LengthClass, ...] = tuple(LengthClass)
    prices: Prices = field(default_factory=Prices)
    quality: int = 0

    @property
    def quantized(self) -> bool:
        """Whether its weights are of less than 16 bits, which costs digits in long texts."""
        return self.quantization is not None or not self.precision.lower().startswith(_WHOLE)

    def __post_init__(self) -> None:
        if not 1 <= self.max_num_seqs <= MOST_AT_ONCE:
            raise ValueError(f"lane {self.name}: max_num_seqs is {self.max_num_seqs}; choose 1 to {MOST_AT_ONCE}")
        if self.context_tokens < 1:
            raise ValueError(f"lane {self.name}: context_tokens is {self.context_tokens}; give the model's context")
        if not self.heats or not self.lengths:
            raise ValueError(f"lane {self.name} drains no queue; list at least one heat and one length")


def load_lanes(file: Path = BUILT_IN) -> Mapping[str, Lane]:
    """The lanes of a file by name, in its order: the first is the default lane."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
        lanes = msgspec.convert(entries, list[Lane], strict=False)
    except yaml.YAMLError as error:
        raise BrokenLanes(f"{file}: not YAML: {error}") from error
    except msgspec.ValidationError as error:
        raise BrokenLanes(f"{file}: {error}") from error
    return MappingProxyType(_by_name(lanes, file))


def default_lane(lanes: Mapping[str, Lane]) -> Lane:
    """The lane whose queues carry no lane in their name."""
    return next(iter(lanes.values()))


def _by_name(lanes: list[Lane], file: Path) -> dict[str, Any]:
    named = {lane.name: lane for lane in lanes}
    if not lanes or len(named) < len(lanes):
        raise BrokenLanes(
            f"{file}: {len(lanes)} lanes with {len(named)} names; list at least one, each with its own name"
        )
    return named
