//! A report that was begun before, read back: what is done in it need not be made again.

use super::{End, Machine, Outcome, Report, Sheet};
use crate::experiments::Experiment;
use serde::Deserialize;

/// What `--save` wrote.
#[derive(Clone, Debug, Deserialize)]
pub struct Saved {
    machine: Machine,
    version: String,
    #[serde(default)]
    made: Option<load::made::Made>,
    #[serde(default)]
    build: Option<u64>,
    quick: bool,
    seconds: f64,
    experiments: Vec<Made>,
}

/// One experiment of it.
#[derive(Clone, Debug, Deserialize)]
struct Made {
    name: String,
    hypothesis: String,
    method: String,
    sheet: Sheet,
    end: End,
    seconds: f64,
}

impl Saved {
    /// Why `report`, which is about to be made, cannot go on with this; the machine is told by its processor, cores, system and disk.
    pub fn obstacle(&self, report: &Report) -> Option<&'static str> {
        let of = |machine: &Machine| (machine.cpu.clone(), machine.cores, machine.system.clone());
        // A report of before this was told may be of any disk.
        let disks = self.machine.disk.zip(report.machine.disk);
        let builds = self.build.zip(report.build);
        match () {
            () if self.version != report.version => Some("is of another version of this program"),
            () if builds.is_some_and(|(before, now)| before != now) => Some("is of another build of this program"),
            () if of(&self.machine) != of(&report.machine) => Some("is of another machine"),
            () if disks.is_some_and(|(before, now)| before != now) => Some("is of another disk (--within)"),
            () if self.quick != report.quick => Some("is of a quick run, or this one is to be"),
            () => None,
        }
    }

    /// The machine as it was, when it was begun, and how long it has taken so far, in seconds.
    pub fn beginning(&self) -> (Machine, Option<load::made::Made>, f64) {
        (self.machine.clone(), self.made.clone(), self.seconds)
    }

    /// What this experiment came to, where it was done, and is what it was then. Its conclusion is drawn anew.
    pub fn done(&self, experiment: Experiment) -> Option<Outcome> {
        let same = |made: &&Made| {
            made.name == experiment.name && made.hypothesis == experiment.hypothesis && made.method == experiment.method
        };
        let made = self.experiments.iter().filter(|made| made.end == End::Done).find(same)?;
        Some(Outcome::of(experiment, made.sheet.clone(), End::Done, made.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::ALL;
    use crate::report::{Expect, Group, Row, figure};

    #[test]
    fn what_was_done_is_read_back_as_it_was_and_what_went_wrong_is_not() {
        let mut sheet = Sheet::default();
        let row = |name: &str, values: Vec<Vec<f64>>| Row { values, ..Row::new(name, &[Expect::More]) };
        let figures = [figure("commits a second", "/s"), figure("p99", " ms")];
        let rows = vec![row("one", vec![vec![1.5, f64::NAN]]), row("two", vec![vec![2.0, 0.1]])];
        sheet.groups.push(Group::new("1 core", &figures, rows));
        sheet.note("beside it");
        let (machine, version) = (Machine { cores: 2, ..Machine::default() }, "1.2.3");
        let outcomes = vec![
            Outcome::of(ALL[0], sheet.clone(), End::Done, 5.0),
            Outcome::of(ALL[1], sheet, End::Failed("no".to_owned()), 6.0),
        ];
        let made = Some(load::made::Made::here());
        let report =
            Report { machine, version, made, build: Some(3), quick: false, seconds: 11.0, experiments: outcomes };
        let saved: Saved = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
        assert_eq!(saved.done(ALL[0]).unwrap().to_string(), report.experiments[0].to_string());
        assert!(saved.done(ALL[1]).is_none() && saved.done(ALL[2]).is_none());
        // Red without the comparison: new words would stand above old figures.
        for changed in [Experiment { method: "another", ..ALL[0] }, Experiment { hypothesis: "another", ..ALL[0] }] {
            assert!(saved.done(changed).is_none());
        }
        assert_eq!(saved.beginning(), (report.machine.clone(), report.made.clone(), 11.0));
        assert_eq!(saved.obstacle(&report), None);
        assert!(saved.obstacle(&Report { quick: true, ..report.clone() }).is_some());
        assert!(saved.obstacle(&Report { version: "1.2.4", ..report.clone() }).is_some());
        assert!(saved.obstacle(&Report { build: Some(4), ..report.clone() }).is_some());
        assert!(saved.obstacle(&Report { build: None, ..report.clone() }).is_none(), "it cannot be read now");
        let other = Machine { cores: 4, ..report.machine.clone() };
        assert!(saved.obstacle(&Report { machine: other, ..report }).is_some());
    }

    /// Red where a probe that fails is a value that JSON has no word for, and where a second disk goes on with what is of the first.
    #[test]
    fn a_report_goes_on_without_a_probe_of_its_disk_but_not_on_another_one() {
        let read = |text: &str| serde_json::from_str::<Saved>(text).unwrap();
        let on = |disk: Option<u64>| Report {
            machine: Machine { fsync_ms: None, disk, ..Machine::default() },
            version: "1.2.3",
            made: None,
            build: None,
            quick: false,
            seconds: 1.0,
            experiments: Vec::new(),
        };
        let text = serde_json::to_string(&on(Some(7))).unwrap();
        assert!(text.contains(r#""fsync_ms":null"#), "{text}");
        assert_eq!(read(&text).beginning(), (on(Some(7)).machine, None, 1.0));
        assert!(on(None).machine.to_string().ends_with("a synced write of 4 KiB could not be measured"));
        let obstacle = |disk| read(&text).obstacle(&on(disk));
        assert_eq!(obstacle(Some(8)), Some("is of another disk (--within)"));
        assert_eq!((obstacle(Some(7)), obstacle(None)), (None, None));
        // What neither was told in.
        let before = text.replace(r#","disk":7"#, "").replace(r#","made":null"#, "");
        assert_eq!(read(&before).obstacle(&on(Some(8))), None);
    }
}
