//! Memory of a server for each of its clients.

use apus_report::result::{Figure, Ratio, Row};
use apus_report::stats::Spread;
use apus_testbed::error::Error;
use apus_testbed::process::{Spawner, Task};
use apus_testbed::repeat::Repeater;
use compare_kit::{Clients, MEMORY_JOB, MemorySetup, ThrowAwayKeys};
use serde_json::{Value, json};
use std::time::Duration;

use crate::agent;
use crate::options::Options;
use crate::programs::Program;

/// A number of clients of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// Name in results.
    pub(crate) name: &'static str,
    /// Clients, each with a connection of its own.
    pub(crate) clients: usize,
}

/// All of them.
pub(crate) const CROWDS: [Crowd; 3] = [
    Crowd { name: "memory-1", clients: 1 },
    Crowd { name: "memory-100", clients: 100 },
    Crowd { name: "memory-10k", clients: 10_000 },
];

/// Longest time for a client's connection and call, as an estimate for the wait.
const EACH: Duration = Duration::from_millis(10);

/// The memory of a peer's server, in all runs.
pub(crate) struct Growth<'a> {
    pub(crate) program: &'a Program,
    pub(crate) crowd: Crowd,
    /// Each run, and the kB for each client.
    found: Vec<(usize, f64)>,
}

/// Returns what has to be measured: peers that have connections, with each number of clients.
pub(crate) fn entries<'a>(options: &Options, programs: &'a [Program]) -> Vec<Growth<'a>> {
    let selected = CROWDS.into_iter().filter(|crowd| options.selects(crowd.name));
    let nodes = || programs.iter().filter(|program| program.about.is_node);
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
        let process = server.pid().ok_or_else(|| Error::Peer("a server elsewhere".to_owned()))?;
        let count = self.crowd.clients;
        let clients = start("clients", Some(Clients { count, server: address, process }))?;
        let bytes = clients.result(EACH * count as u32)?;
        let _: Value = server.stop()?;
        Ok(bytes)
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

/// apus beside each peer with as many clients.
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
