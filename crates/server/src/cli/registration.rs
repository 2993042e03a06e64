//! `client add`: the arguments, completed with the defaults.

use super::client::short;
use super::input::{self, Input, Wanted};
use super::one_of::OneOf;
use super::outcome::Failure;
use crate::named_file;
use app::admin::clients::ClientSecret;
use app::keyring::ALGS;
use clap::{Args, ValueEnum, ValueHint};
use rules::id::ClientId;
use rules::jose::{Alg, JwkSet};
use rules::oauth::client::{AccessFormat, AuthMethod, Client, Grant};
use rules::oauth::scope::{STANDARD, Scope};
use rules::{Secret, Time};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A new application.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Add {
    /// The client_id
    #[arg(long)]
    pub id: String,
    /// The name that users see [default: its id]
    #[arg(long)]
    pub name: Option<String>,
    /// URI to which authorization responses may go; compared byte for byte, except for the port of a native client's
    /// loopback URI
    #[arg(long, value_name = "URI", num_args = 1..)]
    pub redirect_uri: Vec<String>,
    /// URI to which the browser may go after sign-out
    #[arg(long, value_name = "URI", num_args = 1..)]
    pub post_logout_redirect_uri: Vec<String>,
    /// A public client: it cannot keep a secret
    #[arg(long, conflicts_with_all = ["secret_stdin", "jwks"])]
    pub public: bool,
    /// Read the client's secret from standard input instead of generating it
    #[arg(long)]
    pub secret_stdin: bool,
    /// A grant that it may use: authorization_code, refresh_token, client_credentials, device_code, or a grant's URN
    /// [default: authorization_code and refresh_token; none for a resource server without redirect URIs]
    #[arg(long, value_parser = grants(), hide_possible_values = true, num_args = 1..)]
    pub grant: Vec<Grant>,
    /// A scope that it may request, and no others; may hold several, separated by spaces [default: the standard ones
    /// for a client that signs people in]
    #[arg(long, value_parser = scope, num_args = 1..)]
    pub scope: Vec<Scope>,
    /// A method by which it may authenticate: none, client_secret_basic, client_secret_post, private_key_jwt [default:
    /// basic and post; private_key_jwt with --jwks; none with --public]
    #[arg(long, value_name = "METHOD", value_parser = methods(), hide_possible_values = true, num_args = 1..)]
    pub auth_method: Vec<AuthMethod>,
    /// File with its public keys (RFC 7517), for private_key_jwt
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub jwks: Option<PathBuf>,
    /// A native application (RFC 8252): private-scheme redirect URIs and any port on loopback ones [default: for a public
    /// client with such a URI]
    #[arg(long)]
    pub native: bool,
    /// Whether it must use PKCE; a public client always must
    #[arg(long, value_enum, default_value_t = Pkce::Required)]
    pub pkce: Pkce,
    /// The algorithm that signs its ID tokens: RS256, ES256 or EdDSA
    #[arg(long, value_name = "ALG", default_value = "RS256", value_parser = algs(), hide_possible_values = true)]
    pub id_token_alg: Alg,
    /// The format of its access tokens
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = AccessToken::Jwt)]
    pub access_token: AccessToken,
    /// The algorithm that signs its access tokens: RS256, ES256 or EdDSA
    #[arg(long, value_name = "ALG", default_value = "ES256", value_parser = algs(), hide_possible_values = true)]
    pub access_token_alg: Alg,
    /// The typ in the header of its access tokens; JWT is for resource servers that do not know at+jwt
    #[arg(long, value_name = "TYP", value_enum, default_value_t = AccessTyp::AtJwt)]
    pub access_token_typ: AccessTyp,
    /// An audience of its access tokens or, for a resource server, of the tokens that it may introspect [default: the
    /// issuer]
    #[arg(long, value_name = "URI", num_args = 1..)]
    pub resource: Vec<String>,
    /// A resource server: it may introspect tokens issued for its resources
    #[arg(long)]
    pub resource_server: bool,
    /// Skip the consent page
    #[arg(long)]
    pub trusted: bool,
    /// Let it use the account API with its own sign-in screens
    #[arg(long)]
    pub first_party: bool,
    /// Put e-mail, profile and group claims into ID tokens too, not only into userinfo
    #[arg(long)]
    pub claims_in_id_token: bool,
    /// Omit the ID token from refresh responses
    #[arg(long)]
    pub no_id_token_on_refresh: bool,
    /// Also accept the token endpoint as the audience of its assertions (private_key_jwt)
    #[arg(long)]
    pub assertion_aud_endpoint: bool,
    /// If a client with that id exists, change nothing and exit with 0, whatever its registration; its secret is not
    /// shown
    #[arg(long)]
    #[serde(default)]
    pub if_absent: bool,
    /// The secret, once it was read.
    #[arg(skip)]
    #[serde(with = "input")]
    pub secret: Option<Secret>,
    /// The keys, once they were read.
    #[arg(skip)]
    pub keys: Option<JwkSet>,
}

/// Whether PKCE is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Pkce {
    /// Always
    Required,
    /// Left to the client
    Optional,
}

/// The format of access tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum AccessToken {
    /// Signed, so that anyone can check it (RFC 9068)
    Jwt,
    /// A random value that only introspection explains
    Opaque,
}

impl From<AccessToken> for AccessFormat {
    fn from(format: AccessToken) -> Self {
        match format {
            AccessToken::Jwt => AccessFormat::Jwt,
            AccessToken::Opaque => AccessFormat::Opaque,
        }
    }
}

/// The typ of signed access tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum AccessTyp {
    /// As in RFC 9068
    #[value(name = "at+jwt")]
    AtJwt,
    /// As older libraries expect
    #[value(name = "JWT")]
    Jwt,
}

pub(super) fn grants() -> OneOf<Grant> {
    OneOf::new(Grant::ALL.iter().map(|grant| short(*grant)), grant)
}

pub(super) fn methods() -> OneOf<AuthMethod> {
    OneOf::new(AuthMethod::ALL.iter().map(|method| method.name()), method)
}

pub(super) fn algs() -> OneOf<Alg> {
    OneOf::new(ALGS.iter().map(|alg| alg.name()), alg)
}

fn grant(name: &str) -> Result<Grant, String> {
    let known = Grant::parse(name).or_else(|| Grant::ALL.iter().copied().find(|grant| short(*grant) == name));
    let names: Vec<_> = Grant::ALL.iter().map(|grant| short(*grant)).collect();
    known.ok_or_else(|| format!("must be one of {}, or a grant's URN", names.join(", ")))
}

pub(super) fn scope(text: &str) -> Result<Scope, &'static str> {
    let scope = Scope::parse(text)?;
    if scope.is_empty() { Err("it is empty") } else { Ok(scope) }
}

fn method(name: &str) -> Result<AuthMethod, String> {
    let names: Vec<_> = AuthMethod::ALL.iter().map(|method| method.name()).collect();
    AuthMethod::parse(name).ok_or_else(|| format!("must be one of {}", names.join(", ")))
}

fn alg(name: &str) -> Result<Alg, String> {
    let names: Vec<_> = ALGS.iter().map(|alg| alg.name()).collect();
    Alg::parse(name).filter(|alg| ALGS.contains(alg)).ok_or_else(|| format!("must be one of {}", names.join(", ")))
}

impl Add {
    /// Reads the secret and the keys, if they were given, and refuses contradictions.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        if let Some(file) = &self.jwks {
            self.keys = Some(key_set(file)?);
        }
        let methods = self.auth_methods();
        if self.public && methods != [AuthMethod::None] {
            return Err(Failure::Use("--public: the only authentication method of a public client is none".into()));
        }
        if self.jwks.is_some() && !methods.contains(&AuthMethod::PrivateKeyJwt) {
            return Err(Failure::Use("--jwks: the client does not authenticate with a key".into()));
        }
        if self.secret_stdin && !by_secret(&methods) {
            return Err(Failure::Use("--secret-stdin: the client does not authenticate with a secret".into()));
        }
        if self.secret_stdin {
            let wanted = Wanted { what: "client secret", flag: "--secret-stdin", given: true };
            self.secret = Some(input.secret(wanted)?);
        }
        Ok(())
    }

    /// Returns whether a secret is to be given and was not read: it is asked for only if the client does not exist.
    pub fn only_looks(&self) -> bool {
        self.if_absent && self.secret_stdin && self.secret.is_none()
    }

    /// Returns whether a secret is made for it.
    pub fn generates_secret(&self) -> bool {
        by_secret(&self.auth_methods()) && !self.secret_stdin
    }

    /// Returns the application, and where its secret comes from.
    pub fn client(self) -> (Client, ClientSecret) {
        let auth_methods = self.auth_methods();
        let secret = match (by_secret(&auth_methods), self.secret.clone()) {
            (false, _) => ClientSecret::Nothing,
            (true, None) => ClientSecret::Generated,
            (true, Some(given)) => ClientSecret::Given(given),
        };
        let client = Client {
            name: self.name.clone().unwrap_or_else(|| self.id.clone()),
            secret: None,
            grants: self.grants(),
            scope: self.scope(),
            native: self.native
                || (auth_methods == [AuthMethod::None] && self.redirect_uri.iter().any(|uri| is_native(uri))),
            auth_methods,
            id: ClientId(self.id),
            redirect_uris: distinct(&self.redirect_uri),
            post_logout_redirect_uris: distinct(&self.post_logout_redirect_uri),
            jwks: self.keys,
            pkce_optional: self.pkce == Pkce::Optional,
            id_token_alg: self.id_token_alg,
            access_format: self.access_token.into(),
            access_alg: self.access_token_alg,
            access_typ_jwt: self.access_token_typ == AccessTyp::Jwt,
            resources: distinct(&self.resource),
            resource_server: self.resource_server,
            trusted: self.trusted,
            first_party: self.first_party,
            claims_in_id_token: self.claims_in_id_token,
            no_id_token_on_refresh: self.no_id_token_on_refresh,
            assertion_aud_endpoint: self.assertion_aud_endpoint,
            revived_at: None,
            life: None,
            epoch: 0,
            disabled_at: None,
            created: Time(0),
            later: Default::default(),
            unknown: Default::default(),
        };
        (client, secret)
    }

    fn auth_methods(&self) -> Vec<AuthMethod> {
        match (&self.auth_method[..], self.public, &self.jwks) {
            ([], true, _) => vec![AuthMethod::None],
            ([], false, Some(_)) => vec![AuthMethod::PrivateKeyJwt],
            ([], false, None) => vec![AuthMethod::Basic, AuthMethod::Post],
            (given, ..) => distinct(given),
        }
    }

    fn grants(&self) -> Vec<Grant> {
        match &self.grant[..] {
            [] if self.resource_server && self.redirect_uri.is_empty() => Vec::new(),
            [] => vec![Grant::AuthorizationCode, Grant::RefreshToken],
            given => distinct(given),
        }
    }

    /// Returns the scopes. The standard ones are about a person: for a client without users they mean nothing.
    fn scope(&self) -> Scope {
        if !self.scope.is_empty() {
            return self.scope.iter().fold(Scope::default(), |all, more| all.either(more));
        }
        let people = |grant: &Grant| matches!(grant, Grant::AuthorizationCode | Grant::DeviceCode);
        match self.grants().iter().any(people) {
            true => Scope::parse(&STANDARD.join(" ")).unwrap_or_default(),
            false => Scope::default(),
        }
    }
}

/// Reads the public keys in a file (RFC 7517 §5).
pub(super) fn key_set(file: &Path) -> Result<JwkSet, Failure> {
    let wrong = |why: String| Failure::Use(format!("--jwks {}: {why}", file.display()));
    let text = named_file::text(file).map_err(|error| wrong(error.to_string()))?;
    // Some editors begin the files that they save with this mark.
    let text = text.trim_start_matches('\u{feff}');
    JwkSet::parse(text.as_bytes()).map_err(|error| wrong(error.why().to_owned()))
}

pub(super) fn by_secret(methods: &[AuthMethod]) -> bool {
    methods.iter().any(|method| matches!(method, AuthMethod::Basic | AuthMethod::Post))
}

/// Returns each item once.
pub(super) fn distinct<T: Clone + PartialEq>(given: &[T]) -> Vec<T> {
    let first = |(at, item): (usize, &T)| (!given[..at].contains(item)).then(|| item.clone());
    given.iter().enumerate().filter_map(first).collect()
}

/// Returns whether a URI is native, RFC 8252 §7.1 and §7.3: a private scheme, or the loopback interface.
pub(super) fn is_native(uri: &str) -> bool {
    let Some(rest) = uri.strip_prefix("http://") else { return !uri.starts_with("https://") };
    let host = rest.split(['/', '?']).next().unwrap_or("");
    let is = |name: &str| host.strip_prefix(name).is_some_and(|port| port.is_empty() || port.starts_with(':'));
    is("127.0.0.1") || is("[::1]") || is("localhost")
}
