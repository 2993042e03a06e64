// A public client in the browser: authorization code with PKCE (RFC 6749 §4.1, RFC 7636), each step shown as it
// happens. Text from anywhere is only ever set as text.
"use strict";

const steps = document.getElementById("try-steps");
const say = steps.dataset;
const label = document.getElementById("try-labels").dataset;
const issuer = say.issuer;
const client = say.client;
const redirect = `${issuer}/try/callback`;
const kept = "portiere-try";
const told = document.getElementById("try-status");

const encode = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const decode = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const utf8 = (text) => new TextEncoder().encode(text);
const random = () => encode(crypto.getRandomValues(new Uint8Array(32)));
const json = (value) => JSON.stringify(value, null, 2);
const part = (token, n) => JSON.parse(new TextDecoder().decode(decode(token.split(".")[n])));
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** What went wrong, in words of this page. */
class Told extends Error {}

/** Announces a change on the page to users who do not see it. */
function tell(text) {
  told.textContent = "";
  told.textContent = text;
}

function show(step, caption, text) {
  const item = document.getElementById(`step-${step}`);
  item.hidden = false;
  const figure = document.getElementById("try-exchange").content.cloneNode(true).querySelector("figure");
  figure.querySelector("figcaption").textContent = caption;
  const code = figure.querySelector("code");
  code.textContent = text;
  const copy = figure.querySelector("button");
  // With several such buttons, says what it copies.
  const name = (word) => {
    copy.textContent = word;
    copy.setAttribute("aria-label", `${word}: ${caption}`);
  };
  name(say.copy);
  copy.addEventListener("click", async () => {
    // A browser may refuse it, and has no clipboard for a page that came over plain HTTP from another machine.
    const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    tell(copied ? told.dataset.copied : told.dataset.refused);
    if (!copied) {
      getSelection().selectAllChildren(code);
      return;
    }
    name(told.dataset.copied);
    setTimeout(() => name(say.copy), 2000);
  });
  item.querySelector(".out").append(figure);
}

function fail(text) {
  const box = document.getElementById("try-problem");
  box.querySelector("p").textContent = text;
  box.hidden = false;
}

async function answer(response) {
  const text = await response.text();
  let body;
  try { body = JSON.parse(text); } catch { body = null; }
  const shown = `HTTP ${response.status}\n\n${body ? json(body) : text}`;
  return { ok: response.ok && body, body, shown };
}

async function discover() {
  const url = `${issuer}/.well-known/openid-configuration`;
  const { ok, body, shown } = await answer(await fetch(url));
  show("discover", label.curl, `curl ${quoted(url)}`);
  if (!ok) {
    show("discover", label.response, shown);
    throw new Told(say.failed);
  }
  const wanted = ["issuer", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"];
  show("discover", label.response, json(Object.fromEntries(wanted.map((name) => [name, body[name]]))));
  return body;
}

async function begin(server) {
  const state = random();
  const nonce = random();
  const verifier = random();
  const challenge = encode(await crypto.subtle.digest("SHA-256", utf8(verifier)));
  const ask = new URLSearchParams({
    response_type: "code", client_id: client, redirect_uri: redirect, scope: "openid profile email",
    state, nonce, code_challenge: challenge, code_challenge_method: "S256",
  });
  const lines = [...ask].map(([name, value], n) => `  ${n ? "&" : "?"}${name}=${value}`);
  show("authorize", label.request, `GET ${server.authorization_endpoint}\n${lines.join("\n")}`);
  const go = document.getElementById("try-go");
  go.hidden = false;
  go.addEventListener("click", () => {
    sessionStorage.setItem(kept, JSON.stringify({ state, nonce, verifier }));
    location.assign(`${server.authorization_endpoint}?${ask}`);
  });
}

async function verified(server, token) {
  const { alg, kid } = part(token, 0);
  const kinds = {
    RS256: [{ name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }, "RSASSA-PKCS1-v1_5"],
    ES256: [{ name: "ECDSA", namedCurve: "P-256" }, { name: "ECDSA", hash: "SHA-256" }],
    EdDSA: [{ name: "Ed25519" }, "Ed25519"],
  };
  show("claims", label.curl, `curl ${quoted(server.jwks_uri)}`);
  const { body } = await answer(await fetch(server.jwks_uri));
  const used = body.keys.find((one) => one.kid === kid);
  show("claims", label.response, json({ keys: [used] }));
  const { kty, crv, n, e, x, y } = used;
  const [kind, check] = kinds[alg];
  const key = await crypto.subtle.importKey("jwk", { kty, crv, n, e, x, y }, kind, false, ["verify"]);
  const [header, claims, signature] = token.split(".");
  return crypto.subtle.verify(check, key, decode(signature), utf8(`${header}.${claims}`));
}

async function redeem(server, code, mine) {
  const form = new URLSearchParams({
    grant_type: "authorization_code", client_id: client, redirect_uri: redirect, code, code_verifier: mine.verifier,
  });
  const data = [...form].map(([name, value]) => `  --data-urlencode ${quoted(`${name}=${value}`)}`);
  show("token", label.curl, `curl ${quoted(server.token_endpoint)} \\\n${data.join(" \\\n")}`);
  const { ok, body, shown } = await answer(await fetch(server.token_endpoint, { method: "POST", body: form, credentials: "omit" }));
  show("token", label.response, shown);
  if (!ok) throw new Told(say.failed);
  return body;
}

async function claims(server, tokens, mine) {
  const token = tokens.id_token;
  show("claims", label.header, json(part(token, 0)));
  const said = part(token, 1);
  const good = await verified(server, token).catch(() => false);
  show("claims", `${label.claims}: ${good ? say.verified : say.unverified}`, json(said));
  const belongs = said.nonce === mine.nonce && said.iss === issuer && [said.aud].flat().includes(client);
  if (!belongs) throw new Told(say.mismatch);
  if (tokens.access_token.split(".").length === 3) show("claims", label.access, json(part(tokens.access_token, 1)));
}

async function userinfo(server, tokens) {
  const bearer = `Authorization: Bearer ${tokens.access_token}`;
  show("userinfo", label.curl, `curl ${quoted(server.userinfo_endpoint)} \\\n  -H ${quoted(bearer)}`);
  const options = { headers: { Authorization: `Bearer ${tokens.access_token}` }, credentials: "omit" };
  const { ok, shown } = await answer(await fetch(server.userinfo_endpoint, options));
  show("userinfo", label.response, shown);
  if (!ok) throw new Told(say.failed);
}

async function finish(server, query) {
  const mine = JSON.parse(sessionStorage.getItem(kept) ?? "null");
  sessionStorage.removeItem(kept);
  history.replaceState(null, "", location.pathname);
  show("response", label.response, [...query].map(([name, value]) => `${name}=${value}`).join("\n"));
  // The new part begins here, for users who read on from the focus.
  const begins = document.querySelector("#step-response h2");
  begins.tabIndex = -1;
  begins.focus();
  if (!mine) throw new Told(say.expired);
  if (query.get("state") !== mine.state || query.get("iss") !== issuer) throw new Told(say.mismatch);
  // RFC 6749 §4.1.2.1: whoever says no did nothing wrong, and neither did the server.
  if (query.get("error") === "access_denied") throw new Told(say.denied);
  if (!query.has("code")) throw new Told(say.failed);
  const tokens = await redeem(server, query.get("code"), mine);
  document.getElementById("try-hint").value = tokens.id_token;
  await claims(server, tokens, mine);
  await userinfo(server, tokens);
  document.getElementById("step-end").hidden = false;
  tell(told.dataset.done);
}

async function walk() {
  if (new URL(issuer).origin !== location.origin) {
    document.getElementById("try-elsewhere").hidden = false;
    return;
  }
  steps.hidden = false;
  try {
    const server = await discover();
    const query = new URLSearchParams(location.search);
    if (query.has("state")) {
      document.getElementById("step-authorize").hidden = true;
      document.getElementById("step-discover").hidden = true;
      steps.classList.add("later");
      await finish(server, query);
    } else {
      await begin(server);
    }
  } catch (problem) {
    // Anything else is a browser's own text about a connection that failed.
    fail(problem instanceof Told ? problem.message : say.broken);
  }
}

walk();
