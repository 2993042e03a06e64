//! The pages that people see: a view goes in, HTML comes out.
//!
//! Each page is a struct of borrowed text with one method, `render`. Nothing here reads a store, a clock or a request,
//! and nothing can fail: the doors fill the views and send the HTML. Every page except "Try it" is complete without
//! JavaScript. Each takes all styles and scripts from [`assets()`], and escapes every string that it is given.
//!
//! The pages need no more than this policy, where NONCE is [`Chrome::nonce`]: `default-src 'none'; script-src
//! 'nonce-NONCE'; style-src 'nonce-NONCE'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors
//! 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'`. Pages whose forms lead to an
//! application have no `form-action`, and the page that posts a response there names its origin.

mod account;
mod agent;
mod assets;
mod chrome;
mod consent;
mod device;
mod home;
mod language;
mod messages;
mod moment;
mod problem;
mod setup;
mod sign_in;
mod sign_out;
mod trouble;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use account::{AccountPage, ApplicationRow, Notice, Profile, ProfileFields, SessionRow};
pub use assets::{assets, successor};
pub use chrome::{Back, Brand, Chrome};
pub use consent::ConsentPage;
pub use device::{DeviceCodePage, DeviceConfirmPage, DeviceOutcome, DeviceProblem, DeviceResultPage};
pub use home::{HomePage, TryPage, Visitor};
pub use language::Language;
pub use problem::{Problem, Setback};
pub use setup::{SetupClosed, SetupClosedPage, SetupPage};
pub use sign_in::{AccountChoicePage, LoginPage, LoginProblem, SignUpPage};
pub use sign_out::{SignOutPage, SignedOutPage};
pub use trouble::{BusyPage, ErrorPage, FormPostPage, Reason, Retry, ThrottledPage};

/// Gives a view its `render`: the template sees the frame as `c`, the messages as `t` and the view as `v`.
macro_rules! page {
    ($view:ident, $path:tt) => {
        impl $view {
            $crate::pages::page!(@render $view, $path);
        }
    };
    ($view:ident<'_>, $path:tt) => {
        impl $view<'_> {
            $crate::pages::page!(@render $view<'a>, $path);
        }
    };
    (@render $view:ty, $path:tt) => {
        /// Renders the whole page as HTML, in the language and brand of `chrome`.
        pub fn render(&self, chrome: &$crate::pages::Chrome<'_>) -> String {
            #[derive(askama::Template)]
            #[template(path = $path)]
            struct Page<'a> {
                c: &'a $crate::pages::Chrome<'a>,
                t: &'static $crate::pages::messages::Messages,
                v: &'a $view,
            }
            let page = Page { c: chrome, t: chrome.messages(), v: self };
            $crate::pages::chrome::whole(askama::Template::render(&page))
        }
    };
}
use page;
