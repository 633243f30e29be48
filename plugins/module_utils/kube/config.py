# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The address of a cluster and the credentials for it: from module options, K8S_AUTH_* variables, a kubeconfig, or the pod we run in.

Options have the names and the precedence of kubernetes.core. It sends and prints nothing.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import os
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from ..common.text import shortened
from ..common.third_party import yaml
from .errors import BadCredentials

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ENVIRONMENT = {
    "kubeconfig": "K8S_AUTH_KUBECONFIG",
    "context": "K8S_AUTH_CONTEXT",
    "host": "K8S_AUTH_HOST",
    "api_key": "K8S_AUTH_API_KEY",
    "username": "K8S_AUTH_USERNAME",
    "password": "K8S_AUTH_PASSWORD",
    "client_cert": "K8S_AUTH_CERT_FILE",
    "client_key": "K8S_AUTH_KEY_FILE",
    "ca_cert": "K8S_AUTH_SSL_CA_CERT",
    "validate_certs": "K8S_AUTH_VERIFY_SSL",
    "proxy": "K8S_AUTH_PROXY",
    "no_proxy": "K8S_AUTH_NO_PROXY",
    "impersonate_user": "K8S_AUTH_IMPERSONATE_USER",
    "impersonate_groups": "K8S_AUTH_IMPERSONATE_GROUPS",
}
FALSE = ("0", "false", "no", "off", "n", "f")
EXEC_SECONDS = 60
EXPIRY_MARGIN = datetime.timedelta(seconds=30)


@dataclass
class Target:
    """A cluster's address and the credentials for it. `headers()` runs a credential plugin, and again when its credential expires."""

    server: str
    namespace: str = "default"
    ca_file: str = ""
    ca_data: str = ""
    verify: bool = True
    server_name: str = ""
    proxy: str = field(default="", repr=False)
    no_proxy: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    impersonate_user: str = ""
    impersonate_groups: tuple[str, ...] = ()
    impersonate_extra: tuple[tuple[str, str], ...] = ()  # keys with one value each; a key may be there several times
    plugin: Mapping[str, Any] | None = field(default=None, repr=False)
    foreign: bool = False  # a server that others have named: its answers are not repeated
    _plugin_until: datetime.datetime | None = field(default=None, repr=False)
    _plugin_ran: bool = field(default=False, repr=False)
    _plugin_guard: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)

    def headers(self) -> list[tuple[str, str]]:
        """The headers that authenticate a request."""
        self._log_in()
        sent: list[tuple[str, str]] = []
        token = (_file(self.token_file, "tokenFile").decode(errors="replace") if self.token_file else self.token).strip()
        if token:
            sent.append(("Authorization", f"Bearer {token}"))
        elif self.username:
            pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
            sent.append(("Authorization", f"Basic {pair}"))
        if self.impersonate_user:
            sent.append(("Impersonate-User", self.impersonate_user))
        sent.extend(("Impersonate-Group", group) for group in self.impersonate_groups)
        # A key may have characters that no header name may have, as the slash of authentication.kubernetes.io/...
        sent.extend((f"Impersonate-Extra-{quote(key.lower(), safe='')}", value) for key, value in self.impersonate_extra)
        for name, value in sent:
            if not (value.isascii() and value.isprintable()):
                raise BadCredentials(f"The header {name} for {self.server} has characters that no header may have; check the credentials.")
        return sent

    def ssl_context(self) -> ssl.SSLContext:
        self._log_in()
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None, cadata=self.ca_data or None)
            # As kubectl does: a CA may be an intermediate one, and need not have every extension that Python 3.13
            # requires.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self.certificate:
                # OpenSSL reads certificates from files only; this one is deleted at once.
                with tempfile.NamedTemporaryFile() as pair:
                    pair.write(self.certificate + b"\n" + self.key)
                    pair.flush()
                    # With a password, even an empty one, OpenSSL does not prompt for that of an encrypted key.
                    context.load_cert_chain(pair.name, password="")
        except (OSError, ssl.SSLError) as error:
            raise BadCredentials(
                f"The certificates for {self.server} cannot be used ({error}); check ca_cert, client_cert and client_key."
            ) from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _log_in(self) -> None:
        with self._plugin_guard:
            if self.plugin is not None and self._plugin_is_due():
                self.run_plugin()

    def _plugin_is_due(self) -> bool:
        if not self._plugin_ran:
            return True
        return self._plugin_until is not None and datetime.datetime.now(datetime.UTC) + EXPIRY_MARGIN > self._plugin_until

    def run_plugin(self) -> bool:
        """Run the kubeconfig's credential plugin; False where there is none."""
        if self.plugin is None:
            return False
        with self._plugin_guard:
            status, self._plugin_until = _exec_credential(self.plugin, self.server)
            self.token = str(status.get("token") or "")
            self.certificate = str(status.get("clientCertificateData") or "").encode()
            self.key = str(status.get("clientKeyData") or "").encode()
            self._plugin_ran = True
        return True


def target(options: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Target:
    """The cluster that module options name; what they leave open comes from the environment, a kubeconfig, or the pod."""
    env = os.environ if environment is None else environment
    given = {name: _given(options, env, name) for name in ENVIRONMENT}
    if given["host"] and (given["api_key"] or given["username"] or given["client_cert"]):
        found = Target(server=str(given["host"]))
    else:
        found = _from_kubeconfig(given["kubeconfig"], given["context"], env) or _from_pod(env)
        if given["host"]:
            found.server = str(given["host"])
    _overlay(found, given)
    found.server = found.server.rstrip("/")
    if not found.server.startswith(("https://", "http://")):
        found.server = f"https://{found.server}"
    try:
        parts = urlsplit(found.server)
        # A request has its own path and query, which one of the address would change: ?, # and user:password@.
        valid = bool(parts.hostname) and parts.port != 0 and not {"?", "#", "@"}.intersection(found.server)
    except ValueError:
        valid = False
    if not valid:
        # With an account in it, it is a secret.
        address = "of the server" if "@" in found.server else shortened(found.server, 255)
        raise BadCredentials(
            f"The address {address} is not valid; it looks like https://api.example.com:6443, without a query, fragment or account."
        )
    return found


def _given(options: Mapping[str, Any], env: Mapping[str, str], name: str) -> Any:
    value = options.get(name)
    return env.get(ENVIRONMENT[name]) if value is None or value == "" else value


def _overlay(found: Target, given: Mapping[str, Any]) -> None:
    """Options override the kubeconfig."""
    if given["api_key"] or given["username"] or given["client_cert"]:
        # They replace the kubeconfig's user as a whole: a server that gets a client certificate, too, ignores a token.
        found.token, found.token_file, found.username, found.password = str(given["api_key"] or ""), "", "", ""
        found.certificate, found.key, found.plugin = b"", b"", None
    if given["username"]:
        found.username, found.password = str(given["username"]), str(given["password"] or "")
    if given["client_cert"]:
        found.certificate = _file(str(given["client_cert"]), "client_cert")
        found.key = _file(str(given["client_key"]), "client_key") if given["client_key"] else b""
    if given["ca_cert"]:
        found.ca_file, found.ca_data = str(given["ca_cert"]), ""
    if given["validate_certs"] not in (None, ""):
        found.verify = str(given["validate_certs"]).lower() not in FALSE
    found.proxy = str(given["proxy"] or found.proxy)
    found.no_proxy = str(given["no_proxy"] or "")
    found.impersonate_user = str(given["impersonate_user"] or found.impersonate_user)
    groups = given["impersonate_groups"]
    if groups:
        found.impersonate_groups = tuple(str(group).strip() for group in (groups.split(",") if isinstance(groups, str) else groups))


def _from_kubeconfig(source: Any, context: Any, env: Mapping[str, str]) -> Target | None:
    """The cluster of a kubeconfig: an object, a file, or one in the default paths."""
    if isinstance(source, Mapping):
        return _parse(source, context, Path.cwd())
    named = str(source) if source else env.get("KUBECONFIG", "")
    paths = [Path(part).expanduser() for part in named.split(os.pathsep) if part]
    if not paths:
        usual = Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"
        if not usual.exists():
            return None
        paths = [usual]
    merged: dict[str, Any] = {}
    # As kubectl merges several files: the first to name something wins, and missing files are skipped.
    for path in [path for path in paths if path.exists()] or paths[:1]:
        content = _load(path)
        for key in ("clusters", "contexts", "users"):
            merged.setdefault(key, []).extend(_anchored(entry, path.absolute().parent) for entry in _entries(content, key))
        merged["current-context"] = merged.get("current-context") or content.get("current-context")
    return _parse(merged, context, Path.cwd())


def _load(path: Path) -> Mapping[str, Any]:
    try:
        # The parser in C is ten times as fast, and each task of a run reads the file.
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise BadCredentials(
            f"The kubeconfig {path} cannot be read ({error.strerror}); name another with the option kubeconfig."
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError):
        # The parser's message quotes the file, which holds secrets.
        raise BadCredentials(f"The kubeconfig {path} is not valid YAML; create it again, or name another.") from None
    if not isinstance(content, Mapping):
        raise BadCredentials(f"The file {path} is not a kubeconfig; name another with the option kubeconfig.")
    return content


def _anchored(entry: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The entry with absolute file names: they are relative to the kubeconfig that has them."""
    anchored = dict(entry)
    for part in ("cluster", "user"):
        if isinstance(anchored.get(part), Mapping):
            values = dict(anchored[part])
            for name in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
                if values.get(name):
                    values[name] = str(folder / str(values[name]))
            plugin = values.get("exec")
            # A command without a slash is searched on PATH.
            if isinstance(plugin, Mapping) and "/" in str(plugin.get("command")):
                values["exec"] = dict(plugin) | {"command": str(folder / str(plugin["command"]))}
            anchored[part] = values
    return anchored


def _parse(content: Mapping[str, Any], context: Any, folder: Path) -> Target:
    name = context or content.get("current-context")
    if not name:
        raise BadCredentials("The kubeconfig has no current context; choose one with the option context.")
    chosen = _named(content, "contexts", "context", str(name))
    cluster = _named(content, "clusters", "cluster", str(chosen.get("cluster")))
    user = _named(content, "users", "user", str(chosen["user"])) if chosen.get("user") else {}
    if not cluster.get("server"):
        raise BadCredentials(f"The cluster of context {name} has no server address in the kubeconfig.")
    certificate = _data_or_file(user, "client-certificate", folder)
    groups, plugin = user.get("as-groups") or [], user.get("exec")
    if not isinstance(groups, list) or not isinstance(plugin, Mapping | None):
        raise BadCredentials(f"The user of context {name} is invalid in the kubeconfig: check its as-groups and exec.")
    return Target(
        server=str(cluster["server"]),
        namespace=str(chosen.get("namespace") or "default"),
        # Text beside the certificates may be in any language; OpenSSL wants ASCII.
        ca_data=_data_or_file(cluster, "certificate-authority", folder).decode("ascii", errors="backslashreplace"),
        verify=not cluster.get("insecure-skip-tls-verify"),
        server_name=str(cluster.get("tls-server-name") or ""),
        proxy=str(cluster.get("proxy-url") or ""),
        token=str(user.get("token") or ""),
        token_file=str(user.get("tokenFile") or ""),
        username=str(user.get("username") or ""),
        password=str(user.get("password") or ""),
        certificate=certificate,
        key=_data_or_file(user, "client-key", folder) if certificate else b"",
        impersonate_user=str(user.get("as") or ""),
        impersonate_groups=tuple(str(group) for group in groups),
        plugin=plugin,
    )


def _entries(content: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    entries = content.get(key) or []
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise BadCredentials(f"The {key} of the kubeconfig are not a list of named entries; create the kubeconfig again.")
    return entries


def _named(content: Mapping[str, Any], key: str, part: str, name: str) -> Mapping[str, Any]:
    entries = {str(entry.get("name")): entry.get(part) or {} for entry in reversed(_entries(content, key))}
    if not isinstance(entries.get(name), Mapping):
        raise BadCredentials(f"The kubeconfig has no {part} {name}; it has: {', '.join(sorted(entries)) or 'none'}.")
    found: Mapping[str, Any] = entries[name]
    return found


def _data_or_file(values: Mapping[str, Any], name: str, folder: Path) -> bytes:
    data = values.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode("".join(str(data).split()), validate=True)
        except binascii.Error as error:
            raise BadCredentials(f"The {name}-data of the kubeconfig is not base64; create the kubeconfig again.") from error
    return _file(str(folder / str(values[name])), name) if values.get(name) else b""


def _file(path: str, what: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise BadCredentials(f"The file {path} of {what} cannot be read ({error.strerror}).") from error


def _from_pod(env: Mapping[str, str]) -> Target:
    """The cluster that the pod we run in belongs to. The token is read for each request, as the kubelet renews it."""
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (SERVICE_ACCOUNT / "token").exists():
        raise BadCredentials(
            "No cluster is named, and this process does not run in a pod: set the option kubeconfig, or K8S_AUTH_KUBECONFIG, "
            "or host and api_key."
        )
    address = f"[{host}]" if ":" in host else host
    return Target(
        server=f"https://{address}:{port}",
        namespace=_file(str(SERVICE_ACCOUNT / "namespace"), "the pod").decode().strip(),
        ca_file=str(SERVICE_ACCOUNT / "ca.crt"),
        token_file=str(SERVICE_ACCOUNT / "token"),
    )


def _exec_credential(plugin: Mapping[str, Any], server: str) -> tuple[Mapping[str, Any], datetime.datetime | None]:
    """The credential that a kubeconfig's credential plugin prints, and when it expires.

    It runs as kubectl runs it. Its output, and maybe its arguments, hold secrets: no error and no cause of one contains them.
    """
    version = str(plugin.get("apiVersion") or "client.authentication.k8s.io/v1")
    request = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False, "cluster": {"server": server}}}
    environment = dict(os.environ) | {"KUBERNETES_EXEC_INFO": json.dumps(request)}
    name = str(plugin.get("command") or "")
    try:
        environment |= {str(entry["name"]): str(entry["value"]) for entry in plugin.get("env") or []}
        command = [name, *(str(part) for part in plugin.get("args") or [])]
    except (KeyError, TypeError):
        raise BadCredentials(f"The credential plugin {name} is invalid in the kubeconfig: check its args and env.") from None
    try:
        result = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=EXEC_SECONDS
        )
        status = json.loads(result.stdout)["status"]
        expiry = status.get("expirationTimestamp")
        until = datetime.datetime.fromisoformat(str(expiry)).astimezone(datetime.UTC) if expiry else None
        complete = bool(status.get("token") or (status.get("clientCertificateData") and status.get("clientKeyData")))
    except FileNotFoundError:
        hint = str(plugin.get("installHint") or "install it, or use other credentials").strip().rstrip(".")
        raise BadCredentials(f"The credential plugin {name} of the kubeconfig is not on this machine; {hint}.") from None
    except OSError as error:
        raise BadCredentials(f"The credential plugin {name} of the kubeconfig cannot be run ({error.strerror}).") from None
    except subprocess.CalledProcessError as error:
        raise BadCredentials(f"The credential plugin {name} failed with exit code {error.returncode}; run it by hand to see why.") from None
    except subprocess.TimeoutExpired:
        raise BadCredentials(f"The credential plugin {name} did not end within {EXEC_SECONDS} s; run it by hand to see why.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadCredentials(f"The credential plugin {name} did not print an ExecCredential; run it by hand to see why.") from None
    if not complete:
        raise BadCredentials(f"The credential plugin {name} printed neither a token nor a certificate; run it by hand to see why.")
    return status, until
