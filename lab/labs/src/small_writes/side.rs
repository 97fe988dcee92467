//! Sides: the processes of the experiment.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tally::{Plan, Tally};
use super::variant::{Carrier, Variant};
use super::{product, tcp, watch};
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::{Control, Spawner, Task};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "small-writes";

/// The task of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SideTask {
    /// Echoes commands.
    Server { variant: String, plan: Plan },
    /// Sends commands and takes the time.
    Client { variant: String, plan: Plan, server: SocketAddr },
    /// Captures the packets of the interface of that name.
    Watcher { interface: String },
}

impl SideTask {
    /// Returns the task for an agent.
    pub(super) fn task(self, core: Option<usize>) -> Task {
        let name = match &self {
            Self::Server { variant, .. } => format!("{variant} server"),
            Self::Client { variant, .. } => format!("{variant} client"),
            Self::Watcher { .. } => "packet watcher".to_owned(),
        };
        Task { name, core, bind: None, job: JOB.to_owned(), details: json!(self) }
    }
}

/// Runs both sides of a variant once. Returns the tally and the server's address.
pub(super) fn exchange(
    variant: &Variant,
    plan: &Plan,
    cores: Cores,
    host: &Spawner,
) -> Result<(Tally, SocketAddr), Error> {
    let variant = variant.name.to_owned();
    let task = SideTask::Server { variant: variant.clone(), plan: *plan };
    let mut server = host.start(task.task(cores.server))?;
    let address = server.address()?;
    let task = SideTask::Client { variant, plan: *plan, server: address };
    let client = host.start(task.task(cores.client))?;
    // The warm-up has a tenth of the time; `result` adds a tolerance.
    let tally = client.result(std::time::Duration::from_nanos(plan.time / 10 * 11))?;
    server.stop::<Value>()?;
    Ok((tally, address))
}

/// Runs one process.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let malformed = |what: &str| Error::Peer(format!("an unexpected task: {what}"));
    let task: SideTask = serde_json::from_value(task.details.clone())
        .map_err(|error| malformed(&error.to_string()))?;
    let named = |name: &str| Variant::named(name).ok_or_else(|| malformed(name));
    match task {
        SideTask::Server { variant, plan } => {
            let variant = named(&variant)?;
            let serve = match variant.carrier {
                Carrier::Tcp => tcp::serve,
                Carrier::Apus => product::serve,
            };
            serve(variant, &plan, control).map(|()| Value::Null)
        }
        SideTask::Client { variant, plan, server } => {
            let variant = named(&variant)?;
            let drive = match variant.carrier {
                Carrier::Tcp => tcp::drive,
                Carrier::Apus => product::drive,
            };
            drive(variant, &plan, server, control.stop()).map(|tally| json!(tally))
        }
        SideTask::Watcher { interface } => watch::agent(&interface, control),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::PollMode;

    /// TCP's timers decide about segments; this test only shows that every variant completes with
    /// the right replies.
    #[test]
    fn every_variant_exchanges_its_commands() {
        let host = Spawner::Threads(crate::agent::run);
        let plan =
            Plan { exchanges: 3, time: 60_000_000_000, warm_up: 1, seed: 1, poll: PollMode::Block };
        for variant in &Variant::ALL {
            let cores = Cores { client: None, server: None };
            let (tally, server) = exchange(variant, &plan, cores, &host).unwrap();
            assert_eq!((tally.exchanges, tally.latencies.len()), (3, 3), "{variant}");
            assert!(tally.elapsed > 0 && server.port() != 0, "{variant}");
        }
    }
}
