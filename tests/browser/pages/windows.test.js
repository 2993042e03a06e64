// What a site can tell of its visitors, or get from them, by the windows that it opens here.
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

const allow = 'button[value="allow"]';
/** The page has just been uncovered. */
const uncover = (guest) => guest.page.evaluate(() => ["blur", "focus"].forEach((kind) => dispatchEvent(new Event(kind))));

/** A visitor who is asked for consent, and what was sent since. */
async function asked(options) {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor(options)]);
  await guest.page.goto(app.signInUrl());
  await guest.signIn(alice);
  const sent = [];
  guest.page.on("request", (request) => { if (request.method() === "POST") sent.push(new URL(request.url()).pathname); });
  return { app, guest, sent };
}

test("a click that was meant for a window above the page allows nothing, and one a second later does", async () => {
  // Red without the guard in page.js.
  const { app, guest, sent } = await asked();
  const { x, y, width, height } = await guest.page.locator(allow).boundingBox();
  await uncover(guest);
  await guest.page.mouse.click(x + width / 2, y + height / 2);
  await guest.page.waitForTimeout(1000);
  assert.deepEqual(sent, []);
  assert.notEqual(await guest.page.getAttribute(allow, "aria-disabled"), "true", "nothing is on its way");
  await Promise.all([guest.page.waitForURL(`${app.origin}/**`), guest.page.mouse.click(x + width / 2, y + height / 2)]);
  assert.deepEqual(sent, ["/consent"]);
  await guest.leave();
});

test("a click allows as soon as the page is there, and the second of a double click does not", async () => {
  // Red with a guard that begins when the page is loaded: programs that try an application click at once, and wait for ever.
  const { app, guest, sent } = await asked();
  await Promise.all([guest.page.waitForURL(`${app.origin}/**`), guest.page.click(allow)]);
  assert.deepEqual(sent, ["/consent"]);
  await guest.leave();
  const { guest: other } = await asked();
  const is = await other.page.evaluate((selector) => {
    const button = document.querySelector(selector);
    button.form.addEventListener("submit", (event) => event.preventDefault());
    const click = (detail) => button.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail }));
    return [click(2), click(3), click(1)];
  }, allow);
  assert.deepEqual(is, [false, false, true]);
  await other.leave();
});

test("each way in which a page appears is one after which a click allows nothing", async () => {
  const { guest } = await asked();
  const found = await guest.page.evaluate(async (selector) => {
    const button = document.querySelector(selector);
    let heard = 0;
    button.form.addEventListener("submit", (event) => { event.preventDefault(); heard += 1; });
    const click = (detail) => button.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail }));
    const results = [];
    for (const [target, kind] of [[window, "focus"], [window, "pageshow"], [document, "visibilitychange"]]) {
      window.dispatchEvent(new Event("blur"));
      target.dispatchEvent(kind === "pageshow" ? new PageTransitionEvent(kind, { persisted: true }) : new Event(kind));
      const early = [click(1), click(2), click(0)];
      await new Promise((done) => setTimeout(done, 600));
      results.push([kind, early, click(1), heard]);
    }
    return results;
  }, allow);
  const early = [false, false, false];
  assert.deepEqual(found, [["focus", early, true, 1], ["pageshow", early, true, 2], ["visibilitychange", early, true, 3]]);
  await guest.leave();
});

test("by the keyboard the button works at once, unless the key was pressed before", async () => {
  const { app, guest, sent } = await asked();
  await guest.page.locator(allow).focus();
  await guest.page.keyboard.down("Enter");
  await guest.page.waitForURL(`${app.origin}/**`);
  assert.deepEqual(sent, ["/consent"]);
  await guest.leave();
  const again = await asked();
  await again.guest.page.locator(allow).focus();
  await again.guest.page.evaluate(() => {
    addEventListener("keydown", () => ["blur", "focus"].forEach((kind) => dispatchEvent(new Event(kind))));
  });
  await again.guest.page.keyboard.press("Enter");
  await again.guest.page.waitForTimeout(300);
  assert.deepEqual(again.sent, [], "the page appeared under a key that was held");
  await again.guest.leave();
});
