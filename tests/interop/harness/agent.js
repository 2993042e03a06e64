// A headless browser: keeps cookies, follows redirects within one origin, reads forms and sends them.
import http from "node:http";
import { parse } from "parse5";

const mostRedirects = 10;

/** What the server sent: a page, or (as `left`) the address at another origin or scheme that it redirected the browser
 * to. */
class Page {
  constructor({ url, status = 0, headers = {}, html = "", left }) {
    Object.assign(this, { url, status, headers, html, left });
    this.forms = html ? [...forms(parse(html), url)] : [];
  }

  /** The text inside the element, for messages of failed tests. */
  get text() {
    return this.html.replace(/<(script|style)[^]*?<\/\1>|<[^>]*>/g, " ").replace(/\s+/g, " ").trim();
  }

  /** Returns the form that has a field or button of this name. */
  form(name) {
    return this.forms.find((form) => form.fields.some((field) => field.name === name));
  }
}

function* elements(node) {
  for (const child of node.childNodes ?? []) {
    if (child.tagName) yield child;
    yield* elements(child);
  }
}

const attribute = (element, name) => element.attrs.find((one) => one.name === name)?.value;

function* forms(document, url) {
  for (const element of elements(document)) {
    if (element.tagName !== "form") continue;
    const fields = [...elements(element)]
      .filter(({ tagName }) => ["input", "button"].includes(tagName))
      .map((field) => ({
        name: attribute(field, "name"),
        value: attribute(field, "value") ?? "",
        type: attribute(field, "type") ?? "text",
        button: field.tagName === "button",
      }))
      .filter(({ name }) => name);
    yield { action: new URL(attribute(element, "action") ?? "", url), fields };
  }
}

export class Agent {
  #cookies = new Map();

  /** An agent that sees only the pages of `origin`. */
  constructor(origin) {
    this.origin = new URL(origin).origin;
  }

  /** Opens an address as if it had been typed, or followed from a link. */
  open(url) {
    return this.#load("GET", new URL(url, this.origin));
  }

  /** Sends a form: its own fields, then `values`, which also name the pressed button. */
  submit(form, values = {}) {
    const body = new URLSearchParams();
    for (const { name, value, button } of form.fields) if (!button && !(name in values)) body.append(name, value);
    for (const [name, value] of Object.entries(values)) body.append(name, value);
    return this.#load("POST", form.action, body);
  }

  async #load(method, url, body) {
    for (let hop = 0; hop < mostRedirects; hop++) {
      if (url.origin !== this.origin) return new Page({ url, left: url });
      const answer = await this.#exchange(method, url, body);
      if (![301, 302, 303].includes(answer.status)) return new Page({ url, ...answer });
      url = new URL(answer.headers.location, url);
      [method, body] = ["GET", undefined];
    }
    throw new Error(`more than ${mostRedirects} redirects, at last to ${url}`);
  }

  #exchange(method, url, body) {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { Accept: "text/html", "Accept-Language": "en", ...(cookie && { Cookie: cookie }) };
    const sent = body && { "Content-Type": "application/x-www-form-urlencoded", Origin: this.origin };
    const options = { method, headers: { ...headers, ...sent }, autoSelectFamily: true };
    return new Promise((done, failed) => {
      const request = http.request(url, options, (response) => {
        this.#keep(response.headers["set-cookie"] ?? []);
        let html = "";
        response.setEncoding("utf8").on("data", (text) => { html += text; }).on("error", failed);
        response.on("end", () => done({ status: response.statusCode, headers: response.headers, html }));
      });
      request.on("error", failed).end(body?.toString());
    });
  }

  #keep(lines) {
    for (const line of lines) {
      const [pair, ...attributes] = line.split(";").map((part) => part.trim());
      const [name, value] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
      if (attributes.some((one) => /^max-age=(0|-)/i.test(one))) this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
  }
}

/**
 * Goes from `page` through login and consent until the server redirects the browser elsewhere, or shows a page that
 * asks for neither. `decision` is the answer to the application's request.
 */
export async function proceed(agent, page, { login, password }, decision = "allow") {
  for (let step = 0; step < 4 && !page.left; step++) {
    const [ask, consent] = [page.form("password"), page.form("decision")];
    if (ask) page = await agent.submit(ask, ask.fields.some((one) => one.name === "login" && one.type === "hidden") ? { password } : { login, password });
    else if (consent) page = await agent.submit(consent, { decision });
    else break;
  }
  return page;
}
