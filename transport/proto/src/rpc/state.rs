//! The states of an RPC, and the steps between them.
//!
//! ```text
//!   client             Outgoing ──first DATA──▶ Incoming ──last DATA──▶ (gone)
//!                         │ ▲
//!        no room for DATA ▼ │ first DATA with room: Incoming
//!                       NoRoom
//!
//!   server   Incoming ──request complete──▶ InService ──reply──▶ Outgoing ──ack──▶ (gone)
//! ```
//!
//! Any state also ends by failure; an RPC that has ended is not kept, so that there is no dead
//! state. Source: HM `homa_rpc.h` `homa_rpc`. Requirement `RPC-2`; the tests list every state with
//! every step.
//!
//! # Invariants
//!
//! - **STATE-1** A state changes only by [`Rpc::step`](super::Rpc::step), and a step of this
//!   endpoint is possible in the state in which it is taken. (A step requested by a peer or the
//!   application may be impossible; it is then refused.)

/// State of an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SideState {
    /// This endpoint calls.
    Client(ClientState),
    /// This endpoint is called.
    Server(ServerState),
}

/// State of an RPC at its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientState {
    /// The request is being sent, or the server has not started to answer.
    Outgoing,
    /// Like `Outgoing`, and DATA of the response was dropped because there was no room for it.
    NoRoom,
    /// Part of the response has arrived.
    Incoming,
}

/// State of an RPC at its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerState {
    /// Part of the request has arrived.
    Incoming,
    /// The application has the request.
    InService,
    /// The response is being sent or waits for its acknowledgment.
    Outgoing,
}

/// Transitions of an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RpcStep {
    /// GRANT: the peer takes more of the outgoing message.
    Grant,
    /// RESEND: the peer lacks part of the outgoing message.
    Resend,
    /// RPC_UNKNOWN: the server has no trace of the request.
    Unknown,
    /// The application replies, or abandons the request.
    Reply,
    /// The response finds no room.
    NoRoom,
    /// A DATA packet of the response was accepted.
    ResponseBegins,
    /// The request is complete.
    RequestComplete,
}

impl RpcStep {
    /// Whether the peer or the application requests the step, so that it may be impossible.
    pub(super) const fn is_asked_for(self) -> bool {
        matches!(self, Self::Grant | Self::Resend | Self::Unknown | Self::Reply)
    }
}

impl SideState {
    /// The state after `step`; `None` if the step is impossible.
    pub(super) const fn after(self, step: RpcStep) -> Option<Self> {
        match self {
            Self::Client(state) => match state.after(step) {
                Some(state) => Some(Self::Client(state)),
                None => None,
            },
            Self::Server(state) => match state.after(step) {
                Some(state) => Some(Self::Server(state)),
                None => None,
            },
        }
    }
}

impl ClientState {
    const fn after(self, step: RpcStep) -> Option<Self> {
        match (self, step) {
            (_, RpcStep::ResponseBegins) => Some(Self::Incoming),
            (
                Self::Outgoing | Self::NoRoom,
                RpcStep::Grant | RpcStep::Resend | RpcStep::Unknown,
            ) => Some(self),
            (Self::Outgoing | Self::NoRoom, RpcStep::NoRoom) => Some(Self::NoRoom),
            // In `Incoming`, the server has the whole request (HM `homa_incoming.c`
            // `homa_rpc_unknown_pkt`: RPC_UNKNOWN is ignored now).
            _ => None,
        }
    }
}

impl ServerState {
    const fn after(self, step: RpcStep) -> Option<Self> {
        match (self, step) {
            (Self::Incoming, RpcStep::RequestComplete) => Some(Self::InService),
            (Self::InService, RpcStep::Reply)
            | (Self::Outgoing, RpcStep::Grant | RpcStep::Resend) => Some(Self::Outgoing),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Every state with every step; `-` is an impossible step.
    #[test]
    fn every_cell_of_both_tables() {
        use RpcStep::{Grant, NoRoom, Reply, RequestComplete, Resend, ResponseBegins, Unknown};
        let client = [ClientState::Outgoing, ClientState::NoRoom, ClientState::Incoming];
        let server = [ServerState::Incoming, ServerState::InService, ServerState::Outgoing];
        let states = client.map(SideState::Client).into_iter().chain(server.map(SideState::Server));
        let mut table = String::new();
        for state in states {
            let steps = [Grant, Resend, Unknown, Reply, NoRoom, ResponseBegins, RequestComplete];
            for step in steps {
                let after = state.after(step).map_or("-".into(), |s| format!("{s:?}"));
                writeln!(table, "{state:?} + {step:?} = {after}").unwrap();
            }
        }
        insta::assert_snapshot!(table.trim_end(), @"
        Client(Outgoing) + Grant = Client(Outgoing)
        Client(Outgoing) + Resend = Client(Outgoing)
        Client(Outgoing) + Unknown = Client(Outgoing)
        Client(Outgoing) + Reply = -
        Client(Outgoing) + NoRoom = Client(NoRoom)
        Client(Outgoing) + ResponseBegins = Client(Incoming)
        Client(Outgoing) + RequestComplete = -
        Client(NoRoom) + Grant = Client(NoRoom)
        Client(NoRoom) + Resend = Client(NoRoom)
        Client(NoRoom) + Unknown = Client(NoRoom)
        Client(NoRoom) + Reply = -
        Client(NoRoom) + NoRoom = Client(NoRoom)
        Client(NoRoom) + ResponseBegins = Client(Incoming)
        Client(NoRoom) + RequestComplete = -
        Client(Incoming) + Grant = -
        Client(Incoming) + Resend = -
        Client(Incoming) + Unknown = -
        Client(Incoming) + Reply = -
        Client(Incoming) + NoRoom = -
        Client(Incoming) + ResponseBegins = Client(Incoming)
        Client(Incoming) + RequestComplete = -
        Server(Incoming) + Grant = -
        Server(Incoming) + Resend = -
        Server(Incoming) + Unknown = -
        Server(Incoming) + Reply = -
        Server(Incoming) + NoRoom = -
        Server(Incoming) + ResponseBegins = -
        Server(Incoming) + RequestComplete = Server(InService)
        Server(InService) + Grant = -
        Server(InService) + Resend = -
        Server(InService) + Unknown = -
        Server(InService) + Reply = Server(Outgoing)
        Server(InService) + NoRoom = -
        Server(InService) + ResponseBegins = -
        Server(InService) + RequestComplete = -
        Server(Outgoing) + Grant = Server(Outgoing)
        Server(Outgoing) + Resend = Server(Outgoing)
        Server(Outgoing) + Unknown = -
        Server(Outgoing) + Reply = -
        Server(Outgoing) + NoRoom = -
        Server(Outgoing) + ResponseBegins = -
        Server(Outgoing) + RequestComplete = -
        ");
    }
}
