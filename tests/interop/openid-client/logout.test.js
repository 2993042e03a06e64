// OpenID Connect RP-Initiated Logout 1.0.
import test, { before } from "node:test";
import assert from "node:assert/strict";
import * as oidc from "openid-client";
import { Application, server, unique } from "../harness/fixture.js";

const signedOut = "https://app.example.test/signed-out";
let alice;
let application;
before(async () => {
  alice = await server.addUser(unique("alice"));
  application = await Application.register({ postLogoutRedirectUri: signedOut });
});

const silent = async (agent) => (await agent.open((await application.request({ prompt: "none" })).url)).left;

test("§2: with an ID token the person is signed out and can go back, with the state", async () => {
  const { agent, tokens } = await application.signIn(alice);
  const url = oidc.buildEndSessionUrl(application.config, {
    id_token_hint: tokens.id_token, post_logout_redirect_uri: signedOut, state: "s t&te",
  });
  const page = await agent.open(url);
  const back = page.left?.href ?? page.html.match(/href="(https:\/\/app\.example\.test\/signed-out[^"]*)"/)?.[1].replaceAll("&amp;", "&");
  assert.ok(back, page.text);
  assert.equal(new URL(back).searchParams.get("state"), "s t&te");
  assert.equal((await silent(agent)).searchParams.get("error"), "login_required");
});

test("§2: without an ID token the person is asked, and stays signed in until then (attack CS-02)", async () => {
  const { agent } = await application.signIn(alice);
  const page = await agent.open("/oauth2/logout");
  assert.ok((await silent(agent)).searchParams.has("code"));
  const done = await agent.submit(page.form("decision"), { decision: "sign_out" });
  assert.ok(done.status === 200 || done.left, done.text);
  assert.equal((await silent(agent)).searchParams.get("error"), "login_required");
});

test("§2: a person may stay", async () => {
  const { agent } = await application.signIn(alice);
  await agent.submit((await agent.open("/oauth2/logout")).form("decision"), { decision: "stay" });
  assert.ok((await silent(agent)).searchParams.has("code"));
});

test("§3: an unregistered post_logout_redirect_uri leads nowhere", async () => {
  const { agent, tokens } = await application.signIn(alice);
  const url = oidc.buildEndSessionUrl(application.config, {
    id_token_hint: tokens.id_token, post_logout_redirect_uri: "https://elsewhere.example.test/",
  });
  const page = await agent.open(url);
  assert.equal(page.left, undefined);
  assert.ok(!page.html.includes("elsewhere.example.test"));
});

test("§2: POST works as GET does", async () => {
  const { agent, tokens } = await application.signIn(alice);
  const { end_session_endpoint } = application.config.serverMetadata();
  await agent.submit({ action: new URL(end_session_endpoint), fields: [] }, { id_token_hint: tokens.id_token });
  assert.equal((await silent(agent)).searchParams.get("error"), "login_required");
});
