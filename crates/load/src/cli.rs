//! The command line: options, and what they come to. The program around it parses ([`Options`] is a `clap::Args`), calls
//! [`main`] and ends with the exit code of the [`Refusal`], if any.

use crate::Refusal;
use crate::plan::{Client, Pace, Plan, Proof, Workload, users};
use crate::report::{Report, Series};
use crate::run::{Pulse, run};
use crate::search::limit;
use crate::wire::Url;
use clap::{Args, ValueEnum};
use std::fs::read_to_string;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to measure and how.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What each virtual user does over and over
    pub workload: Choice,
    /// Base URL of the provider, on this machine
    #[arg(long, value_name = "URL", default_value = "http://localhost:8080")]
    pub target: String,
    /// Client that the users come from
    #[arg(long, value_name = "ID")]
    pub client: Option<String>,
    /// Read the client's secret from standard input
    #[arg(long, conflicts_with = "client_secret_file")]
    pub client_secret_stdin: bool,
    /// Read the client's secret from a file
    #[arg(long, value_name = "FILE")]
    pub client_secret_file: Option<PathBuf>,
    /// How the client sends its secret; without a secret it is a public client
    #[arg(long, value_name = "METHOD", default_value = "basic")]
    pub auth: Auth,
    /// Registered redirect URI; nothing needs to listen there
    #[arg(long, value_name = "URI")]
    pub redirect_uri: Option<String>,
    /// Scope to ask for
    #[arg(long, default_value = "openid")]
    pub scope: String,
    /// File with a line `login:password` for each user; they sign in in turn
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// W1 with a session instead of a password
    #[arg(long)]
    pub no_password: bool,
    /// Virtual users; in an open loop the most at once
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub vus: usize,
    /// Pause between iterations, such as 500ms or 1s
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s", conflicts_with = "rate")]
    pub pause: Duration,
    /// Open loop: start so many iterations a second, whatever the answers do
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// Search for the highest rate at which nothing fails and p99 stays at or below this; --rate is the first tried
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "rate", conflicts_with = "repeat")]
    pub find_limit: Option<Duration>,
    /// Length of the window that is counted
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s")]
    pub duration: Duration,
    /// Time before it that is not counted
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3s")]
    pub warmup: Duration,
    /// Measure so often, and say how far the runs lie apart
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Longest time for one request
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub timeout: Duration,
    /// Threads of the generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// Stay away as long as a 503 asks for, instead of coming straight back
    #[arg(long)]
    pub heed_retry_after: bool,
    /// Process of the server, to count its CPU time; may be given several times
    #[arg(long, value_name = "PID")]
    pub server_pid: Vec<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Workloads by their name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Choice {
    /// Sign-in page, password, code, introspection, refresh
    W1,
    /// The key set
    Jwks,
    /// Introspection of an access token
    Introspect,
    /// Userinfo with an access token
    Userinfo,
    /// The client credentials grant
    ClientCredentials,
    /// The refresh grant, rotating
    Refresh,
}

/// Client authentication methods by their name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// client_secret_basic
    Basic,
    /// client_secret_post
    Post,
    /// A public client
    None,
}

/// Measures as `options` say, writes the report to `out` and progress to standard error when that is a terminal. Blocks, and
/// is to be called on a plain thread, as [`run`] is.
///
/// # Errors
/// [`Refusal`]: one line for the user, and the exit code.
pub fn main(options: &Options, out: &mut dyn Write) -> Result<(), Refusal> {
    let plan = options.plan()?;
    if let Some(p99) = options.find_limit {
        return find_limit(&plan, p99, options.json, out);
    }
    let runs: Result<Vec<_>, _> = (0..options.repeat).map(|_| watched(&plan)).collect();
    let series = Series::of(runs?);
    write_out(out, if options.json { json(&series)? } else { series.to_string() })
}

impl Options {
    /// The plan that these options come to; reads the files and, when asked to, standard input.
    ///
    /// # Errors
    /// [`Refusal::Use`].
    pub fn plan(&self) -> Result<Plan, Refusal> {
        let visitors = self.vus;
        let pace = match self.rate {
            Some(rate) => Pace::Open { rate, visitors },
            None => Pace::Closed { visitors, pause: self.pause },
        };
        let target = Url::parse(&self.target).map_err(|wrong| Refusal::Use(format!("{}: {wrong}", self.target)))?;
        let plan = Plan {
            target,
            workload: self.workload()?,
            pace,
            warmup: self.warmup,
            duration: self.duration,
            timeout: self.timeout,
            heeds_retry_after: self.heed_retry_after,
            threads: self.threads,
            client: Client {
                id: self.client.clone().unwrap_or_default(),
                proof: self.proof()?,
                redirect_uri: self.redirect_uri.clone().unwrap_or_default(),
                scope: self.scope.clone(),
            },
            users: self.users.as_deref().map_or(Ok(Vec::new()), |path| users(&read(path)?))?,
            server_pids: self.server_pid.clone(),
        };
        plan.check().map(|()| plan)
    }

    fn workload(&self) -> Result<Workload, Refusal> {
        match (self.workload, self.no_password) {
            (Choice::W1, false) => Ok(Workload::Flow),
            (Choice::W1, true) => Ok(Workload::Session),
            (_, true) => Err(Refusal::Use("--no-password is a variant of w1".to_owned())),
            (Choice::Jwks, _) => Ok(Workload::Jwks),
            (Choice::Introspect, _) => Ok(Workload::Introspect),
            (Choice::Userinfo, _) => Ok(Workload::Userinfo),
            (Choice::ClientCredentials, _) => Ok(Workload::ClientCredentials),
            (Choice::Refresh, _) => Ok(Workload::Refresh),
        }
    }

    fn proof(&self) -> Result<Proof, Refusal> {
        let text = match &self.client_secret_file {
            Some(path) => read(path)?,
            None if self.client_secret_stdin => {
                let mut text = String::new();
                let outcome = std::io::stdin().read_to_string(&mut text);
                outcome.map_err(|error| Refusal::Use(format!("no secret on standard input: {error}")))?;
                text
            }
            None => return Ok(Proof::Nothing),
        };
        let secret = text.trim_end_matches(['\r', '\n']).to_owned();
        match self.auth {
            _ if secret.is_empty() => Err(Refusal::Use("the client secret is empty".to_owned())),
            Auth::Basic => Ok(Proof::Basic(secret)),
            Auth::Post => Ok(Proof::Post(secret)),
            Auth::None => Err(Refusal::Use("--auth none takes no secret".to_owned())),
        }
    }
}

fn read(path: &Path) -> Result<String, Refusal> {
    read_to_string(path).map_err(|error| Refusal::Use(format!("{}: {error}", path.display())))
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Refusal> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Refusal::Failure(error.to_string()))?;
    Ok(text + "\n")
}

fn write_out(out: &mut dyn Write, text: String) -> Result<(), Refusal> {
    out.write_all(text.as_bytes()).map_err(|error| Refusal::Failure(format!("the report cannot be written: {error}")))
}

/// Runs with a line of progress, when somebody can see it.
fn watched(plan: &Plan) -> Result<Report, Refusal> {
    let mut terminal = std::io::stderr();
    if !terminal.is_terminal() {
        return run(plan, None);
    }
    let mut last = Duration::ZERO;
    let mut show = |passed: Duration, pulse: &Pulse| {
        let rate = pulse.iterations.count() as f64 / (passed - last).as_secs_f64();
        last = passed;
        let phase = if passed < plan.warmup { " (warming up)" } else { "" };
        let (p50, p99) = (pulse.iterations.quantile(0.5), pulse.iterations.quantile(0.99));
        let (passed, Pulse { failed, refused, .. }) = (passed.as_secs_f64(), pulse);
        // Progress that cannot be shown is not worth ending the run.
        let _ = write!(
            terminal,
            "\r\x1b[K{passed:6.1} s {rate:9.1}/s  p50 {p50:.1} ms  p99 {p99:.1} ms  {failed} failed  {refused} refused{phase}"
        );
    };
    let outcome = run(plan, Some(&mut show));
    let _ = write!(terminal, "\r\x1b[K");
    outcome
}

fn find_limit(plan: &Plan, p99: Duration, as_json: bool, out: &mut dyn Write) -> Result<(), Refusal> {
    const PRECISION: f64 = 0.05;
    let Pace::Open { rate: first, visitors } = plan.pace else {
        return Err(Refusal::Use("--find-limit needs --rate".to_owned()));
    };
    let mut best: Option<Report> = None;
    let found = limit(first, PRECISION, |rate| {
        let report = watched(&Plan { pace: Pace::Open { rate, visitors }, ..plan.clone() })?;
        let clean = report.failed + report.refused + report.unfinished == 0;
        let holds = clean && report.iterations > 0 && report.latency.p99 <= p99.as_secs_f64() * 1000.0;
        if holds {
            best = Some(report);
        }
        Ok::<_, Refusal>(holds)
    })?;
    let (Some(rate), Some(report)) = (found, best) else {
        return Err(Refusal::Failure(format!("no rate near {first}/s keeps p99 at or below {p99:?}")));
    };
    let text = if as_json { json(&report)? } else { format!("holds {rate:.1} iterations/s\n{report}") };
    write_out(out, text)
}

/// Reads `250ms`, `20s`, `1.5m` or `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time such as 250ms, 20s or 2m");
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn plan(line: &str) -> Result<Plan, Refusal> {
        Command::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}")).options.plan()
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for text in ["", "20", "s", "-1s", "1d", "1e999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn defaults_are_a_closed_loop_of_twenty() {
        let plan = plan("load jwks").unwrap();
        assert_eq!(plan.pace, Pace::Closed { visitors: 20, pause: Duration::ZERO });
        assert_eq!(plan.target.to_string(), "http://localhost:8080/");
    }

    #[test]
    fn what_cannot_work_is_one_line() {
        for (line, expected) in [
            ("load jwks --target http://example.com", "http://example.com/: only this machine may be measured"),
            ("load jwks --target https://localhost", "https://localhost: only http:// URLs"),
            ("load jwks --no-password", "--no-password is a variant of w1"),
            ("load jwks --vus 0", "at least one virtual user"),
            ("load jwks --rate 0", "the rate must be above zero"),
            ("load w1", "this workload needs --client"),
            ("load w1 --client a --redirect-uri http://localhost/cb", "this workload needs --users"),
            ("load client_credentials --client a", "client_credentials needs a client secret"),
            ("load w1 --users /nowhere/at/all", "/nowhere/at/all: "),
        ] {
            let refusal = plan(line).err().unwrap();
            assert!(refusal.to_string().starts_with(expected), "{refusal}");
            assert_eq!(refusal.exit_code(), 2);
        }
    }
}
