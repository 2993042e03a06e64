//! The table of metrics.

mod audit;
mod hashing;
mod http;
mod people;
mod process;
mod store;
mod workers;

use super::declare::Group;
#[cfg(test)]
use super::declare::Metric;

/// All groups, in the order of the page and of the guide.
pub static GROUPS: [&Group; 7] =
    [&http::GROUP, &hashing::GROUP, &workers::GROUP, &store::GROUP, &people::GROUP, &audit::GROUP, &process::GROUP];

/// Every metric.
#[cfg(test)]
pub fn all() -> impl Iterator<Item = &'static Metric> {
    GROUPS.iter().flat_map(|group| group.metrics)
}
