// A real Chromium that watches our pages: whatever a page does wrong along the way makes the test fail.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";

const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const largestPage = 50 * 1024;
/** How long a page may take on a slow machine. */
const patience = 60_000;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const viewports = [{ width: 390, height: 844 }, { width: 1280, height: 800 }];
export const themes = ["light", "dark"];

/** Starts the browser. Chromium's sandbox needs an ordinary user. */
export function launch() {
  const args = process.getuid?.() === 0 ? [...quiet, "--no-sandbox"] : quiet;
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
}

/** A browser window with its own cookies. `origin` is the server whose pages are watched. */
export class Visitor {
  #problems = [];
  #loads = new Map();
  #pending = [];

  static async arrive(browser, origin, options = {}) {
    const context = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(patience);
    const page = await context.newPage();
    return new Visitor(context, page, origin);
  }

  constructor(context, page, origin) {
    Object.assign(this, { context, page, origin });
    page.on("console", (message) => this.#heard(message));
    page.on("pageerror", (error) => this.#blame(`script: ${error.message}`));
    page.on("request", (request) => this.#asked(request));
    page.on("response", (response) => this.#pending.push(this.#answered(response).catch(() => {})));
    page.on("dialog", (dialog) => {
      this.#blame(`dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
  }

  get #ours() {
    return this.page.url().startsWith(`${this.origin}/`);
  }

  #blame(what) {
    this.#problems.push(`${this.page.url()}: ${what}`);
  }

  /** Content-Security-Policy violations are console errors. So is a 4xx status, which is not a fault of the page. */
  #heard(message) {
    const status = /^Failed to load resource: the server responded with a status of/.test(message.text());
    if (message.type() === "error" && !status && this.#ours) this.#blame(`console: ${message.text()}`);
  }

  #asked(request) {
    const elsewhere = new URL(request.url()).origin !== this.origin;
    if (this.#ours && elsewhere && !request.isNavigationRequest()) this.#blame(`request to another origin: ${request.url()}`);
  }

  /** Returns the load of a page that a response belongs to. Called before any wait: bodies arrive in any order, and the
   * same page may be loaded again meanwhile. */
  #loadOf(request) {
    const frame = request.frame();
    if (request.resourceType() === "document") this.#loads.set(frame, { url: request.url(), weight: 0 });
    return this.#loads.get(frame);
  }

  /** Adds up the size of a page, including its styles and scripts. */
  async #answered(response) {
    const request = response.request();
    const kind = request.resourceType();
    if (new URL(response.url()).origin !== this.origin || !["document", "stylesheet", "script", "image"].includes(kind)) return;
    if (kind !== "document" && response.status() >= 400) this.#blame(`${response.status()} for ${response.url()}`);
    const load = this.#loadOf(request);
    const redirects = "location" in response.headers();
    const weight = redirects ? 0 : (await response.body()).length;
    load.weight += weight;
    if (load.weight > largestPage) this.#blame(`${load.url} weighs ${load.weight} bytes`);
  }

  /** Opens an address and returns its HTTP status. */
  async open(url) {
    const response = await this.page.goto(new URL(url, this.origin).href);
    return response.status();
  }

  /** Presses a button and waits for the next page. Returns that page's HTTP status. */
  async press(selector) {
    const [response] = await Promise.all([
      this.page.waitForNavigation({ waitUntil: "load" }),
      this.page.locator(selector).first().click(),
    ]);
    return response?.status();
  }

  /** Fills fields by name. */
  async fill(values) {
    for (const [name, value] of Object.entries(values)) await this.page.fill(`main [name="${name}"]:not([type="hidden"])`, value);
  }

  /** Fills in and sends the sign-in form. */
  async signIn({ login, password }) {
    await this.fill(await this.page.locator("#login").count() ? { login, password } : { password });
    return this.press('form[action$="/login"] button.main');
  }

  allow = () => this.press('button[name="decision"][value="allow"]');
  deny = () => this.press('button[name="decision"][value="deny"]');
  text = (selector = "main") => this.page.locator(selector).first().innerText();

  /** Checks the current page with axe-core on a phone and on a desktop, light and dark, and for sideways scrolling. */
  async inspect() {
    for (const colorScheme of themes) {
      await this.page.emulateMedia({ colorScheme });
      for (const viewport of viewports) {
        await this.page.setViewportSize(viewport);
        const found = await violations(this.page);
        for (const one of found) this.#blame(`axe (${viewport.width} px, ${colorScheme}): ${one}`);
      }
    }
  }

  /** Closes the window, and fails if anything went wrong in it. */
  async leave() {
    await Promise.all(this.#pending);
    await this.context.close();
    assert.deepEqual(this.#problems, []);
  }
}

/** Returns what is wrong with a page, one line each. */
export async function violations(page) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { rules: { "target-size": { enabled: true } } });
    const lines = violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id} at ${target}: ${failureSummary}`));
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) lines.push(`scrolls sideways: ${scrollWidth} in ${clientWidth} px`);
    // The parts of a flexible box lose the white space between them: a text beside an element runs into its words.
    const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
    const boxes = [...document.body.querySelectorAll("*")].filter((one) => /flex|grid/.test(getComputedStyle(one).display));
    const glued = boxes.filter((one) => one.children.length && [...one.childNodes].some(isText));
    lines.push(...glued.map((one) => `words run together: ${one.outerHTML}`));
    return lines;
  });
}
