//! Which states does an RPC go through?
//!
//! ```text
//!   client   Outgoing ──first DATA──▶ Incoming ──last DATA──▶ (gone)
//!
//!   server   Incoming ──request complete──▶ InService ──reply──▶ Outgoing ──ack──▶ (gone)
//! ```
//!
//! Any state also ends by failure; an RPC that has ended is not kept, so that there is no dead state.
//! Source: reference L-3. Requirement `RPC-2`; the tests list every state with every step.

/// State of an RPC at its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientState {
    /// The request is being sent, or the server has not begun to answer.
    Outgoing,
    /// Part of the response is here.
    Incoming,
}

/// What can happen to an RPC at its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientStep {
    /// A DATA packet of the response was accepted.
    ResponseBegins,
    /// GRANT: the server takes more of the request.
    Grant,
    /// RESEND: the server lacks part of the request.
    Resend,
    /// RPC_UNKNOWN: the server has no trace of the request.
    Unknown,
}

/// State of an RPC at its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerState {
    /// Part of the request is here, or all of it but not the client's confirmation.
    Incoming,
    /// The application has the request.
    InService,
    /// The response is being sent or waits for its acknowledgment.
    Outgoing,
}

/// What can happen to an RPC at its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerStep {
    /// The request is complete, and confirmed.
    RequestComplete,
    /// The application replies.
    Reply,
    /// GRANT: the client takes more of the response.
    Grant,
    /// RESEND: the client lacks part of the response.
    Resend,
}

impl ClientState {
    /// The state after `step`; `None` if the step makes no sense now and is dropped.
    pub(crate) const fn after(self, step: ClientStep) -> Option<Self> {
        match (self, step) {
            (_, ClientStep::ResponseBegins) => Some(Self::Incoming),
            (Self::Outgoing, ClientStep::Grant | ClientStep::Resend | ClientStep::Unknown) => {
                Some(Self::Outgoing)
            }
            // The server has the whole request (row P-14: RPC_UNKNOWN is ignored now).
            (Self::Incoming, ClientStep::Grant | ClientStep::Resend | ClientStep::Unknown) => None,
        }
    }
}

impl ServerState {
    /// The state after `step`; `None` if the step makes no sense now.
    pub(crate) const fn after(self, step: ServerStep) -> Option<Self> {
        match (self, step) {
            (Self::Incoming, ServerStep::RequestComplete) => Some(Self::InService),
            (Self::InService, ServerStep::Reply)
            | (Self::Outgoing, ServerStep::Grant | ServerStep::Resend) => Some(Self::Outgoing),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Every state with every step; `-` is a step that makes no sense.
    #[test]
    fn every_cell_of_both_tables() {
        let mut table = String::new();
        for state in [ClientState::Outgoing, ClientState::Incoming] {
            use ClientStep::{Grant, Resend, ResponseBegins, Unknown};
            for step in [ResponseBegins, Grant, Resend, Unknown] {
                let after = state.after(step).map_or("-".into(), |s| format!("{s:?}"));
                writeln!(table, "client {state:?} + {step:?} = {after}").unwrap();
            }
        }
        for state in [ServerState::Incoming, ServerState::InService, ServerState::Outgoing] {
            use ServerStep::{Grant, Reply, RequestComplete, Resend};
            for step in [RequestComplete, Reply, Grant, Resend] {
                let after = state.after(step).map_or("-".into(), |s| format!("{s:?}"));
                writeln!(table, "server {state:?} + {step:?} = {after}").unwrap();
            }
        }
        insta::assert_snapshot!(table.trim_end(), @"
        client Outgoing + ResponseBegins = Incoming
        client Outgoing + Grant = Outgoing
        client Outgoing + Resend = Outgoing
        client Outgoing + Unknown = Outgoing
        client Incoming + ResponseBegins = Incoming
        client Incoming + Grant = -
        client Incoming + Resend = -
        client Incoming + Unknown = -
        server Incoming + RequestComplete = InService
        server Incoming + Reply = -
        server Incoming + Grant = -
        server Incoming + Resend = -
        server InService + RequestComplete = -
        server InService + Reply = Outgoing
        server InService + Grant = -
        server InService + Resend = -
        server Outgoing + RequestComplete = -
        server Outgoing + Reply = -
        server Outgoing + Grant = Outgoing
        server Outgoing + Resend = Outgoing
        ");
    }
}
