//! Checks whom an ID token is for (OpenID Connect Core §3.1.3.7, 2, 3 and 11).

use super::jwt;
use serde::Deserialize;

/// The values that an ID token has to hold.
pub(super) struct Expected<'a> {
    pub issuer: &'a str,
    pub client: &'a str,
    /// The nonce of the request that the code answered.
    pub nonce: &'a str,
}

/// The claims that are checked; others are skipped.
#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Expected<'_> {
    /// Checks an ID token against these values, and says what is wrong. An encrypted one is accepted unread.
    pub(super) fn in_token(&self, token: Option<&str>) -> Result<(), &'static str> {
        let token = token.ok_or("200, but without an ID token")?;
        let claims: Claims = match jwt::Claims::of(token.as_bytes()) {
            jwt::Claims::Read(claims) => claims,
            jwt::Claims::Encrypted => return Ok(()),
            jwt::Claims::Unreadable => return Err("200, but the ID token cannot be read"),
        };
        let is_for = |client: &str| match &claims.aud {
            Audience::One(one) => one == client,
            Audience::Several(several) => several.iter().any(|one| one == client),
        };
        let faults = [
            (claims.iss != self.issuer, "200, but the ID token is of another issuer"),
            (!is_for(self.client), "200, but the ID token is for another client"),
            (claims.nonce.as_deref() != Some(self.nonce), "200, but the ID token has not the nonce of the request"),
        ];
        faults.into_iter().find(|(is_so, _)| *is_so).map_or(Ok(()), |(_, why)| Err(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

    fn judged(payload: &str) -> Result<(), &'static str> {
        let token = format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(payload));
        Expected { issuer: "http://localhost:1", client: "app", nonce: "n" }.in_token(Some(&token))
    }

    /// Red where ID tokens are not checked: any token, from any issuer for any client, counted as a successful sign-in.
    #[test]
    fn an_id_token_is_of_the_issuer_for_the_client_and_of_this_request() {
        let right = r#"{"iss":"http://localhost:1","aud":"app","nonce":"n","sub":"1","exp":1,"x":{"y":[]}}"#;
        assert_eq!(judged(right), Ok(()));
        assert_eq!(judged(&right.replace(r#""app""#, r#"["other","app"]"#)), Ok(()));
        for (from, to, expected) in [
            ("localhost:1", "localhost:1/", "of another issuer"),
            (r#""app""#, r#""apps""#, "for another client"),
            (r#""app""#, "[]", "for another client"),
            (r#""n""#, r#""m""#, "has not the nonce"),
            (r#","nonce":"n""#, "", "has not the nonce"),
            (r#""iss""#, r#""is""#, "cannot be read"),
            (r#""app""#, "1", "cannot be read"),
        ] {
            let why = judged(&right.replace(from, to)).unwrap_err();
            assert!(why.starts_with("200, but the ID token ") && why.contains(expected), "{to}: {why}");
        }
    }

    #[test]
    fn what_is_no_id_token_is_told_from_none() {
        let of = |token| Expected { issuer: "", client: "", nonce: "" }.in_token(token);
        assert_eq!(of(None), Err("200, but without an ID token"));
        for token in ["", "a", "a.b.c", "e30.e30.", "e30.*.x"] {
            assert_eq!(of(Some(token)), Err("200, but the ID token cannot be read"), "{token}");
        }
        assert_eq!(of(Some("header.key.iv.text.tag")), Ok(()), "nobody but the client reads that");
    }
}
