"""The server that the runner started, with people and applications, and a headless browser."""

import json
import os
import secrets
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from urllib.parse import urljoin

import pytest
import requests

CALLBACK = "https://app.example.test/callback"
ROOT = Path(__file__).resolve().parents[3]
NUMBERS = count(1)


def unique(word: str) -> str:
    return f"{word}-{os.getpid()}-{next(NUMBERS)}"


@dataclass(frozen=True)
class Portiere:
    """A running server, managed through its command line."""

    issuer: str
    data: Path

    def command(self, *words: str, given: str = "") -> None:
        binary = ROOT / os.environ.get("PORTIERE_BINARY", "target/debug/portiere")
        line = [binary, *words, "--data", self.data, "--json"]
        done = subprocess.run(line, input=given, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr

    def add_user(self) -> tuple[str, str]:
        name, password = unique("bob"), secrets.token_urlsafe(16)
        self.command("user", "add", name, "--email", f"{name}@example.test", "--password-stdin", given=password + "\n")
        return name, password

    def add_client(self, *options: str) -> tuple[str, str]:
        name, secret = unique("authlib"), secrets.token_urlsafe(32)
        words = ["client", "add", "--id", name, "--name", name, "--redirect-uri", CALLBACK, *options]
        if "--public" not in options:
            words.append("--secret-stdin")
        self.command(*words, given=secret + "\n")
        return name, secret


@dataclass
class Form(HTMLParser):
    """The forms of a page: for each its action and its hidden fields."""

    found: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.found.append((given.get("action") or "", {}))
        elif tag in ("input", "button") and given.get("name") and self.found:
            self.found[-1][1][given["name"]] = given.get("value") or ""


def submit(browser: requests.Session, page: requests.Response, **values: str) -> requests.Response:
    """Sends the form that has all the fields in `values`."""
    forms = Form()
    forms.feed(page.text)
    action, fields = next((a, f) for a, f in forms.found if values.keys() <= f.keys())
    origin = "/".join(page.url.split("/")[:3])
    return browser.post(urljoin(page.url, action), {**fields, **values}, headers={"Origin": origin}, allow_redirects=False)


def approve(url: str, login: str, password: str) -> str:
    """Signs in and consents from an empty browser; returns the address that the browser is sent to then."""
    browser = requests.Session()
    page = browser.get(url, allow_redirects=False)
    for _ in range(8):
        if page.is_redirect:
            target = urljoin(page.url, page.headers["Location"])
            if target.startswith(CALLBACK):
                return target
            page = browser.get(target, allow_redirects=False)
        elif 'name="password"' in page.text:
            page = submit(browser, page, login=login, password=password)
        else:
            page = submit(browser, page, decision="allow")
    raise AssertionError(f"not back at the application: {page.status_code} {page.text}")


@pytest.fixture(scope="session")
def server() -> Portiere:
    return Portiere(os.environ["PORTIERE_TEST_ISSUER"], Path(os.environ["PORTIERE_TEST_FOLDER"]) / "data")


@pytest.fixture(scope="session")
def metadata(server: Portiere) -> dict:
    return requests.get(server.issuer + "/.well-known/openid-configuration", timeout=60).json()


@pytest.fixture(scope="session")
def keys(metadata: dict) -> dict:
    return json.loads(requests.get(metadata["jwks_uri"], timeout=60).text)


@pytest.fixture(scope="session")
def person(server: Portiere) -> tuple[str, str]:
    return server.add_user()
