"""The API against its own description: whatever schemathesis sends, no answer is an error of ours or undescribed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.door import Door, door_of
from workers.api.app import make_api
from workers.services import Services
from workers.settings import Settings

#: For each of some forty operations; SCHEMATHESIS_EXAMPLES=100 looks longer.
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "1"))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

#: Described without a service; called where one is.
API = schemathesis.openapi.from_dict(
    make_api(Services(Settings(database_url="postgresql+psycopg://nowhere", broker_url="redis://nowhere"))).openapi()
)


@pytest.fixture(scope="module")
def a_door(serving: tuple[Services, str]) -> Iterator[Door]:
    with door_of(*serving) as opened:
        batch = opened.running(1)
        opened.read(batch.id)
        opened.finish(batch.id)
        yield opened


@API.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_answer_is_a_fault_of_ours_or_not_as_described(case: schemathesis.Case, a_door: Door) -> None:
    headers = {"Authorization": f"Bearer {a_door.client.api_key}"}
    answer = case.call(base_url=a_door.url, headers=headers)
    case.validate_response(answer, checks=CHECKS)
