//! A pair: starts both sides of an exchange as agents, and collects their figures.

use std::net::SocketAddr;
use std::path::PathBuf;

use apus::trace::{self, Sampling};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::sides::Exchange;
use crate::error::Error;
use crate::machine::Cores;
use crate::plan::{Plan, Side};
use crate::process::{Control, Job, Spawner, Task};

/// Job name of agents started by [`Exchange::measure`] and [`Exchange::record`].
pub const JOBS: &[Job] = &[Job { name: JOB, run: agent }];

/// Name of the job.
const JOB: &str = "exchange";

/// Figures of both sides in one run.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The side that sent requests.
    pub client: Side,
    /// The side that replied.
    pub server: Side,
}

/// Time traces of both sides: RPC selection and files.
#[derive(Clone, Debug)]
pub struct Recording {
    /// RPCs to trace.
    pub sampling: Sampling,
    /// File of the client's trace.
    pub client: PathBuf,
    /// File of the server's trace.
    pub server: PathBuf,
}

/// Parameters of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
struct Details {
    exchange: Exchange,
    plan: Plan,
    /// RPCs to trace and the file of the trace.
    recording: Option<(String, PathBuf)>,
    /// Address of the server, for the client.
    server: Option<SocketAddr>,
}

impl Pair {
    /// Starts a server and then its client, and returns their figures. `task` returns the task for
    /// the side with this name; the client's task receives the server's address.
    ///
    /// # Errors
    ///
    /// A side failed.
    pub fn measure(
        plan: &Plan,
        host: &Spawner,
        cores: Cores,
        task: impl Fn(&str, Option<SocketAddr>) -> Task,
    ) -> Result<Self, Error> {
        let mut server = host.start(Task { core: cores.server, ..task("server", None) })?;
        let address = server.address()?;
        let client = Task { core: cores.client, ..task("client", Some(address)) };
        let client = host.start(client)?.result(plan.duration())?;
        Ok(Self { client, server: server.stop()? })
    }

    /// Returns the client's rate of completed requests, in thousands per second.
    #[must_use]
    pub fn krps(&self) -> f64 {
        self.client.messages as f64 / self.client.elapsed as f64 * 1e6
    }

    /// Returns the server's rate of received payload, in Gbit/s.
    #[must_use]
    pub fn gbps(&self) -> f64 {
        self.server.bytes as f64 / self.server.elapsed as f64 * 8.0
    }
}

impl Exchange {
    /// Measures the exchange with fresh processes.
    ///
    /// # Errors
    ///
    /// A side failed.
    pub fn measure(self, plan: &Plan, host: &Spawner, cores: Cores) -> Result<Pair, Error> {
        self.run(plan, host, cores, None)
    }

    /// Measures the exchange, and writes the time traces of both sides.
    ///
    /// # Errors
    ///
    /// A side failed, or a file cannot be written.
    pub fn record(
        self,
        plan: &Plan,
        host: &Spawner,
        cores: Cores,
        recording: &Recording,
    ) -> Result<Pair, Error> {
        self.run(plan, host, cores, Some(recording))
    }

    fn run(
        self,
        plan: &Plan,
        host: &Spawner,
        cores: Cores,
        recording: Option<&Recording>,
    ) -> Result<Pair, Error> {
        Pair::measure(plan, host, cores, |side, server| {
            let recording = recording.map(|it| {
                let file = if server.is_some() { &it.client } else { &it.server };
                (it.sampling.to_string(), file.clone())
            });
            Task {
                name: side.to_owned(),
                core: None,
                bind: None,
                job: JOB.to_owned(),
                details: json!(Details { exchange: self, plan: plan.clone(), recording, server }),
            }
        })
    }
}

/// Does the work of one side, and writes its trace.
fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let malformed =
        |what: &dyn ToString| Error::Peer(format!("a malformed task: {}", what.to_string()));
    let details: Details =
        serde_json::from_value(task.details.clone()).map_err(|error| malformed(&error))?;
    let Details { exchange, plan, recording, server } = details;
    if let Some((sampling, _)) = &recording {
        trace::set_sampling(sampling.parse().map_err(|_| malformed(sampling))?);
    }
    let side = match server {
        None => exchange.serve(&plan, control),
        Some(server) => exchange.drive(&plan, server, control),
    }?;
    if let Some((_, file)) = recording {
        trace::dump_to(&file).map_err(|error| Error::Peer(error.to_string()))?;
    }
    Ok(json!(side))
}

#[cfg(test)]
mod tests {
    use super::super::path::Path;
    use super::super::sides::Calls;
    use super::*;
    use crate::plan::Replies;
    use crate::process::run_job;
    use apus::{PollMode, Settings};
    use std::time::Duration;

    fn plan(size: usize, outstanding: usize) -> Plan {
        Plan {
            size,
            outstanding,
            poll: PollMode::Block,
            settings: Settings::default(),
            warmup: Duration::ZERO,
            measure: Duration::from_millis(10),
            seed: 1,
            raw: false,
            keys: None,
        }
    }

    #[test]
    fn both_sides_report_figures_of_every_kind_of_exchange() {
        let host = Spawner::Threads(|task, control| run_job(JOBS, task, control));
        let cores = Cores { client: None, server: None };
        for (calls, outstanding) in [
            (Calls::OneByOne, 1),
            (Calls::Many(Replies::Echo), 8),
            (Calls::Many(Replies::Short), 8),
        ] {
            let exchange = Exchange { calls, path: Path::Udp };
            let pair = exchange.measure(&plan(1000, outstanding), &host, cores).unwrap();
            assert!(pair.krps() > 0.0 && pair.client.latency.p50 > 0, "{pair:?}");
            if calls == Calls::Many(Replies::Short) {
                assert!(pair.gbps() > 0.0, "{pair:?}");
            }
        }
    }
}
