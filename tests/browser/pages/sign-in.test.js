// Signing in at an application on another origin.
import test from "node:test";
import assert from "node:assert/strict";
import { application, person, server, signInAt, visitor } from "../harness/fixture.js";

test("a person signs in, consents, and is known to the application; the second time nothing is asked", async () => {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor()]);
  await guest.page.goto(app.signInUrl());
  assert.match(await guest.text(), new RegExp(app.id));
  await guest.inspect();
  await guest.signIn({ ...alice, password: "not the password" });
  assert.ok(await guest.page.locator('[role="alert"]').count());
  assert.equal(await guest.page.inputValue("#login"), alice.login);
  await guest.inspect();
  await guest.signIn(alice);
  assert.match(await guest.text(), new RegExp(app.origin), "the consent page names where it leads");
  await guest.inspect();
  await guest.allow();
  const { title, value } = await app.shown(guest);
  assert.equal(title, "Signed in");
  assert.equal(value.preferred_username, alice.login);
  await guest.page.goto(app.signInUrl());
  assert.equal((await app.shown(guest)).title, "Signed in", "consent is remembered");
  await guest.page.goto(app.signInUrl({ prompt: "none" }));
  assert.equal((await app.shown(guest)).title, "Signed in");
  await guest.leave();
});

test("an application may send the browser on to another origin, from each form that leads to it", async () => {
  const [app, alice, guest] = await Promise.all([application({ split: true }), person(), visitor()]);
  const arrives = (at, button) => Promise.all([guest.page.waitForURL((url) => url.href.startsWith(`${app.elsewhere.origin}${at}`)), button()]);
  await guest.page.goto(app.signInUrl());
  await guest.signIn(alice);
  await arrives("/welcome", () => guest.page.click('button[value="allow"]'));
  assert.equal((await app.shown(guest)).value.preferred_username, alice.login);
  await guest.page.goto(app.signInUrl({ prompt: "login" }));
  await arrives("/welcome", () => guest.signIn(alice));
  await guest.page.goto(app.signInUrl({ prompt: "select_account" }));
  await arrives("/welcome", () => guest.page.locator('form.choices button[type="submit"]').first().click());
  await guest.page.goto(`${server.issuer}/oauth2/logout?${new URLSearchParams({ client_id: app.id, post_logout_redirect_uri: `${app.origin}/signed-out` })}`);
  await arrives("/signed-out", () => guest.page.click('button[value="sign_out"]'));
  await guest.leave();
});

test("sign-in by e-mail address, in any case", async () => {
  const [app, alice, guest] = await Promise.all([application({ trusted: true }), person(), visitor()]);
  const info = await signInAt(app, guest, { ...alice, login: `${alice.login}@EXAMPLE.test`.toUpperCase() });
  assert.equal(info.preferred_username, alice.login);
  await guest.leave();
});

test("a second click while the password is on its way complains of nothing; one that was typed again is sent", async () => {
  // Red where page.js empties a password that stays required, or holds back a user who stopped the page and typed it
  // again.
  const [app, guest] = await Promise.all([application({ trusted: true }), visitor()]);
  await guest.page.goto(app.signInUrl());
  // What would be sent is counted and goes nowhere: it is in flight for as long as the test likes.
  await guest.page.evaluate(() => {
    window.counted = { sent: 0, complaints: 0 };
    document.addEventListener("invalid", () => (window.counted.complaints += 1), true);
    document.addEventListener("submit", (event) => {
      window.counted.sent += event.defaultPrevented ? 0 : 1;
      event.preventDefault();
    });
  });
  const counted = () => guest.page.evaluate(() => window.counted);
  const send = () => guest.page.evaluate(() => document.querySelector('form[data-once] button[type="submit"]').click());
  await guest.page.fill("#login", "ada");
  await guest.page.fill("#password", "gorse violet anvil 41");
  await send();
  for (let tries = 0; tries < 500 && (await guest.page.inputValue("#password")) !== ""; tries++) await new Promise((ready) => setTimeout(ready, 20));
  assert.equal(await guest.page.inputValue("#password"), "", "it does not stay in the page");
  await send();
  assert.deepEqual(await counted(), { sent: 1, complaints: 0 });
  await guest.page.fill("#password", "gorse violet anvil 41");
  await send();
  assert.deepEqual(await counted(), { sent: 2, complaints: 0 });
  await guest.leave();
});

test("who asks for the page once more after a wrong password is still on the way to the application", async () => {
  // Red without `refused` in page.js: the address of the answer leads to the account.
  const [app, alice, guest] = await Promise.all([application({ trusted: true }), person(), visitor()]);
  await guest.page.goto(app.signInUrl());
  await guest.signIn({ ...alice, password: "not the password" });
  await guest.page.goto(guest.page.url());
  assert.equal(await guest.page.locator('[role="alert"]').count(), 0);
  await guest.signIn(alice);
  assert.equal((await app.shown(guest)).title, "Signed in");
  await guest.leave();
});

test("a person who says no is back at the application with access_denied", async () => {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor()]);
  await guest.page.goto(app.signInUrl());
  await guest.signIn(alice);
  await guest.deny();
  assert.deepEqual(await app.shown(guest), { title: "Failed", value: { error: "access_denied", code: "OAUTH_AUTHORIZATION_RESPONSE_ERROR" } });
  await guest.leave();
});

for (const mode of ["fragment", "form_post"]) {
  test(`response_mode=${mode}`, async () => {
    const [app, alice, guest] = await Promise.all([application(), person(), visitor()]);
    await guest.page.goto(app.signInUrl({ response_mode: mode }));
    await guest.signIn(alice);
    await Promise.all([guest.page.waitForURL((url) => url.href.startsWith(app.callback)), guest.page.click('button[value="allow"]')]);
    if (mode === "fragment") assert.match(new URL(guest.page.url()).hash, /code=.*iss=|iss=.*code=/);
    else assert.equal((await app.shown(guest)).title, "Signed in");
    await guest.leave();
  });
}

test("an answer that posts itself is sent once, and again only when its page comes back", async () => {
  // Red where post.js leaves its button to itself, or never lets it go again.
  const [app, alice, guest] = await Promise.all([application({ trusted: true }), person(), visitor()]);
  await signInAt(app, guest, alice);
  // An application that answers with no page leaves ours where it is.
  let posted = 0;
  await guest.page.route(app.callback, (route) => {
    posted += 1;
    return route.fulfill({ status: 204 });
  });
  await guest.page.goto(app.signInUrl({ response_mode: "form_post" }), { waitUntil: "commit" });
  await guest.page.locator("#response button").waitFor();
  for (let tries = 0; tries < 500 && posted === 0; tries++) await new Promise((ready) => setTimeout(ready, 20));
  assert.equal(posted, 1);
  // What would be sent from here on is counted and goes nowhere.
  const sent = await guest.page.evaluate(() => {
    let count = 0;
    addEventListener("submit", (event) => {
      count += event.defaultPrevented ? 0 : 1;
      event.preventDefault();
    });
    const click = () => {
      document.querySelector("#response button").click();
      return count;
    };
    const before = [click(), click()];
    dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
    return [...before, click(), click()];
  });
  assert.deepEqual(sent, [0, 0, 1, 1]);
  await guest.leave();
});

test("prompt=login names the person and offers another account", async () => {
  const [app, alice, bob, guest] = await Promise.all([application({ trusted: true }), person(), person("bob"), visitor()]);
  await signInAt(app, guest, alice);
  await guest.page.goto(app.signInUrl({ prompt: "login" }));
  assert.equal(await guest.page.locator("#login").count(), 0);
  await guest.inspect();
  await guest.press('button[value="other"]');
  await guest.signIn(bob);
  assert.equal((await app.shown(guest)).value.preferred_username, bob.login);
  await guest.leave();
});

test("who opens the page for another account once more is still on the way to the application", async () => {
  // Red where the choice is answered with a page: its address leads nowhere. The same holds without JavaScript.
  for (const javaScriptEnabled of [true, false]) {
    const [app, alice, bob, guest] = await Promise.all([application(), person(), person("bob"), visitor({ javaScriptEnabled })]);
    await guest.page.goto(app.signInUrl());
    await guest.signIn(alice);
    await guest.press('button[value="other"]');
    await guest.page.goto(guest.page.url());
    await guest.signIn(bob);
    await guest.allow();
    assert.equal((await app.shown(guest)).value.preferred_username, bob.login);
    await guest.leave();
  }
});

test("prompt=select_account", async () => {
  const [app, alice, guest] = await Promise.all([application({ trusted: true }), person(), visitor()]);
  await signInAt(app, guest, alice);
  await guest.page.goto(app.signInUrl({ prompt: "select_account" }));
  await guest.inspect();
  await guest.press('button[value="continue"]');
  assert.equal((await app.shown(guest)).title, "Signed in");
  await guest.leave();
});

test("login and consent are complete without JavaScript", async () => {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor({ javaScriptEnabled: false })]);
  const info = await signInAt(app, guest, alice);
  assert.equal(info.preferred_username, alice.login);
  const again = await visitor({ javaScriptEnabled: false });
  await again.page.goto(app.signInUrl({ response_mode: "form_post" }));
  await again.signIn(alice);
  await again.press("#response button");
  assert.equal((await app.shown(again)).title, "Signed in");
  await Promise.all([guest.leave(), again.leave()]);
});

test("login and consent by keyboard alone, with the focus always to be seen", async () => {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor()]);
  const { page } = guest;
  const focused = () => page.evaluate(() => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(document.activeElement);
    return { id: document.activeElement.id, value: document.activeElement.value, seen: (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none" };
  });
  const tabTo = async (wanted) => {
    for (let step = 0; step < 12; step++) {
      const { seen, ...at } = await focused();
      if (Object.entries(wanted).every(([name, value]) => at[name] === value)) return assert.ok(seen, `focus on ${JSON.stringify(at)}`);
      await page.keyboard.press("Tab");
    }
    return assert.fail(`${JSON.stringify(wanted)} cannot be reached`);
  };
  await page.goto(app.signInUrl());
  assert.equal((await focused()).id, "login", "the cursor is where typing begins");
  await page.keyboard.type(alice.login);
  await tabTo({ id: "password" });
  await page.keyboard.type(alice.password);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  await tabTo({ value: "allow" });
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal((await app.shown(guest)).title, "Signed in");
  await guest.leave();
});

test("pages speak the person's language", async () => {
  for (const [locale, expected] of [["it-IT", "it"], ["de-CH", "de"], ["fr-FR", "en"]]) {
    const [app, guest] = await Promise.all([application(), visitor({ locale })]);
    await guest.page.goto(app.signInUrl());
    assert.equal(await guest.page.getAttribute("html", "lang"), expected);
    await guest.inspect();
    await guest.leave();
  }
});

test("the session cookie is HttpOnly and SameSite=Lax, and new at each sign-in", async () => {
  const [app, alice, guest] = await Promise.all([application({ trusted: true }), person(), visitor()]);
  const session = async () => (await guest.context.cookies(server.issuer)).find(({ name }) => name.startsWith("sid-"));
  await signInAt(app, guest, alice);
  const first = await session();
  assert.deepEqual({ httpOnly: first.httpOnly, sameSite: first.sameSite, path: first.path }, { httpOnly: true, sameSite: "Lax", path: "/" });
  await signInAt(app, guest, alice, { prompt: "login" });
  assert.notEqual((await session()).value, first.value);
  await guest.leave();
});
