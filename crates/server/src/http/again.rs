//! A form that cannot be processed now: its sender is told when to come back, and gets it with what was typed, except
//! passwords. The database is not asked for that, since it may be what is busy, and a refusal has to stay cheap.

use super::door::Door;
use super::error::Refusal;
use super::extract;
use super::reply::{self, Forms};
use crate::pages::{BusyPage, Retry, Setback, ThrottledPage};
use app::authorize::SignIn;
use app::flow::{Flow, Place, Sealed, To};
use axum::response::Response;
use rules::oauth::authorize;
use rules::oauth::params::Params;

/// Shows a form again; `None` if what was sent is no form that a page of ours began.
pub type Again = fn(&Door, &Params, Setback) -> Option<Response>;

/// The hidden fields that forms without a page of their own for this carry along. No password is among them.
const KEPT: [&str; 18] = [
    "flow",
    "csrf",
    "choice",
    "decision",
    "shown",
    "user_code",
    "id",
    "session",
    "client_id",
    "name",
    "given_name",
    "family_name",
    "email",
    "name_shown",
    "given_name_shown",
    "family_name_shown",
    "email_shown",
    // For password managers: the server does not read it.
    "username",
];

/// One button sends the same form again.
pub fn same(door: &Door, sent: &Params, setback: Setback) -> Option<Response> {
    door.later(sent, setback, None)
}

/// Likewise, with the current and the new password typed again.
pub fn same_passwords(door: &Door, sent: &Params, setback: Setback) -> Option<Response> {
    door.later(sent, setback, Some(door.site.app.realm.settings.password_min))
}

impl Door {
    /// Shows a form again if its refusal says when to come back. A form from another site's page is not shown: sent
    /// again, it would come from ours (CS-01).
    pub fn once_more(&self, again: Again, refusal: &Refusal) -> Option<Response> {
        let setback = refusal.setback(&self.site)?;
        extract::own_form(&self.site, &self.headers).ok()?;
        let mut response = again(self, self.sent()?, setback)?;
        refusal.tell_on(&mut response, &self.site, &self.visit);
        Some(response)
    }

    /// Returns the flow that a form carries on, and its page, as far as they are known without the database.
    pub fn page_of(&self, sent: &Params) -> Option<(Flow, SignIn)> {
        let text = sent.get("flow")?;
        let flow = self.site.app.open_flow(text, &self.browser())?;
        let page = SignIn {
            flow: Sealed { text: text.to_owned(), cookie: None },
            client: self.name_of_client(&flow),
            device: matches!(flow.to, To::Place(Place::Device(_))),
            // If a certain user is expected, this is only shown: the flow says whose password is asked for.
            login: sent.get("login").unwrap_or("").to_owned(),
            again: flow.expects.is_some(),
            already: None,
        };
        Some((flow, page))
    }

    /// Returns the name of a flow's application, or its id if the client was not read recently.
    fn name_of_client(&self, flow: &Flow) -> Option<String> {
        let id = authorize::client_id(&flow.params()?).ok()?;
        Some(self.site.app.held_name(&id).unwrap_or_else(|| id.as_str().to_owned()))
    }

    /// Renders the page that says when to come back, with the form. A new password needs at least `minimum` characters.
    fn later(&self, sent: &Params, setback: Setback, minimum: Option<usize>) -> Option<Response> {
        let fields: Vec<(&str, &str)> = KEPT.into_iter().filter_map(|name| Some((name, sent.sent(name)?))).collect();
        let flow = sent.get("flow").and_then(|text| self.site.app.open_flow(text, &self.browser()));
        let chrome = self.chrome(flow.as_ref().and_then(Flow::ui_locales));
        let (request_id, retry) = (&*self.visit.request_id, Some(Retry::Form { fields: &fields, minimum }));
        let html = match setback {
            Setback::Throttled { seconds } => ThrottledPage { seconds, request_id, retry }.render(&chrome),
            Setback::Busy { seconds, away } => BusyPage { away, seconds, request_id, retry }.render(&chrome),
            Setback::Typed => return None,
        };
        // The answer to this form may lead to the application, or out.
        let leaves = flow.is_some_and(|flow| !matches!(flow.to, To::Place(_)));
        Some(reply::form(Some(setback), &self.visit, html, if leaves { Forms::Leave } else { Forms::Stay }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without any one of them; `email_shown` tells what the user changed from what an operator changed.
    #[test]
    fn whatever_our_forms_send_is_kept_but_for_passwords() {
        const TYPED_AGAIN: [&str; 2] = ["current", "new"];
        for page in [
            include_str!("../../templates/account.html"),
            include_str!("../../templates/choose.html"),
            include_str!("../../templates/consent.html"),
            include_str!("../../templates/device.html"),
            include_str!("../../templates/device_confirm.html"),
            include_str!("../../templates/sign_out.html"),
        ] {
            let names: Vec<&str> = page.split(" name=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
            assert!(!names.is_empty());
            for name in names {
                assert!(KEPT.contains(&name) || TYPED_AGAIN.contains(&name), "{name}");
            }
        }
    }
}
