"""Applications: how each is registered, and how it authenticates."""

import base64
import json
import secrets
import subprocess
import time
from dataclasses import dataclass

from .ledger import Application
from .nodes import USER
from .place import Place, Trouble, give, tool
from .portal import asserted

REDIRECT = "https://chaos.test/cb"
SCOPES = ("openid", "offline_access", "chaos:own")
BITS = "2048"
# Slightly less than the longest allowed (an hour): a repeated one is refused because it was used, not because it
# expired.
GOOD_FOR_S = 3000


class Client:
    """An application that authenticates with its secret."""

    def __init__(self, name: str, *grants: str, trusted: bool = True):
        self.id, self.redirect, self.grants, self.trusted = name, REDIRECT, grants, trusted
        self.secret = secrets.token_urlsafe(32)

    def register(self, node) -> bool:
        """Registers it; returns whether a node acknowledged that."""
        words = [word for grant in self.grants for word in ("--grant", grant)]
        words += [word for scope in SCOPES for word in ("--scope", scope)] + ["--trusted"] * self.trusted + self._proves()
        given = "" if self.secret is None else self.secret
        return node.command("client", "add", "--id", self.id, "--redirect-uri", self.redirect, *words, given=given) is not None

    def proof(self) -> tuple[dict, dict]:
        """Returns what authenticates a request: fields, and headers."""
        pair = base64.b64encode(f"{self.id}:{self.secret}".encode()).decode()
        return {}, {"Authorization": f"Basic {pair}"}

    def _proves(self) -> list[str]:
        return ["--secret-stdin"]


class Signer(Client):
    """An application that authenticates with a key (private_key_jwt, RS256). OpenSSL signs."""

    def __init__(self, place: Place, name: str, audience: str, *grants: str):
        super().__init__(name, *grants)
        self.secret, self.audience = None, audience
        self.key, self.keys = place.folder / f"{name}.key", place.folder / f"{name}.jwks"
        openssl("genrsa", "-out", str(self.key), BITS)
        modulus = openssl("rsa", "-in", str(self.key), "-noout", "-modulus").decode().strip().removeprefix("Modulus=")
        self.keys.write_text(json.dumps({"keys": [{"kty": "RSA", "n": base64url(bytes.fromhex(modulus)), "e": "AQAB"}]}))
        give(self.keys, USER)

    def assertion(self) -> str:
        """Returns a fresh assertion."""
        now = int(time.time())
        claims = {"iss": self.id, "sub": self.id, "aud": self.audience, "jti": secrets.token_hex(16),
                  "iat": now, "exp": now + GOOD_FOR_S}
        signed = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
        return f"{signed}.{base64url(openssl('dgst', '-sha256', '-sign', str(self.key), given=signed.encode()))}"

    def proof(self) -> tuple[dict, dict]:
        return asserted(self.assertion()), {}

    def _proves(self) -> list[str]:
        # Only assertions to the token endpoint may be valid for an hour.
        return ["--auth-method", "private_key_jwt", "--assertion-aud-endpoint", "--jwks", str(self.keys)]


@dataclass
class Applications:
    """The applications that all visitors use, and that are never disabled."""

    # Does not ask for consent.
    trusted: Application
    # Asks everybody for consent.
    asking: Application
    # Authenticates with assertions, and has tokens only for itself.
    signing: Application


def register(place: Place, node, issuer: str) -> Applications:
    """Registers the shared applications."""
    clients = (
        Client("chaos", "authorization_code", "refresh_token", "device_code"),
        Client("chaos-asks", "authorization_code", "refresh_token", trusted=False),
        Signer(place, "chaos-signs", issuer, "client_credentials"),
    )
    for client in clients:
        if not client.register(node):
            raise Trouble(f"{client.id} is not registered: {node.log()[-2000:]}")
    return Applications(*map(Application, clients))


def another(name: str) -> Client:
    """Returns a visitor's own application, which also has tokens for itself."""
    return Client(name, "authorization_code", "refresh_token", "client_credentials")


def openssl(*words: str, given: bytes = b"") -> bytes:
    done = subprocess.run([tool("openssl", "openssl"), *words], input=given, capture_output=True)
    if done.returncode != 0:
        raise Trouble(f"openssl {words[0]}: {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
