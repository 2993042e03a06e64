//! The account home: profile, password, sessions and applications.

use super::agent::recognize;
use super::messages::Messages;
use super::moment::Moment;
use super::problem::Problem;
use rules::time::Time;

/// `/account`, with the forms (each with `csrf`):
/// `POST /account/profile`: `name`, `given_name`, `family_name`, `email`, and each with `_shown`, its value when the
/// page was made; `session`;
/// `POST /account/password`: `current`, `new`;
/// `POST /account/sessions/revoke`: `id`; `POST /account/sessions/revoke-others`;
/// `POST /account/applications/revoke`: `client_id`; `POST /account/signout`.
#[derive(Clone, Copy, Debug)]
pub struct AccountPage<'a> {
    /// The CSRF token, bound to the session.
    pub csrf: &'a str,
    /// The session's id.
    pub session: &'a str,
    /// What was just done.
    pub notice: Option<Notice>,
    /// What was wrong with the form that was just sent.
    pub problems: &'a [Problem],
    /// The user.
    pub profile: Profile<'a>,
    /// The fields of the profile form: the current values, or what was typed and has to be corrected.
    pub fields: ProfileFields<'a>,
    /// The current values.
    pub shown: ProfileFields<'a>,
    /// The fewest characters of a password.
    pub minimum_password: usize,
    /// Live sessions, including this one.
    pub sessions: &'a [SessionRow<'a>],
    /// There are more sessions than these.
    pub more_sessions: bool,
    /// Other sessions can be ended only after another sign-in.
    pub sessions_kept: bool,
    /// Applications with access.
    pub applications: &'a [ApplicationRow<'a>],
    /// The present.
    pub now: Time,
}

/// The user of the page. Empty text means not given.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// The name to sign in with.
    pub username: &'a str,
    /// The display name.
    pub name: &'a str,
    /// The e-mail address.
    pub email: &'a str,
    /// The address has been proved to be the user's.
    pub email_verified: bool,
    /// And it can be changed only after another sign-in.
    pub email_kept: bool,
}

/// The fields of the profile form. Empty text means not given.
#[derive(Clone, Copy, Debug)]
pub struct ProfileFields<'a> {
    /// The display name.
    pub name: &'a str,
    /// The given name.
    pub given_name: &'a str,
    /// The family name.
    pub family_name: &'a str,
    /// The e-mail address.
    pub email: &'a str,
}

/// A browser that is signed in.
#[derive(Clone, Copy, Debug)]
pub struct SessionRow<'a> {
    /// The value that the form posts back.
    pub id: &'a str,
    /// The `User-Agent` header as it was received; shown as browser and system.
    pub agent: &'a str,
    /// The network address it signed in from.
    pub address: &'a str,
    /// When it signed in.
    pub signed_in: Time,
    /// When it was last seen.
    pub last_seen: Time,
    /// It is the session of this request.
    pub current: bool,
}

/// An application that may act for the user.
#[derive(Clone, Copy, Debug)]
pub struct ApplicationRow<'a> {
    /// The value that the form posts back.
    pub client_id: &'a str,
    /// The application's name.
    pub name: &'a str,
    /// The scopes granted.
    pub scopes: &'a [&'a str],
    /// When access was granted.
    pub since: Time,
}

/// What was just done; its code carries it over the redirect after a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The first account was made.
    Welcome,
    /// The profile was saved.
    ProfileSaved,
    /// The password was changed, and every other session ended.
    PasswordChanged,
    /// One session was ended.
    SessionEnded,
    /// Every other session was ended.
    OthersEnded,
    /// An application's access was removed.
    AccessRemoved,
}

impl Notice {
    /// All notices.
    pub const ALL: [Notice; 6] = [
        Notice::Welcome,
        Notice::ProfileSaved,
        Notice::PasswordChanged,
        Notice::SessionEnded,
        Notice::OthersEnded,
        Notice::AccessRemoved,
    ];

    /// Returns its code in a query, as in `/account?done=profile_saved&seal=…`.
    pub const fn code(self) -> &'static str {
        match self {
            Notice::Welcome => "welcome",
            Notice::ProfileSaved => "profile_saved",
            Notice::PasswordChanged => "password_changed",
            Notice::SessionEnded => "session_ended",
            Notice::OthersEnded => "others_ended",
            Notice::AccessRemoved => "access_removed",
        }
    }

    /// Returns the notice of a code; `None` if the code is unknown.
    pub fn of_code(code: &str) -> Option<Notice> {
        Notice::ALL.into_iter().find(|notice| notice.code() == code)
    }

    fn text(self, t: &Messages) -> &'static str {
        t.say(match self {
            Notice::Welcome => "notice.welcome",
            Notice::ProfileSaved => "notice.profile_saved",
            Notice::PasswordChanged => "notice.password_changed",
            Notice::SessionEnded => "notice.session_ended",
            Notice::OthersEnded => "notice.others_ended",
            Notice::AccessRemoved => "notice.access_removed",
        })
    }

    /// Returns whether the front page has the next step.
    fn is_welcome(self) -> bool {
        self == Notice::Welcome
    }

    /// Returns the part that fits into a page title, which is read out first: its first sentence.
    fn title(self, t: &Messages) -> &'static str {
        let text = self.text(t);
        text.split_inclusive(". ").next().unwrap_or(text).trim_end()
    }
}

impl AccountPage<'_> {
    fn seen(&self, at: &Time) -> Moment {
        Moment { at: *at, now: self.now }
    }

    fn others(&self) -> bool {
        self.more_sessions || self.sessions.iter().any(|session| !session.current)
    }
}

impl Profile<'_> {
    fn shown(&self) -> &str {
        if self.name.is_empty() { self.username } else { self.name }
    }
}

impl SessionRow<'_> {
    /// Returns "Firefox on Linux", as far as it is known.
    fn device(&self, t: &Messages) -> String {
        match recognize(self.agent) {
            (Some(browser), Some(system)) => {
                let text = t.with("session.device", "browser", browser);
                text.replacen("{system}", system, 1)
            }
            (Some(name), None) | (None, Some(name)) => name.to_owned(),
            (None, None) => t.say("session.unknown").to_owned(),
        }
    }
}

super::page!(AccountPage<'_>, "account.html");

#[cfg(test)]
mod tests {
    use super::super::Language;
    use super::*;

    #[test]
    fn a_notice_survives_the_redirect() {
        for notice in Notice::ALL {
            assert_eq!(Notice::of_code(notice.code()), Some(notice));
        }
        assert_eq!(Notice::of_code("<script>"), None);
    }

    /// Red where the title is the whole notice: one has three sentences, and titles end up in bookmarks.
    #[test]
    fn a_title_is_one_sentence_of_a_notice() {
        for language in [Language::English, Language::German, Language::Italian] {
            let t = Messages::of(language);
            for notice in Notice::ALL {
                let title = notice.title(t);
                assert!(!title.is_empty() && notice.text(t).starts_with(title) && !title.contains(". "), "{title}");
                assert!(title.chars().count() <= 70, "{title}");
            }
        }
    }
}
