// What a browser's rules mean for a single-page application: CORS, frames, cookies, with oidc-client-ts's own calls.
import test, { after } from "node:test";
import assert from "node:assert/strict";
import { SinglePage } from "../harness/single-page.js";
import { person, server, unique, visitor } from "../harness/fixture.js";

const started = [];
after(() => Promise.all(started.map((app) => app.stop())));

async function singlePage(options) {
  const app = await SinglePage.start(server, { id: unique("spa"), ...options });
  started.push(app);
  return app;
}

/** Goes from the application's page to Portiere and back; returns what the library then knows. */
async function signIn(app, guest, user) {
  await guest.page.goto(app.origin);
  await Promise.all([guest.page.waitForURL(`${server.issuer}/**`), guest.page.evaluate(() => { manager.signinRedirect(); })]);
  await guest.signIn(user);
  if (await guest.page.locator('button[value="allow"]').count()) await guest.allow();
  return guest.page.evaluate(async () => {
    const { profile, expires_in: lives, scope } = await manager.signinCallback();
    return { profile, lives, scope };
  });
}

/** Returns the error of a silent renewal, or its user. Without its refresh token the library asks in an iframe. */
const renew = (guest, { frame }) => guest.page.evaluate(async (inFrame) => {
  const before = await manager.getUser();
  if (inFrame && before) await manager.storeUser(Object.assign(before, { refresh_token: undefined }));
  const had = before?.access_token;
  return manager.signinSilent().then((user) => user.access_token !== had && user.profile.email, ({ error, message }) => error ?? message);
}, frame);

test("oidc-client-ts signs in, renews by refresh token and in an iframe, revokes, and signs out", async () => {
  const [app, alice, guest] = await Promise.all([singlePage({ trusted: true }), person(), visitor()]);
  await guest.page.goto(app.origin);
  assert.equal(await renew(guest, { frame: true }), "login_required");
  const { profile, lives, scope } = await signIn(app, guest, alice);
  assert.deepEqual([profile.email, lives > 0, scope], [`${alice.login}@example.test`, true, "openid profile email"]);
  assert.equal(await renew(guest, { frame: false }), profile.email);
  assert.equal(await renew(guest, { frame: true }), profile.email);
  // It revokes first. Red with `/oauth2/revoke` outside of `cors::registered` in server/http/routes.rs.
  await Promise.all([guest.page.waitForURL(`${app.origin}/`), guest.page.evaluate(() => { manager.signoutRedirect(); })]);
  assert.equal(await renew(guest, { frame: true }), "login_required");
  await guest.leave();
});

test("in an iframe an application without https is not taken for itself, and one on another site finds nobody", async () => {
  const alice = await person();
  // Red without `is_unassured` in rules/oauth/step.rs.
  for (const [options, answer] of [[{}, "consent_required"], [{ host: "127.0.0.1", trusted: true }, "login_required"]]) {
    const [app, guest] = await Promise.all([singlePage(options), visitor()]);
    await signIn(app, guest, alice);
    assert.equal(await renew(guest, { frame: true }), answer);
    await guest.leave();
  }
});
