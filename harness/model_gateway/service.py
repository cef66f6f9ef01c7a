"""The model service behind the gateway: where it is, what a request must carry, and how the CLI of
a session speaks to the gateway in its place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from harness.model_gateway.wire import SESSION

_CUSTOM = "ANTHROPIC_CUSTOM_HEADERS"
API = "https://api.anthropic.com"

Signer = Callable[[str, bytes, Mapping[str, str]], dict[str, str]]
"""(address, body, the headers that it covers) -> headers to add. It may ask for fresh credentials
over the network, and raises gateway.Refusal (key_refused, service_unavailable) without any."""


class Dialect(StrEnum):
    """Paths and streams of the service."""

    MESSAGES = "messages"
    BEDROCK = "bedrock"
    VERTEX = "vertex"


class Proof(StrEnum):
    """How a session's CLI shows the gateway whose it is."""

    KEY = "ANTHROPIC_API_KEY"
    TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"
    """The CLI then asks as for a subscription; the gateway puts the real token in its place."""
    HEADER = "header"
    """In a header of ours: the other ones are the service's."""


_PLACES = {
    Dialect.MESSAGES: ("ANTHROPIC_BASE_URL", ()),
    Dialect.BEDROCK: (
        "ANTHROPIC_BEDROCK_BASE_URL",
        ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH"),
    ),
    Dialect.VERTEX: (
        "ANTHROPIC_VERTEX_BASE_URL",
        ("CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_SKIP_VERTEX_AUTH"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Service:
    url: str = API
    dialect: Dialect = Dialect.MESSAGES
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the gateway adds to each request. Secrets: in memory, and nowhere else."""
    proof: Proof = Proof.KEY
    sign: Signer | None = field(default=None, repr=False)
    """Signs each request, for a service that takes no secret as it is."""
    login: Path | None = None
    """The file with the CLI's own login. The CLI gets a link to it; nothing of ours reads it, and
    the gateway passes the header on that the CLI makes of it."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Further ones of the CLI: models, regions. No secret."""
    words: str = ""
    """For a person, e.g. "the key in ANTHROPIC_API_KEY"."""

    @property
    def passes_login(self) -> bool:
        return self.login is not None

    def cli(self, gateway_url: str, secret: str) -> dict[str, str]:
        """The variables by which the CLI asks the gateway, as the session that has `secret`."""
        place, switches = _PLACES[self.dialect]
        variables = {**self.variables, place: gateway_url}
        variables |= dict.fromkeys(switches, "1")
        if self.proof is Proof.HEADER:
            return variables | {_CUSTOM: f"{SESSION}: {secret}"}
        return variables | {self.proof.value: secret}
