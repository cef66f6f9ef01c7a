"""Requests to Bedrock signed with a person's AWS credentials (Signature Version 4).

The credentials are those that botocore finds in its own order: variables, a profile, SSO, the role
of the machine. They stay in the process of the gateway; a session's CLI is told to sign nothing.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.domain.late import later
from harness.errors import MissingExtraError, RefusedError
from harness.model_gateway.gateway import Refusal
from harness.model_gateway.service import Signer
from harness.model_gateway.weather import PASSING_STATUS, Fault

if TYPE_CHECKING:
    from botocore import auth, awsrequest, exceptions, session
else:
    auth = later("botocore.auth")
    awsrequest = later("botocore.awsrequest")
    exceptions = later("botocore.exceptions")
    session = later("botocore.session")

NAME = "bedrock"
_RENEW = "`aws sso login`, or whatever renews them; then `harness continue`."
_AGAIN = "The loop asks again, as long as the plan's loop.service_hours has it."
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,79}")
"""Of an answer of AWS; whatever else stands in its place may quote a person's account."""


def aws_signer(region: str) -> Signer:
    """Raises MissingExtraError without botocore, RefusedError (key_missing) without credentials."""
    try:
        failures, make_auth = _failures(), auth.SigV4Auth
    except ImportError as error:
        raise MissingExtraError(
            "Bedrock is chosen without a Bedrock API key, and AWS credentials need botocore to"
            " sign requests, which is not installed.",
            hint="`pip install 'experiment-harness[aws]'`, or set AWS_BEARER_TOKEN_BEDROCK;"
            " docs/cost.md.",
        ) from error
    try:
        found = session.Session().get_credentials()
    except failures as error:
        raise _none(_named(error)) from None  # its words may quote a file
    if found is None:
        raise _none("none were found")

    def sign(url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        request = awsrequest.AWSRequest(method="POST", url=url, data=body, headers=dict(headers))
        try:
            make_auth(found.get_frozen_credentials(), NAME, region).add_auth(request)
        except failures as error:
            raise _refusal(error) from None  # its words may name the person and their account
        return {name: value for name, value in request.headers.items() if name not in headers}

    return sign


def _failures() -> tuple[type[Exception], ...]:
    """How botocore fails to get credentials. What STS and SSO answer is a ClientError; credentials
    that are renewed and still expired are a RuntimeError; a `credential_process` that is not there,
    or prints something else, is an error of Python's. Raises ImportError without botocore."""
    own = (exceptions.BotoCoreError, exceptions.ClientError)
    return (*own, OSError, RuntimeError, ValueError, LookupError)


def _refusal(error: Exception) -> Refusal:
    """By its code `service_unavailable` where asking again may help, else `key_refused`."""
    name = _named(error)
    if _is_passing(error, name):
        message = f"The AWS credentials cannot be renewed now: {name}."
        return Refusal(message, hint=_AGAIN, code=Fault.PASSING)
    message = f"The AWS credentials cannot be used: {name}."
    return Refusal(message, hint=_RENEW, code=Fault.KEY)


def _is_passing(error: Exception, name: str) -> bool:
    if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
        return True
    if not isinstance(error, exceptions.ClientError):
        return False
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    # STS says that it is asked too often with a status 400.
    return status >= 500 or status in PASSING_STATUS or "Throttl" in name


def _named(error: Exception) -> str:
    """The code of what AWS answered, else the error's type: neither quotes anything."""
    if isinstance(error, exceptions.ClientError):
        code = str(error.response.get("Error", {}).get("Code", ""))
        if _CODE.fullmatch(code):
            return code
    return type(error).__name__


def _none(why: str) -> RefusedError:
    return RefusedError(
        f"Bedrock is chosen, and nothing says how to ask it: no Bedrock API key, and of AWS"
        f" credentials {why}.",
        hint="Set AWS_BEARER_TOKEN_BEDROCK (a Bedrock API key), or AWS_PROFILE or AWS_ACCESS_KEY_ID"
        " and AWS_SECRET_ACCESS_KEY, or call `aws sso login`; docs/cost.md.",
        code="key_missing",
    )
