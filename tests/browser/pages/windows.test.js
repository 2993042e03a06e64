// What a site can tell of its visitors by the windows that it opens here.
import test from "node:test";
import assert from "node:assert/strict";
import { application, person, visitor } from "../harness/fixture.js";

const targets = ["/", "/account", "/account/nothing", "/continue", "/device", "/login", "/login?again=1", "/login?change=1",
  "/nothing", "/oauth2/logout", "/setup", "/signup", "/try", "/.well-known/change-password"];

/** Opens each target from a page of another site, and says whether that page has lost its handle. */
async function lost(guest, app) {
  const found = {};
  for (const target of targets) {
    await guest.page.goto(app.origin);
    const opened = guest.context.waitForEvent("page");
    await guest.page.evaluate((url) => { window.other = window.open(url); }, new URL(target, guest.origin).href);
    const page = await opened;
    await page.waitForLoadState("load");
    found[target] = await guest.page.evaluate(() => window.other.closed);
    await page.close();
  }
  return found;
}

test("no site sees by a window whether its visitor is signed in", async () => {
  const [app, alice, guest, stranger] = await Promise.all([application(), person(), visitor(), visitor()]);
  await guest.open("/account");
  await guest.signIn(alice);
  const [known, unknown] = [await lost(guest, app), await lost(stranger, app)];
  assert.deepEqual(known, unknown);
  assert.equal(known["/account"], true, "a handle can be lost");
  await Promise.all([guest.leave(), stranger.leave()]);
});
