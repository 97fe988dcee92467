//! The contender apus with sealed packets.

use std::net::SocketAddr;

use crate::contenders::contender::Contender;
use crate::contenders::keys::ThrowAwayKeys;
use apus_measure::exchange::Exchange;
use apus_measure::plan::{Plan, Side};
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Requests and replies between two endpoints with sealed packets, keyed by the plan's throw-away
/// secret.
///
/// The handshake takes place in the first call, part of the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedApus(pub Exchange);

impl SealedApus {
    fn plan(plan: &Plan) -> Plan {
        let mut sealed = plan.clone();
        sealed.settings.security =
            plan.keys.as_deref().map(|folder| ThrowAwayKeys::in_folder(folder).security());
        sealed
    }
}

impl Contender for SealedApus {
    fn name(&self) -> &'static str {
        "apus-sealed"
    }

    fn settings(&self) -> String {
        format!("{}; every packet sealed (TLS 1.3, AES-128-GCM)", self.0.settings())
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn is_encrypted(&self) -> bool {
        true
    }

    fn exclusion(&self, plan: &Plan) -> Option<String> {
        if plan.raw {
            return Some("the kernel profile is never sealed".to_owned());
        }
        plan.keys.is_none().then(|| "it takes part with --sealed".to_owned())
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        self.0.serve(&Self::plan(plan), control)
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        self.0.drive(&Self::plan(plan), server, control)
    }
}
