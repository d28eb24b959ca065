"""Every setting of a lane is read from YAML and becomes an argument of the engine."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from docmill.types import Heat, LengthClass
from inference.engines.vllm_local import LocalSettings, engine_arguments, environment
from inference.lanes import BrokenLanes, Lane, NGram, Qos, load_lanes
from inference.recycle import Recycle

FULL = """
- name: awq
  engine: vllm_local
  model: Qwen/Qwen3-8B-AWQ
  precision: awq
  quantization: awq_marlin
  dtype: float16
  context_tokens: 3072
  max_num_seqs: 12
  gpus: 2
  devices: [2, 3]
  qos: burstable
  memory_share: 0.45
  kv_cache_dtype: fp8
  kv_offload_gib: 16
  prefix_caching: false
  speculative: {tokens: 5, most: 6, least: 3}
  scheduling: fcfs
  heats: [warm, cold]
  lengths: [short]
  quality: 1
  prices: {gpu_hour: "2.00", input: "0.03", cached: "0.003", output: "0.2"}
  recycle: {after_s: 86400, preemptions_per_minute: 30, idle_cache: 0.1, memory_gib: 64, least_s: 300}
"""

PLAIN = """
- name: a
  engine: vllm_local
  model: m
  precision: fp16
  context_tokens: 4096
"""


def lanes_of(tmp_path: Path, text: str) -> dict[str, Lane]:
    file = tmp_path / "lanes.yaml"
    file.write_text(text)
    return dict(load_lanes(file))


def test_all_settings_of_a_lane_are_read(tmp_path: Path) -> None:
    [lane] = lanes_of(tmp_path, FULL).values()
    assert (lane.qos, lane.devices, lane.gpus, lane.memory_share) == (Qos.BURSTABLE, (2, 3), 2, 0.45)
    assert (lane.heats, lane.lengths) == ((Heat.WARM, Heat.COLD), (LengthClass.SHORT,))
    assert lane.speculative == NGram(tokens=5, most=6, least=3)
    assert lane.prices.gpu_hour == Decimal("2.00")
    assert lane.recycle == Recycle(86400, 30, 0.1, 64, 300)
    plain = Lane("awq", "m", "vllm_local", "awq", 1)
    unread = [one.name for one in fields(Lane) if one.default == getattr(lane, one.name) != getattr(plain, one.name)]
    assert not unread


def test_every_setting_of_the_engine_becomes_an_argument_or_a_variable(tmp_path: Path) -> None:
    [lane] = lanes_of(tmp_path, FULL).values()
    settings = LocalSettings.of(lane)
    given = engine_arguments(settings)
    expected: dict[str, Any] = {
        "model": "Qwen/Qwen3-8B-AWQ",
        "dtype": "float16",
        "quantization": "awq_marlin",
        "max_model_len": 3072,
        "max_num_seqs": 12,
        "tensor_parallel_size": 2,
        "gpu_memory_utilization": 0.45,
        "kv_cache_dtype": "fp8",
        "kv_offloading_size": 16,
        "enable_prefix_caching": False,
        "scheduling_policy": "fcfs",
        "speculative_config": {
            "method": "ngram",
            "num_speculative_tokens": 5,
            "prompt_lookup_max": 6,
            "prompt_lookup_min": 3,
        },
    }
    assert {name: given[name] for name in expected} == expected
    assert environment(settings)["CUDA_VISIBLE_DEVICES"] == "2,3"


def test_a_plain_lane_has_its_gpus_for_itself_with_cache_and_priorities(tmp_path: Path) -> None:
    [lane] = lanes_of(tmp_path, PLAIN).values()
    given = engine_arguments(LocalSettings.of(lane))
    assert (given["enable_prefix_caching"], given["scheduling_policy"]) == (True, "priority")
    assert (given["kv_offloading_size"], given["speculative_config"], given["gpu_memory_utilization"]) == (
        None,
        None,
        0.92,
    )
    assert "CUDA_VISIBLE_DEVICES" not in environment(LocalSettings.of(lane))


def test_a_worker_has_a_few_threads_more_than_its_engine_has_slots() -> None:
    assert [Lane("a", "m", "vllm_local", "fp16", 4096, max_num_seqs=slots).threads for slots in (1, 16, 18)] == [
        *(5, 20, 20)
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("devices: [0, 1]", "1 GPUs on the devices"),
        ("gpus: 2\n  devices: [1, 1]", "list each once"),
        ("qos: burstable", "memory_share below"),
        ("memory_share: 1.5", "between 0 and 1"),
        ("kv_offload_gib: -1", "0 for none"),
        ("speculative: {tokens: 0}", "tokens must be 1 or more"),
        ("scheduling: lifo", "lifo"),
        ("qos: best-effort", "best-effort"),
        ("recycle: {after_s: -1}", "0 switches one off"),
    ],
)
def test_a_lane_that_cannot_be_is_refused_with_what_is_wrong(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(BrokenLanes, match=words):
        lanes_of(tmp_path, f"{PLAIN}  {line}\n")


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("devices: [0]", "devices: [0]", "a and b are on device 0.*burstable"),
        (
            "devices: [0]\n  qos: burstable\n  memory_share: 0.6",
            "devices: [0]\n  qos: burstable\n  memory_share: 0.6",
            "more than all memory of device 0",
        ),
    ],
)
def test_lanes_that_share_a_gpu_must_fit_on_it(tmp_path: Path, first: str, second: str, words: str) -> None:
    other = PLAIN.replace("name: a", "name: b")
    with pytest.raises(BrokenLanes, match=words):
        lanes_of(tmp_path, f"{PLAIN}  {first}\n{other}  {second}\n")


def test_burstable_lanes_that_fit_may_share_a_gpu(tmp_path: Path) -> None:
    half = "  devices: [0]\n  qos: burstable\n  memory_share: 0.45\n"
    assert set(lanes_of(tmp_path, PLAIN + half + PLAIN.replace("name: a", "name: b") + half)) == {"a", "b"}
