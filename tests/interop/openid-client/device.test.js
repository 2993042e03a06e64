// The device flow (RFC 8628): a device without a browser, and a person with one.
import test, { before } from "node:test";
import assert from "node:assert/strict";
import * as oidc from "openid-client";
import { Agent, proceed } from "../harness/agent.js";
import { Application, server, unique } from "../harness/fixture.js";

const grants = ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"];
let alice;
let application;
before(async () => {
  alice = await server.addUser(unique("alice"));
  application = await Application.register({ public: true, native: true, authentication: oidc.None, grant: grants, redirectUri: "http://127.0.0.1/unused" });
});

/** Acts as the person at the device pages: signs in, enters the code, sees who asks, decides. */
async function decide(address, decision, code) {
  const agent = new Agent(server.issuer);
  let page = await agent.open(address);
  if (page.form("password")) page = await proceed(agent, page, alice);
  if (!page.form("decision")) page = await agent.submit(page.form("user_code"), code ? { user_code: code } : {});
  assert.ok(page.form("decision"), `${page.status} ${page.text}`);
  assert.ok(page.text.includes(`The application ${application.id}`), "the page names the application");
  return agent.submit(page.form("decision"), { decision });
}

test("RFC 8628 §3.3: a person approves, and the device gets tokens", async () => {
  const answer = await oidc.initiateDeviceAuthorization(application.config, { scope: "openid profile" });
  assert.ok(answer.expires_in <= 600);
  assert.equal(new URL(answer.verification_uri).origin, server.issuer);
  const [tokens, page] = await Promise.all([
    oidc.pollDeviceAuthorizationGrant(application.config, answer),
    decide(answer.verification_uri, "allow", answer.user_code.toLowerCase()),
  ]);
  assert.equal(page.status, 200);
  assert.ok(tokens.claims().sub);
  const info = await oidc.fetchUserInfo(application.config, tokens.access_token, tokens.claims().sub);
  assert.equal(info.preferred_username, alice.login);
  await oidc.refreshTokenGrant(application.config, tokens.refresh_token);
});

test("RFC 8628 §3.3.1: verification_uri_complete still asks (attack DV-04)", async () => {
  const answer = await oidc.initiateDeviceAuthorization(application.config, { scope: "openid" });
  await decide(answer.verification_uri_complete, "allow");
  assert.ok((await oidc.pollDeviceAuthorizationGrant(application.config, answer)).id_token);
});

test("RFC 8628 §3.5: a person says no, and the device is told", async () => {
  const answer = await oidc.initiateDeviceAuthorization(application.config, { scope: "openid" });
  await decide(answer.verification_uri, "deny", answer.user_code);
  await assert.rejects(oidc.pollDeviceAuthorizationGrant(application.config, answer), { error: "access_denied" });
});

test("RFC 8628 §3.5: authorization_pending, then slow_down for a device that hurries", async () => {
  const answer = await oidc.initiateDeviceAuthorization(application.config, { scope: "openid" });
  const poll = () => oidc.genericGrantRequest(application.config, grants[0], { device_code: answer.device_code });
  await assert.rejects(poll(), { error: "authorization_pending" });
  await assert.rejects(poll(), { error: "slow_down" });
});

test("RFC 8628 §3.1: a client without the grant may not begin", async () => {
  const other = await Application.register();
  await assert.rejects(oidc.initiateDeviceAuthorization(other.config, { scope: "openid" }), { error: "unauthorized_client" });
});

test("a code that no device waits for is refused", async () => {
  const agent = new Agent(server.issuer);
  const page = await proceed(agent, await agent.open("/device"), alice);
  const answer = await agent.submit(page.form("user_code"), { user_code: "BBBB-BBBB" });
  assert.ok(answer.form("user_code"), answer.text);
  assert.equal(answer.form("decision"), undefined);
});
