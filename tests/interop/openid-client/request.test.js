// Parameters of authorization requests: response_mode, prompt, max_age, login_hint, ui_locales.
import test, { before } from "node:test";
import assert from "node:assert/strict";
import * as oidc from "openid-client";
import { Agent, proceed } from "../harness/agent.js";
import { Application, callback, server, unique } from "../harness/fixture.js";

let alice;
before(async () => { alice = await server.addUser(unique("alice")); });

const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

test("OAuth 2.0 Form Post Response Mode: the response is a form for the application", async () => {
  const application = await Application.register();
  const { url, checks } = await application.request({ response_mode: "form_post" });
  const agent = new Agent(server.issuer);
  const page = await proceed(agent, await agent.open(url), alice);
  const form = page.form("code");
  assert.equal(form.action.href, callback);
  const body = new URLSearchParams(form.fields.map(({ name, value }) => [name, value]));
  const posted = new Request(callback, { method: "POST", body });
  const tokens = await oidc.authorizationCodeGrant(application.config, posted, checks);
  assert.ok(tokens.claims().sub);
});

test("OAuth 2.0 Multiple Response Type Encoding Practices §2.1: fragment", async () => {
  const application = await Application.register();
  const { url, checks } = await application.request({ response_mode: "fragment" });
  const agent = new Agent(server.issuer);
  const { left } = await proceed(agent, await agent.open(url), alice);
  assert.equal(left.search, "");
  const response = new URL(`${callback}?${left.hash.slice(1)}`);
  assert.ok((await oidc.authorizationCodeGrant(application.config, response, checks)).id_token);
});

test("OpenID Connect Core §3.1.2.6: prompt=none without a session is login_required, without a page", async () => {
  const application = await Application.register();
  const { url, checks } = await application.request({ prompt: "none" });
  const { left } = await new Agent(server.issuer).open(url);
  await assert.rejects(oidc.authorizationCodeGrant(application.config, left, checks), { error: "login_required" });
});

test("OpenID Connect Core §3.1.2.6: prompt=none without consent is consent_required", async () => {
  const [first, second] = await Promise.all([Application.register(), Application.register()]);
  const { agent } = await first.signIn(alice);
  const { url, checks } = await second.request({ prompt: "none" });
  const { left } = await agent.open(url);
  await assert.rejects(oidc.authorizationCodeGrant(second.config, left, checks), { error: "consent_required" });
});

test("prompt=none with session and consent signs in silently", async () => {
  const application = await Application.register();
  const { agent, claims } = await application.signIn(alice);
  const again = await application.signIn(alice, { prompt: "none" }, agent);
  assert.equal(again.claims.auth_time, claims.auth_time);
});

test("OpenID Connect Core §3.1.2.1: prompt=login asks for the password again, and auth_time moves", async () => {
  const application = await Application.register();
  const { agent, claims } = await application.signIn(alice);
  await pause(1.1);
  const { url } = await application.request({ prompt: "login" });
  assert.ok((await agent.open(url)).form("password"));
  const again = await application.signIn(alice, { prompt: "login" }, agent);
  assert.ok(again.claims.auth_time > claims.auth_time);
});

test("OpenID Connect Core §3.1.2.1: max_age=0 asks for the password again", async () => {
  const application = await Application.register();
  const { agent } = await application.signIn(alice);
  const { url } = await application.request({ max_age: "0" });
  assert.ok((await agent.open(url)).form("password"));
});

test("OpenID Connect Core §3.1.2.1: max_age, once exceeded, asks again; before that it does not", async () => {
  const application = await Application.register();
  const { agent } = await application.signIn(alice);
  assert.ok((await agent.open((await application.request({ max_age: "600" })).url)).left);
  await pause(2.1);
  const { url, checks } = await application.request({ max_age: "1" });
  const page = await agent.open(url);
  assert.ok(page.form("password"));
  const { left } = await proceed(agent, page, alice);
  await oidc.authorizationCodeGrant(application.config, left, { ...checks, maxAge: 1 });
});

test("OpenID Connect Core §3.1.2.1: prompt=consent asks although consent was given", async () => {
  const application = await Application.register();
  const { agent } = await application.signIn(alice);
  assert.ok((await agent.open((await application.request()).url)).left, "consent is remembered");
  assert.ok((await agent.open((await application.request({ prompt: "consent" })).url)).form("decision"));
});

test("OpenID Connect Core §3.1.2.1: prompt=select_account offers the account", async () => {
  const application = await Application.register({ trusted: true });
  const { agent } = await application.signIn(alice);
  const { url, checks } = await application.request({ prompt: "select_account" });
  const page = await agent.open(url);
  assert.ok(page.text.includes(alice.login));
  const { left } = await agent.submit(page.form("choice"), { choice: "continue" });
  assert.ok((await oidc.authorizationCodeGrant(application.config, left, checks)).id_token);
});

test("login_hint is in the form, and ui_locales choose its language", async () => {
  const application = await Application.register();
  const { url } = await application.request({ login_hint: alice.login, ui_locales: "it" });
  const page = await new Agent(server.issuer).open(url);
  assert.equal(page.form("password").fields.find(({ name }) => name === "login").value, alice.login);
  assert.match(page.html, /<html lang="it">/);
});

test("offline_access gives a refresh token that outlives sign-out; without it the token dies with the session", async () => {
  const application = await Application.register();
  const online = await application.signIn(alice, { scope: "openid" });
  const offline = await application.signIn(alice, { scope: "openid offline_access" });
  for (const { agent, tokens } of [online, offline]) {
    const page = await agent.open(oidc.buildEndSessionUrl(application.config, { id_token_hint: tokens.id_token }));
    assert.equal(page.status, 200);
  }
  await assert.rejects(oidc.refreshTokenGrant(application.config, online.tokens.refresh_token), { error: "invalid_grant" });
  await oidc.refreshTokenGrant(application.config, offline.tokens.refresh_token);
});

test("RFC 9207 §2: an error carries iss too", async () => {
  const application = await Application.register();
  const { url } = await application.request({ prompt: "none" });
  const { left } = await new Agent(server.issuer).open(url);
  assert.equal(left.searchParams.get("iss"), server.issuer);
});

test("RFC 6749 §4.1.2.1: an unregistered redirect URI is never followed", async () => {
  const application = await Application.register();
  const { url } = await application.request({ redirect_uri: "https://elsewhere.example.test/callback" });
  const page = await new Agent(server.issuer).open(url);
  assert.equal(page.status, 400);
  assert.equal(page.left, undefined);
  assert.ok(!page.html.includes("elsewhere.example.test"));
});

test("RFC 8252 §7.3: the port of a native client's loopback URI may vary, and nothing else", async () => {
  const native = await Application.register({ public: true, native: true, authentication: oidc.None, redirectUri: "http://127.0.0.1/callback" });
  const open = async (uri) => new Agent(server.issuer).open((await native.request({ redirect_uri: uri })).url);
  assert.equal((await open("http://127.0.0.1:49152/callback")).status, 200);
  for (const uri of ["http://127.0.0.1:49152/other", "http://localhost:49152/callback", "https://127.0.0.1:49152/callback"]) {
    assert.equal((await open(uri)).status, 400, uri);
  }
});
