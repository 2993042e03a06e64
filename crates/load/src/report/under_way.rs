//! Iterations of a closed loop that were under way when the run ended. A server that has stopped answering shows in
//! them alone: they have no latency, and nobody starts another iteration.

use super::p99_of_all;
use crate::record::Record;
use std::time::Duration;

/// Returns how many of them count as slower than any other: those already older than the 99th percentile of all, of
/// which `missing` were not answered.
pub(super) fn late(record: &Record, missing: u64) -> u64 {
    // Where there is no such percentile, more iterations without an answer do not bring one.
    let Some(p99) = p99_of_all(&record.iterations, missing) else { return 0 };
    older(record, p99).len() as u64
}

/// Says how many of them had taken longer than the longest iteration that ended, if any had.
pub(super) fn told(record: &Record) -> Option<String> {
    let older = older(record, record.iterations.max());
    let longest = in_words(*older.iter().max()?);
    Some(match older.len() {
        1 => format!("1 iteration was still under way, for {longest}: it is in no latency"),
        count => {
            format!("{count} iterations were still under way, the longest for {longest}: they are in no latency")
        }
    })
}

/// Returns the ages of those that are older than `millis` milliseconds.
fn older(record: &Record, millis: f64) -> Vec<Duration> {
    record.under_way.iter().copied().filter(|age| age.as_secs_f64() * 1000.0 > millis).collect()
}

/// Formats a time in seconds, or in milliseconds if it is shorter than one second.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1000.0) } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand iterations of 1 ms to 1 s that ended, and these that did not.
    fn record(under_way: &[u64]) -> Record {
        let under_way = under_way.iter().map(|millis| Duration::from_millis(*millis)).collect();
        let mut record = Record { under_way, ..Record::default() };
        (1..=1000).for_each(|millis| record.iterations.add(Duration::from_millis(millis)));
        record
    }

    /// Red without `told`: a server that stops answering after a second has perfect latencies.
    #[test]
    fn iterations_that_outlast_every_latency_are_told() {
        let said = |under_way: &[u64]| told(&record(under_way));
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[3, 999]), None, "such iterations are under way at the end of every run");
        let expected = "4 iterations were still under way, the longest for 35.0 s: they are in no latency";
        assert_eq!(said(&[35_000, 34_000, 3, 20_000, 34_900]).as_deref(), Some(expected));
        let expected = "1 iteration was still under way, for 1.2 s: it is in no latency";
        assert_eq!(said(&[1200, 700]).as_deref(), Some(expected));
        let none_ended = Record { under_way: vec![Duration::from_millis(250)], ..Record::default() };
        assert!(told(&none_ended).is_some_and(|said| said.contains(" for 250.0 ms: ")));
    }

    /// Red without `late`: the p99 of all leaves out those that wait longest.
    #[test]
    fn iterations_that_outlast_the_p99_are_slower_than_any_other() {
        let all = |under_way: &[u64], missing| {
            let record = record(under_way);
            p99_of_all(&record.iterations, missing + late(&record, missing)).map(f64::round)
        };
        assert_eq!((all(&[], 0), all(&[3, 980], 0)), (Some(990.0), Some(990.0)));
        assert_eq!((all(&[35_000; 5], 0), all(&[995, 35_000, 3], 3)), (Some(995.0), Some(995.0)));
        assert_eq!((all(&[35_000; 11], 0), all(&[35_000], 11)), (None, None), "more than 1 %");
        assert_eq!(
            late(&Record { under_way: vec![Duration::MAX], ..Record::default() }, 0),
            0,
            "nobody has no percentile"
        );
    }
}
