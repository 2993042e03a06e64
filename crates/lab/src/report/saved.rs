//! An earlier report that was read back: its finished experiments need not be run again.

use super::{End, Machine, Outcome, Report, Sheet};
use crate::experiments::Experiment;
use serde::Deserialize;

/// The report that `--save` wrote.
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

/// One experiment of the report.
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
    /// Returns why the run of `report` cannot resume this; a machine is recognized by processor, cores, system and
    /// disk.
    pub fn obstacle(&self, report: &Report) -> Option<&'static str> {
        let of = |machine: &Machine| (machine.cpu.clone(), machine.cores, machine.system.clone());
        // A report from before this field may be from any disk.
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

    /// Returns the machine as it was, when the run began, and how long it has taken so far, in seconds.
    pub fn beginning(&self) -> (Machine, Option<load::made::Made>, f64) {
        (self.machine.clone(), self.made.clone(), self.seconds)
    }

    /// Returns the outcome of this experiment, if it was finished and is unchanged. Its conclusion is drawn again.
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
        // Red without the comparison: new texts would be printed above old figures.
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

    /// Red where a failed probe is a value that JSON cannot represent, and where a second disk resumes a run on the
    /// first.
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
        // Neither field was in it.
        let before = text.replace(r#","disk":7"#, "").replace(r#","made":null"#, "");
        assert_eq!(read(&before).obstacle(&on(Some(8))), None);
    }
}
