//! The sides of the local experiment, each in its process.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::entrant::Entrant;
use super::one_task;
use crate::contenders::baseline::UnixKind;
use crate::contenders::baseline::tcp::socket::{Settings, listen_at};
use crate::contenders::baseline::unix;
use crate::contenders::transport::{Work, serve_streams};
use apus_measure::exchange::Calls;
use apus_measure::plan::{Plan, Side};
use apus_measure::process::wake_on_stop;
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};

/// The job of [`agent`].
pub(crate) const JOB: &str = "local";

/// The details of an agent's task. Its result is a [`Side`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) entrant: Entrant,
    pub(super) calls: Calls,
    pub(super) plan: Plan,
    pub(super) role: Role,
    /// Whether other agents run the same task, with a common start.
    pub(super) together: bool,
}

/// The side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Role {
    /// The server of one client.
    Server,
    /// The server of many.
    ServerOfMany,
    /// A client of the server there.
    Client(SocketAddr),
    /// Both sides in one task.
    Both,
}

/// Runs one side.
pub(super) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let malformed = |error| Error::Peer(format!("a malformed task: {error}"));
    let details: Details = serde_json::from_value(task.details.clone()).map_err(malformed)?;
    let Details { entrant, calls, plan, role, together } = details;
    if together {
        clock::sleep_until(control.begin::<()>()?.at);
    }
    let contender = entrant.contender(calls);
    let side = match role {
        Role::Server => contender.serve(&plan, control),
        Role::ServerOfMany => serve_many(entrant, calls, &plan, control),
        Role::Client(server) => contender.drive(&plan, server, control),
        Role::Both => one_task::run(entrant, &plan, control.stop()),
    }?;
    Ok(json!(side))
}

/// Echoes the messages of many clients in one thread. Endpoints do so by design; sockets use epoll.
fn serve_many(
    entrant: Entrant,
    calls: Calls,
    plan: &Plan,
    control: &mut Control,
) -> Result<Side, Error> {
    match entrant {
        Entrant::Stream => {
            let place = unix::socket::listen(UnixKind::Stream)?;
            echo_on(&place.listener, place.address, plan, control)
        }
        Entrant::Tcp => {
            let (listener, address) = listen_at(Ipv4Addr::LOCALHOST.into(), &Settings::LOOPBACK)?;
            echo_on(&listener, address, plan, control)
        }
        _ => entrant.contender(calls).serve(plan, control),
    }
}

fn echo_on(
    listener: &impl AsFd,
    address: SocketAddr,
    plan: &Plan,
    control: &mut Control,
) -> Result<Side, Error> {
    wake_on_stop(listener, control.stop())?;
    control.ready(address)?;
    serve_streams(listener, plan.poll, Work::NONE, control.stop())?;
    Ok(Side::default())
}
