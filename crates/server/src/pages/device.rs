//! The device flow's pages (RFC 8628 §3.3): enter a code, see which application asks, decide.

use super::messages::Messages;
use super::moment::Moment;
use super::problem::Setback;
use rules::time::Time;

/// Why a user code was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceProblem {
    /// No device waits with that code: mistyped, used or expired.
    Unknown,
    /// Too many codes were tried.
    Throttled {
        /// Whole seconds to wait.
        seconds: i64,
    },
}

impl DeviceProblem {
    /// Returns the setback of the form.
    pub fn setback(self) -> Setback {
        match self {
            DeviceProblem::Unknown => Setback::Typed,
            DeviceProblem::Throttled { seconds } => Setback::Throttled { seconds },
        }
    }

    fn text(&self, t: &Messages) -> String {
        match self {
            DeviceProblem::Unknown => t.say("device.unknown").to_owned(),
            DeviceProblem::Throttled { seconds } => t.with_wait("problem.throttled", *seconds),
        }
    }
}

/// The form of `POST /device`: `csrf`, `user_code`.
#[derive(Clone, Copy, Debug)]
pub struct DeviceCodePage<'a> {
    /// The CSRF token.
    pub csrf: &'a str,
    /// The code as typed before, or from `verification_uri_complete`.
    pub user_code: &'a str,
    /// What was wrong with the last attempt.
    pub problem: Option<DeviceProblem>,
}

/// The form of `POST /device/confirm`: `csrf`, `user_code`, `shown`, and `decision`, which is `allow` or `deny`. Its "not
/// you?" posts `flow` and `choice=other` to `/login/choose`.
#[derive(Clone, Copy, Debug)]
pub struct DeviceConfirmPage<'a> {
    /// The login flow that leads back here with the same code, opaque.
    pub flow: &'a str,
    /// The CSRF token.
    pub csrf: &'a str,
    /// The code, to be compared with the one on the device.
    pub user_code: &'a str,
    /// The seal of what the page shows.
    pub shown: &'a str,
    /// The application's name.
    pub client: &'a str,
    /// The username of the account that is signed in.
    pub account: &'a str,
    /// The network address that the request came from.
    pub requester: &'a str,
    /// When the device asked.
    pub requested: Time,
    /// The present.
    pub now: Time,
    /// The scopes asked for, as the request has them.
    pub scopes: &'a [&'a str],
}

impl DeviceConfirmPage<'_> {
    fn when(&self) -> Moment {
        Moment { at: self.requested, now: self.now }
    }
}

/// How a device request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceOutcome {
    /// The device may go on.
    Approved,
    /// The device was refused.
    Denied,
    /// The code was too old.
    Expired,
    /// The code was used before, or does not exist.
    Invalid,
}

impl DeviceOutcome {
    const CODES: [(DeviceOutcome, &'static str); 4] = [
        (DeviceOutcome::Approved, "approved"),
        (DeviceOutcome::Denied, "denied"),
        (DeviceOutcome::Expired, "expired"),
        (DeviceOutcome::Invalid, "invalid"),
    ];

    /// Returns its word in a link.
    pub fn code(self) -> &'static str {
        Self::CODES.iter().find(|(outcome, _)| *outcome == self).map_or("", |(_, code)| code)
    }

    /// Returns the outcome of such a word.
    pub fn of_code(code: &str) -> Option<Self> {
        Self::CODES.iter().find(|(_, known)| *known == code).map(|(outcome, _)| *outcome)
    }
}

/// The page after the decision.
#[derive(Clone, Copy, Debug)]
pub struct DeviceResultPage<'a> {
    /// How it ended.
    pub outcome: DeviceOutcome,
    /// The application's name, if the code identified it.
    pub client: Option<&'a str>,
}

impl DeviceResultPage<'_> {
    fn key(&self) -> &'static str {
        match self.outcome {
            DeviceOutcome::Approved => "device.approved",
            DeviceOutcome::Denied => "device.denied",
            DeviceOutcome::Expired => "device.expired",
            DeviceOutcome::Invalid => "device.invalid",
        }
    }

    fn over(&self) -> bool {
        matches!(self.outcome, DeviceOutcome::Approved | DeviceOutcome::Denied)
    }
}

super::page!(DeviceCodePage<'_>, "device.html");
super::page!(DeviceConfirmPage<'_>, "device_confirm.html");
super::page!(DeviceResultPage<'_>, "device_result.html");
