//! The account API as one table: doors check bodies against it, and the OpenAPI document is generated from it.

use super::input::{Field, Takes};
use super::problem::Kind;
use crate::admission::Pace;

/// One operation.
pub struct Operation {
    /// The HTTP method.
    pub method: &'static str,
    /// The path below the API's base.
    pub path: &'static str,
    /// The name in generated clients.
    pub id: &'static str,
    /// The kind of work.
    pub pace: Pace,
    /// One line about it.
    pub summary: &'static str,
    /// The whole description.
    pub about: &'static str,
    /// Who calls it, and has to prove what.
    pub caller: Caller,
    /// When its tokens are kept in cookies.
    pub cookies: Cookies,
    /// The members of its body. Without any, the body is an empty object, and a GET has none at all.
    pub fields: &'static [Field],
    /// The status and body of success.
    pub answer: (u16, Shape),
    /// Problems of its own, besides those that every operation of its kind can have.
    pub problems: &'static [Kind],
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A first-party client, by its page's origin or by client authentication.
    Client,
    /// An account, by an access token.
    Account,
}

/// When tokens are kept in cookies, and not by the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// If the body asks for it.
    Asked,
    /// If there is no refresh token in the body.
    NoToken,
    /// If there is no Authorization header.
    NoHeader,
}

/// Bodies of successful responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Tokens and the next step.
    SignedIn,
    /// Tokens.
    Tokens,
    /// The account's claims.
    Account,
    /// Nothing.
    Nothing,
}

/// The longest name or address that is examined: the rules report those that are too long for them.
const NAME: usize = 1024;
/// The longest password that is examined; none has more than 1,024 bytes.
const PASSWORD: usize = 4096;
/// The longest device token, as in a cookie.
const DEVICE: usize = 512;
/// The longest token, secret or assertion.
const TOKEN: usize = 16_384;

const fn text(name: &'static str, most: usize, about: &'static str) -> Field {
    Field { name, takes: Takes::Text(most), required: true, about }
}

const fn maybe(name: &'static str, most: usize, about: &'static str) -> Field {
    Field { name, takes: Takes::Text(most), required: false, about }
}

const CLIENT_ID: Field = maybe("client_id", NAME, "The client. May be left out with `client_secret_basic`.");
const CLIENT_SECRET: Field = maybe("client_secret", TOKEN, "For `client_secret_post`.");
const ASSERTION_TYPE: Field = maybe(
    "client_assertion_type",
    NAME,
    "For `private_key_jwt`: `urn:ietf:params:oauth:client-assertion-type:jwt-bearer`.",
);
const ASSERTION: Field = maybe("client_assertion", TOKEN, "For `private_key_jwt`.");
const DEVICE_TOKEN: Field = maybe(
    "device_token",
    DEVICE,
    "The newest `device_token` that this device was given: failures of strangers do not keep out whoever signed in on it \
     before. Not in cookie mode.",
);
const COOKIES: Field = Field {
    name: "cookies",
    takes: Takes::Flag,
    required: false,
    about: "Keep the tokens in HttpOnly cookies instead of the body. For pages on the issuer's own site.",
};

/// `POST /signup`.
pub const SIGN_UP: Operation = Operation {
    method: "POST",
    path: "/signup",
    id: "signUp",
    pace: Pace::Passwords,
    summary: "Make an account and sign in",
    about: "Only where the operator allows self sign-up. An address that is entered here is not verified, is no login \
            name and reserves nothing.",
    caller: Caller::Client,
    cookies: Cookies::Asked,
    fields: &[
        CLIENT_ID,
        text(
            "username",
            NAME,
            "1 to 64 visible characters with the letters of one alphabet (Japanese, Chinese and Korean may add Latin \
             ones), without white space and `@`, not beginning with a hyphen or a combining mark, and not of the form \
             of an account's id.",
        ),
        maybe("email", NAME, "An address."),
        text("password", PASSWORD, "At least 8 characters (the operator may ask for more), at most 1,024 bytes."),
        DEVICE_TOKEN,
        COOKIES,
        CLIENT_SECRET,
        ASSERTION_TYPE,
        ASSERTION,
    ],
    answer: (201, Shape::SignedIn),
    problems: &[Kind::SignupClosed, Kind::InvalidFields, Kind::Busy],
};

/// `POST /signin`.
pub const SIGN_IN: Operation = Operation {
    method: "POST",
    path: "/signin",
    id: "signIn",
    pace: Pace::Passwords,
    summary: "Sign in",
    about: "Begins a session and gives tokens for the account API of this client: their audience is the API itself, \
            their scope is `account`, and no other endpoint takes them.",
    caller: Caller::Client,
    cookies: Cookies::Asked,
    fields: &[
        CLIENT_ID,
        text("login", NAME, "A username or a verified address."),
        text("password", PASSWORD, "The password."),
        DEVICE_TOKEN,
        COOKIES,
        CLIENT_SECRET,
        ASSERTION_TYPE,
        ASSERTION,
    ],
    answer: (200, Shape::SignedIn),
    problems: &[Kind::WrongCredentials, Kind::TooManyAttempts, Kind::Busy],
};

/// `POST /refresh`.
pub const REFRESH: Operation = Operation {
    method: "POST",
    path: "/refresh",
    id: "refresh",
    pace: Pace::Tokens,
    summary: "Exchange a refresh token",
    about: "Every refresh token is used once: the answer holds its successor. An older one that is presented again ends \
            the sign-in. Without `refresh_token` in the body the cookies are used, and `X-CSRF-Token` is needed.",
    caller: Caller::Client,
    cookies: Cookies::NoToken,
    fields: &[
        CLIENT_ID,
        maybe("refresh_token", TOKEN, "The newest refresh token, where it is not in a cookie."),
        CLIENT_SECRET,
        ASSERTION_TYPE,
        ASSERTION,
    ],
    answer: (200, Shape::Tokens),
    problems: &[Kind::TokenRefused, Kind::CsrfRefused],
};

/// `POST /signout`.
pub const SIGN_OUT: Operation = Operation {
    method: "POST",
    path: "/signout",
    id: "signOut",
    pace: Pace::Pages,
    summary: "Sign out",
    about: "Ends the session, and with it every token that was issued in it. In cookie mode also where only the refresh \
            token is left. The body is an empty object.",
    caller: Caller::Account,
    cookies: Cookies::NoHeader,
    fields: &[],
    answer: (204, Shape::Nothing),
    problems: &[],
};

/// `PATCH /password`.
pub const CHANGE_PASSWORD: Operation = Operation {
    method: "PATCH",
    path: "/password",
    id: "changePassword",
    pace: Pace::Passwords,
    summary: "Change the password",
    about: "Every other session of the account ends, and every application has to ask again. This sign-in goes on with \
            the tokens in the answer; the old ones are dead.",
    caller: Caller::Account,
    cookies: Cookies::NoHeader,
    fields: &[
        text("current", PASSWORD, "The current password."),
        text("new", PASSWORD, "The new password, as at sign-up."),
        DEVICE_TOKEN,
    ],
    answer: (200, Shape::Tokens),
    problems: &[Kind::WrongPassword, Kind::InvalidFields, Kind::TooManyAttempts, Kind::Busy],
};

/// `GET /me`.
pub const ME: Operation = Operation {
    method: "GET",
    path: "/me",
    id: "me",
    pace: Pace::Tokens,
    summary: "Who is signed in",
    about: "The standard claims of the account (OpenID Connect Core §5.1), and the CSRF token where the tokens are in \
            cookies: also with `token-refused`, as long as they can be refreshed.",
    caller: Caller::Account,
    cookies: Cookies::NoHeader,
    fields: &[],
    answer: (200, Shape::Account),
    problems: &[],
};

/// All operations, in the order of the documentation.
pub const OPERATIONS: [&Operation; 6] = [&SIGN_UP, &SIGN_IN, &REFRESH, &SIGN_OUT, &CHANGE_PASSWORD, &ME];

impl Operation {
    /// Returns every problem that it can answer with.
    pub fn all_problems(&self) -> Vec<Kind> {
        let mut all = match self.caller {
            Caller::Client => vec![Kind::ClientRefused, Kind::OriginRefused],
            Caller::Account => vec![Kind::TokenRefused, Kind::OriginRefused],
        };
        // The host is checked first, and a body is read whether or not the operation has one.
        all.extend([Kind::Misdirected, Kind::MalformedRequest, Kind::BodyTooSlow, Kind::BodyTooLarge]);
        if self.method != "GET" {
            all.push(Kind::UnsupportedMediaType);
            all.extend((self.caller == Caller::Account).then_some(Kind::CsrfRefused));
        }
        all.extend(self.problems);
        let every = [Kind::TooManyAttempts, Kind::Busy, Kind::ServerError, Kind::Unavailable];
        all.extend(every.into_iter().filter(|kind| !self.problems.contains(kind)));
        all
    }
}
