"""What a gateway was asked: it keeps nothing itself, so a test puts this between it and its
answerer."""

from harness.artifacts.front_matter import read_yaml
from harness.model_gateway.gateway import Answerer, Gateway, Reply
from harness.model_gateway.scenario import Scenario, scenario_in
from harness.model_gateway.wire import RecordedRequest


def parse_scenario(text: str, *, where: str) -> Scenario:
    return scenario_in(read_yaml(text, where=where))


class Kept:
    """An Answerer that remembers each request for a message and lets another one answer."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self.requests: list[RecordedRequest] = []

    async def answer(self, request: RecordedRequest, raw: bytes) -> Reply:
        self.requests.append(request)
        return await self._answerer.answer(request, raw)

    async def count_tokens(self, request: RecordedRequest, raw: bytes) -> Reply:
        return await self._answerer.count_tokens(request, raw)

    async def close(self) -> None:
        await self._answerer.close()


def keep(gateway: Gateway) -> list[RecordedRequest]:
    """The list that grows with the requests of `gateway`, from now on."""
    kept = Kept(gateway.answerer)
    gateway.answerer = kept
    return kept.requests
