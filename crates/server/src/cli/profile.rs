//! `profile`: asks the running server for a profile, and writes its picture.

use super::outcome::{Failure, Outcome, Reply};
use super::reach::Reach;
use super::request::Request;
use super::text::Table;
use super::{Global, Progress, print, runtime, show, to_ask};
use crate::http::Site;
use crate::profile::{self, Asked, Profile, Untaken};
use clap::{Args, ValueHint};
use rules::Time;
use rules::utc::iso;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The picture's file, unless another one is named.
const FILE: &str = "profile.svg";
/// The most routes in the summary; the others are in the picture and in the JSON.
const ROUTES: usize = 8;

/// The arguments of `profile`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Command {
    /// Seconds to sample: 1 to 120
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=120))]
    pub seconds: u64,
    /// Samples per second of CPU time: 1 to 999
    #[arg(long, value_name = "HZ", default_value_t = profile::FREQUENCY, value_parser = clap::value_parser!(u32).range(1..=999))]
    pub frequency: u32,
    /// File for the picture; an existing file is replaced [default: profile.svg; with --json, nowhere]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[serde(skip)]
    pub output: Option<PathBuf>,
}

impl Command {
    /// Returns how long the answer may take: the sampling time, and time to name what was seen.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.seconds + 60)
    }

    /// Takes the profile, in the server.
    pub async fn execute(&self, site: &Site) -> Reply {
        let asked =
            Asked { time: Duration::from_secs(self.seconds.clamp(1, 120)), frequency: self.frequency.clamp(1, 999) };
        tracing::info!(seconds = asked.time.as_secs(), "taking a profile");
        let taken = profile::take(asked, site).await.map_err(untaken)?;
        let mut json = serde_json::to_value(&taken).map_err(|error| Failure::Failed(error.to_string()))?;
        json["began_at"] = iso(Time(taken.began)).into();
        Ok(Outcome::new("", json))
    }

    /// Has the running server take the profile, and shows it.
    pub fn run(self, global: &Global) -> Result<ExitCode, Failure> {
        let (config, wrong) = to_ask(global)?;
        let file = self.output.clone().or_else(|| (!global.json).then(|| FILE.into()));
        file.as_deref().map_or(Ok(()), load::output::try_out)?;
        let outcome = runtime()?.block_on(self.ask(&mut Reach::new(&config).beside(wrong)))?;
        let taken: Profile = serde_json::from_value(outcome.json.clone())
            .map_err(|error| Failure::Failed(format!("unexpected answer from the server: {error}")))?;
        // Shown first: if the file cannot be written, the profile is not lost.
        let shown = show(global, &Outcome { text: summary(&taken), ..outcome });
        let Some(file) = file else { return Ok(shown) };
        load::output::write(&file, &profile::picture(&taken))?;
        if global.json {
            return Ok(shown);
        }
        Ok(print(format!("\nwritten to {}: open it in a browser\n", file.display())))
    }

    /// Asks the server, and tells on a terminal how long it will take.
    async fn ask(&self, reach: &mut Reach<'_>) -> Reply {
        let request = Request::Profile(self.clone());
        let (began, mut progress) = (Instant::now(), Progress::default());
        let mut reply = std::pin::pin!(reach.ask(&request));
        loop {
            let left = self.seconds.saturating_sub(began.elapsed().as_secs());
            progress.show(Some(match left {
                0 => "looking up names          ".into(),
                left => format!("profiling: {left} s left      "),
            }));
            if let Ok(reply) = tokio::time::timeout(Duration::from_millis(250), &mut reply).await {
                progress.clear();
                return reply;
            }
        }
    }
}

fn untaken(why: Untaken) -> Failure {
    match why {
        Untaken::Busy => Failure::Later("another profile is being taken; try again when it is done".into()),
        Untaken::Failed(why) => Failure::Failed(why),
    }
}

/// Returns what a terminal shows.
fn summary(taken: &Profile) -> String {
    let Profile { seconds, samples, cpu_seconds, cores, .. } = taken;
    let busy = 100.0 * cpu_seconds / (seconds * *cores as f64);
    let mut text =
        format!("{samples} samples in {seconds:.0} s; {cpu_seconds:.1} s of CPU: {busy:.0} % of {cores} cores\n");
    let of_all = |part: u64| format!("{:.1} %", 100.0 * part as f64 / (*samples).max(1) as f64);
    let mut threads = Table::new(["CPU", "SHARE"], true);
    for node in taken.nodes.iter().filter(|node| node.parent.is_none()) {
        threads.row([node.name.clone(), of_all(node.total)]);
    }
    let mut waits = Table::new(["REQUESTS WAIT AT", "COUNT", "MEAN", "FOR"], true);
    for route in taken.routes.iter().take(ROUTES) {
        let other = ("other", route.other());
        let mut phases: Vec<_> = route.phases.iter().map(|phase| (&*phase.name, phase.share)).chain([other]).collect();
        phases.retain(|(_, share)| *share >= 0.005);
        phases.sort_by(|a, b| b.1.total_cmp(&a.1));
        let named = phases.iter().map(|(name, share)| format!("{name} {:.0} %", 100.0 * share));
        let mean = format!("{:.1} ms", 1000.0 * route.seconds / route.requests as f64);
        waits.row([route.route.clone(), route.requests.to_string(), mean, named.collect::<Vec<_>>().join(", ")]);
    }
    let mut queues = Table::new(["QUEUE", "MEAN", "MOST"], true);
    for queue in &taken.queues {
        queues.row([queue.name.clone(), format!("{:.1}", queue.mean), queue.most.to_string()]);
    }
    for table in [threads.render(), waits.render(), queues.render()] {
        text.push('\n');
        text.push_str(&table);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_told_to_try_again_is_told_so_by_the_exit_code() {
        // Red with Failed for both: scripts try again after 75 alone.
        for (why, code) in [(Untaken::Busy, 75), (Untaken::Failed("the profile broke off".into()), 1)] {
            let failure = untaken(why);
            assert_eq!((failure.exit_code(), failure.told().contains("try again")), (code, code == 75), "{failure:?}");
        }
    }
}
