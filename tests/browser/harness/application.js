// A small application on an origin of its own, signing people in with openid-client as its documentation shows.
import http from "node:http";
import { randomUUID } from "node:crypto";
import * as oidc from "openid-client";

const escaped = (text) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
const html = (title, body) => `<!doctype html><html lang="en"><title>${title}</title><h1>${title}</h1>${body}</html>`;

export class Application {
  #pending = new Map();
  #config;

  /**
   * Registers an application at `server` and starts it. `secretless` makes it a public client; a `passive` one leaves
   * the response to a script in its page. A `split` one shows what it learnt on another origin, to which it redirects
   * the browser. The other `options` are those of `client add`.
   */
  static async start(server, { id, secretless = false, passive = false, split = false, ...options }) {
    const application = new Application();
    Object.assign(application, { passive, split });
    await application.#listen();
    application.id = id;
    const { secret } = await server.addClient(id, {
      redirectUri: application.callback,
      postLogoutRedirectUri: `${application.origin}/signed-out`,
      ...(secretless && { public: true }),
      ...options,
    });
    const authentication = secretless ? oidc.None() : oidc.ClientSecretBasic(secret);
    application.#config = await oidc.discovery(new URL(server.issuer), id, {}, authentication, { execute: [oidc.allowInsecureRequests] });
    return application;
  }

  get callback() {
    return `${this.origin}/callback`;
  }

  /** The same application under another origin. */
  get elsewhere() {
    return new URL(this.origin.replace("127.0.0.1", "localhost"));
  }

  get config() {
    return this.#config;
  }

  async #listen() {
    this.http = http.createServer((request, response) => {
      this.#answer(request, response).catch((error) => this.#show(response, "Failed", { error: error.error ?? error.message, code: error.code }));
    });
    await new Promise((done) => this.http.listen(0, "127.0.0.1", done));
    // A test that fails halfway leaves its application running, which must not keep the process alive.
    this.http.unref();
    this.origin = `http://127.0.0.1:${this.http.address().port}`;
  }

  stop() {
    this.http.closeAllConnections();
    return new Promise((done) => this.http.close(done));
  }

  /** The address where a browser begins to sign in; `parameters` are added to the authorization request. */
  signInUrl(parameters = {}) {
    return `${this.origin}/sign-in?${new URLSearchParams(parameters)}`;
  }

  /** Returns the authorization request, and the values that its response has to match. */
  async authorization(parameters = {}) {
    const checks = { pkceCodeVerifier: oidc.randomPKCECodeVerifier(), expectedState: randomUUID(), expectedNonce: oidc.randomNonce(), idTokenExpected: true };
    this.#pending.set(checks.expectedState, checks);
    const url = oidc.buildAuthorizationUrl(this.#config, {
      redirect_uri: this.callback,
      scope: "openid profile email",
      code_challenge: await oidc.calculatePKCECodeChallenge(checks.pkceCodeVerifier),
      code_challenge_method: "S256",
      state: checks.expectedState,
      nonce: checks.expectedNonce,
      ...parameters,
    });
    return { url, checks };
  }

  async #answer(request, response) {
    const url = new URL(request.url, this.origin);
    if (url.pathname === "/sign-in") {
      const { url: location } = await this.authorization(Object.fromEntries(url.searchParams));
      response.writeHead(303, { location: location.href }).end();
    } else if (url.pathname === "/callback" && !this.passive) {
      await this.#finish(request, response, url);
    } else if (url.pathname === "/welcome") {
      this.#show(response, "Signed in", this.info);
    } else if (url.pathname === "/signed-out" && this.split && request.headers.host !== this.elsewhere.host) {
      response.writeHead(303, { location: `${this.elsewhere.origin}${request.url}` }).end();
    } else if (url.pathname === "/sign-out") {
      const location = oidc.buildEndSessionUrl(this.#config, { id_token_hint: this.tokens.id_token, post_logout_redirect_uri: `${this.origin}/signed-out`, state: "bye" });
      response.writeHead(303, { location: location.href }).end();
    } else {
      this.#show(response, url.pathname === "/signed-out" ? "Signed out" : "An application", Object.fromEntries(url.searchParams));
    }
  }

  async #finish(request, response, url) {
    let answer = url;
    let fields = url.searchParams;
    if (request.method === "POST") {
      let body = "";
      for await (const chunk of request) body += chunk;
      fields = new URLSearchParams(body);
      answer = new Request(url, { method: "POST", body: fields });
    }
    const checks = this.#pending.get(fields.get("state"));
    this.#pending.delete(fields.get("state"));
    if (!checks) throw new Error("this sign-in did not begin here");
    this.tokens = await oidc.authorizationCodeGrant(this.#config, answer, checks);
    const claims = this.tokens.claims();
    this.info = await oidc.fetchUserInfo(this.#config, this.tokens.access_token, claims.sub);
    if (this.split) response.writeHead(303, { location: `${this.elsewhere.origin}/welcome` }).end();
    else this.#show(response, "Signed in", this.info);
  }

  #show(response, title, value) {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.end(html(title, `<pre>${escaped(JSON.stringify(value))}</pre>`));
  }

  /** Returns what the application shows in `visitor`'s window: its title and the value below it. */
  async shown({ page }) {
    return { title: await page.locator("h1").innerText(), value: JSON.parse(await page.locator("pre").innerText()) };
  }
}
