//! The authorization request (RFC 6749 §4.1.1, OpenID Connect Core §3.1.2.1): read once, judged by a table of checks.

use super::claims::ClaimsRequest;
use super::client::{Client, Grant};
use super::error::{Code, Error};
use super::params::Params;
use super::redirect::{Mode, Response, Verified};
use super::resource;
use super::scope::Scope;
use crate::id::ClientId;
use crate::jose;
use crate::realm::Realm;
use crate::time::Span;

/// The longest `state` and `nonce` that are carried along.
pub(super) const ECHO_LIMIT: usize = 4096;

/// A request whose client, redirect URI and parameters are right.
#[derive(Clone, Debug)]
pub struct Request {
    /// The client that asks.
    pub client: ClientId,
    /// Where the answer goes.
    pub back: Back,
    /// The scope that is asked for, as far as the client may have it.
    pub scope: Scope,
    /// The resources that are asked for (RFC 8707).
    pub resources: Vec<String>,
    /// The nonce, echoed in the ID token byte for byte.
    pub nonce: Option<String>,
    /// The PKCE challenge (RFC 7636, S256).
    pub challenge: Option<String>,
    /// What the user must be asked.
    pub prompt: Prompt,
    /// How old a sign-in may be.
    pub max_age: Option<Span>,
    /// The user that the client expects, as the user would type the name.
    pub login_hint: Option<String>,
    /// The user that the client expects, as we told the client.
    pub id_token_hint: Option<String>,
    /// Single claims that were asked for.
    pub claims: ClaimsRequest,
    /// The redirect URI with which the code must be redeemed.
    pub redirect_uri: String,
}

/// Where and how an answer goes back to the client, `state` included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// The redirect URI.
    pub to: Verified,
    /// The response mode.
    pub mode: Mode,
    /// The `state`, as it was sent.
    pub state: Option<String>,
}

impl Back {
    /// Returns a response with those fields, `state` and `iss` (RFC 9207 §2).
    pub fn response(&self, issuer: &str, mut fields: Vec<(&'static str, String)>) -> Response {
        fields.extend(self.state.clone().map(|state| ("state", state)));
        fields.push(("iss", issuer.to_owned()));
        Response { to: self.to.clone(), mode: self.mode, fields }
    }
    /// Returns an error response (RFC 6749 §4.1.2.1).
    pub fn error(&self, issuer: &str, error: Error) -> Response {
        self.response(issuer, vec![("error", error.code.name().into()), ("error_description", error.why.into())])
    }
}

/// `prompt` (OpenID Connect Core §3.1.2.1, Initiating User Registration §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Show nothing.
    pub none: bool,
    /// Sign in again.
    pub login: bool,
    /// Be asked again what to share.
    pub consent: bool,
    /// Choose an account.
    pub select_account: bool,
    /// Make an account.
    pub create: bool,
}

impl Request {
    /// Returns what the user has to be asked for: the scope, and the scopes of single claims.
    pub fn asked(&self) -> Scope {
        self.claims.scopes().fold(self.scope.clone(), |asked, scope| asked.with(scope))
    }
}

/// Why a request cannot be followed, and who may be told.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The client or the redirect URI is not right: told on our own page, never by a redirect (RFC 9700 §4.11.2).
    Local(Error),
    /// Both are right: the client may be told, once the user is known (or at once with `prompt=none`).
    Client {
        /// The error.
        error: Error,
        /// Where to send it.
        back: Back,
        /// Whether `prompt=none` was asked for, so that nothing may be shown.
        silent: bool,
    },
}

/// The refusal of a client that nobody has registered, or that is disabled.
pub const UNKNOWN_CLIENT: Error = Error::request("no such client");
/// The refusal of a request that does not say where its answer goes.
pub const NO_REDIRECT: Error = Error::request("redirect_uri is missing");
/// The refusal of a place that is not registered.
pub const OTHER_REDIRECT: Error = Error::request("redirect_uri is not registered for this client");

/// Returns the client that a request names; the caller looks it up before [`read`].
pub fn client_id(params: &Params) -> Result<ClientId, Error> {
    params.need("client_id", "client_id is missing").map(ClientId::from)
}

/// Reads a request. `client` is the one found under its `client_id`.
pub fn read(params: &Params, client: Option<&Client>, realm: &Realm) -> Result<Request, Fault> {
    let client = client.filter(|client| !client.is_disabled()).ok_or(Fault::Local(UNKNOWN_CLIENT))?;
    if let Some(why) = client.refusal() {
        return Err(Fault::Local(Error::new(Code::UnauthorizedClient, why)));
    }
    let asked = params.get("redirect_uri").ok_or(Fault::Local(NO_REDIRECT))?;
    let to = Verified::accept(client, asked).ok_or(Fault::Local(OTHER_REDIRECT))?;
    // Whatever its length: RFC 6749 §4.1.2.1 wants it even in the answer that says that it is too long.
    let back = Back { to, mode: way_back(params), state: told(params, "state") };
    let silent = is_silent(params);
    let fault = |error| Fault::Client { error, back: back.clone(), silent };

    for check in CHECKS {
        check(params, client, realm).map_err(fault)?;
    }
    Ok(Request {
        client: client.id.clone(),
        scope: granted_scope(params, client).map_err(fault)?,
        resources: resource::asked(params, client, &realm.issuer).map_err(fault)?,
        nonce: params.get("nonce").map(str::to_owned),
        challenge: params.get("code_challenge").map(str::to_owned),
        prompt: prompt(params, realm).map_err(fault)?,
        max_age: max_age(params).map_err(fault)?,
        login_hint: params.get("login_hint").filter(|hint| hint.len() <= 320).map(str::to_owned),
        id_token_hint: params.get("id_token_hint").map(str::to_owned),
        claims: ClaimsRequest::read(params).map_err(fault)?.within(&client.scope),
        redirect_uri: asked.to_owned(),
        back,
    })
}

/// Returns how the client wants to be answered; if it does not say it in a way that is known, by a redirect.
fn way_back(params: &Params) -> Mode {
    told(params, "response_mode").and_then(|mode| Mode::parse(&mode)).unwrap_or(Mode::Query)
}

/// Returns a parameter, or what a request object has in its place (OpenID Connect Core §6.1). Nobody has verified that:
/// it shapes only the answer that refuses the object, which goes where any other answer to this client may go.
fn told(params: &Params, name: &str) -> Option<String> {
    let within = || params.get("request").and_then(|object| jose::claimed(object, name));
    params.get(name).map(str::to_owned).or_else(within)
}

type Check = fn(&Params, &Client, &Realm) -> Result<(), Error>;

/// Every check of an authorization request that needs nothing but the request, the client and the realm's settings.
const CHECKS: [Check; 6] = [response_type, response_mode, grant, unsupported, pkce, lengths];

/// RFC 6749 §3.1.1; RFC 9700 §2.1.2: the front channel carries only codes.
fn response_type(params: &Params, _: &Client, _: &Realm) -> Result<(), Error> {
    match params.get("response_type") {
        Some("code") => Ok(()),
        None => Err(Error::request("response_type is missing")),
        Some(_) => Err(Error::new(Code::UnsupportedResponseType, "response_type must be code")),
    }
}

fn response_mode(params: &Params, _: &Client, _: &Realm) -> Result<(), Error> {
    match params.get("response_mode").map(Mode::parse) {
        Some(None) => Err(Error::request("response_mode must be query, fragment or form_post")),
        _ => Ok(()),
    }
}

fn grant(_: &Params, client: &Client, _: &Realm) -> Result<(), Error> {
    match client.may(Grant::AuthorizationCode) {
        true => Ok(()),
        false => Err(Error::new(Code::UnauthorizedClient, "the client may not use authorization_code")),
    }
}

/// OpenID Connect Core §6: what is not implemented has errors of its own.
fn unsupported(params: &Params, _: &Client, _: &Realm) -> Result<(), Error> {
    if params.get("request").is_some() {
        return Err(Error::new(Code::RequestNotSupported, "request objects are not supported"));
    }
    if params.get("request_uri").is_some() {
        return Err(Error::new(Code::RequestUriNotSupported, "request_uri is not supported"));
    }
    match params.get("registration") {
        Some(_) => Err(Error::new(Code::RegistrationNotSupported, "registration is not supported")),
        None => Ok(()),
    }
}

/// RFC 7636 §4.3 with RFC 9700 §2.1.1: S256, and only S256.
fn pkce(params: &Params, client: &Client, realm: &Realm) -> Result<(), Error> {
    match (params.get("code_challenge"), params.get("code_challenge_method")) {
        (None, None) if client.may_leave_out_pkce(realm) => Ok(()),
        (None, _) => Err(Error::request("code_challenge is required")),
        (Some(_), Some("S256")) if params.get("code_challenge").is_some_and(is_sha256) => Ok(()),
        (Some(_), Some("S256")) => Err(Error::request("code_challenge must be a SHA-256 hash in base64url")),
        (Some(_), _) => Err(Error::request("code_challenge_method must be S256")),
    }
}

fn is_sha256(text: &str) -> bool {
    crate::secret::from_base64url(text).is_some_and(|bytes| bytes.len() == 32)
}

fn lengths(params: &Params, _: &Client, _: &Realm) -> Result<(), Error> {
    // A nonce is stored as JSON, in which a control character is six bytes.
    let stored = |nonce: &str| serde_json::to_string(nonce).map_or(usize::MAX, |text| text.len() - 2);
    if params.get("state").is_some_and(|state| state.len() > ECHO_LIMIT)
        || params.get("nonce").is_some_and(|nonce| stored(nonce) > ECHO_LIMIT)
    {
        return Err(Error::request("state and nonce are at most 4,096 bytes"));
    }
    // HTML writes each end of a line in its own way: `state` would not come back as it was sent (RFC 6749 §4.1.2).
    if way_back(params) == Mode::FormPost && params.get("state").is_some_and(|state| state.contains(['\r', '\n'])) {
        return Err(Error::request("with response_mode=form_post, state cannot contain line breaks"));
    }
    params.portable()
}

/// OpenID Connect Core §3.1.2.1: scopes that are not understood are ignored, as are those that the client may not
/// have. §11: `offline_access` means nothing without refresh tokens.
fn granted_scope(params: &Params, client: &Client) -> Result<Scope, Error> {
    let asked = match params.get("scope") {
        Some(text) => Scope::parse(text).map_err(|why| Error::new(Code::InvalidScope, why))?,
        None => return Err(Error::new(Code::InvalidScope, "scope is missing")),
    };
    let mut scope = asked.both(&client.scope);
    if !client.may(Grant::RefreshToken) {
        scope = scope.without("offline_access");
    }
    if scope.is_empty() {
        return Err(Error::new(Code::InvalidScope, "the client may have none of these scopes"));
    }
    Ok(scope)
}

/// Whether `prompt=none` was asked for.
pub fn is_silent(params: &Params) -> bool {
    params.get("prompt").is_some_and(|prompt| prompt.split(' ').any(|word| word == "none"))
}

/// OpenID Connect Core §3.1.2.1, and §4.1 of Initiating User Registration: what cannot be asked for is an error.
fn prompt(params: &Params, realm: &Realm) -> Result<Prompt, Error> {
    let mut prompt = Prompt::default();
    for word in params.get("prompt").unwrap_or("").split(' ').filter(|word| !word.is_empty()) {
        match word {
            "none" => prompt.none = true,
            "login" => prompt.login = true,
            "consent" => prompt.consent = true,
            "select_account" => prompt.select_account = true,
            "create" if realm.settings.signup => prompt.create = true,
            "create" => return Err(Error::request("prompt=create: nobody can sign up here")),
            _ => return Err(Error::request("prompt holds an unknown value")),
        }
    }
    if prompt.none && prompt != (Prompt { none: true, ..Prompt::default() }) {
        return Err(Error::request("prompt=none cannot be combined"));
    }
    Ok(prompt)
}

fn max_age(params: &Params) -> Result<Option<Span>, Error> {
    let Some(text) = params.get("max_age") else { return Ok(None) };
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Error::request("max_age must be a number of seconds"));
    }
    // However long, it is longer than any session.
    Ok(Some(Span::seconds(text.parse().unwrap_or(i64::MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::client::tests::{confidential, native};
    use crate::oauth::params::LONGEST;
    use crate::realm::Settings;
    use crate::secret::base64url;

    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn realm() -> Realm {
        Realm { id: "main".into(), issuer: "https://id.test".into(), settings: Settings::default() }
    }

    fn ask(client: &Client, changes: &[(&str, &str)]) -> Result<Request, Fault> {
        let mut pairs = vec![
            ("client_id", client.id.as_str()),
            ("redirect_uri", "https://app.test/cb"),
            ("response_type", "code"),
            ("scope", "openid email"),
            ("state", "xyz"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        for (name, value) in changes {
            pairs.retain(|(known, _)| known != name);
            if *value != "-" {
                pairs.push((name, value));
            }
        }
        let owned = pairs.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        read(&Params::parse(owned).expect("no duplicates"), Some(client), &realm())
    }

    fn code_of(result: Result<Request, Fault>) -> &'static str {
        match result {
            Ok(_) => "ok",
            Err(Fault::Local(_)) => "local",
            Err(Fault::Client { error, .. }) => error.code.name(),
        }
    }

    #[test]
    fn what_is_stored_with_a_code_is_limited_as_it_is_stored() {
        // Red where the nonce is measured before it is JSON: six bytes for one.
        let client = confidential("c1", "https://app.test/cb");
        for (nonce, said) in [
            ("n".repeat(ECHO_LIMIT), "ok"),
            ("n".repeat(ECHO_LIMIT + 1), "invalid_request"),
            ("\u{1}".repeat(ECHO_LIMIT / 6), "ok"),
            ("\u{1}".repeat(ECHO_LIMIT / 6 + 1), "invalid_request"),
        ] {
            assert_eq!(code_of(ask(&client, &[("nonce", &nonce)])), said, "{} bytes", nonce.len());
        }
    }

    #[test]
    fn what_would_not_come_back_as_it_was_sent_is_refused() {
        let client = confidential("c1", "https://app.test/cb");
        for (mode, said) in [("query", "ok"), ("fragment", "ok"), ("form_post", "invalid_request")] {
            assert_eq!(code_of(ask(&client, &[("state", "a\nb"), ("response_mode", mode)])), said, "{mode}");
            assert_eq!(code_of(ask(&client, &[("state", "a\tb \u{e9}"), ("response_mode", mode)])), "ok", "{mode}");
        }
    }

    #[test]
    fn oidc_core_3_1_2_1_a_max_age_has_no_upper_bound() {
        let client = confidential("c1", "https://app.test/cb");
        for age in ["0", "9999999999", "9007199254740991", "99999999999999999999999"] {
            let asked = ask(&client, &[("max_age", age)]).unwrap_or_else(|_| panic!("{age}"));
            assert!(asked.max_age.is_some_and(|age| age >= Span::ZERO), "{age}");
        }
        for wrong in ["-1", "+1", "1.5", "1e3", " 1", "ten"] {
            assert_eq!(code_of(ask(&client, &[("max_age", wrong)])), "invalid_request", "{wrong:?}");
        }
    }

    #[test]
    fn rfc6749_4_1_2_1_a_wrong_redirect_uri_is_never_answered_by_redirect() {
        let client = confidential("c1", "https://app.test/cb");
        for response_type in ["token", "id_token", "code token", "none", "code"] {
            let asked = ask(&client, &[("redirect_uri", "https://evil.test/cb"), ("response_type", response_type)]);
            assert_eq!(code_of(asked), "local");
        }
    }

    #[test]
    fn each_fault_has_its_own_code() {
        let client = confidential("c1", "https://app.test/cb");
        for (change, code) in [
            (("response_type", "token"), "unsupported_response_type"),
            (("response_type", "-"), "invalid_request"),
            (("response_mode", "web_message"), "invalid_request"),
            (("scope", "-"), "invalid_scope"),
            (("scope", "bogus"), "invalid_scope"),
            (("prompt", "none login"), "invalid_request"),
            (("prompt", "dance"), "invalid_request"),
            (("max_age", "-1"), "invalid_request"),
            (("max_age", "+1"), "invalid_request"),
            (("request", "x"), "request_not_supported"),
            (("request_uri", "https://x.test"), "request_uri_not_supported"),
            (("registration", "{}"), "registration_not_supported"),
            (("resource", "https://other.test"), "invalid_target"),
            (("claims", "[]"), "invalid_request"),
            (("code_challenge_method", "plain"), "invalid_request"),
            (("code_challenge_method", "s256"), "invalid_request"),
            (("code_challenge_method", "S256 "), "invalid_request"),
            (("code_challenge_method", "-"), "invalid_request"),
            (("code_challenge", "-"), "invalid_request"),
            (("code_challenge", "short"), "invalid_request"),
            (("unknown", &*"x".repeat(LONGEST)), "invalid_request"),
        ] {
            assert_eq!(code_of(ask(&client, &[change])), code, "{change:?}");
        }
        assert_eq!(code_of(ask(&client, &[("unknown", "ignored")])), "ok");
    }

    #[test]
    fn a_request_object_is_refused_in_the_way_that_only_it_names() {
        // Red where the way back is read from the outer parameters alone: an application that takes nothing but POST at
        // its address, as in the suite of the OpenID Foundation, would never hear of the refusal.
        let client = confidential("c1", "https://app.test/cb");
        let object = |claims: &str| format!("{}.{}.", base64url(br#"{"alg":"none"}"#), base64url(claims.as_bytes()));
        let refused = |object: &str, outer: &[(&str, &str)]| {
            let asked: Vec<_> =
                [("request", object), ("state", "-")].into_iter().chain(outer.iter().copied()).collect();
            match ask(&client, &asked) {
                Err(Fault::Client { error, back, .. }) if error.code == Code::RequestNotSupported => back,
                other => panic!("{other:?}"),
            }
        };
        let posted = object(r#"{"response_mode":"form_post","state":"s","redirect_uri":"https://evil.test/"}"#);
        let back = refused(&posted, &[]);
        assert_eq!((back.mode, back.state.as_deref()), (Mode::FormPost, Some("s")));
        assert_eq!(back.to.as_str(), "https://app.test/cb");
        let outer = refused(&posted, &[("response_mode", "fragment"), ("state", "o")]);
        assert_eq!((outer.mode, outer.state.as_deref()), (Mode::Fragment, Some("o")));
        for junk in ["x", "..", "e30.e30.", &object("{"), &object(r#"{"response_mode":["form_post"],"state":7}"#)] {
            let back = refused(junk, &[]);
            assert_eq!((back.mode, back.state), (Mode::Query, None), "{junk}");
        }
    }

    #[test]
    fn rfc7636_only_clients_that_prove_themselves_and_are_exempt_may_leave_pkce_out() {
        let without = [("code_challenge", "-"), ("code_challenge_method", "-")];
        let mut client = confidential("c1", "https://app.test/cb");
        assert_eq!(code_of(ask(&client, &without)), "invalid_request");
        client.pkce_optional = true;
        assert_eq!(code_of(ask(&client, &without)), "ok");
        let mut public = native("p1", "https://app.test/cb");
        public.pkce_optional = true;
        assert_eq!(code_of(ask(&public, &without)), "invalid_request");
        client.native = true;
        assert_eq!(code_of(ask(&client, &without)), "invalid_request", "RFC 8252 §8.5: every copy has its secret");
    }

    #[test]
    fn single_claims_need_the_scope_that_covers_them() {
        let mut client = confidential("c1", "https://app.test/cb");
        let wanted =
            [("claims", r#"{"userinfo":{"email":null,"groups":null},"id_token":{"phone_number":null,"iss":null}}"#)];
        let request = ask(&client, &wanted).expect("reads");
        assert_eq!(request.asked().to_string(), "openid email groups");
        assert!(request.claims.id_token.is_empty(), "the client has no phone scope");
        client.scope = Scope::parse("openid").expect("legal");
        assert!(ask(&client, &wanted).expect("reads").claims.userinfo.is_empty());
    }

    #[test]
    fn scopes_that_the_client_may_not_have_are_left_out() {
        let mut client = confidential("c1", "https://app.test/cb");
        client.grants = vec![Grant::AuthorizationCode];
        let request = ask(&client, &[("scope", "openid bogus offline_access")]).expect("reads");
        assert_eq!(request.scope.to_string(), "openid");
    }
}
