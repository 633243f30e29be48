"""From a bearer token to its caller: a JSON Web Token of a configured issuer, or else a TokenReview of the home cluster."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import jwt

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.kube.errors import Invalid, KubeError
from ..problems import Problem
from ..settings import Issuer
from .expiring import Expiring
from .home import Home, problem_of_own
from .identity import Caller, caller_of
from .issuer_keys import IssuerKeys

LONGEST_TOKEN = 16384
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="openfleet"'}
REFUSED_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="openfleet", error="invalid_token"'}


def refused(detail: str) -> Problem:
    return Problem("unauthenticated", detail, headers=REFUSED_CHALLENGE)


class Authenticator:
    """Verifies tokens. A token is remembered by its hash, for a few seconds: a revoked one is refused after that."""

    def __init__(self, home: Home, issuers: Iterable[Issuer], audiences: Iterable[str], seconds: float) -> None:
        self._home = home
        self._issuers = {issuer.url: (issuer, IssuerKeys(issuer)) for issuer in issuers}
        self._audiences = [*audiences]
        self._reviewed: Expiring[asyncio.Future[Caller]] = Expiring(seconds)

    async def caller(self, token: str) -> Caller:
        """The caller of the token; a Problem if it is not valid."""
        if not token:
            raise Problem("unauthenticated", "The request has no token.", headers=CHALLENGE)
        if len(token) > LONGEST_TOKEN:
            raise refused("The token is too long.")
        issuer = _issuer_of(token)
        if issuer in self._issuers:
            return await self._verified(token, *self._issuers[issuer])
        key = hashlib.sha256(token.encode(errors="replace")).hexdigest()
        review = self._reviewed.get(key)
        if review is None:
            review = asyncio.ensure_future(self._review(token))
            self._reviewed.put(key, review)
            review.add_done_callback(lambda done: self._forget_outage(key, done))
        return await asyncio.shield(review)

    def _forget_outage(self, key: str, done: asyncio.Future[Caller]) -> None:
        """Refused tokens are remembered too, so that they do not load the API server; an outage is not."""
        error = None if done.cancelled() else done.exception()
        if done.cancelled() or (error and not (isinstance(error, Problem) and error.kind.code == "unauthenticated")):
            self._reviewed.drop(key)

    # JSON Web Tokens

    async def _verified(self, token: str, issuer: Issuer, keys: IssuerKeys) -> Caller:
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in issuer.algorithms:
                raise refused("The token is signed by an algorithm that is not allowed for its issuer.")
            key = await keys.find(str(header.get("kid") or ""), str(header["alg"]))
            if key is None:
                raise refused("The issuer has no such key.")
            claims = jwt.decode(
                token,
                key,
                algorithms=[*issuer.algorithms],
                audience=issuer.audiences,
                issuer=issuer.url,
                leeway=issuer.leeway,
                options={"require": ["exp", "iss", "aud", issuer.username_claim]},
            )
        except jwt.ExpiredSignatureError:
            raise refused("The token has expired.") from None
        except jwt.InvalidAudienceError:
            raise refused("The token is for another audience.") from None
        except (jwt.PyJWTError, ValueError, TypeError):
            raise refused("The token is not valid.") from None
        return _caller_of_claims(claims, issuer)

    # Tokens of the home cluster

    async def _review(self, token: str) -> Caller:
        spec: Object = {"token": token} | ({"audiences": self._audiences} if self._audiences else {})
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": spec}
        try:
            answer = await self._home.ask(lambda kube: kube.create(review))
        except Invalid:
            raise refused("The token is not valid.") from None
        except KubeError as error:
            raise problem_of_own(error) from error
        status = answer.get("status") or {}
        if not status.get("authenticated"):
            # The reason of the API server stays out of the answer: it may name keys and accounts.
            raise refused("The token is not valid: it is unknown, expired, revoked, or for another audience.")
        caller = caller_of(status.get("user") or {})
        if caller is None:
            raise refused("The name or a group of the user has characters that are not supported.")
        return caller


def _issuer_of(token: str) -> str:
    """What the token says about its issuer, before it is verified; empty if it is no JSON Web Token."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError):
        return ""
    issuer = claims.get("iss")
    return issuer if isinstance(issuer, str) else ""


def _caller_of_claims(claims: Mapping[str, Any], issuer: Issuer) -> Caller:
    name = claims.get(issuer.username_claim)
    if not isinstance(name, str) or not name:
        raise refused(f"The claim {issuer.username_claim} of the token is not a name.")
    if issuer.username_claim == "email" and claims.get("email_verified") is False:
        raise refused("The email address of the token is not verified.")
    groups = claims.get(issuer.groups_claim) or [] if issuer.groups_claim else []
    groups = [groups] if isinstance(groups, str) else groups
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise refused(f"The claim {issuer.groups_claim} of the token is not a list of names.")
    user = f"{issuer.username_prefix}{name}"
    found = caller_of({"username": user, "groups": [f"{issuer.groups_prefix}{group}" for group in groups]})
    if found is None or user.startswith("system:") or any(group.startswith("system:") for group in found.groups):
        raise refused("The name or a group of the user is not allowed.")
    return Caller(found.user, found.groups, {}, float(claims["exp"]))
