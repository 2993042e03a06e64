// The first minutes of a server: the set-up link, the first account, and "Try it".
import test, { after, before } from "node:test";
import assert from "node:assert/strict";
import { Portiere } from "../../interop/harness/portiere.js";
import { launch, Visitor } from "../harness/chromium.js";

const owner = { username: "ada", email: "ada@example.test", password: "a number of engines" };
let server;
let browser;
let guest;

before(async () => {
  [server, browser] = await Promise.all([Portiere.start(), launch()]);
  guest = await Visitor.arrive(browser, server.issuer);
});
after(async () => {
  await browser.close();
  await server.stop();
});

test("a fresh server's home page says what to do next", async () => {
  await guest.open("/");
  assert.match(await guest.text(), /portiere setup-link/);
  await guest.inspect();
});

test("the set-up page refuses a wrong code, and keeps what was typed", async () => {
  await guest.open("/setup#not-the-code");
  await guest.inspect();
  await guest.fill({ username: owner.username, email: owner.email, password: owner.password });
  await guest.press("button.main");
  assert.equal(await guest.page.inputValue("#username"), owner.username);
  assert.equal(await guest.page.inputValue("#password"), "");
  assert.ok(await guest.page.locator('[role="alert"]').count());
  await guest.inspect();
});

test("another link in the tab of a form that was refused is a page of its own, and nothing is sent again", async () => {
  // Red with location.reload() in setup.js: the refused form is posted again, and its message appears beside the new
  // code.
  const posted = [];
  guest.page.on("request", (request) => request.method() === "POST" && posted.push(request.url()));
  const { hash } = new URL(await server.setupLink());
  await guest.page.evaluate((code) => { location.hash = code; }, hash);
  await guest.page.locator("#token-field[hidden]").waitFor({ state: "attached" });
  assert.equal(await guest.page.inputValue("#token"), hash.slice(1));
  assert.equal(await guest.page.locator('[role="alert"]').count(), 0);
  assert.deepEqual(posted, []);
});

test("a common password and one made of the person's own name are refused", async () => {
  for (const password of ["password123", `${owner.username}${owner.username}${owner.username}`]) {
    await guest.open("/");
    await guest.open(await server.setupLink());
    await guest.fill({ ...owner, password });
    await guest.press("button.main");
    assert.ok(await guest.page.locator("#password-wrong").count(), password);
  }
});

test("the link's code is taken from the fragment and leaves the address bar", async () => {
  await guest.open("/");
  await guest.open(await server.setupLink());
  assert.equal(new URL(guest.page.url()).hash, "");
  assert.equal(await guest.page.isVisible("#token"), false);
});

test("the first account is made, and its owner is signed in", async () => {
  await guest.fill(owner);
  await guest.press("button.main");
  assert.equal(new URL(guest.page.url()).pathname, "/account");
  assert.ok(await guest.page.locator('[role="status"]').count());
  assert.equal(await guest.page.inputValue("#email"), owner.email);
  await guest.inspect();
});

test("the next step is a link away", async () => {
  await guest.press('[role="status"] a');
  assert.equal(new URL(guest.page.url()).hash, "#connect");
  assert.equal(await guest.page.isVisible("#connect"), true);
});

test("the set-up page is closed from then on", async () => {
  const other = await Visitor.arrive(browser, server.issuer);
  const status = await other.open("/setup");
  assert.ok([404, 410].includes(status), String(status));
  assert.equal(await other.page.locator("#username").count(), 0);
  await other.inspect();
  await other.leave();
});

test("Try it says in its own words what went wrong, and shows an answer if there is one", async () => {
  // Red where try.js speaks of an answer that it does not show, or lets the browser speak.
  // A page that is not watched: a request that breaks off is an error in its console.
  const page = await guest.context.newPage();
  const discovery = `${server.issuer}/.well-known/openid-configuration`;
  const ways = {
    failed: (route) => route.fulfill({ status: 429, body: "too often" }),
    broken: (route) => route.abort(),
  };
  for (const [way, answer] of Object.entries(ways)) {
    await page.route(discovery, answer);
    await page.goto(`${server.issuer}/try`);
    await page.locator("#try-problem").waitFor();
    const expected = await page.getAttribute("#try-steps", `data-${way}`);
    assert.equal(await page.locator("#try-problem p").innerText(), expected);
    assert.equal(await page.locator("#step-discover code", { hasText: "too often" }).count(), way === "failed" ? 1 : 0);
    await page.unroute(discovery);
  }
  await page.close();
});

test("Try it says that access was denied, and offers another try", async () => {
  // Red where try.js takes that for a fault of the server, or shows the end of a sign-in that came to none.
  await guest.open("/try");
  await guest.page.locator("#try-go").waitFor();
  await guest.press("#try-go");
  await guest.deny();
  await guest.page.locator("#try-problem").waitFor();
  assert.equal(await guest.text("#try-problem p"), await guest.page.getAttribute("#try-steps", "data-denied"));
  assert.equal(await guest.page.isVisible("#step-end"), false);
  await guest.inspect();
  await guest.press("#try-problem a");
  await guest.page.locator("#try-go").waitFor();
});

test("Try it walks through a whole sign-in and shows each step", async () => {
  await guest.open("/");
  await guest.inspect();
  await guest.press('a[href$="/try"]');
  await guest.page.locator("#try-go").waitFor();
  await guest.inspect();
  await guest.press("#try-go");
  assert.ok(await guest.page.locator('button[value="allow"]').count(), "the built-in client asks for consent");
  await guest.inspect();
  await guest.allow();
  await guest.page.locator("#step-end").waitFor();
  assert.equal(new URL(guest.page.url()).search, "", "the code leaves the address bar");
  const text = await guest.text();
  for (const shown of ["curl", "id_token", "preferred_username", "/oauth2/jwks", owner.email, server.issuer]) assert.ok(text.includes(shown), shown);
  assert.equal(await guest.page.isVisible("#try-problem"), false);
  assert.equal(await guest.text("#try-status"), await guest.page.getAttribute("#try-status", "data-done"), "and it is said");
  assert.equal(await guest.page.evaluate(() => document.activeElement.closest("li")?.id), "step-response");
  assert.equal(await guest.text("#step-claims figcaption >> nth=3"), `${await guest.page.getAttribute("#try-labels", "data-claims")}: ${await guest.page.getAttribute("#try-steps", "data-verified")}`);
  await guest.inspect();
});

test("Try it ends with signing out", async () => {
  await guest.press("#step-end form button");
  await guest.open("/account");
  assert.ok(await guest.page.locator("#password").count());
  await guest.leave();
});
