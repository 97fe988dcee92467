//! The check of a request in service whose application wants to know whether its client still waits
//! (RPC-20).
//!
//! A client that lives answers a RESEND for no bytes with BUSY; one that has cancelled the call, or
//! was restarted, answers RPC_UNKNOWN. A port that is closed answers by ICMP, and a host that is
//! gone by silence.

use super::check::{ask_in_turn, is_due};
use crate::inbound::Inbound;
use crate::lifecycle::{Ending, end_server};
use crate::limits::CLIENT_GONE_TIMEOUTS;
use crate::protocol::Protocol;
use crate::rpc::{RpcKey, ServerState, SideState};
use crate::time::USEC;
use crate::timer::MIN_RESENDS;
use crate::tx::Output;

/// Returns whether the client of `rpc` is asked: its request is in service, and watched.
pub(super) fn is_watched_in_service(protocol: &Protocol, rpc: RpcKey) -> bool {
    let entry = &protocol.tables.rpcs[rpc];
    entry.state() == SideState::Server(ServerState::InService) && entry.silence_place.tick != 0
}

/// Asks the client of a request in service, or ends the request if the client has not answered for
/// long.
pub(super) fn check_client(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
) {
    let long = CLIENT_GONE_TIMEOUTS * protocol.config.timeout_usecs() * USEC;
    let entry = &protocol.tables.rpcs[rpc];
    if protocol.silence(rpc) >= long && entry.asks >= MIN_RESENDS {
        output.observation.metrics.recovery.rpc_timeouts += 1;
        return end_server(protocol, inbound, output, rpc, Ending::Discarded);
    }
    if is_due(protocol, rpc) {
        protocol.timers.resend_lines.join(&mut protocol.tables.rpcs, rpc);
        ask_in_turn(protocol, inbound, output, protocol.tables.rpcs[rpc].peer);
    }
}
