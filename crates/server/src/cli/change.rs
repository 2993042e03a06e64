//! `client set`: changes the registration of an application.

use super::input::Input;
use super::one_of::OneOf;
use super::outcome::Failure;
use super::registration::{AccessToken, AccessTyp, Pkce, algs, distinct, grants, is_native, key_set, methods, scope};
use app::admin::Refused;
use clap::{Args, ValueHint};
use rules::jose::{Alg, JwkSet};
use rules::oauth::client::{AccessFormat, AuthMethod, Client, Grant};
use rules::oauth::scope::Scope;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A registered application, and what is to change about it.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Set {
    /// The client's id
    #[arg(allow_hyphen_values = true)]
    pub id: String,
    /// The changes.
    #[command(flatten)]
    pub edit: Edit,
}

/// The changes; everything else stays.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub struct Edit {
    /// The name that users see
    #[arg(long)]
    pub name: Option<String>,
    /// Redirect URIs that replace the current ones
    #[arg(long, value_name = "URI", num_args = 1.., conflicts_with_all = ["add_redirect_uri", "remove_redirect_uri"])]
    pub redirect_uri: Vec<String>,
    /// A redirect URI to add
    #[arg(long, value_name = "URI", num_args = 1..)]
    pub add_redirect_uri: Vec<String>,
    /// A redirect URI to remove
    #[arg(long, value_name = "URI", num_args = 1..)]
    pub remove_redirect_uri: Vec<String>,
    /// Post-logout URIs that replace the current ones
    #[arg(long, value_name = "URI", num_args = 1.., conflicts_with_all = ["add_post_logout_redirect_uri", "remove_post_logout_redirect_uri"])]
    pub post_logout_redirect_uri: Vec<String>,
    /// A URI to add, to which the browser may go after sign-out
    #[arg(long, value_name = "URI", num_args = 1..)]
    pub add_post_logout_redirect_uri: Vec<String>,
    /// A post-logout URI to remove
    #[arg(long, value_name = "URI", num_args = 1..)]
    pub remove_post_logout_redirect_uri: Vec<String>,
    /// Grants that replace the current ones
    #[arg(long, value_parser = grants(), hide_possible_values = true, num_args = 1.., conflicts_with_all = ["add_grant", "remove_grant"])]
    pub grant: Vec<Grant>,
    /// A grant to add
    #[arg(long, value_name = "GRANT", value_parser = grants(), hide_possible_values = true, num_args = 1..)]
    pub add_grant: Vec<Grant>,
    /// A grant to remove
    #[arg(long, value_name = "GRANT", value_parser = grants(), hide_possible_values = true, num_args = 1..)]
    pub remove_grant: Vec<Grant>,
    /// Scopes that replace the current ones
    #[arg(long, value_parser = scope, num_args = 1.., conflicts_with_all = ["add_scope", "remove_scope"])]
    pub scope: Vec<Scope>,
    /// A scope to add; may hold several, separated by spaces
    #[arg(long, value_name = "SCOPE", value_parser = scope, num_args = 1..)]
    pub add_scope: Vec<Scope>,
    /// A scope to remove
    #[arg(long, value_name = "SCOPE", value_parser = scope, num_args = 1..)]
    pub remove_scope: Vec<Scope>,
    /// Audiences that replace the current ones, of its access tokens or of the tokens that it may introspect
    #[arg(long, value_name = "URI", num_args = 1.., conflicts_with_all = ["add_resource", "remove_resource"])]
    pub resource: Vec<String>,
    /// An audience to add
    #[arg(long, value_name = "URI", num_args = 1..)]
    pub add_resource: Vec<String>,
    /// An audience to remove
    #[arg(long, value_name = "URI", num_args = 1..)]
    pub remove_resource: Vec<String>,
    /// Methods by which it may authenticate from now on: none, client_secret_basic, client_secret_post,
    /// private_key_jwt. A secret that is needed is generated and printed once; secret and keys no longer needed are
    /// removed
    #[arg(long, value_name = "METHOD", value_parser = methods(), hide_possible_values = true, num_args = 1..)]
    pub auth_method: Vec<AuthMethod>,
    /// File with public keys (RFC 7517) that replace its current ones
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub jwks: Option<PathBuf>,
    /// Whether it is a native application (RFC 8252)
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = yes_or_no(), hide_possible_values = true)]
    pub native: Option<bool>,
    /// Whether it must use PKCE; a public client always must
    #[arg(long, value_enum)]
    pub pkce: Option<Pkce>,
    /// The algorithm that signs its ID tokens: RS256, ES256 or EdDSA
    #[arg(long, value_name = "ALG", value_parser = algs(), hide_possible_values = true)]
    pub id_token_alg: Option<Alg>,
    /// The format of its access tokens
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub access_token: Option<AccessToken>,
    /// The algorithm that signs its access tokens: RS256, ES256 or EdDSA
    #[arg(long, value_name = "ALG", value_parser = algs(), hide_possible_values = true)]
    pub access_token_alg: Option<Alg>,
    /// The typ in the header of its access tokens
    #[arg(long, value_name = "TYP", value_enum)]
    pub access_token_typ: Option<AccessTyp>,
    /// Whether it is a resource server, which may introspect tokens issued for its resources
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = yes_or_no(), hide_possible_values = true)]
    pub resource_server: Option<bool>,
    /// Whether to skip the consent page
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = yes_or_no(), hide_possible_values = true)]
    pub trusted: Option<bool>,
    /// Whether it may use the account API with its own sign-in screens
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = yes_or_no(), hide_possible_values = true)]
    pub first_party: Option<bool>,
    /// Whether to put e-mail, profile and group claims into ID tokens too
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = yes_or_no(), hide_possible_values = true)]
    pub claims_in_id_token: Option<bool>,
    /// Whether to omit the ID token from refresh responses
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = yes_or_no(), hide_possible_values = true)]
    pub no_id_token_on_refresh: Option<bool>,
    /// Whether to also accept the token endpoint as the audience of its assertions
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = yes_or_no(), hide_possible_values = true)]
    pub assertion_aud_endpoint: Option<bool>,
    /// The keys, once they were read.
    #[arg(skip)]
    pub keys: Option<JwkSet>,
}

fn yes_or_no() -> OneOf<bool> {
    OneOf::new(["yes", "no"], |text| match text {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err("must be yes or no".to_owned()),
    })
}

/// A list that is replaced, or that gains and loses items.
struct List<'a, T> {
    instead: &'a [T],
    add: &'a [T],
    remove: &'a [T],
}

impl<T: Clone + PartialEq> List<'_, T> {
    /// Changes a list. An item to remove may be missing already, and an item to add may be there already.
    fn apply(&self, to: &mut Vec<T>) {
        if !self.instead.is_empty() {
            *to = distinct(self.instead);
        }
        to.retain(|item| !self.remove.contains(item));
        to.extend(self.add.iter().cloned());
        *to = distinct(to);
    }
}

impl Set {
    /// Reads the keys, if they were given.
    pub fn complete(&mut self, _: &mut Input) -> Result<(), Failure> {
        self.edit.keys = self.edit.jwks.as_deref().map(key_set).transpose()?;
        let says = |edit: &Edit| serde_json::to_value(edit).map_err(|error| Failure::Failed(error.to_string()));
        match says(&self.edit)? == says(&Edit::default())? {
            true => Err(Failure::Use("nothing to change was named; try: portiere client set --help".into())),
            false => Ok(()),
        }
    }
}

impl Edit {
    /// Returns whether redirect URIs that are registered may go.
    pub fn drops_redirect_uris(&self) -> bool {
        !self.redirect_uri.is_empty() || !self.remove_redirect_uri.is_empty()
    }

    /// Applies the changes to `client`.
    pub fn apply(&self, client: &mut Client) -> Result<(), Refused> {
        self.lists(client);
        self.scopes(client)?;
        let set = |to: &mut bool, said: Option<bool>| *to = said.unwrap_or(*to);
        set(&mut client.native, self.native);
        set(&mut client.pkce_optional, self.pkce.map(|pkce| pkce == Pkce::Optional));
        set(&mut client.access_typ_jwt, self.access_token_typ.map(|typ| typ == AccessTyp::Jwt));
        set(&mut client.resource_server, self.resource_server);
        set(&mut client.trusted, self.trusted);
        set(&mut client.first_party, self.first_party);
        set(&mut client.claims_in_id_token, self.claims_in_id_token);
        set(&mut client.no_id_token_on_refresh, self.no_id_token_on_refresh);
        set(&mut client.assertion_aud_endpoint, self.assertion_aud_endpoint);
        client.id_token_alg = self.id_token_alg.unwrap_or(client.id_token_alg);
        client.access_alg = self.access_token_alg.unwrap_or(client.access_alg);
        client.access_format = self.access_token.map_or(client.access_format, AccessFormat::from);
        if let Some(name) = &self.name {
            client.name.clone_from(name);
        }
        if !self.auth_method.is_empty() {
            client.auth_methods = distinct(&self.auth_method);
        }
        if let Some(keys) = &self.keys {
            if !client.auth_methods.contains(&AuthMethod::PrivateKeyJwt) {
                let why = "--jwks: the client does not authenticate with a key; add --auth-method private_key_jwt";
                return Err(Refused::new(why));
            }
            client.jwks = Some(keys.clone());
        }
        // As for `client add`.
        let new = self.redirect_uri.iter().chain(&self.add_redirect_uri);
        if self.native.is_none() && client.is_public() && new.into_iter().any(|uri| is_native(uri)) {
            client.native = true;
        }
        Ok(())
    }

    fn lists(&self, client: &mut Client) {
        let (add, remove) = (&self.add_redirect_uri, &self.remove_redirect_uri);
        List { instead: &self.redirect_uri, add, remove }.apply(&mut client.redirect_uris);
        let (add, remove) = (&self.add_post_logout_redirect_uri, &self.remove_post_logout_redirect_uri);
        let instead = &self.post_logout_redirect_uri;
        List { instead, add, remove }.apply(&mut client.post_logout_redirect_uris);
        let (add, remove) = (&self.add_resource, &self.remove_resource);
        List { instead: &self.resource, add, remove }.apply(&mut client.resources);
        let (add, remove) = (&self.add_grant, &self.remove_grant);
        List { instead: &self.grant, add, remove }.apply(&mut client.grants);
    }

    fn scopes(&self, client: &mut Client) -> Result<(), Refused> {
        let tokens = |scopes: &[Scope]| scopes.iter().flat_map(|scope| scope.tokens().to_vec()).collect::<Vec<_>>();
        let (instead, add, remove) = (tokens(&self.scope), tokens(&self.add_scope), tokens(&self.remove_scope));
        let mut all = client.scope.tokens().to_vec();
        List { instead: &instead, add: &add, remove: &remove }.apply(&mut all);
        client.scope = Scope::parse(&all.join(" ")).map_err(Refused::new)?;
        Ok(())
    }
}
