"""Authlib signs people in: authorization code with PKCE, ID tokens checked against the key set, refresh."""

import secrets
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from conftest import CALLBACK, Portiere, approve

METHODS = ["client_secret_basic", "client_secret_post", "none"]


def session(server: Portiere, method: str, *options: str) -> OAuth2Session:
    client, secret = server.add_client(*options, *(["--public"] if method == "none" else []))
    return OAuth2Session(
        client,
        None if method == "none" else secret,
        token_endpoint_auth_method=method,
        scope="openid profile email",
        redirect_uri=CALLBACK,
        code_challenge_method="S256",
    )


def sign_in(library: OAuth2Session, metadata: dict, person: tuple[str, str]) -> tuple[dict, str]:
    verifier, nonce = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    url, state = library.create_authorization_url(
        metadata["authorization_endpoint"], code_verifier=verifier, nonce=nonce
    )
    response = approve(url, *person)
    token = library.fetch_token(
        metadata["token_endpoint"], authorization_response=response, state=state, code_verifier=verifier
    )
    return token, nonce


def checked(token: dict, library: OAuth2Session, metadata: dict, keys: dict, nonce: str | None) -> CodeIDToken:
    """Returns the ID token's claims, validated by the library (OpenID Connect Core §3.1.3.7)."""
    registry = JWSRegistry(algorithms=metadata["id_token_signing_alg_values_supported"], strict_check_header=False)
    decoded = jwt.decode(token["id_token"], KeySet.import_key_set(keys), registry=registry)
    claims = CodeIDToken(
        decoded.claims,
        decoded.header,
        {"iss": {"values": [metadata["issuer"]]}, "aud": {"values": [library.client_id]}},
        {"nonce": nonce, "client_id": library.client_id, "access_token": token["access_token"]},
    )
    claims.validate(leeway=5)
    return claims


@pytest.mark.parametrize("method", METHODS)
def test_a_person_signs_in(server, metadata, keys, person, method):
    library = session(server, method)
    token, nonce = sign_in(library, metadata, person)
    claims = checked(token, library, metadata, keys, nonce)
    info = library.get(metadata["userinfo_endpoint"]).json()
    assert info["sub"] == claims["sub"]
    assert info["preferred_username"] == person[0]
    assert info["email"] == f"{person[0]}@example.test"


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_an_id_token_verifies_against_the_key_set(server, metadata, keys, person, algorithm):
    library = session(server, "client_secret_basic", "--id-token-alg", algorithm)
    token, nonce = sign_in(library, metadata, person)
    assert checked(token, library, metadata, keys, nonce).header["alg"] == algorithm


def test_a_changed_id_token_does_not_verify(server, metadata, keys, person):
    library = session(server, "client_secret_basic")
    token, nonce = sign_in(library, metadata, person)
    header, claims, signature = token["id_token"].split(".")
    other = "A" if signature[20] != "A" else "B"
    token["id_token"] = f"{header}.{claims}.{signature[:20]}{other}{signature[21:]}"
    with pytest.raises(Exception, match="signature"):
        checked(token, library, metadata, keys, nonce)


def test_rfc6749_section_6_refresh(server, metadata, keys, person):
    library = session(server, "client_secret_basic")
    token, nonce = sign_in(library, metadata, person)
    subject = checked(token, library, metadata, keys, nonce)["sub"]
    fresh = library.refresh_token(metadata["token_endpoint"], refresh_token=token["refresh_token"])
    assert fresh["refresh_token"] != token["refresh_token"]
    assert checked(fresh, library, metadata, keys, None)["sub"] == subject


def test_rfc7636_section_4_6_a_wrong_verifier_is_refused(server, metadata, person):
    library = session(server, "none")
    url, state = library.create_authorization_url(
        metadata["authorization_endpoint"], code_verifier=secrets.token_urlsafe(32), nonce="n"
    )
    response = approve(url, *person)
    with pytest.raises(OAuthError, match="invalid_grant"):
        library.fetch_token(
            metadata["token_endpoint"],
            authorization_response=response,
            state=state,
            code_verifier=secrets.token_urlsafe(32),
        )


def test_rfc9207_section_2_the_response_names_the_issuer(server, metadata, person):
    library = session(server, "client_secret_basic")
    url, _ = library.create_authorization_url(
        metadata["authorization_endpoint"], code_verifier=secrets.token_urlsafe(32)
    )
    assert parse_qs(urlsplit(approve(url, *person)).query)["iss"] == [server.issuer]


def test_rfc7009_a_revoked_token_is_inactive(server, metadata, person):
    library = session(server, "client_secret_basic")
    token, _ = sign_in(library, metadata, person)
    library.revoke_token(metadata["revocation_endpoint"], token=token["access_token"])
    answer = library.introspect_token(metadata["introspection_endpoint"], token=token["access_token"])
    assert answer.json() == {"active": False}


def test_rfc6749_section_4_4_client_credentials(server, metadata):
    client, secret = server.add_client("--grant", "client_credentials", "--scope", "invoices:read")
    library = OAuth2Session(client, secret, scope="invoices:read", token_endpoint_auth_method="client_secret_basic")
    token = library.fetch_token(metadata["token_endpoint"], grant_type="client_credentials")
    assert token["token_type"].lower() == "bearer"
    assert "refresh_token" not in token


def test_rfc6749_section_4_1_2_1_an_unregistered_redirect_uri_is_not_followed(server, metadata):
    client, _ = server.add_client()
    asked = {"client_id": client, "redirect_uri": CALLBACK + "/", "response_type": "code", "scope": "openid"}
    answer = requests.get(metadata["authorization_endpoint"], params=asked, allow_redirects=False, timeout=60)
    assert answer.status_code == 400
    assert "Location" not in answer.headers
