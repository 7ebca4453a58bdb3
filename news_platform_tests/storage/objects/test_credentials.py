"""Credentials come from the options or from boto3 and google-auth, and are never shown."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from news_platform.errors import ConfigError
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform_tests.emulators.fault_proxy import FaultProxy
from news_platform_tests.emulators.relay import Answer, Request, serve


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Simulate a machine without any cloud credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    return monkeypatch


@pytest.mark.parametrize(
    ("url", "cure"),
    [
        ("s3://bucket/root", "set the S3 access and secret key, or sign in with `aws configure`"),
        ("gs://bucket/root", "set a service account key, or run `gcloud auth application-default"),
    ],
)
@pytest.mark.usefixtures("no_credentials")
def test_a_missing_credential_is_named_with_its_cure(url: str, cure: str) -> None:
    with pytest.raises(ConfigError, match="no credentials found; " + cure) as caught:
        open_store(url)
    assert "\n" not in str(caught.value)


def test_s3_takes_what_boto3_finds(
    no_credentials: pytest.MonkeyPatch, s3_faults: tuple[FaultProxy, str], bucket: str
) -> None:
    no_credentials.setenv("AWS_ACCESS_KEY_ID", "found-by-boto3")
    no_credentials.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    proxy, url = s3_faults
    store = open_store(f"s3://{bucket}", options=StoreOptions(endpoint_url=url, allow_http=True))
    store.put("a", b"1")
    assert store.read("a") == b"1"
    assert all("Credential=found-by-boto3/" in r.headers["authorization"] for r in proxy.seen)


class TokenServer:
    """The part of Google's token endpoint that a service account needs."""

    def answer(self, request: Request) -> Answer:
        body = b'{"access_token": "a-token", "expires_in": 3600, "token_type": "Bearer"}'
        return Answer(200, {"content-type": "application/json"}, body, len(body))


@pytest.fixture
def token_url() -> Iterator[str]:
    with serve(TokenServer()) as url:
        yield f"{url}/token"


def _key_file(folder: Path, token_url: str) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {
        "type": "service_account",
        "client_email": "robot@project.example",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "token_uri": token_url,
    }
    (folder / "key.json").write_text(json.dumps(account))
    return folder / "key.json"


def test_google_takes_what_google_auth_finds(
    no_credentials: pytest.MonkeyPatch,
    gs_faults: tuple[FaultProxy, str],
    bucket: str,
    token_url: str,
    tmp_path: Path,
) -> None:
    no_credentials.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(_key_file(tmp_path, token_url)))
    no_credentials.setenv("GOOGLE_CLOUD_PROJECT", "project")
    proxy, url = gs_faults
    store = open_store(f"gs://{bucket}", options=StoreOptions(gcs_base_url=url, allow_http=True))
    store.put("a", b"1")
    assert store.read("a") == b"1"
    assert {r.headers["authorization"] for r in proxy.seen} == {"Bearer a-token"}


@pytest.mark.usefixtures("no_credentials")
def test_an_anonymous_store_signs_nothing(s3_faults: tuple[FaultProxy, str], bucket: str) -> None:
    proxy, url = s3_faults
    options = StoreOptions(endpoint_url=url, allow_http=True, anonymous=True)
    open_store(f"s3://{bucket}", options=options).find("a")
    assert "authorization" not in proxy.seen[0].headers


def test_wrong_keys_are_said_to_be_refused(s3_store: ObjectStore) -> None:
    options = StoreOptions(
        endpoint_url=s3_store.options.endpoint_url, allow_http=True, anonymous=True
    )
    s3_store.put("a", b"1")
    with pytest.raises(ConfigError, match="the store refused our credentials; check the keys"):
        open_store(s3_store.url, options=options).read("a")


def test_polars_gets_the_same_access_in_its_own_words(
    s3_store: ObjectStore, gs_store: ObjectStore
) -> None:
    assert s3_store.polars_options() == {
        "aws_endpoint_url": s3_store.options.endpoint_url,
        "aws_access_key_id": "test-key",
        "aws_secret_access_key": "test-secret",
        "allow_http": "true",
    }
    assert set(gs_store.polars_options()) == {"google_service_account_key", "allow_http"}


def test_no_secret_shows_in_the_text_of_options_or_store(
    s3_store: ObjectStore, gs_store: ObjectStore
) -> None:
    for store in (s3_store, gs_store):
        shown = f"{store!r} {store.options!r}"
        for secret in ("test-key", "test-secret", "private_key"):
            assert secret not in shown
