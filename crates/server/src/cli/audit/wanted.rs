//! Selects lines of the audit log.

use super::super::one_of::OneOf;
use super::super::outcome::Failure;
use app::App;
use app::audit::Filter;
use app::clock::Clock;
use clap::Args;
use rules::events::Kind;
use rules::utc::iso;
use rules::{Span, Time, utc};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Which lines are wanted: all conditions have to hold.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub struct Wanted {
    /// Only events of this kind, such as signin.failed; several may be separated by commas, or given one by one
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kinds(), hide_possible_values = true)]
    pub kind: Vec<String>,
    /// Only events about this user: name, e-mail address or id
    #[arg(long, value_name = "USER", allow_hyphen_values = true)]
    pub user: Option<String>,
    /// Only events through this application
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub client: Option<String>,
    /// Only events in this session
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub session: Option<String>,
    /// Only events from this address
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Only events in this request, by the x-request-id of its response
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub request: Option<String>,
    /// Only events from this time on: 2h, 7d, 2030-01-31 or 2030-01-31T12:00 (UTC)
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only events before this time
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Only events that were done, or that were refused
    #[arg(long, value_parser = ["done", "refused"])]
    pub outcome: Option<String>,
    /// The filter that the arguments stand for.
    #[arg(skip)]
    pub filter: Filter,
}

/// Accepts any text: [`Wanted::complete`] refuses unknown kinds, and names those that exist.
fn kinds() -> OneOf<String> {
    OneOf::new(Kind::ALL.iter().map(|kind| kind.name()), |name| Ok(name.to_owned()))
}

impl Wanted {
    /// Reads kinds and times.
    pub fn complete(&mut self) -> Result<(), Failure> {
        if let Some(unknown) = self.kind.iter().find(|name| Kind::named(name).is_none()) {
            let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            return Err(Failure::Use(format!("--kind: unknown kind {unknown:?}; the kinds are {}", known.join(", "))));
        }
        let now = Clock::system().now();
        let read = |flag: &str, text: &Option<String>| text.as_deref().map(|text| instant(flag, text, now)).transpose();
        self.filter = Filter {
            kinds: self.kind.clone(),
            user: self.user.clone(),
            client: self.client.clone(),
            session: self.session.clone(),
            address: self.address.as_deref().map(address).transpose()?,
            request: self.request.clone(),
            since: read("--since", &self.since)?,
            until: read("--until", &self.until)?,
            outcome: self.outcome.clone(),
        };
        match (self.filter.since, self.filter.until) {
            (Some(since), Some(until)) if since >= until => Err(Failure::Use(format!(
                "--since {} is not before --until {}: nothing is between",
                iso(since),
                iso(until)
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the filter, with the user's ID instead of the name, and what may have been meant otherwise. A user or an
    /// application that was removed is known by its ID alone.
    pub async fn filter(&self, app: &App) -> Result<(Filter, Vec<String>), Failure> {
        let (mut filter, mut notes) = (self.filter.clone(), Vec::new());
        if let Some(name) = &self.user {
            match app.find_user(name).await?? {
                Some(user) => filter.user = Some(user.id.0),
                None => notes.push(format!("no user is called {name}: taken as the id of a removed user")),
            }
        }
        if let Some(id) = &self.client
            && app.find_client(&id.as_str().into()).await?.is_none()
        {
            notes.push(format!("no client has the id {id}: lines can only be those of a removed client"));
        }
        Ok((filter, notes))
    }
}

/// Returns an address in the form that lines have.
fn address(text: &str) -> Result<String, Failure> {
    let wrong = |_| Failure::Use(format!("--address: {text:?} is no IP address such as 192.0.2.1 or 2001:db8::1"));
    text.parse::<IpAddr>().map(|address| address.to_canonical().to_string()).map_err(wrong)
}

/// Parses a time as people write it.
pub fn instant(flag: &str, text: &str, now: Time) -> Result<Time, Failure> {
    moment(text, now).ok_or_else(|| {
        Failure::Use(format!(
            "{flag}: {text:?} is neither a time ago such as 30m, 2h or 7d nor a moment such as 2030-01-31 or \
             2030-01-31T12:00"
        ))
    })
}

/// Parses a span before `now`, or a time.
fn moment(text: &str, now: Time) -> Option<Time> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];
    for (unit, seconds) in units {
        let number = text.strip_suffix(unit).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        if let Some(number) = number.and_then(|number| number.parse::<i64>().ok()) {
            return Some(now - Span::seconds(number.saturating_mul(seconds)));
        }
    }
    utc::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_relative_or_of_the_calendar() {
        let now = Time::from_seconds(1_000_000);
        for (text, seconds) in [
            ("90s", Some(999_910)),
            ("2h", Some(992_800)),
            ("1w", Some(395_200)),
            ("1970-01-02", Some(86_400)),
            ("", None),
            ("h", None),
            ("-1h", None),
            ("1y", None),
            ("yesterday", None),
        ] {
            assert_eq!(moment(text, now).map(Time::seconds), seconds, "{text}");
        }
    }

    #[test]
    fn what_can_match_nothing_is_wrong_use() {
        let now = "2030-01-31T12:00".to_owned();
        for (wanted, why) in [
            (Wanted { address: Some("localhost".into()), ..Wanted::default() }, "--address"),
            (Wanted { address: Some("192.0.2.0/24".into()), ..Wanted::default() }, "--address"),
            (Wanted { since: Some("1h".into()), until: Some("2h".into()), ..Wanted::default() }, "nothing is between"),
            (Wanted { since: Some(now.clone()), until: Some(now.clone()), ..Wanted::default() }, "nothing is between"),
        ] {
            let told = wanted.clone().complete().unwrap_err();
            assert!(matches!(&told, Failure::Use(line) if line.contains(why)), "{wanted:?}: {told:?}");
        }
        let mut mapped = Wanted { address: Some("::FFFF:192.0.2.1".into()), ..Wanted::default() };
        mapped.complete().unwrap();
        assert_eq!(mapped.filter.address.as_deref(), Some("192.0.2.1"));
    }
}
