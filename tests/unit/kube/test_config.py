"""Where a kubeconfig is found, in which order, what is read from it, and errors that show no secret."""

from __future__ import annotations

import base64
import datetime
import os
import pty
import ssl
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.certificates import Authority
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import config as kube_config
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import Target, target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import BadCredentials
from cryptography.hazmat.primitives import serialization

SECRET = "s3cr3t-value"  # noqa: S105 - what no message may show
Config = dict[str, Any]


def config(name: str, user: Mapping[str, Any] | None = None, cluster: Mapping[str, Any] | None = None, **context: Any) -> Config:
    """A kubeconfig with one cluster, `https://<name>.example:6443`, one user and one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443"} | dict(cluster or {})}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name} | context}],
        "users": [{"name": name, "user": dict(user or {})}],
    }


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def authorization(found: Target) -> str:
    return dict(found.headers()).get("Authorization", "")


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], Path]:
    def to_file(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return to_file


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which no cluster is to be found."""
    return {"HOME": str(tmp_path / "home")}


@pytest.fixture
def pod(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same environment, in a pod; gives the folder of its service account."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("of-the-pod\n")
    (folder / "namespace").write_text("its-own")
    (folder / "ca.crt").write_bytes(Authority("pod").pem)
    monkeypatch.setattr(kube_config, "SERVICE_ACCOUNT", folder)
    environment |= {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    return folder


class Plugin:
    """A credential plugin: a script that counts its runs and prints what a file holds."""

    def __init__(self, folder: Path) -> None:
        self._runs = folder / "runs"
        self._answer = folder / "answer"
        self.seen = folder / "seen"
        self.path = folder / "log-in"
        self.path.write_text(
            f"""#!{sys.executable}
import os, sys
open({str(self._runs)!r}, "a").write("x")
open({str(self.seen)!r}, "w").write(" ".join([*sys.argv[1:], os.environ.get("REGION", ""), os.environ["KUBERNETES_EXEC_INFO"]]))
print("{SECRET}", file=sys.stderr)
print(open({str(self._answer)!r}).read())
sys.exit(int(os.environ.get("EXIT", "0")))
"""
        )
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    @property
    def runs(self) -> int:
        return len(self._runs.read_text()) if self._runs.exists() else 0

    def answers(self, content: Any) -> None:
        self._answer.write_text(content if isinstance(content, str) else yaml.safe_dump(content, default_flow_style=True, width=10**6))

    def gives(self, seconds: float | None = None, **status: str) -> None:
        """Credentials, for some seconds from now or for ever."""
        if seconds is not None:
            until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
            status["expirationTimestamp"] = until.strftime("%Y-%m-%dT%H:%M:%SZ")
        pairs = ", ".join(f'"{name}": "{value}"' for name, value in status.items())
        self.answers('{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {' + pairs + "}}")

    def config(self, **more: Any) -> Config:
        return config("cloud", {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(self.path)} | more})


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


# Where a cluster is looked for


def test_each_source_is_stronger_than_the_ones_after_it(write: Callable[[str, Any], Path], environment: dict[str, str], pod: Path) -> None:
    assert pod
    assert target({}, environment).server == "https://10.96.0.1:6443"
    write("home/.kube/config", config("home"))
    assert target({}, environment).server == "https://home.example:6443"
    environment["KUBECONFIG"] = str(write("kubectl", config("kubectl")))
    assert target({}, environment).server == "https://kubectl.example:6443"
    environment["K8S_AUTH_KUBECONFIG"] = str(write("ansible", config("ansible")))
    assert target({}, environment).server == "https://ansible.example:6443"
    option = str(write("option", config("option")))
    assert target({"kubeconfig": option}, environment).server == "https://option.example:6443"
    assert target({"kubeconfig": option, "host": "https://named.example"}, environment).server == "https://named.example"


def test_every_option_has_its_variable_and_is_stronger_than_it(
    write: Callable[[str, Any], Path], tmp_path: Path, environment: dict[str, str]
) -> None:
    certificate, key = Authority("a").client("me")
    (tmp_path / "me.crt").write_bytes(certificate)
    (tmp_path / "me.key").write_bytes(key)
    both = config("one") | {"contexts": [*config("one")["contexts"], *config("two")["contexts"]]}
    both["clusters"] += config("two")["clusters"]
    both["users"] += config("two")["users"]
    values = {
        "kubeconfig": str(write("both", both)),
        "context": "two",
        "host": "https://host.example",
        "username": "me",
        "password": "mine",
        "client_cert": str(tmp_path / "me.crt"),
        "client_key": str(tmp_path / "me.key"),
        "ca_cert": str(tmp_path / "me.crt"),
        "validate_certs": "no",
        "proxy": "http://proxy.example:3128",
        "no_proxy": "localhost",
        "impersonate_user": "jane",
        "impersonate_groups": "a, b",
    }
    by_variable = target({}, environment | {kube_config.ENVIRONMENT[name]: value for name, value in values.items()})
    by_option = target(values, environment | dict.fromkeys(kube_config.ENVIRONMENT.values(), "other"))
    by_option.token = ""  # the only value that was not given
    assert by_variable == by_option
    assert (by_option.server, by_option.verify, by_option.ca_file) == ("https://host.example", False, values["ca_cert"])
    assert (by_option.certificate, by_option.key) == (certificate, key)
    assert (by_option.proxy, by_option.no_proxy) == (values["proxy"], values["no_proxy"])
    assert by_option.headers() == [
        ("Authorization", f"Basic {encoded(b'me:mine')}"),
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    ]


def test_a_host_with_credentials_needs_no_kubeconfig(environment: dict[str, str]) -> None:
    found = target({"host": "api.example:6443/", "api_key": "abc\n"}, environment)
    assert found.server == "https://api.example:6443"
    assert authorization(found) == "Bearer abc"


def test_a_kubeconfig_may_be_given_as_an_object(environment: dict[str, str]) -> None:
    found = target({"kubeconfig": config("vault", {"token": "abc"}, namespace="orders")}, environment)
    assert (found.server, found.namespace, authorization(found)) == ("https://vault.example:6443", "orders", "Bearer abc")


def test_empty_options_and_variables_count_as_not_given(environment: dict[str, str]) -> None:
    kubeconfig = config("lab", {"token": "abc"}, {"insecure-skip-tls-verify": True})
    empty = dict.fromkeys(kube_config.ENVIRONMENT, "") | {"kubeconfig": kubeconfig}
    found = target(empty, environment | dict.fromkeys(kube_config.ENVIRONMENT.values(), ""))
    assert (found.server, authorization(found), found.verify) == ("https://lab.example:6443", "Bearer abc", False)


def test_several_files_are_merged_as_kubectl_does(write: Callable[[str, Any], Path], tmp_path: Path, environment: dict[str, str]) -> None:
    first = config("same", {"token": "first"}) | {"current-context": ""}
    second = config("same", {"token": "second"})
    second["contexts"] += config("late")["contexts"]
    paths = [tmp_path / "missing", write("first", first), write("second", second), write("third", config("late", {"token": "third"}))]
    environment["KUBECONFIG"] = os.pathsep.join(map(str, paths))
    assert authorization(target({}, environment)) == "Bearer first", "the first file to name a user wins"
    assert authorization(target({"context": "late"}, environment)) == "Bearer third"


def test_outside_a_pod_with_nothing_named_the_message_says_what_to_set(environment: dict[str, str]) -> None:
    with pytest.raises(BadCredentials, match="set the option kubeconfig"):
        target({}, environment)


def test_a_pods_token_is_read_again_when_the_kubelet_has_renewed_it(pod: Path, environment: dict[str, str]) -> None:
    found = target({}, environment)
    assert authorization(found) == "Bearer of-the-pod"
    (pod / "token").write_text("renewed")
    assert authorization(found) == "Bearer renewed"
    assert found.ssl_context().verify_mode == ssl.CERT_REQUIRED
    environment["KUBERNETES_SERVICE_HOST"] = "fd00::1"
    assert target({}, environment).server == "https://[fd00::1]:6443"


# What is read there


def test_file_names_are_relative_to_the_kubeconfig_that_has_them(
    write: Callable[[str, Any], Path], tmp_path: Path, plugin: Plugin, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority("lab")
    certificate, key = authority.client("me")
    for name, content in {"ca": authority.pem, "crt": certificate, "key": key, "token": b"abc"}.items():
        (tmp_path / name).write_bytes(content)
    user = {"client-certificate": "../crt", "client-key": "../key", "tokenFile": "../token"}
    path = write("folder/config", config("lab", user, {"certificate-authority": "../ca"}))
    found = target({"kubeconfig": str(path)}, environment)
    assert (found.ca_data.encode(), found.certificate, found.key) == (authority.pem, certificate, key)
    assert authorization(found) == "Bearer abc"
    (tmp_path / "token").write_text("def")
    assert authorization(found) == "Bearer def", "a token file is read for each request"

    monkeypatch.chdir(tmp_path)
    assert target({"kubeconfig": "folder/config"}, environment).ca_data.encode() == authority.pem
    plugin.gives(token="xyz")  # noqa: S106
    write("folder/cloud", config("cloud", {"exec": {"command": "../log-in"}}))
    by_plugin = target({"kubeconfig": "folder/cloud"}, environment)
    monkeypatch.chdir("/")
    assert authorization(by_plugin) == "Bearer xyz"


def test_certificates_are_taken_as_data_or_from_files_and_data_is_stronger(tmp_path: Path, environment: dict[str, str]) -> None:
    authority = Authority("lab")
    certificate, key = authority.client("me")
    wrapped = "\n".join(encoded(authority.pem)[start : start + 64] for start in range(0, len(encoded(authority.pem)), 64))
    user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key), "client-certificate": str(tmp_path / "no")}
    found = target({"kubeconfig": config("lab", user, {"certificate-authority-data": wrapped})}, environment)
    assert (found.certificate, found.key) == (certificate, key)
    context = found.ssl_context()
    assert context.cert_store_stats()["x509_ca"] == 1
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_text_beside_a_certificate_may_be_in_any_language(environment: dict[str, str]) -> None:
    data = encoded("# Főtanúsítvány\n".encode() + Authority("lab").pem)
    found = target({"kubeconfig": config("lab", cluster={"certificate-authority-data": data})}, environment)
    assert found.ssl_context().cert_store_stats()["x509_ca"] == 1


def test_certificates_are_judged_as_kubectl_judges_them(environment: dict[str, str]) -> None:
    flags = target({"kubeconfig": config("lab")}, environment).ssl_context().verify_flags
    assert flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert not flags & ssl.VERIFY_X509_STRICT


@pytest.mark.parametrize(
    ("kubeconfig", "option", "verified"),
    [(False, None, True), (True, None, False), (True, True, True), (False, False, False), (False, "false", False), (False, "yes", True)],
)
def test_certificates_are_verified_unless_switched_off(kubeconfig: bool, option: Any, verified: bool, environment: dict[str, str]) -> None:
    content = config("lab", cluster={"insecure-skip-tls-verify": kubeconfig})
    context = target({"kubeconfig": content, "validate_certs": option}, environment).ssl_context()
    assert (context.verify_mode == ssl.CERT_REQUIRED, context.check_hostname) == (verified, verified)


def test_a_kubeconfigs_other_settings_are_read(environment: dict[str, str]) -> None:
    user = {"username": "me", "password": "mine", "as": "jane", "as-groups": ["a", "b"]}
    cluster = {"proxy-url": "http://proxy.example:3128", "tls-server-name": "inner.example"}
    found = target({"kubeconfig": config("lab", user, cluster)}, environment)
    assert (found.proxy, found.server_name, found.namespace) == ("http://proxy.example:3128", "inner.example", "default")
    sent = [("Authorization", f"Basic {encoded(b'me:mine')}"), ("Impersonate-User", "jane"), ("Impersonate-Group", "a")]
    assert found.headers() == [*sent, ("Impersonate-Group", "b")]
    with_options = target(
        {
            "kubeconfig": config("lab", user, cluster),
            "proxy": "http://other.example",
            "impersonate_user": "joe",
            "impersonate_groups": ["c"],
        },
        environment,
    )
    assert with_options.proxy == "http://other.example"
    assert with_options.headers()[1:] == [("Impersonate-User", "joe"), ("Impersonate-Group", "c")]


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"api_key": "mine"}, "Bearer mine"),
        ({"username": "me", "password": "x"}, f"Basic {encoded(b'me:x')}"),
        ({"client_cert": "crt"}, ""),
    ],
)
def test_credentials_given_as_options_replace_the_kubeconfigs_user(
    options: dict[str, str], sent: str, tmp_path: Path, plugin: Plugin, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = Authority("lab").client("me")
    (tmp_path / "crt").write_bytes(certificate + key)
    monkeypatch.chdir(tmp_path)
    user = {"token": "theirs", "client-certificate-data": encoded(b"theirs"), "client-key-data": encoded(b"theirs")}
    user |= {"username": "them", "password": "theirs", "exec": {"command": str(plugin.path)}}
    found = target({"kubeconfig": config("lab", user)} | options, environment)
    assert authorization(found) == sent
    assert found.certificate == (certificate + key if "client_cert" in options else b"")
    found.ssl_context()
    assert plugin.runs == 0


@pytest.mark.parametrize(
    ("no_proxy", "direct"),
    [
        ("", False),
        (" , ", False),
        ("cloud.example", True),
        (".example", True),
        ("other, *.example", True),
        ("*", True),
        ("oud.example", False),
        ("api.cloud.example", False),
    ],
)
def test_the_proxy_is_not_used_for_hosts_that_are_spared(no_proxy: str, direct: bool, environment: dict[str, str]) -> None:
    options = {"kubeconfig": config("cloud"), "proxy": "http://proxy.example:3128", "no_proxy": no_proxy}
    pool = Kube(target(options, environment))._transport.pool  # noqa: SLF001 - the way a request would take
    assert (pool.proxy is None) == direct


# Credential plugins


def test_a_plugins_token_is_used_until_it_expires_and_then_asked_for_again(plugin: Plugin, environment: dict[str, str]) -> None:
    plugin.gives(seconds=3600, token="first")  # noqa: S106
    found = target({"kubeconfig": plugin.config(args=["--for", "lab"], env=[{"name": "REGION", "value": "north"}])}, environment)
    assert plugin.runs == 0, "no request was sent yet"
    assert [authorization(found), authorization(found), plugin.runs] == ["Bearer first", "Bearer first", 1]
    seen = plugin.seen.read_text()
    assert seen.startswith("--for lab north {")
    assert '"interactive": false' in seen
    assert "https://cloud.example:6443" in seen

    plugin.gives(seconds=kube_config.EXPIRY_MARGIN.total_seconds() - 5, token="soon over")  # noqa: S106
    found.run_plugin()
    plugin.gives(token="for ever")  # noqa: S106
    assert [authorization(found), authorization(found), plugin.runs] == ["Bearer for ever", "Bearer for ever", 3]


def test_a_plugin_may_give_a_certificate(plugin: Plugin, environment: dict[str, str]) -> None:
    certificate, key = Authority("cloud").client("me")
    escaped = [part.decode().replace("\n", "\\n") for part in (certificate, key)]
    plugin.gives(clientCertificateData=escaped[0], clientKeyData=escaped[1])
    found = target({"kubeconfig": plugin.config()}, environment)
    found.ssl_context()
    assert (found.certificate, found.key, found.headers()) == (certificate, key, [])


def nothing_of_it_is_shown(error: BaseException) -> bool:
    """Neither the message nor the exceptions that led to it hold the secret."""
    return SECRET not in "".join(traceback.format_exception(error)).replace(f'SECRET = "{SECRET}"', "")


@pytest.mark.parametrize(
    ("answer", "more", "said"),
    [
        (SECRET, {}, "did not print an ExecCredential"),
        (f'["{SECRET}"]', {}, "did not print an ExecCredential"),
        (f'{{"status": "{SECRET}"}}', {}, "did not print an ExecCredential"),
        (f'{{"token": "{SECRET}"}}', {}, "did not print an ExecCredential"),
        (f'{{"status": {{"token": "{SECRET}", "expirationTimestamp": "{SECRET}"}}}}', {}, "did not print an ExecCredential"),
        (f'{{"status": {{"clientKeyData": "{SECRET}"}}}}', {}, "neither a token nor a certificate"),
        (SECRET, {"env": [{"name": "EXIT", "value": "3"}], "args": [SECRET]}, "failed with exit code 3"),
        (SECRET, {"env": [{"name": SECRET}]}, "is invalid in the kubeconfig"),
        (
            SECRET,
            {"command": "no-such-plugin", "installHint": "Get it from the shop.\n"},
            "no-such-plugin .* not on this machine; Get it from",
        ),
        (SECRET, {"command": "no-such-plugin"}, "install it, or use other credentials"),
        (SECRET, {"command": "/etc/passwd"}, r"cannot be run \(Permission denied\)"),
    ],
)
def test_a_plugin_that_fails_is_named_and_its_output_is_not(
    answer: str, more: Config, said: str, plugin: Plugin, environment: dict[str, str]
) -> None:
    plugin.answers(answer)
    found = target({"kubeconfig": plugin.config(**more)}, environment)
    with pytest.raises(BadCredentials, match=said) as caught:
        found.headers()
    assert nothing_of_it_is_shown(caught.value)
    assert "\n" not in str(caught.value)


def test_a_plugin_that_hangs_is_given_up(plugin: Plugin, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_config, "EXEC_SECONDS", 0.2)
    found = target({"kubeconfig": plugin.config(command="sleep", args=["60"])}, environment)
    with pytest.raises(BadCredentials, match=r"sleep did not end within 0.2 s"):
        found.headers()


# Mistakes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"users: [{SECRET}", "is not valid YAML"),
        (SECRET, "is not a kubeconfig"),
        ("", "is not a kubeconfig"),
        ({"users": [{"name": "x", "user": {"token": SECRET}}]}, "no current context; choose one"),
        (config("a", {"token": SECRET}) | {"current-context": "b"}, "no context b; it has: a"),
        (config("a", {"token": SECRET}) | {"clusters": []}, "no cluster a; it has: none"),
        (config("a") | {"users": [{"name": "b", "user": {"token": SECRET}}]}, "no user a; it has: b"),
        (config("a", {"token": SECRET}) | {"clusters": [{"name": "a", "cluster": {}}]}, "a has no server address"),
        (config("a", {"token": SECRET}) | {"clusters": 5}, "clusters of the kubeconfig are not a list"),
        (config("a") | {"users": [SECRET]}, "users of the kubeconfig are not a list"),
        (config("a") | {"users": [{"name": "a", "user": SECRET}]}, "no user a"),
        (config("a", {"as-groups": SECRET}), "check its as-groups and exec"),
        (config("a", {"exec": SECRET}), "check its as-groups and exec"),
        (config("a", {"client-certificate-data": SECRET + "!"}), "client-certificate-data .* is not base64"),
        (config("a", {"token": SECRET, "client-certificate": "/no/such/file"}), r"/no/such/file of client-certificate cannot be read"),
        (config("a", {"token": SECRET}, {"server": "https://[::1"}), r"https://\[::1 is not valid"),
        (config("a", {"token": SECRET}, {"server": "https://api:port"}), "https://api:port is not valid"),
    ],
)
def test_a_wrong_kubeconfig_is_one_clear_message_without_a_secret(
    content: Any, said: str, write: Callable[[str, Any], Path], environment: dict[str, str]
) -> None:
    with pytest.raises(BadCredentials, match=said) as caught:
        target({"kubeconfig": str(write("config", content))}, environment)
    assert nothing_of_it_is_shown(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("user", "cluster", "options", "said"),
    [
        ({}, {"certificate-authority-data": encoded(SECRET.encode())}, {}, "certificates for https://a.example:6443 cannot be used"),
        ({}, {"certificate-authority-data": encoded(b"\xff\xfe")}, {}, "certificates for https://a.example:6443 cannot be used"),
        ({}, {}, {"ca_cert": "/no/such/file"}, "cannot be used .*check ca_cert"),
        ({"client-certificate-data": encoded(SECRET.encode())}, {}, {}, "cannot be used"),
        ({}, {"proxy-url": f"gopher://me:{SECRET}@proxy.example"}, {}, "proxy for https://a.example:6443 is not a valid address"),
        ({}, {"proxy-url": f"http://me:{SECRET}@proxy.example:port"}, {}, "proxy for https://a.example:6443 is not a valid address"),
        ({"tokenFile": "/no/such/file"}, {}, {}, "/no/such/file of tokenFile cannot be read"),
        ({"token": f"{SECRET}\nX"}, {}, {}, "header Authorization for .* has characters that no header may have"),
        ({"token": f"{SECRET}ü"}, {}, {}, "header Authorization for .* has characters that no header may have"),
        ({"as": "ü"}, {}, {}, "header Impersonate-User for .* has characters that no header may have"),
    ],
)
def test_credentials_that_cannot_be_used_are_one_clear_message_without_a_secret(
    user: Config, cluster: Config, options: Config, said: str, environment: dict[str, str]
) -> None:
    found = target({"kubeconfig": config("a", user, cluster)} | options, environment)
    with pytest.raises(BadCredentials, match=said) as caught:
        Kube(found).get("v1", "Node", "one")
    assert nothing_of_it_is_shown(caught.value)
    assert "\n" not in str(caught.value)


def test_an_encrypted_key_is_refused_without_a_prompt_for_its_password(
    write: Callable[[str, Any], Path], environment: dict[str, str]
) -> None:
    certificate, plain = Authority("lab").client("me")
    protection = serialization.BestAvailableEncryption(SECRET.encode())
    key = serialization.load_pem_private_key(plain, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
    )
    user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    path = write("config", config("lab", user))
    with pytest.raises(BadCredentials, match="cannot be used"):
        target({"kubeconfig": str(path)}, environment).ssl_context()

    # With a terminal to ask at, it would wait there for ever.
    script = f"import {kube_config.__name__} as c; c.target({{'kubeconfig': {str(path)!r}}}).ssl_context()"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", f"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {script}"],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert b"BadCredentials" in process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_a_missing_kubeconfig_is_named(tmp_path: Path, environment: dict[str, str]) -> None:
    with pytest.raises(BadCredentials, match=r"The kubeconfig .*/nowhere cannot be read \(No such file or directory\)"):
        target({"kubeconfig": str(tmp_path / "nowhere")}, environment)


def test_a_target_shown_in_a_log_shows_no_secret(plugin: Plugin, environment: dict[str, str]) -> None:
    user = {"token": SECRET, "password": SECRET, "exec": {"command": "x", "args": [SECRET]}}
    user |= {"client-certificate-data": encoded(SECRET.encode()), "client-key-data": encoded(SECRET.encode())}
    found = target({"kubeconfig": config("a", user, {"proxy-url": f"http://me:{SECRET}@proxy.example"})}, environment)
    assert SECRET in found.token
    assert SECRET not in repr(found)
    assert plugin.runs == 0
