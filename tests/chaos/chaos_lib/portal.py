"""The requests of an application, and of its users' browsers, to a node."""

import json
from urllib.parse import urlencode

from .browser import Browser, Crowd, form
from .wire import Answer

# RFC 7636 appendix B.
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
# RFC 7523 §2.2.
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
PASSWORD = "gorse violet anvil 41"


class Portal:
    """The protocol, without memory: each call returns the answer."""

    def __init__(self, crowd: Crowd, client):
        self.crowd, self.client = crowd, client

    def of(self, client) -> "Portal":
        """Returns the same for another application."""
        return Portal(self.crowd, client)

    def authorize(self, browser: Browser, offline: bool = False, **more: str) -> Answer:
        fields = {
            "client_id": self.client.id, "redirect_uri": self.client.redirect, "response_type": "code", "state": "s",
            "scope": "openid offline_access" if offline else "openid", "code_challenge": CHALLENGE,
            "code_challenge_method": "S256", "nonce": "n",
        }
        return browser.open(self.crowd, "/oauth2/authorize?" + urlencode(fields | more))

    def log_in(self, browser: Browser, page: Answer, name: str, password: str) -> Answer:
        """Sends the sign-in form of a page; if there is none, the page is the answer."""
        found = form(page, "/login")
        return page if found is None else browser.submit(self.crowd, found, login=name, password=password)

    def redeem(self, code: str) -> Answer:
        return self._post("/oauth2/token", grant_type="authorization_code", code=code, redirect_uri=self.client.redirect,
                          code_verifier=VERIFIER)

    def refresh(self, token: str) -> Answer:
        return self._post("/oauth2/token", grant_type="refresh_token", refresh_token=token)

    def own(self) -> Answer:
        """Requests a token for the application itself."""
        return self._post("/oauth2/token", grant_type="client_credentials")

    def present(self, assertion: str) -> Answer:
        """Does the same with exactly this assertion."""
        return self.crowd.next().post("/oauth2/token", {"grant_type": "client_credentials"} | asserted(assertion))

    def ask_device(self) -> Answer:
        return self._post("/oauth2/device", scope="openid")

    def poll(self, device_code: str) -> Answer:
        return self._post("/oauth2/token", grant_type="urn:ietf:params:oauth:grant-type:device_code", device_code=device_code)

    def revoke(self, token: str) -> Answer:
        return self._post("/oauth2/revoke", token=token)

    def introspect(self, token: str) -> Answer:
        return self._post("/oauth2/introspect", token=token)

    def userinfo(self, token: str) -> Answer:
        return self.crowd.next().get("/oauth2/userinfo", {"Authorization": f"Bearer {token}"})

    def _post(self, path: str, **fields: str) -> Answer:
        proof, headers = self.client.proof()
        return self.crowd.next().post(path, fields | proof, headers)


def asserted(assertion: str) -> dict[str, str]:
    """Returns the fields that carry an assertion."""
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}


def tokens(answer: Answer) -> tuple[str, str]:
    """Returns the refresh and access token of a token response."""
    body = json.loads(answer.text)
    return body["refresh_token"], body["access_token"]


def active(answer: Answer) -> bool:
    """Returns whether introspection says that a token is valid."""
    return answer.status == 200 and '"active":true' in answer.text
