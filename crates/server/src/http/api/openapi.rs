//! The OpenAPI 3.1 document of the account API, generated from the table.

use super::BASE;
use super::input::{Field, LONGEST_NAME, LONGEST_TEXT, MOST_MEMBERS, MOST_VALUES, Takes};
use super::problem::{self, Kind};
use super::table::{Caller, Cookies, OPERATIONS, Operation, Shape};
use serde_json::{Map, Value, json};

/// Makes the document for `issuer`.
pub fn document(issuer: &str) -> String {
    let mut paths = Map::new();
    for one in OPERATIONS {
        paths.insert(one.path.to_owned(), json!({ one.method.to_ascii_lowercase(): operation(one) }));
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Portiere account API",
            "version": "1",
            "description": "For first-party applications with screens of their own. The guide is docs/guide/account-api.md.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": format!("{issuer}{BASE}") }],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "responses": { "Problem": problem_response() },
            "headers": headers(),
            "securitySchemes": security_schemes(),
        },
        "x-problems": Kind::ALL.iter().map(|kind| described(*kind, issuer)).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// Describes one kind of problem; its `type` leads here.
pub fn described(kind: Kind, issuer: &str) -> Value {
    let uri = problem::uri(kind, issuer);
    json!({ "type": uri, "code": kind.slug(), "status": kind.status(), "title": kind.title() })
}

fn operation(one: &Operation) -> Value {
    let security = match one.caller {
        Caller::Client if one.cookies == Cookies::NoToken => json!([{}, { "client": [] }, { "cookies": [] }]),
        Caller::Client => json!([{}, { "client": [] }]),
        Caller::Account => json!([{ "bearer": [] }, { "cookies": [] }]),
    };
    let mut answers = Map::new();
    answers.insert(one.answer.0.to_string(), answer(one.answer.1));
    answers.extend(failures(one));
    let mut operation = json!({
        "operationId": one.id,
        "summary": one.summary,
        "description": one.about,
        "security": security,
        "responses": answers,
    });
    if one.method != "GET" {
        let schema = object(one.fields);
        let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        operation["requestBody"] = body;
    }
    if one.all_problems().contains(&Kind::CsrfRefused) {
        operation["parameters"] = json!([{
            "name": "X-CSRF-Token",
            "in": "header",
            "required": false,
            "description": "The `csrf_token` of the sign-in, where the tokens are in cookies.",
            "schema": { "type": "string" },
        }]);
    }
    operation
}

/// Groups problems by status: several may share one.
fn failures(one: &Operation) -> Vec<(String, Value)> {
    let mut kinds = one.all_problems();
    kinds.sort_by_key(|kind| kind.status());
    let statuses = kinds.chunk_by(|a, b| a.status() == b.status());
    statuses
        .map(|kinds| {
            let names: Vec<String> = kinds.iter().map(|kind| format!("`{}`: {}", kind.slug(), kind.title())).collect();
            let mut response = problem_response();
            response["description"] = json!(names.join(" "));
            let status = kinds[0].status();
            let headers = headers_of(one.caller, status);
            if headers != json!({}) {
                response["headers"] = headers;
            }
            (status.to_string(), response)
        })
        .collect()
}

/// Returns which headers a refusal with this status has, by reference to [`headers`].
fn headers_of(caller: Caller, status: u16) -> Value {
    let of_status: &[&str] = match status {
        401 => &["WWW-Authenticate"],
        400 if caller == Caller::Account => &["WWW-Authenticate"],
        429 | 503 => &["Retry-After"],
        _ => &[],
    };
    let of_rates: &[&str] = if status < 500 { &RATES } else { &[] };
    let named = of_status.iter().chain(of_rates);
    named.map(|name| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))).collect()
}

/// The headers that say how a caller stands under a rate.
const RATES: [&str; 3] = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];

/// Describes the headers of refusals.
fn headers() -> Value {
    let text = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    let number = |about: &str| json!({ "description": about, "schema": { "type": "integer" } });
    let [limit, remaining, reset] = RATES;
    json!({
        "WWW-Authenticate": text(
            "How to authenticate (RFC 9110 §11.6.1): `Basic` for a client, `Bearer` for an account (RFC 6750 §3), with \
             `error=\"invalid_token\"` where a token came, and with `error=\"invalid_request\"` where it cannot be read \
             (400). Not for a page whose client was refused.",
        ),
        "Retry-After": number("Seconds to wait."),
        limit: number(
            "How many requests of this address may fail in one go, or how many its client may make, if that is limited. \
             The three are not there where nothing is counted, nor with the `too-many-attempts` of wrong passwords \
             and of sign-ups, unless they are the client's.",
        ),
        remaining: number("How many of them are left now."),
        reset: number("Seconds until all of them may be made."),
    })
}

fn answer(shape: Shape) -> Value {
    let (description, schema) = match shape {
        Shape::Nothing => return json!({ "description": "It is done." }),
        Shape::SignedIn => ("Somebody is signed in.", "SignedIn"),
        Shape::Tokens => ("New tokens.", "Tokens"),
        Shape::Account => ("The account.", "Account"),
    };
    let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn problem_response() -> Value {
    let schema = json!({ "$ref": "#/components/schemas/Problem" });
    json!({ "description": "A problem (RFC 9457).", "content": { "application/problem+json": { "schema": schema } } })
}

fn object(fields: &[Field]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let schema = match field.takes {
            Takes::Text(most) => json!({ "type": "string", "maxLength": most, "description": field.about }),
            Takes::Flag => json!({ "type": "boolean", "description": field.about }),
        };
        properties.insert(field.name.to_owned(), schema);
    }
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let limits = format!(
        "There are at most {MOST_VALUES} values, those inside of lists and objects included. Members that are not among \
         these are ignored; a text in one has at most {LONGEST_TEXT} characters. The name of a member has at most \
         {LONGEST_NAME} characters, at every depth."
    );
    let mut object = json!({
        "type": "object",
        "description": limits,
        "properties": properties,
        "required": required,
        "maxProperties": MOST_MEMBERS,
        "propertyNames": { "maxLength": LONGEST_NAME },
    });
    let (assertion, kind) = ("client_assertion", "client_assertion_type");
    if object["properties"].get(assertion).is_some() {
        object["dependentRequired"] = json!({ assertion: [kind], kind: [assertion] });
        // An empty text counts as not sent.
        [assertion, kind].into_iter().for_each(|name| object["properties"][name]["minLength"] = json!(1));
    }
    object
}

fn schemas() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let mut tokens = json!({
        "access_token": text("Sent as `Authorization: Bearer`. Not in cookie mode."),
        "refresh_token": text("For one refresh. Not in cookie mode."),
        "token_type": { "type": "string", "const": "Bearer" },
        "expires_in": { "type": "integer", "description": "Seconds that the access token is good for." },
        "scope": { "type": "string", "const": rules::oauth::first_party::SCOPE },
        "device_token": text(
            "What this device is known by from now on: to be sent with the next sign-in, sign-up or change of password on \
             it. Opens nothing. Not in cookie mode, and not after a refresh.",
        ),
        "csrf_token": text("To be sent as `X-CSRF-Token`. Only in cookie mode."),
    });
    let plain = json!({ "type": "object", "properties": tokens, "required": ["expires_in", "scope"] });
    let about = "What comes next: with anything but `done` nobody is signed in yet, and there are no tokens.";
    tokens["next"] = json!({ "type": "string", "enum": ["done", "mfa"], "description": about });
    json!({
        "Tokens": plain,
        "SignedIn": { "type": "object", "properties": tokens, "required": ["next"] },
        "Account": {
            "type": "object",
            "properties": {
                "sub": text("The account's id. It never changes and is never given to somebody else."),
                "preferred_username": text("The username."),
                "email": text("The address, if there is one."),
                "email_verified": { "type": "boolean" },
                "updated_at": { "type": "integer", "description": "Seconds since 1970." },
                "groups": { "type": "array", "items": { "type": "string" } },
                "csrf_token": text("Only in cookie mode."),
            },
            "required": ["sub", "preferred_username", "updated_at", "groups"],
            "additionalProperties": { "description": "Other standard claims that were set." },
        },
        "Problem": problem_schema(),
    })
}

fn problem_schema() -> Value {
    let codes: Vec<&str> = Kind::ALL.iter().map(|kind| kind.slug()).collect();
    let member = json!({
        "type": "object",
        "properties": {
            "field": { "type": "string" },
            "code": { "type": "string", "enum": [
                "missing", "type", "taken", "empty", "too-long", "character", "form", "too-short", "common", "personal", "not-text",
            ] },
            "detail": { "type": "string" },
        },
        "required": ["field", "code", "detail"],
    });
    json!({
        "type": "object",
        "properties": {
            "type": { "type": "string", "format": "uri" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "code": { "type": "string", "enum": codes, "description": "The last part of `type`." },
            "detail": { "type": "string" },
            "fields": { "type": "array", "items": member },
            "csrf_token": {
                "type": "string",
                "description": "With `token-refused` of `GET /me`, where a refresh token is in the cookies: what \
                                refreshing needs.",
            },
        },
        "required": ["type", "title", "status", "code"],
    })
}

fn security_schemes() -> Value {
    json!({
        "client": {
            "type": "http",
            "scheme": "basic",
            "description": "Client authentication as registered (RFC 6749 §2.3.1); other methods use members of the \
                            body. In a browser the origin of a registered redirect URI takes its place.",
        },
        "bearer": { "type": "http", "scheme": "bearer", "description": "An access token of the account API." },
        "cookies": {
            "type": "apiKey",
            "in": "cookie",
            "name": "__Host-access-main-ISSUER",
            "description": "Set at sign-in with `cookies`. `ISSUER` stands for the first eight hexadecimal digits of the \
                            issuer's SHA-256; on a plain http localhost issuer there is no prefix. A refresh \
                            uses the cookie with `refresh` in place of `access`. What changes something needs \
                            `X-CSRF-Token` too.",
        },
    })
}
