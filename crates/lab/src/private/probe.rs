//! What a process on this machine reports over loopback HTTP, and what `/proc` reports about it.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// The longest that one request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns status and body of a GET of `path`.
///
/// # Errors
/// An error of the connection, or an answer that is not HTTP.
pub fn get(port: u16, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    let status = head.split_ascii_whitespace().nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or(io::ErrorKind::InvalidData)?, body.to_owned()))
}

/// Returns a loopback port that nobody listens on at this moment.
///
/// # Errors
/// If there is none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Returns the resident memory of a process in bytes, if the system tells. See proc_pid_status(5).
pub fn resident(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Returns how many bytes a process has written to disk, if the system tells: `write_bytes` of proc_pid_io(5).
pub fn written(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("write_bytes:"))?.trim().parse().ok()
}

/// The metrics of a server at one moment.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Vec<(String, String, f64)>);

impl Metrics {
    /// Parses the Prometheus text format (version 0.0.4).
    pub fn parse(text: &str) -> Metrics {
        let line = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            Some((name.to_owned(), labels.trim_end_matches('}').to_owned(), value.parse().ok()?))
        };
        Metrics(text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect())
    }

    /// Returns the sum over all series of this name; 0 if there is none.
    pub fn sum(&self, name: &str) -> f64 {
        self.of(name, "")
    }

    /// Returns the sum over the series whose labels contain a text such as `reason="queue"`.
    pub fn of(&self, name: &str, label: &str) -> f64 {
        let wanted = |(known, labels, _): &&(String, String, f64)| known == name && labels.contains(label);
        self.0.iter().filter(wanted).map(|(.., value)| value).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_summed_over_their_labels() {
        let text =
            "# HELP a b\n# TYPE a counter\na{x=\"1\",y=\"z\"} 2\na{x=\"2\"} 0.5\na_more 7\nb 1e3\nnot a number\n\n";
        let metrics = Metrics::parse(text);
        assert_eq!([metrics.sum("a"), metrics.sum("b"), metrics.sum("none")], [2.5, 1000.0, 0.0]);
        assert_eq!(metrics.of("a", "x=\"2\""), 0.5);
    }

    #[test]
    fn a_process_has_memory_and_one_that_is_not_there_has_none() {
        assert!(resident(std::process::id()).unwrap() > 100_000);
        assert_eq!(resident(u32::MAX), None);
    }
}
