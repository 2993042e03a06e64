//! What the server reports to Prometheus: one table of metrics ([`table`]), from which the scraped page and the guide
//! are generated.
//!
//! Frequent events are counted where they happen, in [`Requests`] and in the tallies of other crates; everything else
//! is read when somebody asks. Labels are few and known beforehand: nothing from a request becomes one.

mod declare;
mod glance;
#[cfg(test)]
mod guide;
mod moment;
mod process;
mod refused;
mod requests;
mod room;
mod secret;
mod serve;
mod table;
#[cfg(test)]
mod tests;

pub use glance::Looked;
pub use moment::{Store, Together};
pub use process::Process;
pub use refused::Refused;
pub use requests::{NO_ROUTE, Requests, Spent};
pub use serve::{Desk, secret, serve};

use crate::http::Site;
use declare::Samples;
use moment::Moment;

/// Renders the whole page (text format 0.0.4).
pub async fn page(site: &Site, looked: Looked) -> String {
    let moment = Moment::of(site, looked).await;
    let mut page = String::with_capacity(64 << 10);
    for group in table::GROUPS {
        // A comment for people, which the format ignores.
        page.extend(["# ", group.about, "\n"]);
        group.metrics.iter().for_each(|metric| Samples::write(metric, &moment, &mut page));
    }
    page
}
