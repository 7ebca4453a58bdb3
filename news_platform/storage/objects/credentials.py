"""Return the credentials of cloud stores: configured keys, else those of boto3 or google-auth.

Both libraries are imported inside the functions, because importing them takes seconds.
"""

from typing import TYPE_CHECKING

from news_platform.errors import ConfigError
from news_platform.storage.objects.interfaces import StoreOptions

if TYPE_CHECKING:
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.auth.google import GoogleCredentialProvider
    from obstore.store import GCSConfig, S3Config


def s3_keys(options: StoreOptions) -> "S3Config | None":
    """Return the S3 credentials in the options, or None to use boto3."""
    if options.anonymous:
        return {"skip_signature": True}
    if options.access_key and options.secret_key:
        return {"access_key_id": options.access_key, "secret_access_key": options.secret_key}
    return None


def google_keys(options: StoreOptions) -> "GCSConfig | None":
    """Return the Google credentials in the options, or None to use google-auth."""
    if options.anonymous:
        return {"skip_signature": True}
    if options.service_account_key:
        return {"service_account_key": options.service_account_key}
    return None


def polars_options(url: str, options: StoreOptions) -> dict[str, str]:
    """Return the options as Polars names them; Polars finds missing credentials itself."""
    if url.startswith("s3://"):
        named = {
            "aws_endpoint_url": options.endpoint_url,
            "aws_region": options.region,
            "aws_access_key_id": options.access_key,
            "aws_secret_access_key": options.secret_key,
            "aws_skip_signature": "true" if options.anonymous else None,
        }
    elif url.startswith("gs://"):
        named = {
            "google_base_url": options.endpoint_url,
            "google_service_account_key": options.service_account_key,
            "google_skip_signature": "true" if options.anonymous else None,
        }
    else:
        return {}
    # Polars and obstore refuse plain-http endpoints, such as emulators, without this option.
    named["allow_http"] = "true" if options.allow_http else None
    return {name: value for name, value in named.items() if value}


def boto3_provider(url: str) -> "Boto3CredentialProvider":
    """Return a provider of the credentials that boto3 finds, renewed when they expire."""
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        return Boto3CredentialProvider()
    except ValueError as error:  # raised by obstore if boto3 finds no credentials
        raise _missing(
            url, "set the S3 access and secret key, or sign in with `aws configure`"
        ) from error


def google_provider(url: str) -> "GoogleCredentialProvider":
    """Return a provider of the credentials that google-auth finds, renewed when they expire."""
    from google.auth.exceptions import DefaultCredentialsError
    from obstore.auth.google import GoogleCredentialProvider

    try:
        return GoogleCredentialProvider()
    except DefaultCredentialsError as error:
        cure = "set a service account key, or run `gcloud auth application-default login`"
        raise _missing(url, cure) from error


def _missing(url: str, cure: str) -> ConfigError:
    return ConfigError(f"cannot open {url!r}: no credentials found; {cure}", thing=url)
