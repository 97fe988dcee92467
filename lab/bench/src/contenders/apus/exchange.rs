//! The contender apus: the exchange of [`apus_measure`].

use std::net::SocketAddr;

use apus_measure::error::Error;
use apus_measure::exchange::{Calls, Exchange, Path};
use apus_measure::plan::{Plan, Side};
use apus_measure::process::Control;

use crate::contenders::contender::Contender;

impl Contender for Exchange {
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
                "send, recv_completions and recv_requests, messages that are ready leave together (cork)"
            }
        };
        let path = match self.path {
            Path::Udp => "over UDP",
            Path::Raw => "over raw IP",
            Path::Local => "through shared memory",
        };
        format!(
            "one endpoint on each side, {path}, default parameters except those in `configuration`, waiting threads poll, {calls}"
        )
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        Self::serve(self, plan, control)
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        Self::drive(self, plan, server, control)
    }
}
