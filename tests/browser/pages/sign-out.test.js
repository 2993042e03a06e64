// OpenID Connect RP-Initiated Logout 1.0 in a browser.
import test from "node:test";
import assert from "node:assert/strict";
import { application, person, signInAt, visitor } from "../harness/fixture.js";

test("an application signs a person out and gets the person back", async () => {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor()]);
  await signInAt(app, guest, alice);
  await guest.page.goto(`${app.origin}/sign-out`);
  if (!guest.page.url().startsWith(app.origin)) {
    await guest.inspect();
    await guest.press("main a.button");
  }
  assert.deepEqual(await app.shown(guest), { title: "Signed out", value: { state: "bye" } });
  await guest.page.goto(app.signInUrl({ prompt: "none" }));
  assert.equal((await app.shown(guest)).value.error, "login_required");
  await guest.leave();
});

test("without an ID token the person is asked first, and may stay (attack CS-02)", async () => {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor()]);
  await signInAt(app, guest, alice);
  await guest.open("/oauth2/logout");
  await guest.inspect();
  await guest.press('button[value="stay"]');
  await guest.open("/account");
  assert.equal(await guest.page.locator("#sessions").count(), 1);
  await guest.open("/oauth2/logout");
  await guest.press('button[value="sign_out"]');
  await guest.inspect();
  await guest.open("/account");
  assert.equal(await guest.page.locator("#password").count(), 1);
  await guest.leave();
});
