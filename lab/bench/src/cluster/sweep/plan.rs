//! The plan of a sweep: its steps, and the points that need their results.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::cluster::account::command;
use crate::cluster::options::{ClusterOptions, Link, Mix};
use crate::cluster::setting::Setting;
use crate::cluster::site::Venue;
use apus_report::result::COMMIT;
use apus_testbed::error::{Error, require};

/// The steps of a sweep, in order, and its points.
#[derive(Debug)]
pub(super) struct Plan {
    /// Sixteen hexadecimal digits that identify all options and the program: its version and
    /// commit.
    pub(super) name: String,
    /// The options of all points, except for the varied setting.
    pub(super) options: ClusterOptions,
    pub(super) steps: Vec<SweepStep>,
    pub(super) varied: Vec<Varied>,
}

/// A measurement that is made once.
#[derive(Clone, Debug)]
pub(super) enum SweepStep {
    /// The rate of the links, for `--link auto`.
    Link,
    /// The base of slowdowns with these options, for all points that have the same links and MTU.
    Base {
        /// Only links and MTU are taken from the points.
        options: ClusterOptions,
    },
    /// The runs of some transports.
    Runs {
        /// The point's.
        options: ClusterOptions,
        /// The mixes that no other step measures with these options.
        mixes: Vec<Mix>,
        /// The step that measures the base.
        base: usize,
        /// The first point that needs it, like `load=0.5`.
        about: String,
    },
}

/// A varied setting.
#[derive(Debug)]
pub(super) struct Varied {
    pub(super) setting: Setting,
    pub(super) points: Vec<SettingPoint>,
}

/// A value of a setting.
#[derive(Debug)]
pub(super) struct SettingPoint {
    pub(super) value: String,
    pub(super) options: ClusterOptions,
    /// The step that measures the base.
    pub(super) base: usize,
    /// For each mix of the options, the step that measures it, and its position in that step.
    pub(super) runs: Vec<(usize, usize)>,
}

/// Maximum points of a sweep. Chosen by us: a day of measuring; more are probably a mistake.
const MOST_POINTS: usize = 1_000;

impl Plan {
    /// Returns the plan for these settings. Settings with a single value have it at every point.
    pub(super) fn new(
        options: &ClusterOptions,
        settings: &[Setting],
        venue: &Venue,
    ) -> Result<Self, Error> {
        let (fixed, varied): (Vec<Setting>, Vec<Setting>) =
            settings.iter().cloned().partition(|setting| setting.values().len() == 1);
        let example = "nothing is varied: give a setting several values, like poll_usecs=0,50";
        require(!varied.is_empty(), "param", example)?;
        if let Some(twice) = repeated(settings) {
            return Err(wrong(format!("{twice} is given twice: write its values in one list")));
        }
        let points: usize = varied.iter().map(|setting| setting.values().len()).sum();
        require(points <= MOST_POINTS, "param", "there are at most 1000 values; try fewer")?;
        let mut options = options.clone();
        Setting::apply_all(&fixed, &mut options)?;
        let mut steps = Steps { venue, options: &options, all: Vec::new(), known: BTreeMap::new() };
        let varied = varied.into_iter().map(|setting| steps.varied(setting));
        let varied = varied.collect::<Result<Vec<_>, Error>>()?;
        let steps = steps.all;
        let name = name(&options, &varied, venue)?;
        Ok(Self { name, options, steps, varied })
    }

    /// Units of the progress bar: transports measured for best times, and runs.
    pub(super) fn counts(step: &SweepStep) -> usize {
        match step {
            SweepStep::Link => 0,
            SweepStep::Base { options } => options.alone().len(),
            SweepStep::Runs { options, mixes, .. } => options.repetition.runs * mixes.len(),
        }
    }
}

/// Steps so far.
struct Steps<'a> {
    venue: &'a Venue,
    /// The options that all points have in common.
    options: &'a ClusterOptions,
    all: Vec<SweepStep>,
    /// Steps and positions in them, keyed by the options that a result depends on.
    known: BTreeMap<String, (usize, usize)>,
}

impl Steps<'_> {
    fn varied(&mut self, setting: Setting) -> Result<Varied, Error> {
        let points = setting.values().iter().map(|value| self.point(&setting, value));
        let points = points.collect::<Result<_, Error>>()?;
        Ok(Varied { setting, points })
    }

    fn point(&mut self, setting: &Setting, value: &str) -> Result<SettingPoint, Error> {
        let mut options = self.options.clone();
        setting.apply(value, &mut options);
        let about = format!("{}={value}", setting.name());
        self.check(&options, &about)?;
        if options.link == Link::Auto {
            self.step("link".to_owned(), || SweepStep::Link);
        }
        let base = self.base(&options);
        let needed: Vec<Mix> = options
            .transports
            .iter()
            .filter(|mix| !self.known.contains_key(&self.key(&options, mix)))
            .cloned()
            .collect();
        for (position, mix) in needed.iter().enumerate() {
            let key = self.key(&options, mix);
            self.known.insert(key, (self.all.len(), position));
        }
        if !needed.is_empty() {
            let options = options.clone();
            self.all.push(SweepStep::Runs { options, mixes: needed, base, about });
        }
        let found = |mix| self.known[&self.key(&options, mix)];
        let runs = options.transports.iter().map(found).collect();
        Ok(SettingPoint { value: value.to_owned(), options, base, runs })
    }

    /// Checks that the options can be measured; the error names the offending value.
    fn check(&self, options: &ClusterOptions, about: &str) -> Result<(), Error> {
        options.check().and_then(|()| self.venue.check(options)).map_err(|error| match error {
            Error::Option { problem, .. } => wrong(format!("{about}: {problem}")),
            error => error,
        })
    }

    /// Returns the step that measures the base. The base depends on links and packets only; other
    /// options have their values without a sweep, so that all points share the same base.
    fn base(&mut self, options: &ClusterOptions) -> usize {
        let mut base = ClusterOptions { link: options.link, ..self.options.clone() };
        base.fabric.mtu = options.fabric.mtu;
        let key = format!("base {} {}", base.link, base.fabric.mtu);
        self.step(key, || SweepStep::Base { options: base })
    }

    /// Returns the step for the results that depend on `key`.
    fn step(&mut self, key: String, step: impl FnOnce() -> SweepStep) -> usize {
        let next = self.all.len();
        let (at, _) = *self.known.entry(key).or_insert((next, 0));
        if at == next {
            self.all.push(step());
        }
        at
    }

    /// Returns everything that the runs of a mix depend on.
    fn key(&self, options: &ClusterOptions, mix: &Mix) -> String {
        let mut seen = ClusterOptions { transports: vec![mix.clone()], ..options.clone() };
        // A parameter with its default value counts as unset.
        let usual = ClusterOptions::default();
        let matters = |name: &str, value| mix.has_apus() && value != usual.parameter(name);
        seen.parameters.retain(|(name, value)| matters(name, *value));
        command("cluster", self.venue, &seen, &[])
    }
}

/// Returns a setting given more than once.
fn repeated(settings: &[Setting]) -> Option<&str> {
    let names: Vec<&str> = settings.iter().map(Setting::name).collect();
    let again = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name));
    again.map(|(_, name)| *name)
}

fn wrong(problem: String) -> Error {
    Error::Option { option: "param", problem }
}

/// Equal plans have equal names, in any process.
fn name(options: &ClusterOptions, varied: &[Varied], venue: &Venue) -> Result<String, Error> {
    let settings: Vec<Setting> = varied.iter().map(|varied| varied.setting.clone()).collect();
    let shares: Vec<(u32, f64)> = options.workload()?.sizes().iter().collect();
    let all = json!({
        "command": command("sweep", venue, options, &settings),
        "sizes": shares,
        "version": env!("CARGO_PKG_VERSION"),
        "commit": COMMIT,
    });
    let digest = digest(&SHA256, all.to_string().as_bytes());
    Ok(digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(settings: &[&str]) -> Result<Plan, Error> {
        let options = ClusterOptions {
            transports: ["apus", "tcp", "apus+tcp"].map(|name| name.parse().unwrap()).to_vec(),
            ..ClusterOptions::default()
        };
        let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
        let venue = Venue::Fabric { program: "apus".into() };
        Plan::new(&options, &settings, &venue)
    }

    /// Returns the steps in short.
    fn steps(plan: &Plan) -> Vec<String> {
        let in_words = |step: &SweepStep| match step {
            SweepStep::Link => "link".to_owned(),
            SweepStep::Base { options } => format!("base {} {}", options.link, options.fabric.mtu),
            SweepStep::Runs { mixes, about, .. } => {
                let mixes: Vec<String> = mixes.iter().map(ToString::to_string).collect();
                format!("{about}: {}", mixes.join(" "))
            }
        };
        plan.steps.iter().map(in_words).collect()
    }

    #[test]
    fn parameters_of_apus_leave_the_others_as_they_are() {
        let plan = plan(&["max_overcommit=1,5", "burst_bytes=3000"]).unwrap();
        let expected = [
            "link",
            "base auto 1500",
            "max_overcommit=1: apus tcp apus+tcp",
            "max_overcommit=5: apus apus+tcp",
        ];
        assert_eq!(steps(&plan), expected);
        let [varied] = &plan.varied[..] else { panic!("one is varied") };
        assert_eq!(varied.points[1].runs, [(3, 0), (2, 1), (3, 1)]);
        assert_eq!(varied.points[1].options.parameter("burst_bytes"), 3000);
    }

    #[test]
    fn options_change_everybody_and_what_has_been_measured_is_not_measured_again() {
        let plan = plan(&["load=0.5,0.8", "receivers=1,2", "max_overcommit=8,9"]).unwrap();
        let expected = [
            "link",
            "base auto 1500",
            "load=0.5: apus tcp apus+tcp",
            "load=0.8: apus tcp apus+tcp",
            "receivers=2: apus tcp apus+tcp",
            "max_overcommit=9: apus apus+tcp",
        ];
        assert_eq!(steps(&plan), expected, "0.8, 1 and 8 are what is usual");
        assert_eq!(plan.varied[1].points[0].runs, plan.varied[0].points[1].runs);
    }

    #[test]
    fn each_link_and_each_mtu_has_a_base() {
        let plan = plan(&["link=20mbit,100mbit", "mtu=1500,9000"]).unwrap();
        let steps = steps(&plan);
        let bases: Vec<&str> =
            steps.iter().map(String::as_str).filter(|step| step.starts_with("base")).collect();
        assert_eq!(
            bases,
            ["base 20mbit 1500", "base 100mbit 1500", "base auto 1500", "base auto 9000"]
        );
        assert_eq!(steps.iter().filter(|step| *step == "link").count(), 1);
    }

    #[test]
    fn a_name_belongs_to_one_plan() {
        let name = |settings: &[&str]| plan(settings).unwrap().name;
        assert_eq!(name(&["load=0.5,0.8"]), name(&["load=0.5,0.8"]));
        let mut names = vec![
            name(&["load=0.5,0.8"]),
            name(&["load=0.5,0.7"]),
            name(&["load=0.5,0.8", "mtu=9000"]),
        ];
        names.sort();
        names.dedup();
        assert_eq!((names.len(), names[0].len()), (3, 16));
    }

    #[test]
    fn what_cannot_be_swept_is_said_with_the_value() {
        let error = |settings: &[&str]| plan(settings).unwrap_err().to_string();
        assert!(error(&["load=0.8"]).contains("nothing is varied"));
        assert!(error(&["load=0.5,0.8", "load=0.9"]).contains("load is given twice"));
        assert!(error(&["load=0.5,1.5"]).starts_with("param: load=1.5: a load is 0.01 to 1"));
        assert!(error(&["buffer=1MB,100"]).starts_with("param: buffer=100: a buffer holds"));
    }
}
