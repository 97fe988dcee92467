//! apus with non-default time traces, to measure their cost.
//!
//! By default, one RPC in 256 is traced. This contender traces either all RPCs or none.

use std::net::SocketAddr;

use apus::trace::{self, Sampling};

use crate::contenders::contender::Contender;
use apus_measure::exchange::Exchange;
use apus_measure::plan::{Plan, Side};
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Requests and replies between two endpoints with a different trace sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedApus {
    /// The exchange.
    pub exchange: Exchange,
    /// Whether all RPCs are traced; otherwise tracing is off.
    pub all: bool,
}

impl TracedApus {
    const fn sampling(self) -> Sampling {
        if self.all { Sampling::All } else { Sampling::Off }
    }
}

impl Contender for TracedApus {
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
