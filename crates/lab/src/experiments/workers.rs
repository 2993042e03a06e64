//! Hash workers, from none to seven, beside a server with two cores.

use super::bench::Bench;
use super::{Experiment, Halt};
use crate::private::{Cores, Folder, PASSWORD, Private, Setup, free_port, on};
use crate::report::{Expect, Group, Row, Sheet, figure};
use load::Refusal;
use load::plan::{Pace, Plan, User, Workload};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const EXPERIMENT: Experiment = Experiment {
    name: "workers",
    title: "Hash workers beside a server of two cores",
    hypothesis: "Each worker adds what its core hashes, until the server has enough to do with the rest of each sign-in. Where \
        workers share the cores of the server they cannot add anything, and what they cost is shown.",
    method: "W1 with passwords at 100 users in a closed loop, who sign in to 150 accounts, against a server that is held to two cores, with 0 to 7 worker \
        processes of one hashing thread each. Workers run on the other cores of the machine where it has any.",
    published: None,
    run,
};

/// The server's cores.
const CORES: usize = 2;
const USERS: usize = 100;
const PEOPLE: usize = 150;
/// The longest that workers may take to appear or to disappear.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::{More, Open};
    let all = Cores::all().map_err(Halt::Skipped)?;
    let cores =
        all.first(CORES).map_err(|why| Halt::Skipped(format!("{why}: the server has to have {CORES} of its own")))?;
    // If it cannot be held there, the experiment is skipped, instead of failing to start a server.
    cores.hold(|| ()).map_err(Halt::Skipped)?;
    let others = all.without(&cores);
    let counts: Vec<usize> = bench.either((0..=7).collect(), vec![0, 1, 3, 7]);
    let most = counts.last().copied().unwrap_or_default();
    match &others {
        None => sheet.note(format!(
            "This machine has {} cores: the workers share them with the server and the load generator, so their number can \
             show what they cost and not what they add.",
            all.count()
        )),
        Some(others) if others.count() < most => {
            sheet.note(format!("There are {} cores beside the server's: more workers than that share them.", others.count()));
        }
        Some(_) => {}
    }
    all.remark("The server and the workers").into_iter().for_each(|note| sheet.note(note));
    let mut scene = Scene::new(bench, cores, others.clone(), most)?;
    let expected = |count: usize| match (&others, count) {
        (_, 0) => vec![],
        (Some(others), count) if count <= others.count() => vec![More, Open],
        // A worker that shares cores with the server is not expected to add anything.
        _ => vec![Open, Open],
    };
    let name = |count: usize| format!("{count} {}", if count == 1 { "worker" } else { "workers" });
    let rows = counts.iter().map(|count| Row::new(name(*count), &expected(*count))).collect();
    let figures = [
        figure("sign-ins a second", "/s"),
        figure("p95 of a sign-in", " ms"),
        figure("computed by workers", " %"),
        figure("cores used by the server", ""),
    ];
    let mut counts = counts;
    bench.turns(sheet, Group::new("", &figures, rows), &mut counts, |bench, count| scene.measure(bench, *count))
}

/// A server, and workers that are started and ended.
struct Scene {
    server: Private,
    /// Contains the folders of the workers, which end with it.
    folder: Folder,
    program: PathBuf,
    others: Option<Cores>,
    workers: Vec<Child>,
    people: Vec<User>,
}

impl Scene {
    fn new(bench: &mut Bench<'_>, cores: Cores, others: Option<Cores>, most: usize) -> Result<Scene, Halt> {
        let (folder, program) = (bench.folder()?, bench.program.clone());
        let secret = |what: &str| -> Result<String, Refusal> {
            let file = folder.path().join(what);
            folder.run(portiere(&program, &folder).args(["hash", what, "lab"]).arg(&file), "")?;
            Ok(format!("lab:{}", file.display()))
        };
        let port = free_port().map_err(|error| Halt::Failed(error.to_string()))?;
        let setup = bench.setup().with("hash.peppers", secret("pepper")?).with("hash.binding_keys", secret("binding")?);
        // No sign-in is refused: the experiment counts how many are done.
        let setup = setup.with("workers.listen", format!("127.0.0.1:{port}")).with("hash.max_wait", "1m");
        let setup = Setup { people: 0, cores: Some(cores), ..setup };
        bench.say("starts a server");
        let server = Private::start(&setup)?;
        for number in 1..=most {
            bench.say(&format!("enrolls worker {number} of {most}"));
            enroll(&server, &folder, &program, (number, port))?;
        }
        let people = admit(&server, bench)?;
        Ok(Scene { server, folder, program, others, workers: Vec::new(), people })
    }

    fn measure(&mut self, bench: &mut Bench<'_>, count: usize) -> Result<Vec<f64>, Halt> {
        self.staff(count)?;
        let pace = Pace::Closed { visitors: USERS, pause: Duration::ZERO };
        let plan = Plan { pace, users: self.people.clone(), ..bench.plan(&self.server, Workload::Flow)? };
        let before = self.tally()?;
        let report = bench.drive(&[plan], None)?;
        let after = self.tally()?;
        let by_workers = 100.0 * (after.0 - before.0) / (after.1 - before.1).max(1.0);
        let cores = report.server.map_or(f64::NAN, |server| server.cores);
        Ok(vec![report.iterations_per_second, report.latency.p95, by_workers, cores])
    }

    /// Returns the hashes computed by workers, and all hashes, so far.
    fn tally(&self) -> Result<(f64, f64), Refusal> {
        let told = self.server.command(&["verifier", "status", "--json"], "")?;
        let status: Value = serde_json::from_str(&told).unwrap_or_default();
        let count = |name: &str| status[name].as_f64().unwrap_or_default();
        Ok((count("done_by_workers"), count("done")))
    }

    /// Starts or ends workers until there are `count`, and waits until the server trusts all of them.
    fn staff(&mut self, count: usize) -> Result<(), Halt> {
        for mut worker in self.workers.drain(count.min(self.workers.len())..) {
            self.folder.kill(&mut worker);
        }
        while self.workers.len() < count {
            let mut command = portiere(&self.program, &self.folder);
            command.args(["verifier", "serve", "--threads", "1", "--folder"]).arg(name(self.workers.len() + 1));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let started = on(self.others.as_ref(), || self.folder.spawn(&mut command)).map_err(Halt::Skipped)?;
            self.workers.push(started?);
        }
        let begun = Instant::now();
        loop {
            let there = self.server.metrics()?.sum("portiere_worker_trusted");
            if there as usize == count {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(Halt::Failed(format!("{there} of {count} workers work after a minute")));
            }
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.workers.iter_mut().for_each(|worker| self.folder.kill(worker));
    }
}

/// Adds people whose hashes workers can compute: each hash is bound to its account, so one hash cannot serve for all.
fn admit(server: &Private, bench: &mut Bench<'_>) -> Result<Vec<User>, Refusal> {
    let add = |number: usize| {
        bench.say(&format!("adds person {} of {PEOPLE}", number + 1));
        let login = format!("person-{number}");
        server.command(&["user", "add", &login, "--password-stdin"], PASSWORD)?;
        Ok(User { login, password: PASSWORD.to_owned() })
    };
    (0..PEOPLE).map(add).collect()
}

fn name(number: usize) -> String {
    format!("worker-{number}")
}

/// Returns a command that runs the program in the folder and with an environment of its own.
fn portiere(program: &Path, folder: &Folder) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PORTIERE_DATA", folder.path().join("none")).current_dir(folder.path());
    command
}

fn enroll(server: &Private, folder: &Folder, program: &Path, (number, port): (usize, u16)) -> Result<(), Refusal> {
    let told = server.command(&["verifier", "token", "--json"], "")?;
    let made: Value = serde_json::from_str(&told).unwrap_or_default();
    let mut command = portiere(program, folder);
    command.args(["verifier", "enroll", "--token-stdin", "--server", &format!("127.0.0.1:{port}")]);
    command.args(["--name", &name(number), "--folder", &name(number)]);
    folder.run(&mut command, made["token"].as_str().unwrap_or_default()).map(drop)
}
