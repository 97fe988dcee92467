//! The two sides of an exchange: server and client.

use std::net::SocketAddr;

use apus::Bytes;
use serde::{Deserialize, Serialize};

use super::endpoint::{open_client, serve_at};
use super::path::{Path, configured};
use super::{client, engine_counters, path, server};
use crate::error::Error;
use crate::plan::{Plan, Replies, Side};
use crate::process::Control;

/// Requests and replies between two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Number of outstanding calls.
    pub calls: Calls,
    /// Path of the messages.
    pub path: Path,
}

/// Number of outstanding calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Calls {
    /// One call at a time: each waits for its reply, and the server echoes.
    OneByOne,
    /// The plan's number of concurrent calls; ready messages leave together.
    Many(Replies),
}

impl Exchange {
    /// Runs the server until it must stop.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be opened, or fails.
    pub fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let endpoint =
            serve_at(configured(&plan.settings, self.path.of(plan)).poll_mode(plan.poll), control)?;
        let side = match self.calls {
            Calls::OneByOne => server::echo(&endpoint).map(|()| Side::default()),
            Calls::Many(Replies::Echo) => {
                server::echo_together(&endpoint).map(|()| Side::default())
            }
            Calls::Many(Replies::Short) => server::absorb(&endpoint, plan),
        }?;
        Ok(Side { counters: engine_counters::of(&endpoint), ..side })
    }

    /// Runs the client: exchanges messages with `server` for the plan's duration.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be opened, a call fails, or messages took another path.
    pub fn drive(
        &self,
        plan: &Plan,
        server: SocketAddr,
        control: &mut Control,
    ) -> Result<Side, Error> {
        let endpoint = open_client(
            configured(&plan.settings, self.path.of(plan)).poll_mode(plan.poll),
            control,
        )?;
        if self.path == Path::Local {
            let request = Bytes::from_static(&[0]);
            path::connect_local(&endpoint, || client::call(&endpoint, server, &request).map(drop))?;
        }
        let mut side = match self.calls {
            Calls::OneByOne => client::one_by_one(&endpoint, server, plan, control.stop()),
            Calls::Many(replies) => client::many(&endpoint, server, plan, replies, control.stop()),
        }?;
        path::check(self.path, &endpoint, side.messages)?;
        side.counters = engine_counters::of(&endpoint);
        Ok(side)
    }
}
