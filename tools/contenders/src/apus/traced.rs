//! What do time traces cost?
//!
//! The same exchange as by default, where one RPC in 256 is traced, with traces off, and with all RPCs traced.

use std::net::SocketAddr;

use apus::trace::{self, Sampling};

use super::Apus;
use crate::contender::{Contender, Plan, Side};
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Requests and replies between two endpoints, both of which record something else than by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The exchange.
    pub exchange: Apus,
    /// Whether all RPCs are traced; otherwise nothing is recorded.
    pub all: bool,
}

impl Traced {
    const fn sampling(self) -> Sampling {
        if self.all { Sampling::All } else { Sampling::Off }
    }
}

impl Contender for Traced {
    fn name(&self) -> &'static str {
        if self.all { "apus-traced" } else { "apus-untraced" }
    }

    fn settings(&self) -> String {
        let sampling = self.sampling();
        format!("{}, time traces: {sampling}", self.exchange.settings())
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        trace::set_sampling(self.sampling());
        self.exchange.serve(plan, control)
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        trace::set_sampling(self.sampling());
        self.exchange.drive(plan, server, control)
    }
}
