"""Which model service a loop asks, and with what: found as Claude Code finds it, in the person's
variables, else in the login of their `claude`."""

from collections.abc import Mapping
from pathlib import Path

from harness.domain.claude_folder import CONFIG_DIR, claude_folder
from harness.domain.prices import MODEL
from harness.errors import RefusedError
from harness.model_gateway.service import API, Dialect, Proof, Service
from harness.model_gateway.signing import aws_signer

KEY = "ANTHROPIC_API_KEY"
BEARER = "ANTHROPIC_AUTH_TOKEN"
TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"
UPSTREAM = "ANTHROPIC_BASE_URL"
CREDENTIALS = ".credentials.json"
_YES = ("1", "true", "yes", "on")
_MODELS = (
    MODEL,
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
)
_HOW = (
    f"Log in with `claude`, or set {KEY}, {BEARER} or {TOKEN} (`claude setup-token`), or those of"
    " Bedrock, Vertex or Foundry (docs/cost.md), in your terminal; or pass `--scenario FILE`."
)


def service_of(environment: Mapping[str, str]) -> Service:
    """Raises RefusedError (key_missing, access_unknown), MissingExtraError."""
    clouds = {
        "CLAUDE_CODE_USE_BEDROCK": _bedrock,
        "CLAUDE_CODE_USE_VERTEX": _vertex,
        "CLAUDE_CODE_USE_FOUNDRY": _foundry,
    }
    for switch, made in clouds.items():
        if environment.get(switch, "").lower() in _YES:
            return made(environment)
    return _anthropic(environment)


def _anthropic(environment: Mapping[str, str]) -> Service:
    url = environment.get(UPSTREAM) or API
    own, variables = _custom(environment), _models(environment)
    if bearer := environment.get(BEARER):
        return Service(
            url=url,
            headers=own | _bearing(bearer),
            variables=variables,
            words=f"the token in {BEARER}",
        )
    if key := environment.get(KEY):
        return Service(
            url=url,
            headers=own | {"x-api-key": key},
            variables=variables,
            words=f"the key in {KEY}",
        )
    if token := environment.get(TOKEN):
        return Service(
            url=url,
            headers=own | _bearing(token),
            proof=Proof.TOKEN,
            variables=variables,
            words=f"the token in {TOKEN}",
        )
    login = credentials(environment)
    if login is None:
        raise RefusedError(
            "Nothing says how to ask a model: no key, no token, no login of `claude`.",
            hint=_HOW,
            code="key_missing",
        )
    return Service(
        url=url,
        headers=own,
        proof=Proof.HEADER,
        login=login,
        variables=variables,
        words="the login of your `claude`",
    )


def credentials(environment: Mapping[str, str]) -> Path | None:
    """Where the CLI keeps its login in a file, if it does: macOS keeps it in the keychain. Only
    looked for, never opened."""
    home = environment.get("HOME")
    if not home and not environment.get(CONFIG_DIR):
        return None
    path = claude_folder(environment, Path(home or "/")) / CREDENTIALS
    return path.resolve() if path.is_file() else None


def _bedrock(environment: Mapping[str, str]) -> Service:
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    url = environment.get("ANTHROPIC_BEDROCK_BASE_URL")
    token = environment.get("AWS_BEARER_TOKEN_BEDROCK") or environment.get(BEARER)
    skips = environment.get("CLAUDE_CODE_SKIP_BEDROCK_AUTH", "").lower() in _YES
    asks = bool(token) or (skips and bool(url))
    return Service(
        url=url or f"https://bedrock-runtime.{region}.amazonaws.com",
        dialect=Dialect.BEDROCK,
        headers=_custom(environment) | (_bearing(token) if token else {}),
        sign=None if asks else aws_signer(region),
        proof=Proof.HEADER,
        variables={"AWS_REGION": region, **_models(environment)},
        words=f"Bedrock in {region}",
    )


def _vertex(environment: Mapping[str, str]) -> Service:
    region = environment.get("CLOUD_ML_REGION") or "us-east5"
    project = environment.get("ANTHROPIC_VERTEX_PROJECT_ID", "")
    url = environment.get("ANTHROPIC_VERTEX_BASE_URL")
    token = environment.get(BEARER)
    skips = environment.get("CLAUDE_CODE_SKIP_VERTEX_AUTH", "").lower() in _YES
    if not (token or (skips and url)):
        raise _unsigned(
            "Vertex",
            f"{BEARER} (`gcloud auth print-access-token`, good for an hour)",
            "ANTHROPIC_VERTEX_BASE_URL with CLAUDE_CODE_SKIP_VERTEX_AUTH=1",
        )
    own = {"CLOUD_ML_REGION": region, "ANTHROPIC_VERTEX_PROJECT_ID": project}
    return Service(
        url=url or f"https://{_vertex_host(region)}/v1",
        dialect=Dialect.VERTEX,
        headers=_custom(environment) | (_bearing(token) if token else {}),
        proof=Proof.HEADER,
        variables=own | _models(environment),
        words=f"Vertex in {region}",
    )


def _vertex_host(region: str) -> str:
    host = "aiplatform.googleapis.com"
    return host if region == "global" else f"{region}-{host}"


def _foundry(environment: Mapping[str, str]) -> Service:
    key = environment.get("ANTHROPIC_FOUNDRY_API_KEY")
    resource = environment.get("ANTHROPIC_FOUNDRY_RESOURCE")
    url = environment.get("ANTHROPIC_FOUNDRY_BASE_URL")
    if url is None and resource:
        url = f"https://{resource}.services.ai.azure.com/anthropic"
    if not key or not url:
        raise _unsigned(
            "Foundry",
            "ANTHROPIC_FOUNDRY_API_KEY",
            "ANTHROPIC_FOUNDRY_RESOURCE or ANTHROPIC_FOUNDRY_BASE_URL",
        )
    return Service(
        url=url,
        headers=_custom(environment) | {"x-api-key": key, "api-key": key},
        variables=_models(environment),
        words="Foundry",
    )


def _unsigned(name: str, token: str, gateway: str) -> RefusedError:
    return RefusedError(
        f"{name} is chosen, and nothing says how to ask it: the model gateway signs requests to"
        " Bedrock only.",
        hint=f"Set {token}, or {gateway}; docs/cost.md.",
        code="access_unknown",
    )


def _bearing(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _models(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in _MODELS if environment.get(name)}


def _custom(environment: Mapping[str, str]) -> dict[str, str]:
    """The person's own headers, which a company's gateway may want: the CLI gets none of them."""
    headers = {}
    for line in environment.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines():
        name, sign, value = line.partition(":")
        if sign and name.strip():
            headers[name.strip().lower()] = value.strip()
    return headers
