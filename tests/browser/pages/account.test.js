// The account home: profile, password, sessions, applications.
import test from "node:test";
import assert from "node:assert/strict";
import * as oidc from "openid-client";
import { application, person, signInAt, visitor } from "../harness/fixture.js";

const form = (action) => `form[action$="/account/${action}"]`;

async function home(user, options) {
  const guest = await visitor(options);
  await guest.open("/account");
  await guest.signIn(user);
  assert.equal(new URL(guest.page.url()).pathname, "/account");
  return guest;
}

async function signedIn(guest) {
  await guest.open("/account");
  return (await guest.page.locator("#sessions").count()) === 1;
}

test("a changed profile is what applications see", async () => {
  const [app, alice] = await Promise.all([application({ trusted: true }), person()]);
  const guest = await home(alice);
  await guest.inspect();
  await guest.fill({ name: "Alice Liddell", given_name: "Alice", family_name: "Liddell" });
  await guest.press(`${form("profile")} button`);
  assert.equal(await guest.page.locator('[role="status"]').count(), 1);
  assert.equal(await guest.text("h1"), "Alice Liddell");
  await guest.inspect();
  const info = await signInAt(app, guest, alice);
  assert.deepEqual([info.name, info.given_name, info.family_name], ["Alice Liddell", "Alice", "Liddell"]);
  await guest.leave();
});

test("an e-mail address that cannot be one is refused beside its field", async () => {
  const guest = await home(await person());
  await guest.page.locator(form("profile")).evaluate((element) => { element.noValidate = true; });
  await guest.fill({ email: "nobody@" });
  await guest.press(`${form("profile")} button`);
  assert.equal(await guest.page.getAttribute("#email", "aria-invalid"), "true");
  await guest.inspect();
  await guest.leave();
});

test("a changed password ends every other session, and the old one no longer signs in", async () => {
  const alice = await person();
  const [guest, other] = [await home(alice), await home(alice)];
  const changed = { ...alice, password: "another long enough phrase" };
  await guest.fill({ current: "wrong", new: changed.password });
  await guest.press(`${form("password")} button.main`);
  assert.equal(await guest.page.getAttribute("#current", "aria-invalid"), "true");
  await guest.fill({ current: alice.password, new: changed.password });
  await guest.press(`${form("password")} button.main`);
  assert.equal(await guest.page.locator('[role="status"]').count(), 1);
  assert.equal(await signedIn(guest), true);
  assert.equal(await signedIn(other), false);
  await other.signIn(alice);
  assert.ok(await other.page.locator('[role="alert"]').count());
  await other.signIn(changed);
  assert.equal(await signedIn(other), true);
  await Promise.all([guest.leave(), other.leave()]);
});

test("a session on another device is listed and can be ended, alone or with all others", async () => {
  const alice = await person();
  const phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1";
  const [guest, second, third] = [await home(alice), await home(alice, { userAgent: phone }), await home(alice)];
  await guest.open("/account");
  const rows = guest.page.locator('section[aria-labelledby="sessions"] li');
  assert.equal(await rows.count(), 3);
  const row = rows.filter({ hasText: "iPhone" });
  await guest.inspect();
  await Promise.all([guest.page.waitForNavigation(), row.locator("button").click()]);
  assert.equal(await rows.count(), 2);
  assert.deepEqual([await signedIn(second), await signedIn(third)], [false, true]);
  await guest.press(`${form("sessions/revoke-others")} button`);
  assert.deepEqual([await signedIn(guest), await signedIn(third)], [true, false]);
  assert.equal(await rows.count(), 1);
  await Promise.all([guest.leave(), second.leave(), third.leave()]);
});

test("an application whose access is removed has nothing that works, and has to ask again", async () => {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor()]);
  await signInAt(app, guest, alice);
  await guest.open("/account");
  assert.match(await guest.text('section[aria-labelledby="applications"]'), new RegExp(app.id));
  await guest.press(`${form("applications/revoke")} button`);
  assert.doesNotMatch(await guest.text('section[aria-labelledby="applications"]'), new RegExp(app.id));
  await assert.rejects(oidc.refreshTokenGrant(app.config, app.tokens.refresh_token), { error: "invalid_grant" });
  await assert.rejects(oidc.fetchUserInfo(app.config, app.tokens.access_token, app.tokens.claims().sub), { status: 401 });
  await guest.page.goto(app.signInUrl());
  assert.ok(await guest.page.locator('button[value="allow"]').count(), "consent is asked for again");
  await guest.leave();
});

test("where a password manager looks leads to the form, signed in or not, and the sign-in page names who is signed in", async () => {
  const [alice, guest] = await Promise.all([person(), visitor()]);
  const there = () => {
    const { pathname, hash } = new URL(guest.page.url());
    return pathname + hash;
  };
  await guest.open("/.well-known/change-password");
  await guest.inspect();
  await guest.signIn(alice);
  assert.equal(there(), "/account#change");
  await guest.open("/.well-known/change-password");
  assert.equal(there(), "/account#change");
  await guest.open("/login");
  assert.match(await guest.text(".alert.note"), new RegExp(`${alice.login} is signed in here`));
  await guest.inspect();
  await guest.press('.alert.note a');
  assert.equal(there(), "/account");
  await guest.leave();
});

test("signing out from the account home", async () => {
  const guest = await home(await person());
  await guest.press(`${form("signout")} button`);
  await guest.inspect();
  assert.equal(await signedIn(guest), false);
  await guest.leave();
});
