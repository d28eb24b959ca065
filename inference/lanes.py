"""Lanes: each is one engine (a model at one precision with one context) and the queues that it drains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import yaml

from docmill.types import Heat, LengthClass
from inference.cost import Prices
from inference.recycle import Recycle

#: The examples that come with docmill.
BUILT_IN = Path(__file__).parent / "lanes.yaml"
#: More requests at once than this make every one of them slow on one GPU.
MOST_AT_ONCE = 20
#: Requests that wait inside an engine for the next free slot: the way to the next job takes longer than one step.
SPARE = 4

#: How precisions begin that lose nothing; "none" is that of an engine without a model.
_WHOLE = ("fp16", "float16", "bf16", "bfloat16", "fp32", "float32", "auto", "none")

EngineKind = Literal["vllm_local", "vllm_server", "stub"]

#: vLLM's own default for an engine that has its GPUs for itself.
_ALL_MEMORY = 0.92


class Qos(StrEnum):
    """Whether a lane has its GPUs for itself, or shares them and takes `memory_share` of each."""

    GUARANTEED = "guaranteed"
    BURSTABLE = "burstable"


@dataclass(frozen=True, slots=True)
class NGram:
    """Speculative decoding without a second model: what the prompt goes on with after the last words is proposed.

    It pays where answers copy from the document, as ours do. `tokens` are proposed at a time, for the longest match of
    `most` down to `least` tokens.
    """

    tokens: int = 4
    most: int = 4
    least: int = 2

    def __post_init__(self) -> None:
        if not (self.tokens >= 1 and 1 <= self.least <= self.most):
            raise ValueError(f"{self}: tokens must be 1 or more, and least from 1 to most")


class BrokenLanes(ValueError):
    """The file of lanes is not of its format; the message names the file, the place and the reason."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One engine. `model` is a folder or hub name for `vllm_local`, a URL for `vllm_server`.

    `quantization` is vLLM's word for it, null where the weights say it themselves. `gpus` is the tensor-parallel size,
    `devices` are their ids on the machine (none: the first that are there; a MIG slice has a text as id). `tenants` own
    the lane: nobody else's work enters it (none: it is everybody's). `kv_offload_gib` of main memory hold what the
    GPU's cache of keys and values has no room for. `scheduling` "priority" lets hot requests pass cold ones inside the
    engine. `quality` ranks lanes by how well they read: a result that the rules reject is read again by the best above
    its own. `recycle` says when a worker ends and starts afresh.
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
    devices: tuple[int | str, ...] = ()
    tenants: tuple[str, ...] = ()
    qos: Qos = Qos.GUARANTEED
    memory_share: float = _ALL_MEMORY
    kv_cache_dtype: str = "auto"
    kv_offload_gib: float = 0.0
    prefix_caching: bool = True
    speculative: NGram | None = None
    scheduling: Literal["priority", "fcfs"] = "priority"
    recycle: Recycle = field(default_factory=Recycle)

    @property
    def threads(self) -> int:
        """Of its worker. The spare ones hold what the engine begins in the same step in which a slot is free."""
        return self.max_num_seqs if self.engine == "stub" else min(MOST_AT_ONCE, self.max_num_seqs + SPARE)

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
        self._check_devices()

    def _check_devices(self) -> None:
        if self.devices and len(set(self.devices)) != self.gpus:
            raise ValueError(f"lane {self.name}: {self.gpus} GPUs on the devices {self.devices}; list each once")
        if not 0 < self.memory_share < 1:
            raise ValueError(f"lane {self.name}: memory_share is {self.memory_share}; give a share between 0 and 1")
        if self.qos is Qos.BURSTABLE and self.memory_share >= _ALL_MEMORY:
            raise ValueError(f"lane {self.name} is burstable: give it a memory_share below {_ALL_MEMORY}")
        if self.kv_offload_gib < 0:
            raise ValueError(f"lane {self.name}: kv_offload_gib is {self.kv_offload_gib}; give GiB, or 0 for none")


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
    if lanes[0].tenants:
        raise BrokenLanes(f"{file}: lane {lanes[0].name} is the first and so the default one; it cannot have owners")
    _check_shares(lanes, file)
    return named


def _check_shares(lanes: list[Lane], file: Path) -> None:
    """A device that the file gives to several lanes must have room for all of them, and none may want it for itself."""
    for device in sorted({device for lane in lanes for device in lane.devices}, key=str):
        there = [lane for lane in lanes if device in lane.devices]
        names = " and ".join(lane.name for lane in there)
        if len(there) > 1 and any(lane.qos is Qos.GUARANTEED for lane in there):
            raise BrokenLanes(f"{file}: {names} are on device {device}; lanes that share one must all be burstable")
        if sum(lane.memory_share for lane in there) > 1:
            raise BrokenLanes(f"{file}: {names} want more than all memory of device {device}; lower memory_share")
