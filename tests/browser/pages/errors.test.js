// Errors shown to people, and hostile text in every place that could show it.
import test from "node:test";
import assert from "node:assert/strict";
import { application, person, server, signInAt, visitor } from "../harness/fixture.js";

const hostile = `"><svg onload=alert(1)>'`;

/** Checks that none of the hostile text has become an element; a dialog would make `leave` fail. */
async function harmless(guest, where) {
  await guest.page.waitForLoadState("load");
  assert.equal(await guest.page.locator("[onload]").count(), 0, where);
}

test("RFC 9700 §4.11.2: an unknown client or redirect URI is an error page with no way on", async () => {
  const [app, guest] = await Promise.all([application(), visitor()]);
  for (const change of [{ client_id: "nobody" }, { redirect_uri: "https://evil.example/" }]) {
    const { url } = await app.authorization(change);
    assert.equal(await guest.open(url), 400);
    assert.equal(new URL(guest.page.url()).origin, server.issuer);
    assert.equal(await guest.page.locator("main a").count(), 0);
    await guest.inspect();
  }
  await guest.leave();
});

test("RFC 9700 §4.11.2: without a session an error is shown, with a button that carries it back", async () => {
  const [app, guest] = await Promise.all([application(), visitor()]);
  await guest.page.goto(app.signInUrl({ scope: "openid no-such-scope", response_type: "token" }));
  assert.equal(new URL(guest.page.url()).origin, server.issuer);
  await guest.inspect();
  await guest.press("main a.button");
  assert.equal((await app.shown(guest)).value.error, "unsupported_response_type");
  await guest.leave();
});

test("RFC 6749 §4.1.2.1: with a session it goes back by itself", async () => {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor()]);
  await signInAt(app, guest, alice);
  await guest.page.goto(app.signInUrl({ response_type: "token" }));
  assert.equal((await app.shown(guest)).value.error, "unsupported_response_type");
  await guest.leave();
});

test("a page that does not exist speaks the person's language alone, and leads to the front page", async () => {
  // Red where it has a detail, which is English and says the heading again.
  const guest = await visitor({ locale: "de-DE" });
  assert.equal(await guest.open("/no/such/page"), 404);
  assert.equal(await guest.page.locator('main [lang="en"]').count(), 0);
  await guest.inspect();
  assert.equal(await guest.press("main a.button"), 200);
  assert.equal(new URL(guest.page.url()).pathname, "/");
  await guest.leave();
});

test("XS-01: hostile parameters of an authorization request", async () => {
  const [app, guest] = await Promise.all([application(), visitor()]);
  const parameters = [
    "client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "prompt", "max_age", "login_hint", "id_token_hint",
    "ui_locales", "acr_values", "claims", "code_challenge", "code_challenge_method", "request", "request_uri", "resource", "anything",
  ];
  for (const name of parameters) {
    const { url } = await app.authorization({ [name]: hostile });
    await guest.open(url);
    await harmless(guest, name);
  }
  await guest.leave();
});

test("XS-01: hostile paths, codes and parameters of other pages", async () => {
  const guest = await visitor();
  const text = encodeURIComponent(hostile);
  const addresses = [
    `/${text}`, `/?${text}=${text}`, `/login?flow=${text}`, `/signup?flow=${text}`, `/consent?flow=${text}`, `/device?user_code=${text}`, `/account?done=${text}`,
    `/setup?token=${text}#${text}`, `/try?${text}`, `/try/callback?error=${text}&error_description=${text}&state=${text}`, `/assets/${text}`,
    `/oauth2/logout?id_token_hint=${text}&post_logout_redirect_uri=${text}&state=${text}&client_id=${text}&ui_locales=${text}`,
  ];
  for (const address of addresses) {
    await guest.open(address);
    await harmless(guest, address);
  }
  await guest.leave();
});

test("XS-01, XS-02: an application's hostile name and a browser's hostile User-Agent", async () => {
  const [app, alice, guest] = await Promise.all([application({ name: hostile }), person(), visitor({ userAgent: hostile })]);
  await guest.page.goto(app.signInUrl());
  await harmless(guest, "login");
  await guest.signIn({ ...alice, login: hostile });
  await harmless(guest, "login, refused");
  await guest.signIn(alice);
  await harmless(guest, "consent");
  assert.ok((await guest.text()).includes(hostile));
  await guest.allow();
  await guest.page.goto(app.signInUrl({ response_mode: "form_post" }));
  await guest.page.waitForURL((url) => url.href.startsWith(app.callback));
  await guest.open("/account");
  await harmless(guest, "account");
  assert.ok((await guest.text('section[aria-labelledby="applications"]')).includes(hostile));
  await guest.leave();
});

test("XS-05: pages forbid scripts that are not theirs, and text that becomes a script", async () => {
  const guest = await visitor();
  const response = await guest.page.goto(`${server.issuer}/account`);
  const policy = response.headers()["content-security-policy"];
  for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"]) assert.ok(policy.includes(part), part);
  assert.doesNotMatch(policy, /unsafe-|\*/);
  await guest.leave();
});
