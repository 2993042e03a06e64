"""A headless browser: cookies, forms, and any node for each request."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

from .wire import Answer, Origin

MOST_REDIRECTS = 6


class Crowd:
    """One thread's connections to every node; each request uses the next one. They come from `source`, if given."""

    def __init__(self, nodes: list, issuer: str, tally, source: str | None = None):
        self.issuer = issuer
        self.origins = [Origin(node.port, urlsplit(issuer).netloc, tally=tally) for node in nodes]
        for origin in self.origins:
            origin.source = source
        self.turn = 0

    def next(self) -> Origin:
        self.turn += 1
        return self.origins[self.turn % len(self.origins)]

    def only(self, number: int) -> "Crowd":
        """Returns a crowd with only one of the nodes."""
        one = Crowd.__new__(Crowd)
        one.issuer, one.origins, one.turn = self.issuer, [self.origins[number]], 0
        return one

    def close(self) -> None:
        for origin in self.origins:
            origin.close()


class Browser:
    """The cookies of one person; any crowd may send them."""

    def __init__(self, jar: dict | None = None):
        self.jar = dict(jar or {})

    def get(self, crowd: Crowd, path: str) -> Answer:
        return self._keep(crowd.next().get(path, self._headers(crowd)))

    def submit(self, crowd: Crowd, form: "Form", **values: str) -> Answer:
        headers = self._headers(crowd) | {"Origin": crowd.issuer}
        return self._keep(crowd.next().post(form.action, form.fields | values, headers))

    def open(self, crowd: Crowd, path: str) -> Answer:
        """Follows redirects as long as they stay at the server."""
        answer = self.get(crowd, path)
        for _ in range(MOST_REDIRECTS):
            to = answer.location.removeprefix(crowd.issuer)
            if not (300 <= answer.status < 400 and to.startswith("/")):
                break
            answer = self.get(crowd, to)
        return answer

    def _headers(self, crowd: Crowd) -> dict:
        cookies = "; ".join(f"{name}={value}" for name, value in self.jar.items())
        return {"Accept": "text/html"} | ({"Cookie": cookies} if cookies else {})

    def _keep(self, answer: Answer) -> Answer:
        for line in answer.cookies:
            pair, _, rest = line.partition(";")
            name, _, value = pair.partition("=")
            if "max-age=0" in rest.lower():
                self.jar.pop(name, None)
            else:
                self.jar[name] = value
        return answer


class Form:
    """A form of a page, with its fields as they stand."""

    def __init__(self, action: str):
        self.action = action
        self.fields: dict[str, str] = {}


class _Forms(HTMLParser):
    def __init__(self):
        super().__init__()
        self.forms: list[Form] = []
        self.inside = False

    def handle_starttag(self, tag: str, attributes: list) -> None:
        values = dict(attributes)
        if tag == "form":
            self.forms.append(Form(values.get("action") or ""))
            self.inside = True
        elif tag == "input" and self.inside and values.get("name"):
            self.forms[-1].fields[values["name"]] = values.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False


def form(answer: Answer, action: str) -> Form | None:
    """Returns the form of a page that is sent to `action`."""
    parser = _Forms()
    parser.feed(answer.text)
    return next((one for one in parser.forms if one.action.endswith(action)), None)
