//! How does apus take part?
//!
//! As in any application: through the public interface of the crate `apus`, with its default
//! parameters unless a plan has others, one endpoint and one thread on each side. What the clients and servers of the
//! experiments do is in `client` and `server`.
//!
//! - [`Apus`]: in `rtt`, `throughput`, `rate` and `local`.
//! - [`Receiving`]: in `handoff`.
//! - [`Traced`]: in `rtt` and `rate` on request, with other time traces than by default.
//! - [`BarePair`]: in `local`, what an endpoint has below it there.
//!
//! How it carries the demo's load is told there.
//!
//! # Invariants
//!
//! - **P1** All endpoints of experiments begin with `builder` (in `path`), which says over which path their messages go. All
//!   experiments but `local` measure the network's path: there they must not take the one through
//!   shared memory, which endpoints take by themselves when their peer is on this host.
//! - **P2** What is said to have gone over a path has: what counts is compared with what the endpoint counted.

mod client;
mod pair;
pub mod path;
mod receiving;
pub mod server;
mod traced;

pub use pair::BarePair;
pub use pair::both_sides;
pub use path::Path;
pub use path::{builder, configured};
pub use receiving::Receiving;
pub use receiving::counters;
pub use traced::Traced;

use std::net::{Ipv4Addr, SocketAddr};

use apus::{Bytes, Endpoint, EndpointBuilder};
use serde::{Deserialize, Serialize};

use crate::contender::{Contender, Plan, Replies, Side};
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Requests and replies between two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apus {
    /// How many calls are under way.
    pub calls: Calls,
    /// Where messages go.
    pub path: Path,
}

/// How many calls are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Calls {
    /// Each call waits for its reply, and the server echoes.
    OneByOne,
    /// As many as the plan says; messages that are ready leave together.
    Many(Replies),
}

impl Contender for Apus {
    fn name(&self) -> &'static str {
        match self.path {
            Path::Udp | Path::Raw => "apus",
            Path::Local => "apus-local",
        }
    }

    fn settings(&self) -> String {
        let calls = match self.calls {
            Calls::OneByOne => "call by call",
            Calls::Many(_) => {
                "send, recv_many and recv_requests, messages that are ready leave together (cork)"
            }
        };
        let path = match self.path {
            Path::Udp => "over UDP",
            Path::Raw => "over raw IP",
            Path::Local => "through shared memory",
        };
        format!(
            "one endpoint on each side, {path}, default parameters but for what `configuration` says, whoever waits polls, {calls}"
        )
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let endpoint =
            serve_at(configured(&plan.settings, self.path.of(plan)).poll_mode(plan.poll), control)?;
        match self.calls {
            Calls::OneByOne => server::echo(&endpoint),
            Calls::Many(Replies::Echo) => server::echo_together(&endpoint),
            Calls::Many(Replies::Short) => return server::absorb(&endpoint, plan),
        }?;
        Ok(Side::default())
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let endpoint = open_client(
            configured(&plan.settings, self.path.of(plan)).poll_mode(plan.poll),
            control,
        )?;
        if self.path == Path::Local {
            let request = Bytes::from_static(&[0]);
            path::meet(&endpoint, || client::call(&endpoint, server, &request).map(drop))?;
        }
        let side = match self.calls {
            Calls::OneByOne => client::one_by_one(&endpoint, server, plan, control.stop()),
            Calls::Many(replies) => client::many(&endpoint, server, plan, replies, control.stop()),
        }?;
        path::check(self.path, &endpoint, side.messages)?;
        Ok(side)
    }
}

/// Opens a server, says that clients may come, and has it shut down when the side is told to stop.
pub fn serve_at(settings: EndpointBuilder, control: &mut Control) -> Result<Endpoint, Error> {
    let endpoint = open(settings)?;
    shut_down_on_stop(&endpoint, control);
    control.ready(endpoint.local_addr())?;
    Ok(endpoint)
}

/// Opens a client, to be shut down when the side is told to stop.
fn open_client(settings: EndpointBuilder, control: &Control) -> Result<Endpoint, Error> {
    let endpoint = open(settings.serve(false))?;
    shut_down_on_stop(&endpoint, control);
    Ok(endpoint)
}

/// Opens an endpoint at any free port of this host.
pub fn open(settings: EndpointBuilder) -> Result<Endpoint, Error> {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    settings
        .bind(any_port)
        .map_err(|error| Error::endpoint(format!("open an endpoint at {any_port}"), error))
}

fn shut_down_on_stop(endpoint: &Endpoint, control: &Control) {
    let endpoint = endpoint.clone();
    control.stop().wake_with(move || endpoint.shutdown());
}
