//! Protocol errors: a code of the specification and a sentence of our own. Nothing of the request is echoed.

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Error codes of RFC 6749, RFC 6750, RFC 8628, RFC 8707, RFC 7009 and OpenID Connect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[$doc])* $variant),+ }
        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$variant),+];
            /// The code as it appears on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),+ }
            }
        }
    };
}

codes! {
    /// RFC 6749 §4.1.2.1.
    InvalidRequest = "invalid_request",
    /// RFC 6749 §5.2.
    InvalidClient = "invalid_client",
    /// RFC 6749 §5.2.
    InvalidGrant = "invalid_grant",
    /// RFC 6749 §5.2.
    UnauthorizedClient = "unauthorized_client",
    /// RFC 6749 §5.2.
    UnsupportedGrantType = "unsupported_grant_type",
    /// RFC 6749 §5.2.
    InvalidScope = "invalid_scope",
    /// RFC 8707 §2.
    InvalidTarget = "invalid_target",
    /// RFC 6749 §4.1.2.1.
    AccessDenied = "access_denied",
    /// RFC 6749 §4.1.2.1.
    UnsupportedResponseType = "unsupported_response_type",
    /// RFC 6749 §4.1.2.1.
    ServerError = "server_error",
    /// RFC 6749 §4.1.2.1.
    TemporarilyUnavailable = "temporarily_unavailable",
    /// OpenID Connect Core §3.1.2.6.
    LoginRequired = "login_required",
    /// OpenID Connect Core §3.1.2.6.
    ConsentRequired = "consent_required",
    /// OpenID Connect Core §3.1.2.6.
    InteractionRequired = "interaction_required",
    /// OpenID Connect Core §3.1.2.6.
    AccountSelectionRequired = "account_selection_required",
    /// OpenID Connect Core §3.1.2.6.
    RequestNotSupported = "request_not_supported",
    /// OpenID Connect Core §3.1.2.6.
    RequestUriNotSupported = "request_uri_not_supported",
    /// OpenID Connect Core §3.1.2.6.
    RegistrationNotSupported = "registration_not_supported",
    /// OpenID Connect Unmet Authentication Requirements §2.
    UnmetAuthenticationRequirements = "unmet_authentication_requirements",
    /// RFC 6750 §3.1.
    InvalidToken = "invalid_token",
    /// RFC 6750 §3.1.
    InsufficientScope = "insufficient_scope",
    /// RFC 8628 §3.5.
    AuthorizationPending = "authorization_pending",
    /// RFC 8628 §3.5.
    SlowDown = "slow_down",
    /// RFC 8628 §3.5.
    ExpiredToken = "expired_token",
    /// RFC 7009 §2.2.1.
    UnsupportedTokenType = "unsupported_token_type",
}

/// A refusal: which kind, and why in one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The specification's code for it.
    pub code: Code,
    /// Our sentence, for developers (`error_description`).
    pub why: &'static str,
}

impl Error {
    /// Returns an error with that code.
    pub const fn new(code: Code, why: &'static str) -> Self {
        Error { code, why }
    }
    /// RFC 6749 §5.2 `invalid_request`.
    pub const fn request(why: &'static str) -> Self {
        Error::new(Code::InvalidRequest, why)
    }
    /// RFC 6749 §5.2 `invalid_grant`.
    pub const fn grant(why: &'static str) -> Self {
        Error::new(Code::InvalidGrant, why)
    }
    /// RFC 6749 §5.2 `invalid_client`.
    pub const fn client(why: &'static str) -> Self {
        Error::new(Code::InvalidClient, why)
    }
    /// RFC 6750 §3.1 `invalid_token`.
    pub const fn token(why: &'static str) -> Self {
        Error::new(Code::InvalidToken, why)
    }
}
