//! How a metric is declared, and how its samples are written.

use super::moment::Moment;
use std::fmt::{Display, Write as _};
use store::tally::Spread;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many values of which size.
    Histogram,
}

impl Kind {
    /// Returns the name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric: to add one, add an entry to the table.
pub struct Metric {
    /// Its name, with the unit at its end.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Its meaning, in a sentence.
    pub help: &'static str,
    /// Writes its samples: none if it does not apply.
    pub read: fn(&Moment<'_>, &mut Samples<'_>),
}

/// Metrics that belong together.
pub struct Group {
    /// Their subject.
    pub about: &'static str,
    /// The metrics.
    pub metrics: &'static [Metric],
}

type Read = fn(&Moment<'_>, &mut Samples<'_>);

/// Declares a number that only grows; its name ends with `_total`.
pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str, read: Read) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help, read }
}

/// Declares a number that goes up and down.
pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str, read: Read) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help, read }
}

/// Declares a distribution: how many values of which size.
pub const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str, read: Read) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, help, read }
}

/// Writes the samples of one metric.
pub struct Samples<'a> {
    metric: &'static Metric,
    page: &'a mut String,
}

impl<'a> Samples<'a> {
    /// Writes a metric, if it has samples now.
    pub fn write(metric: &'static Metric, moment: &Moment<'_>, page: &'a mut String) {
        let before = page.len();
        let Metric { name, kind, help, .. } = metric;
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        let begun = page.len();
        let mut samples = Samples { metric, page };
        (metric.read)(moment, &mut samples);
        if samples.page.len() == begun {
            samples.page.truncate(before);
        }
    }

    /// Writes the only sample of a metric without labels.
    pub fn one(&mut self, value: impl Display) {
        self.of(&[], value);
    }

    /// Writes a sample with these label values, in the order of the labels.
    pub fn of(&mut self, values: &[&str], value: impl Display) {
        self.line("", values, &[], value);
    }

    /// Writes one sample for each label value.
    pub fn each<'b, V: Display>(&mut self, samples: impl IntoIterator<Item = (&'b str, V)>) {
        for (label, value) in samples {
            self.of(&[label], value);
        }
    }

    /// Writes the samples of a histogram.
    pub fn spread(&mut self, values: &[&str], spread: &Spread) {
        for (bound, count) in &spread.steps {
            self.line("_bucket", values, &[("le", &bound.to_string())], count);
        }
        self.line("_bucket", values, &[("le", "+Inf")], spread.count);
        self.line("_sum", values, &[], spread.sum);
        self.line("_count", values, &[], spread.count);
    }

    fn line(&mut self, suffix: &str, values: &[&str], more: &[(&str, &str)], value: impl Display) {
        debug_assert_eq!(values.len(), self.metric.labels.len(), "{}", self.metric.name);
        let labels = self.metric.labels.iter().zip(values).map(|(name, value)| (*name, *value));
        self.page.push_str(self.metric.name);
        self.page.push_str(suffix);
        for (at, (name, value)) in labels.chain(more.iter().copied()).enumerate() {
            self.page.push(if at == 0 { '{' } else { ',' });
            let _ = write!(self.page, "{name}=\"");
            for letter in value.chars() {
                match letter {
                    '\\' => self.page.push_str("\\\\"),
                    '"' => self.page.push_str("\\\""),
                    '\n' => self.page.push_str("\\n"),
                    letter => self.page.push(letter),
                }
            }
            self.page.push('"');
        }
        if !self.metric.labels.is_empty() || !more.is_empty() {
            self.page.push('}');
        }
        let _ = writeln!(self.page, " {value}");
    }
}
