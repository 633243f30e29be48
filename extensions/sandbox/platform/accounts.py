"""Who asks: users by password, tokens by bearer or OAuth, and who may write."""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass, field

from ....plugins.module_utils.common.types import Object
from .exchange import Refused, Request, Response, not_allowed, not_found
from .store import Store, now

HIDDEN = "************"
REALM = {"WWW-Authenticate": 'Basic realm="api"'}


@dataclass
class Accounts:
    """Users are objects of the store. Tokens are kept here, by their value."""

    store: Store
    tokens: dict[str, Object] = field(default_factory=dict)

    def user(self, request: Request) -> Object:
        """The user of a request; 401 where there is none."""
        scheme, _space, value = request.authorization.partition(" ")
        match scheme.lower():
            case "bearer" if value in self.tokens:
                return self.store.rows["users"][self.tokens[value]["user"]]
            case "basic":
                name, _colon, password = _decoded(value).partition(":")
                for user in self.store.rows["users"].values():
                    if user["username"] == name and secrets.compare_digest(user["password"].encode(), password.encode()):
                        return user
        detail = "Authentication credentials were not provided. To establish a login session, visit /api/login/."
        raise Unauthenticated(detail if not request.authorization else "Invalid username/password or token.")

    def new_token(self, user: Object, description: str = "", scope: str = "write") -> Object:
        value = secrets.token_urlsafe(24)
        number = max([0, *(token["id"] for token in self.tokens.values())]) + 1
        time = now()
        token = {"id": number, "type": "o_auth2_access_token", "user": user["id"], "description": description, "scope": scope}
        self.tokens[value] = token | {"created": time, "modified": time, "expires": "3025-01-01T00:00:00Z", "application": None}
        return {**self.tokens[value], "token": value}

    def handle(self, request: Request, user: Object, number: str | None) -> Response:
        """/tokens/ and what is below. Each user sees only their own."""
        own = {value: token for value, token in self.tokens.items() if token["user"] == user["id"]}
        if number is None:
            if request.method == "POST":
                given = request.fields
                return Response(201, self._shown(request, self.new_token(user, given.get("description", ""), given.get("scope", "read"))))
            shown = [self._shown(request, token | {"token": HIDDEN}) for token in own.values()]
            return Response(200, {"count": len(shown), "next": None, "previous": None, "results": shown})
        for value, token in own.items():
            if str(token["id"]) == number:
                if request.method == "DELETE":
                    del self.tokens[value]
                    return Response(204)
                if request.method == "GET":
                    return Response(200, self._shown(request, token | {"token": HIDDEN}))
                raise not_allowed(request.method)
        raise not_found()

    def grant(self, request: Request) -> Response:
        """/api/o/token/: a token for a user's password, asked for by an application."""
        form, refused = request.form, Response(401, {"error": "invalid_client"})
        client, _colon, secret = _decoded(request.authorization.partition(" ")[2]).partition(":")
        client = client or form.get("client_id", "")
        application = next((row for row in self.store.rows["applications"].values() if row["client_id"] == client), None)
        if not application or (application["client_type"] == "confidential" and application["client_secret"] != secret):
            return refused
        for user in self.store.rows["users"].values():
            if (user["username"], user["password"]) == (form.get("username"), form.get("password")):
                token = self.new_token(user, scope=form.get("scope", "write"))
                return Response(200, {"access_token": token["token"], "token_type": "Bearer", "expires_in": 3600, "scope": token["scope"]})
        return Response(400, {"error": "invalid_grant", "error_description": "Invalid credentials given."})

    @staticmethod
    def _shown(request: Request, token: Object) -> Object:
        return token | {"url": f"{request.base}tokens/{token['id']}/", "related": {}, "summary_fields": {}}


class Unauthenticated(Refused):
    def __init__(self, detail: str) -> None:
        super().__init__(401, {"detail": detail})
        self.response = Response(401, {"detail": detail}, REALM)


def may_write(user: Object) -> bool:
    return bool(user["is_superuser"])


def forbidden() -> Refused:
    return Refused(403, {"detail": "You do not have permission to perform this action."})


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
