//! The measurement: all peers, interleaved, in each work.

use apus_report::findings::{Findings, Section};
use apus_report::progress::Progress;
use apus_testbed::error::{Doing, Error};
use apus_testbed::machine::Cores;
use apus_testbed::process::{Agent, Spawner, Task};
use apus_testbed::repeat::Repeater;
use compare_kit::{JOB, Measured, Setup, Side, ThrowAwayKeys, Work};
use serde_json::json;

use crate::footprint;
use crate::memory::{self, Growth};
use crate::options::Options;
use crate::programs::{Program, find};
use crate::table;
use crate::works::Course;

/// Measurements of a peer in one work and run.
pub(crate) struct Found {
    pub(crate) run: usize,
    pub(crate) measured: Measured,
    /// Nanoseconds of processor time that the server's process used, from when it was ready to its
    /// end.
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
    let mut growths = memory::entries(options, &programs);
    let phases = options.runs * (entries.len() + growths.len());
    let repeater = Repeater::of(phases, Progress::of(phases));
    let cores = Cores::choose();
    measure(options, cores, &repeater, &mut entries, &mut growths)?;
    let mut findings = table::found(options, &programs, &entries, &growths);
    findings.outcome.notes.extend(cores.note());
    if phases > 0 {
        findings.outcome.notes.extend(repeater.neighbours());
        findings.outcome.account_without_rows(repeater.take());
    }
    for load in options.loads() {
        load.add(options, &programs, &mut findings)?;
    }
    if options.selects(footprint::NAME) {
        let (rows, table) = footprint::found(&programs, options.build)?;
        findings.outcome.rows.extend(rows);
        findings = findings.with(Section::new("").with_all(table));
    }
    if findings.outcome.rows.is_empty() {
        return Err(repeater.failure());
    }
    Ok(table::closed(findings, &programs))
}

/// Measures calls of one client, and the memory of many clients, run by run.
fn measure(
    options: &Options,
    cores: Cores,
    repeater: &Repeater,
    entries: &mut [Entry<'_>],
    growths: &mut [Growth<'_>],
) -> Result<(), Error> {
    let folder = tempfile::Builder::new().prefix("apus-compare-").tempdir();
    let folder = folder.doing(|| "make a folder for keys".to_owned())?;
    let keys = ThrowAwayKeys::create(folder.path())?;
    for run in 0..options.runs {
        let step = |row: &str| {
            let (of, runs) = (run + 1, options.runs);
            repeater.progress().step(&format!("run {of} of {runs}: {row}"));
        };
        for entry in &mut *entries {
            let row = entry.row();
            step(&row);
            let measured = repeater.attempt(&row, &format!("run {}", run + 1), || {
                let (measured, server_cpu) = entry.measure(options, &keys, cores)?;
                Ok(Found { run, measured, server_cpu })
            })?;
            entry.found.extend(measured);
        }
        for growth in &mut *growths {
            step(&growth.row());
            growth.run(run, repeater, &keys)?;
        }
    }
    Ok(())
}

impl Entry<'_> {
    /// Returns the name of the row.
    pub(crate) fn row(&self) -> String {
        format!("{} {}", self.program.about.name, self.course.name)
    }

    /// Measures once. Returns the client's measurements, and the server's processor time.
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

    /// Returns whether its calls are short.
    pub(crate) const fn is_short(&self) -> bool {
        !matches!(self.course.work, Work::Throughput { .. })
    }
}
