"""A data folder with people and applications in it."""

import json
import shutil
from pathlib import Path

from .programs import PORTIERE, Server, example, run

PASSWORD = "plum-Lantern-47-orbit"
REDIRECT_URI = "https://app.example.com/callback"

# Applications by name: their arguments on the command line.
CLIENTS = {
    "web-rs256": ["--redirect-uri", REDIRECT_URI, "--trusted"],
    "web-es256": ["--redirect-uri", REDIRECT_URI, "--trusted", "--id-token-alg", "ES256"],
    "house": ["--redirect-uri", REDIRECT_URI, "--trusted", "--id-token-alg", "ES256", "--first-party",
              "--grant", "authorization_code", "--grant", "refresh_token", "--grant", "device_code"],
    "service": ["--grant", "client_credentials"],
}

# The number of people who sign in during a measurement.
VISITORS = 1000


class Place:
    """A `folder` with the server's data, the applications' secrets, and a list of people who sign in."""

    def __init__(self, folder: Path):
        self.folder, self.data = folder, folder / "data"

    def make(self, users: int, sessions: int, settings: dict[str, str] | None = None, stored: str | None = None) -> "Place":
        """Creates it from nothing: through the command line, then in bulk. With `stored`, that hash is everybody's
        password."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        given, secret = ("--password-hash-stdin", stored) if stored else ("--password-stdin", PASSWORD)
        with Server(self.data, settings):
            self._cli("user", "add", "template", "--email", "template@example.com", given, stdin=secret)
            for name, options in CLIENTS.items():
                made = json.loads(self._cli("client", "add", "--json", "--id", name, *options))
                self.secret(name).touch(mode=0o600)
                self.secret(name).write_text(made["client_secret"])
        # Only what takes long shows its progress.
        example("grow", self.data / "portiere.db", "template", "web-rs256", users, sessions, show=users > 100_000)
        names = (number * users // VISITORS for number in range(min(users, VISITORS)))
        self.people.write_text("".join(f"user-{number:07}:{PASSWORD}\n" for number in names))
        return self

    def _cli(self, *arguments: str, stdin: str = "") -> str:
        return run([PORTIERE, *arguments, "--data", self.data], stdin)

    @property
    def people(self) -> Path:
        return self.folder / "people.txt"

    def secret(self, client: str) -> Path:
        return self.folder / f"{client}.secret"

    def arguments(self, client: str) -> list:
        """Returns the arguments with which the load generator acts as `client`."""
        return ["--client", client, "--client-secret-file", self.secret(client), "--redirect-uri", REDIRECT_URI,
                "--users", self.people]
