//! RP-Initiated Logout 1.0.

use super::client::Client;
use super::redirect::Verified;
use crate::id::{ClientId, SessionId, UserId};
use crate::jose::Claims;

/// What a valid `id_token_hint` says. It may have expired (§2: "should be accepted").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The client that it was made for.
    pub client: ClientId,
    /// The user that it names.
    pub user: UserId,
    /// The session that it names.
    pub session: Option<SessionId>,
}

impl Hint {
    /// Reads the claims of an ID token whose signature and issuer were right.
    pub fn of(claims: &Claims) -> Option<Self> {
        Some(Hint {
            client: claims.sole_audience()?.into(),
            user: claims.subject()?.into(),
            session: claims.text("sid").map(SessionId::from),
        })
    }
}

/// A sign-out request, with the facts.
pub struct Ask<'a> {
    /// The hint, if it was valid.
    pub hint: Option<&'a Hint>,
    /// Whether a hint was sent at all.
    pub hint_sent: bool,
    /// Whether `client_id` was sent at all.
    pub client_sent: bool,
    /// `client_id`, or the hint's audience.
    pub client: Option<&'a Client>,
    /// Where to go afterwards.
    pub post_logout: Option<&'a str>,
    /// The browser's session: its id and its user.
    pub session: Option<(&'a SessionId, &'a UserId)>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask the user first (CS-02).
    Confirm(Option<Verified>),
    /// End the session and go.
    SignOut(Option<Verified>),
    /// Nobody is signed in: just go.
    Done(Option<Verified>),
}

impl<'a> Ask<'a> {
    /// Returns the hint, if it was made for the client that asks.
    fn vouched(&self) -> Option<&'a Hint> {
        self.hint.zip(self.client).filter(|(hint, client)| hint.client == client.id).map(|(hint, _)| hint)
    }
    /// Where the browser may go afterwards: a URI that the client registered, unless a hint was sent that is not the
    /// client's own (OR-05).
    pub fn destination(&self) -> Option<Verified> {
        let trusted = !self.hint_sent || self.vouched().is_some();
        Verified::after_logout(self.client.filter(|_| trusted)?, self.post_logout?)
    }
    /// Returns what of the request was not used and why, for the application's developer. The user is signed out or
    /// asked all the same (§4: only what depends on it is given up).
    pub fn unused(&self) -> Option<&'static str> {
        let faults = [
            (self.hint_sent && self.hint.is_none(), "id_token_hint is not an ID token of this server"),
            (
                self.hint_sent && self.vouched().is_none(),
                "id_token_hint is not an ID token of this client, or the client is disabled",
            ),
            (self.client_sent && self.client.is_none(), "client_id names no client, or one that is disabled"),
            (
                self.post_logout.is_some() && self.client.is_none(),
                "post_logout_redirect_uri needs id_token_hint or client_id",
            ),
            (self.post_logout.is_some() && self.destination().is_none(), "post_logout_redirect_uri is not registered"),
        ];
        faults.iter().find(|(wrong, _)| *wrong).map(|(_, sentence)| *sentence)
    }
}

/// Decides what to do. Without a valid hint that names this very session, the user is asked.
pub fn decide(ask: &Ask<'_>) -> Step {
    let (vouched, to) = (ask.vouched(), ask.destination());
    let Some((session, user)) = ask.session else {
        return Step::Done(to.filter(|_| vouched.is_some()));
    };
    let names_it = vouched.is_some_and(|hint| hint.user == *user && hint.session.as_ref() == Some(session));
    if names_it { Step::SignOut(to) } else { Step::Confirm(to) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::client::tests::confidential;

    #[test]
    fn or_05_and_cs_02() {
        let mut client = confidential("c1", "https://app.test/cb");
        client.post_logout_redirect_uris = vec!["https://app.test/bye".into()];
        let (session, user): (SessionId, UserId) = ("s1".into(), "u1".into());
        let hint = Hint { client: "c1".into(), user: "u1".into(), session: Some("s1".into()) };
        let ask = |hint, uri| {
            decide(&Ask {
                hint,
                hint_sent: hint.is_some(),
                client_sent: false,
                client: Some(&client),
                post_logout: Some(uri),
                session: Some((&session, &user)),
            })
        };
        assert!(matches!(ask(Some(&hint), "https://app.test/bye"), Step::SignOut(Some(_))));
        assert_eq!(ask(Some(&hint), "https://evil.test/"), Step::SignOut(None));
        assert!(matches!(ask(None, "https://app.test/bye"), Step::Confirm(Some(_))));
        assert_eq!(ask(None, "https://evil.test/"), Step::Confirm(None));
        let other = Hint { client: "c2".into(), ..hint.clone() };
        assert_eq!(ask(Some(&other), "https://app.test/bye"), Step::Confirm(None));
        let elsewhere = Hint { session: Some("s2".into()), ..hint.clone() };
        assert!(matches!(ask(Some(&elsewhere), "https://app.test/bye"), Step::Confirm(_)));
        // A hint without a session would end any session that this user ever has, and it does not expire.
        let nowhere = Hint { session: None, ..hint.clone() };
        assert!(matches!(ask(Some(&nowhere), "https://app.test/bye"), Step::Confirm(_)));
    }

    #[test]
    fn what_is_not_used_is_said() {
        let mut client = confidential("c1", "https://app.test/cb");
        client.post_logout_redirect_uris = vec!["https://app.test/bye".into()];
        let of = |client: &str| Hint { client: client.into(), user: "u1".into(), session: None };
        let (own, foreign) = (of("c1"), of("c2"));
        let unused = |hint_sent: bool, hint: Option<&Hint>, known: bool, post_logout| {
            let client = Some(&client).filter(|_| known);
            Ask { hint, hint_sent, client_sent: false, client, post_logout, session: None }.unused().unwrap_or("")
        };
        let (bye, other) = (Some("https://app.test/bye"), Some("https://app.test/other"));
        assert_eq!(unused(false, None, false, None), "");
        assert_eq!(unused(true, Some(&own), true, None), "");
        assert_eq!(unused(true, Some(&own), true, bye), "");
        assert_eq!(unused(false, None, true, bye), "");
        assert!(unused(true, Some(&own), true, other).contains("not registered"));
        assert!(unused(false, None, true, other).contains("not registered"));
        assert!(unused(false, None, false, bye).contains("needs id_token_hint"));
        assert!(unused(true, None, false, bye).contains("of this server"));
        assert!(unused(true, Some(&foreign), true, bye).contains("of this client"));
        assert!(unused(true, Some(&foreign), false, None).contains("of this client"));
        let nobody =
            Ask { hint: None, hint_sent: false, client_sent: true, client: None, post_logout: bye, session: None };
        assert!(nobody.unused().is_some_and(|why| why.contains("names no client")));
    }
}
