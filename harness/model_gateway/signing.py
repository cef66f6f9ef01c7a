"""Requests to Bedrock signed with a person's AWS credentials (Signature Version 4).

The credentials are those that botocore finds in its own order: variables, a profile, SSO, the role
of the machine. They stay in the process of the gateway; a session's CLI is told to sign nothing.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.domain.late import later
from harness.errors import MissingExtraError, RefusedError
from harness.model_gateway.gateway import Refusal
from harness.model_gateway.service import Signer

if TYPE_CHECKING:
    from botocore import auth, awsrequest, exceptions, session
else:
    auth = later("botocore.auth")
    awsrequest = later("botocore.awsrequest")
    exceptions = later("botocore.exceptions")
    session = later("botocore.session")

NAME = "bedrock"
_LOGIN = "`aws sso login`, or whatever renews them; then `harness continue`."


def aws_signer(region: str) -> Signer:
    """Raises MissingExtraError without botocore, RefusedError (key_missing) without credentials."""
    try:
        wrong, signed = exceptions.BotoCoreError, auth.SigV4Auth
    except ImportError as error:
        raise MissingExtraError(
            "Bedrock is chosen without a Bedrock API key, and AWS credentials need botocore to"
            " sign requests, which is not installed.",
            hint="`pip install 'experiment-harness[aws]'`, or set AWS_BEARER_TOKEN_BEDROCK;"
            " docs/cost.md.",
        ) from error
    try:
        found = session.Session().get_credentials()
    except wrong as error:
        raise _none(type(error).__name__) from None  # its words may quote a file
    if found is None:
        raise _none("none were found")

    def sign(url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        request = awsrequest.AWSRequest(method="POST", url=url, data=body, headers=dict(headers))
        try:
            signed(found.get_frozen_credentials(), NAME, region).add_auth(request)
        except wrong as error:
            raise Refusal(
                f"The AWS credentials cannot be used: {type(error).__name__}.", hint=_LOGIN
            ) from None
        return {name: value for name, value in request.headers.items() if name not in headers}

    return sign


def _none(why: str) -> RefusedError:
    return RefusedError(
        f"Bedrock is chosen, and nothing says how to ask it: no Bedrock API key, and of AWS"
        f" credentials {why}.",
        hint="Set AWS_BEARER_TOKEN_BEDROCK (a Bedrock API key), or AWS_PROFILE or AWS_ACCESS_KEY_ID"
        " and AWS_SECRET_ACCESS_KEY, or call `aws sso login`; docs/cost.md.",
        code="key_missing",
    )
