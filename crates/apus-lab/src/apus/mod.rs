//! How does apus take part?
//!
//! As in any application: through the public interface of the crate `apus`, with its default
//! parameters, one endpoint and one thread on each side. What the clients and servers of the
//! experiments do is in `client` and `server`.
//!
//! - [`Apus`]: in `rtt`, `throughput` and `rate`.
//! - [`Receiving`]: in `handoff`.
//!
//! How it carries the demo's load is told there.

mod client;
mod receiving;
pub(crate) mod server;

pub use receiving::Receiving;
pub(crate) use receiving::counters;

use std::net::{Ipv4Addr, SocketAddr};

use apus::{Builder, Endpoint, Poll};

use crate::contender::{Contender, Plan, Replies, Side};
use crate::error::Error;
use crate::process::Control;

/// Requests and replies between two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apus {
    /// Each call waits for its reply, and the server echoes.
    OneByOne,
    /// As many calls are under way as the plan says; messages that are ready leave together.
    Many(Replies),
}

impl Contender for Apus {
    fn name(&self) -> &'static str {
        "apus"
    }

    fn settings(&self) -> String {
        let calls = match self {
            Self::OneByOne => "call by call",
            Self::Many(_) => {
                "send, recv_many and recv_requests, messages that are ready leave together (cork)"
            }
        };
        format!("one endpoint on each side, default parameters, whoever waits polls, {calls}")
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let endpoint = serve_at(Endpoint::builder().poll(plan.poll), control)?;
        match self {
            Self::OneByOne => server::echo(&endpoint),
            Self::Many(Replies::Echo) => server::echo_together(&endpoint),
            Self::Many(Replies::Short) => return server::absorb(&endpoint, plan),
        }?;
        Ok(Side::default())
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let endpoint = open_client(plan.poll, control)?;
        match self {
            Self::OneByOne => client::one_by_one(&endpoint, server, plan, control.stop()),
            Self::Many(replies) => client::many(&endpoint, server, plan, *replies, control.stop()),
        }
    }
}

/// Opens a server, says that clients may come, and has it shut down when the side is told to stop.
pub(crate) fn serve_at(settings: Builder, control: &mut Control) -> Result<Endpoint, Error> {
    let endpoint = open(settings)?;
    shut_down_on_stop(&endpoint, control);
    control.ready(endpoint.local_addr())?;
    Ok(endpoint)
}

/// Opens a client, to be shut down when the side is told to stop.
fn open_client(poll: Poll, control: &Control) -> Result<Endpoint, Error> {
    let endpoint = open(Endpoint::builder().poll(poll).serve(false))?;
    shut_down_on_stop(&endpoint, control);
    Ok(endpoint)
}

/// Opens an endpoint at any free port of this host.
pub(crate) fn open(settings: Builder) -> Result<Endpoint, Error> {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    settings
        .bind(any_port)
        .map_err(|error| Error::endpoint(format!("open an endpoint at {any_port}"), error))
}

fn shut_down_on_stop(endpoint: &Endpoint, control: &Control) {
    let endpoint = endpoint.clone();
    control.stop().wake_with(move || endpoint.shutdown());
}
