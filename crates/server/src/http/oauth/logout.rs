//! The end-session endpoint (RP-Initiated Logout 1.0).

use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::pages::Posted;
use crate::http::reply::{self, Forms};
use crate::pages::{Back, SignOutPage, SignedOutPage};
use app::flow::Question;
use app::logout::Leaving;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::HeaderValue;

/// `GET /oauth2/logout`.
pub async fn get(door: Door, _: Body) -> Result<Response, Refusal> {
    let params = extract::query(&door.uri)?;
    let mut leaving = door.site.app.logout(&params, &door.browser()).await?;
    if let Leaving::Left { to, .. } = &mut leaving
        && door.is_framed_without_cookies()
    {
        *to = None;
    }
    Ok(door.leave(&leaving, params.get("ui_locales")))
}

/// `POST /oauth2/logout`: any site may send it, so it is repeated as GET after a 303.
pub async fn post(door: Door, body: Body) -> Result<Response, Refusal> {
    let params = extract::posted(&door, body).await?;
    Ok(match door.site.app.posted_logout(&params).await? {
        Ok(again) => reply::see_other(&door.site.link("/oauth2/logout", again.pairs())),
        Err(error) => door.refuse(&error.into(), None, params.get("ui_locales")),
    })
}

/// `POST /oauth2/logout/confirm`: `flow`, `csrf`, `decision` of `sign_out` or `stay`.
pub async fn confirm(door: Door, body: Body) -> Result<Response, Refusal> {
    let (Posted { params, browser }, flow) = door.posted_flow(body).await?;
    let app = &door.site.app;
    // The session that `logout_confirmed` would end, including one that may not be used at present.
    if let Some((session, _)) = app.session_to_end(&browser).await? {
        door.must_be_of(&session, &params).map_err(|why| why.or_anew(|| door.anew(&flow.to)))?;
        if flow.asks != Some(Question::SignOut(session.id)) {
            return Err(Refusal::Stale(door.anew(&flow.to)));
        }
    }
    if params.get("decision") != Some("sign_out") {
        return Ok(reply::see_other(&format!("{}/account", door.site.url.path())));
    }
    let locales = flow.ui_locales().map(str::to_owned);
    Ok(match app.logout_confirmed(&flow, &browser).await? {
        Leaving::Left { to: None, .. } => door.signed_out(locales.as_deref()),
        leaving => door.leave(&leaving, locales.as_deref()),
    })
}

impl Door {
    /// Leads to the page that says that nobody is signed in, after a form that signed somebody out. Reloading that page
    /// posts nothing again.
    pub fn signed_out(&self, locales: Option<&str>) -> Response {
        let locales: Vec<_> =
            locales.map(|locales| ("ui_locales".to_owned(), locales.to_owned())).into_iter().collect();
        let mut response = reply::see_other(&self.site.link("/oauth2/logout", &locales));
        self.forget_session(&mut response);
        response
    }

    /// Returns whether another page frames this request, which has no cookie of a session that may still live: browsers
    /// send it only if all framing pages are of the same site. A redirect back would tell the application that somebody
    /// was signed out. Without it, the frame shows no page of ours, and the application waits in vain.
    fn is_framed_without_cookies(&self) -> bool {
        let framed = |dest: &HeaderValue| matches!(dest.as_bytes(), b"iframe" | b"frame" | b"object" | b"embed");
        self.headers.get("sec-fetch-dest").is_some_and(framed) && self.site.session_cookie(&self.headers).is_none()
    }

    /// Asks for confirmation, redirects to the application, or says that nobody is signed in any more.
    fn leave(&self, leaving: &Leaving, locales: Option<&str>) -> Response {
        let chrome = self.chrome(locales);
        match leaving {
            Leaving::Confirm { flow, client, user, session, unused } => {
                let csrf = self.site.app.csrf(session);
                let (client_name, account) = (client.as_deref(), user.username.as_str());
                let view = SignOutPage { flow: &flow.text, csrf: &csrf, client: client_name, account, detail: *unused };
                let html = view.render(&chrome);
                let forms = if client.is_some() { Forms::Leave } else { Forms::Stay };
                let mut response = reply::page(StatusCode::OK, &self.visit, html, forms);
                reply::flow_cookie(&mut response, &self.site, flow.cookie.as_ref());
                response
            }
            Leaving::Left { to: Some(to), .. } => {
                let mut response = reply::see_other(to);
                self.forget_session(&mut response);
                response
            }
            Leaving::Left { client, to: None, back, unused } => {
                // An unproven request redirects nobody, but the user may go back to where it came from.
                let back = client.as_deref().zip(back.as_deref()).map(|(name, url)| Back { name, url, posted: &[] });
                let view = SignedOutPage { back, detail: *unused };
                let mut response = reply::page(StatusCode::OK, &self.visit, view.render(&chrome), Forms::Stay);
                self.forget_session(&mut response);
                response
            }
        }
    }
}
