// Which endpoints another origin's script may use (RFC 9700 §2.6).
import test, { before } from "node:test";
import assert from "node:assert/strict";
import { application, person, server, visitor } from "../harness/fixture.js";

let app;
let stranger;
before(async () => {
  app = await application({ secretless: true, passive: true, trusted: true });
  stranger = await application();
  await server.command(["client", "remove", stranger.id]);
});

/** Returns what a script of the current page gets from the server: a status, or nothing. */
const ask = (guest, path, options = {}) => guest.page.evaluate(
  ([url, given]) => fetch(url, given).then(({ status }) => status, () => "refused"),
  [server.issuer + path, options],
);

const form = (fields) => ({ method: "POST", headers: { "Content-Type": "application/x-www-form-urlencoded" }, body: new URLSearchParams(fields).toString() });
const open = {
  "/oauth2/token": form({ grant_type: "authorization_code", code: "none", client_id: "nobody" }),
  "/oauth2/userinfo": { headers: { Authorization: "Bearer none" } },
  "/oauth2/revoke": form({ token: "none", client_id: "nobody" }),
};

test("discovery and keys are open to every origin", async () => {
  const guest = await visitor();
  await guest.page.goto(stranger.origin);
  for (const path of ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]) {
    assert.equal(await ask(guest, path), 200, path);
  }
  const { jwks_uri } = app.config.serverMetadata();
  assert.equal(await ask(guest, jwks_uri.slice(server.issuer.length)), 200);
  await guest.leave();
});

test("token, userinfo and revocation are open to the origins of registered redirect URIs, without credentials", async () => {
  const guest = await visitor();
  await guest.page.goto(app.origin);
  for (const [path, options] of Object.entries(open)) {
    assert.ok([200, 400, 401].includes(await ask(guest, path, options)), path);
    assert.equal(await ask(guest, path, { ...options, credentials: "include" }), "refused", `${path} with credentials`);
  }
  await guest.leave();
});

test("CS-04: they are closed to any other origin", async () => {
  const guest = await visitor();
  await guest.page.goto(stranger.origin);
  for (const [path, options] of Object.entries(open)) assert.equal(await ask(guest, path, options), "refused", path);
  await guest.leave();
});

test("authorize, login, logout and the account home are closed to every origin", async () => {
  const guest = await visitor();
  await guest.page.goto(app.origin);
  const { url } = await app.authorization();
  for (const path of [url.href.slice(server.issuer.length), "/login", "/oauth2/logout", "/account", "/consent", "/device", "/oauth2/introspect"]) {
    assert.equal(await ask(guest, path), "refused", path);
    assert.equal(await ask(guest, path, form({ a: "b" })), "refused", `POST ${path}`);
  }
  await guest.leave();
});

test("an application without a server signs in from its own origin", async () => {
  const [alice, guest] = await Promise.all([person(), visitor()]);
  const { url, checks } = await app.authorization();
  await guest.open(url);
  await guest.signIn(alice);
  assert.ok(guest.page.url().startsWith(app.callback), guest.page.url());
  const code = new URL(guest.page.url()).searchParams.get("code");
  const info = await guest.page.evaluate(async ([issuer, fields]) => {
    const tokens = await (await fetch(`${issuer}/oauth2/token`, { method: "POST", body: new URLSearchParams(fields) })).json();
    const answer = await fetch(`${issuer}/oauth2/userinfo`, { headers: { Authorization: `Bearer ${tokens.access_token}` } });
    return answer.json();
  }, [server.issuer, { grant_type: "authorization_code", code, redirect_uri: app.callback, client_id: app.id, code_verifier: checks.pkceCodeVerifier }]);
  assert.equal(info.preferred_username, alice.login, JSON.stringify(info));
  await guest.leave();
});
