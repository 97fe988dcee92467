//! The measurement: all peers in turns, in each work.

use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::{Doing, Error};
use apus_testbed::machine::Cores;
use apus_testbed::process::{Agent, Spawner, Task};
use apus_testbed::repeat::Repeater;
use compare_kit::{JOB, Measured, Setup, Side, ThrowAwayKeys, Work};
use serde_json::json;

use crate::options::Options;
use crate::programs::{Program, find};
use crate::table;
use crate::works::Course;

/// What was measured of a peer in a work and a run.
pub(crate) struct Found {
    pub(crate) run: usize,
    pub(crate) measured: Measured,
    /// Nanoseconds of processor time that the server's process used, from when it was ready to its end.
    pub(crate) server_cpu: u64,
}

/// A peer in a work, in all runs.
pub(crate) struct Entry<'a> {
    pub(crate) program: &'a Program,
    pub(crate) course: Course,
    pub(crate) found: Vec<Found>,
}

/// Measures everything.
pub(crate) fn run(options: &Options) -> Result<Findings, Error> {
    let programs = find(&options.only)?;
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for course in options.courses() {
        for program in &programs {
            let about = &program.about;
            let fits = about.longest.is_none_or(|longest| course.work.size() <= longest);
            if about.waits.include(course.wait) && fits {
                entries.push(Entry { program, course, found: Vec::new() });
            }
        }
    }
    let folder = tempfile::Builder::new().prefix("apus-compare-").tempdir();
    let folder = folder.doing(|| "make a folder for keys".to_owned())?;
    let keys = ThrowAwayKeys::create(folder.path())?;
    let phases = options.runs * entries.len();
    let repeater = Repeater::of(phases, Progress::of(phases));
    let cores = Cores::choose();
    for run in 0..options.runs {
        for entry in &mut entries {
            let row = entry.row();
            let (of, runs) = (run + 1, options.runs);
            repeater.progress().step(&format!("run {of} of {runs}: {row}"));
            let measured = repeater.attempt(&row, &format!("run {of}"), || {
                let (measured, server_cpu) = entry.measure(options, &keys, cores)?;
                Ok(Found { run, measured, server_cpu })
            })?;
            entry.found.extend(measured);
        }
    }
    if entries.iter().all(|entry| entry.found.is_empty()) {
        return Err(repeater.failure());
    }
    let mut findings = table::found(options, &programs, &entries);
    findings.outcome.notes.extend(cores.note());
    findings.outcome.notes.extend(repeater.neighbours());
    findings.outcome.account_without_rows(repeater.take());
    Ok(findings)
}

impl Entry<'_> {
    /// Returns the name of the row.
    pub(crate) fn row(&self) -> String {
        format!("{} {}", self.program.about.name, self.course.name)
    }

    /// Measures once. Returns what the client has measured, and the server's processor time.
    fn measure(
        &self,
        options: &Options,
        keys: &ThrowAwayKeys,
        cores: Cores,
    ) -> Result<(Measured, u64), Error> {
        let start = |part: &str, core, side| -> Result<Agent, Error> {
            let setup = Setup { wait: self.course.wait, keys: keys.clone(), side };
            let name = format!("{} {part}", self.program.about.name);
            let (job, details) = (JOB.to_owned(), json!(setup));
            let program = Spawner::Processes(self.program.path.clone());
            program.start(Task { name, core, bind: None, job, details })
        };
        let mut server = start("server", cores.server, Side::Server)?;
        let address = server.address()?;
        let length = options.length();
        let side = Side::Client { server: address, work: self.course.work, length };
        let measured: Measured = start("client", cores.client, side)?.result(length + length)?;
        let server_cpu = server.stop()?;
        if measured.calls == 0 {
            let said = "completed no call in the time that counts".to_owned();
            return Err(Error::Agent {
                agent: format!("{} client", self.program.about.name),
                said,
            });
        }
        Ok((measured, server_cpu))
    }

    /// Returns whether its calls are short ones.
    pub(crate) const fn is_short(&self) -> bool {
        !matches!(self.course.work, Work::Throughput { .. })
    }
}
