// The authorization code flow (RFC 6749 §4.1, RFC 7636, OpenID Connect Core §3.1) for each client authentication
// method. The library itself validates the ID token, `iss` (RFC 9207) and `state`, and throws if they are wrong.
import test, { before } from "node:test";
import assert from "node:assert/strict";
import { exportJWK, generateKeyPair } from "jose";
import * as oidc from "openid-client";
import { Agent, proceed } from "../harness/agent.js";
import { Application, server, unique } from "../harness/fixture.js";

let alice;
before(async () => { alice = await server.addUser(unique("alice")); });

async function withKey() {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256", use: "sig" }] };
  return { authMethod: "private_key_jwt", jwks, authentication: () => oidc.PrivateKeyJwt({ key: privateKey, kid: "k1" }) };
}

const methods = {
  "client_secret_basic (RFC 6749 §2.3.1)": () => ({ authentication: oidc.ClientSecretBasic }),
  "client_secret_post (RFC 6749 §2.3.1)": () => ({ authentication: oidc.ClientSecretPost }),
  "private_key_jwt (RFC 7523 §2.2)": withKey,
  "none, for a public client (RFC 7636)": () => ({ public: true, authentication: oidc.None }),
};

for (const [name, options] of Object.entries(methods)) {
  test(`a person signs in, authenticated by ${name}`, async () => {
    const application = await Application.register(await options());
    const { tokens, claims } = await application.signIn(alice, { scope: "openid profile email" });
    assert.equal(claims.iss, server.issuer);
    assert.equal(tokens.token_type, "bearer");
    assert.equal(tokens.expires_in, 15 * 60);
    const info = await oidc.fetchUserInfo(application.config, tokens.access_token, claims.sub);
    assert.equal(info.preferred_username, alice.login);
    assert.equal(info.email, `${alice.login}@example.test`);
    const next = await oidc.refreshTokenGrant(application.config, tokens.refresh_token);
    assert.notEqual(next.access_token, tokens.access_token);
  });
}

/** RFC 6749 §5.2: 401, without a challenge if the secret was in the body; otherwise the library would not report the
 * error. */
const refused = ({ status, error }) => status === 401 && error === "invalid_client";

test("RFC 6749 §2.3: a client must authenticate in a way it is registered for", async () => {
  const application = await Application.register({ authMethod: "client_secret_basic", authentication: oidc.ClientSecretPost });
  await assert.rejects(application.signIn(alice), refused);
});

test("RFC 6749 §5.2: a wrong secret is invalid_client", async () => {
  const application = await Application.register({ authentication: (secret) => oidc.ClientSecretPost(`${secret}x`) });
  await assert.rejects(application.signIn(alice), refused);
});

test("RFC 6749 §4.1.2: a code used twice is refused, and what it gave is revoked", async () => {
  const application = await Application.register();
  const { url, checks } = await application.request();
  const agent = new Agent(server.issuer);
  const { left } = await proceed(agent, await agent.open(url), alice);
  const tokens = await oidc.authorizationCodeGrant(application.config, left, checks);
  await assert.rejects(oidc.authorizationCodeGrant(application.config, left, checks), { error: "invalid_grant" });
  await assert.rejects(oidc.refreshTokenGrant(application.config, tokens.refresh_token), { error: "invalid_grant" });
});

test("RFC 7636 §4.6: the verifier must belong to the challenge", async () => {
  const application = await Application.register({ public: true, authentication: oidc.None });
  const { url, checks } = await application.request();
  const agent = new Agent(server.issuer);
  const { left } = await proceed(agent, await agent.open(url), alice);
  const wrong = { ...checks, pkceCodeVerifier: oidc.randomPKCECodeVerifier() };
  await assert.rejects(oidc.authorizationCodeGrant(application.config, left, wrong), { error: "invalid_grant" });
});

test("RFC 6749 §4.1.2.1: a person who says no sends access_denied back", async () => {
  const application = await Application.register();
  const { url, checks } = await application.request();
  const agent = new Agent(server.issuer);
  const { left } = await proceed(agent, await agent.open(url), alice, "deny");
  assert.equal(left.searchParams.get("state"), checks.expectedState);
  await assert.rejects(oidc.authorizationCodeGrant(application.config, left, checks), { error: "access_denied" });
});

test("a wrong password shows the form again, with what was typed, and yields nothing", async () => {
  const application = await Application.register();
  const agent = new Agent(server.issuer);
  const form = (await agent.open((await application.request()).url)).form("password");
  const again = await agent.submit(form, { login: alice.login, password: "not the password" });
  const fields = again.form("password").fields;
  assert.equal(fields.find(({ name }) => name === "login").value, alice.login);
  assert.equal(fields.find(({ name }) => name === "password").value, "");
});

test("OpenID Connect Core §3.1.2.1: POST to the authorization endpoint is answered 303 to the same request", async () => {
  const application = await Application.register();
  const { url, checks } = await application.request();
  const agent = new Agent(server.issuer);
  const action = new URL(url.origin + url.pathname);
  const page = await agent.submit({ action, fields: [] }, Object.fromEntries(url.searchParams));
  const { left } = await proceed(agent, page, alice);
  const tokens = await oidc.authorizationCodeGrant(application.config, left, checks);
  assert.ok(tokens.id_token);
});

test("one session signs in to a second application without a password", async () => {
  const [first, second] = await Promise.all([Application.register(), Application.register({ trusted: true })]);
  const { agent, claims } = await first.signIn(alice);
  const { url, checks } = await second.request();
  const page = await agent.open(url);
  assert.ok(page.left, page.text);
  const tokens = await oidc.authorizationCodeGrant(second.config, page.left, checks);
  assert.equal(tokens.claims().sub, claims.sub);
  assert.equal(tokens.claims().auth_time, claims.auth_time);
});
