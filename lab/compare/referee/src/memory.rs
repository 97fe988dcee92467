//! Memory of a server for each of its clients.

use std::time::Duration;
use std::{iter, thread};

use apus_report::result::{Figure, Ratio, Row};
use apus_report::stats::Spread;
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::machine::anonymous_memory;
use apus_testbed::process::{Spawner, Task};
use apus_testbed::repeat::Repeater;
use compare_kit::{Clients, MEMORY_JOB, MemorySetup, ThrowAwayKeys};
use serde_json::{Value, json};

use crate::agent;
use crate::options::Options;
use crate::programs::Program;

/// A number of clients of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// Name in results.
    pub(crate) name: &'static str,
    /// Clients, each with a separate connection.
    pub(crate) clients: usize,
}

/// All of them.
pub(crate) const CROWDS: [Crowd; 3] = [
    Crowd { name: "memory-1", clients: 1 },
    Crowd { name: "memory-100", clients: 100 },
    Crowd { name: "memory-10k", clients: 10_000 },
];

/// Maximum clients per process; the system limits descriptors.
const TOGETHER: usize = 1_000;

/// Settling time of a server. Chosen by us: far longer than a call takes.
const REST: Duration = Duration::from_millis(200);

/// The memory of a peer's server, in all runs.
pub(crate) struct Growth<'a> {
    pub(crate) program: &'a Program,
    pub(crate) crowd: Crowd,
    /// Each run, and the kB for each client.
    found: Vec<(usize, f64)>,
}

/// Returns the measurements to make: peers whose servers grow, with each number of clients.
pub(crate) fn entries<'a>(options: &Options, programs: &'a [Program]) -> Vec<Growth<'a>> {
    let selected = CROWDS.into_iter().filter(|crowd| options.selects(crowd.name));
    let grows = |program: &&Program| program.about.is_node && program.about.grows;
    let nodes = || programs.iter().filter(grows);
    selected
        .flat_map(|crowd| nodes().map(move |program| Growth { program, crowd, found: Vec::new() }))
        .collect()
}

impl Growth<'_> {
    /// Returns the name of the row.
    pub(crate) fn row(&self) -> String {
        format!("{} {}", self.program.about.name, self.crowd.name)
    }

    /// Measures once, unless it fails again and again.
    pub(crate) fn run(
        &mut self,
        run: usize,
        repeater: &Repeater,
        keys: &ThrowAwayKeys,
    ) -> Result<(), Error> {
        let bytes =
            repeater.attempt(&self.row(), &format!("run {}", run + 1), || self.measure(keys))?;
        let each = |bytes: u64| bytes as f64 / 1024.0 / self.crowd.clients as f64;
        self.found.extend(bytes.map(|bytes| (run, each(bytes))));
        Ok(())
    }

    /// Returns the bytes that the server has touched for all clients together.
    fn measure(&self, keys: &ThrowAwayKeys) -> Result<u64, Error> {
        let transport = &self.program.about.name;
        let spawner = Spawner::Processes(agent::program_of(self.program)?);
        let start = |side: &str, clients| {
            let (transport, keys) = (transport.clone(), keys.clone());
            let details = json!(MemorySetup { transport, keys, clients });
            let name = format!("{} {side}", self.program.about.name);
            let job = MEMORY_JOB.to_owned();
            spawner.start(Task { name, core: None, bind: None, job, details })
        };
        let mut server = start("server", None)?;
        let address = server.address()?;
        let process = server.pid();
        let memory = || {
            thread::sleep(REST);
            anonymous_memory(process)
        };
        let clients = |count| {
            let mut clients = start("clients", Some(Clients { count, server: address }))?;
            // They have called.
            clients.address().map(|_| clients)
        };
        // Memory that a server allocates once, independently of the number of clients, does not
        // count.
        let _first = clients(1)?;
        let before = memory()?;
        let (whole, rest) = (self.crowd.clients / TOGETHER, self.crowd.clients % TOGETHER);
        let counts = iter::repeat_n(TOGETHER, whole).chain((rest > 0).then_some(rest));
        let others = counts.map(clients).collect::<Result<Vec<_>, Error>>()?;
        let after = memory()?;
        for mut clients in others {
            clients.begin(&(), clock::now())?;
            let _: Value = clients.result(REST)?;
        }
        Ok(after.saturating_sub(before))
    }

    fn spread(&self) -> Option<Spread> {
        let values: Vec<f64> = self.found.iter().map(|(_, kb)| *kb).collect();
        (!values.is_empty()).then(|| Spread::over(&values))
    }
}

/// Name of the figure in rows.
const FIGURE: &str = "server_kb_per_client";

/// Title of its table.
pub(crate) const TITLE: &str = "memory of the server for each client, kB";

/// Returns the rows.
pub(crate) fn rows(entries: &[Growth<'_>]) -> Vec<Row> {
    let row = |entry: &Growth<'_>| {
        let spread = Figure::Spread(entry.spread()?);
        let work = Figure::Detail(json!(entry.crowd.name));
        Some(Row::new(&entry.program.about.name).with("work", work).with(FIGURE, spread))
    };
    entries.iter().filter_map(row).collect()
}

/// Returns the cells of the table: peer, work and median.
pub(crate) fn cells<'a>(
    entries: &'a [Growth<'_>],
) -> impl Iterator<Item = (&'a str, &'static str, f64)> {
    let cell = |entry: &'a Growth<'_>| {
        let median = entry.spread()?.median;
        Some((&entry.program.about.name[..], entry.crowd.name, median))
    };
    entries.iter().filter_map(cell)
}

/// Ratios of apus to each peer with the same number of clients.
pub(crate) fn ratios(entries: &[Growth<'_>]) -> Vec<(String, Ratio)> {
    let ratio = |entry: &Growth<'_>| {
        let ours = entries
            .iter()
            .find(|ours| ours.program.is_beside(entry.program) && ours.crowd == entry.crowd)?;
        let [one, other] = [ours, entry].map(|it| &it.program.about.name);
        let title = format!("{FIGURE} {one}/{other} {}", entry.crowd.name);
        Ratio::paired(&ours.found, &entry.found).map(|ratio| (title, ratio))
    };
    entries.iter().filter_map(ratio).collect()
}
